"""Models of the Hugging Face Hub's inference providers, through the `huggingface_hub` package."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, cast

from sanderling.errors import MissingExtraError

from ._access import as_address, as_client_settings, as_key, saved_hub_token
from ._chat import ChatCompletionsModel, known_apart
from ._failures import Asked, Failure, Fault, cause, http_failure, missing_key, short

if TYPE_CHECKING:
    from types import ModuleType

    import huggingface_hub

    from ._messages import RoleConversions
    from ._question import Question

_KEY = "HF_TOKEN"
_VARIABLES = (_KEY, "HUGGING_FACE_HUB_TOKEN")
_WAYS = ("token", "api_key", "base_url")
_ROUTER = "https://router.huggingface.co"


class InferenceClientModel(ChatCompletionsModel):
    """A model that one of the Hub's inference providers, or an endpoint of yours, serves.

    Args:
        model_id: The model on the Hub.
        provider: The inference provider, such as ``"cerebras"``; by default the Hub chooses one.
        token: A token of the Hub, or a key of the provider; by default the environment variable
            HF_TOKEN, or what ``hf auth login`` left.
        timeout: Seconds of silence after which a request is given up.
        client_kwargs: Further arguments of `huggingface_hub.InferenceClient`.
        custom_role_conversions: Which role stands for which; replaces the usual ones (tool call to
            assistant, tool response to user).
        api_key: Another name of `token`.
        bill_to: The organization that pays.
        base_url: An endpoint with the chat completions API, instead of a provider.
        **kwargs: Those of `ApiModel`, and parameters of every request, such as ``temperature``.
            Those that only the server knows: ``extra_body={"name": value}``.

    Raises:
        TypeError: No request has such a parameter.
        ValueError: There are both `token` and `api_key`, or both `provider` and `base_url`.
        MissingExtraError: The package `huggingface_hub` is not installed.
    """

    model_id: str
    provider: ClassVar[str] = "hub"
    _passes_on = False
    _needs = ("hub", "huggingface_hub")
    form_settings = ChatCompletionsModel.form_settings | {"provider", "bill_to"}
    _with_key = frozenset({"base_url"})

    def __init__(
        self,
        model_id: str = "Qwen/Qwen3-Next-80B-A3B-Thinking",
        provider: str | None = None,
        token: str | None = None,
        timeout: float | None = 120,
        client_kwargs: Mapping[str, Any] | None = None,
        custom_role_conversions: RoleConversions | None = None,
        api_key: str | None = None,
        bill_to: str | None = None,
        base_url: str | None = None,
        **kwargs: Any,
    ) -> None:
        if token is not None and api_key is not None:
            raise ValueError("token and api_key are two names of one thing: give one of them")
        if provider is not None and base_url is not None:
            raise ValueError("base_url is an endpoint of its own: it has no provider; give one")
        self.client_kwargs = as_client_settings("client_kwargs", client_kwargs)
        self.inference_provider = provider
        self.bill_to = bill_to
        self.base_url = as_address("base_url", base_url)
        self._token = as_key("api_key", api_key) if token is None else as_key("token", token)
        super().__init__(
            model_id, custom_role_conversions=custom_role_conversions, timeout=timeout, **kwargs
        )

    def create_client(self) -> huggingface_hub.InferenceClient:
        """Returns a client of the `huggingface_hub` package, for blocking code."""
        client = _sdk().InferenceClient(**self._client_arguments())
        return cast("huggingface_hub.InferenceClient", client)

    def create_async_client(self) -> huggingface_hub.AsyncInferenceClient:
        """Returns a client of the `huggingface_hub` package, for the event loop that runs."""
        client = _sdk().AsyncInferenceClient(**self._client_arguments())
        return cast("huggingface_hub.AsyncInferenceClient", client)

    def _standing(self) -> str:
        if self.base_url is not None or "base_url" in self.client_kwargs:
            return "hub:endpoint"
        return f"hub:{self.inference_provider or 'auto'}"

    def _prepare(self, question: Question) -> dict[str, Any]:
        return known_apart(super()._prepare(question), self._package_parameters())

    def _package_parameters(self) -> Collection[str]:
        return _known_parameters()

    def _send(self, request: dict[str, Any]) -> Any:
        return self.client.chat_completion(**request)

    async def _asend(self, request: dict[str, Any]) -> Any:
        client = await self._clients.running()
        return await client.chat_completion(**request)

    @contextmanager
    def _open(self, request: dict[str, Any]) -> Generator[Iterator[Any], None, None]:
        # A client keeps the connection of a stream until it is itself closed: so each stream has
        # its own one.
        if self._given_client is not None:
            yield self._given_client.chat_completion(**request)
            return
        with self.create_client() as client:
            yield iter(client.chat_completion(**request))

    @asynccontextmanager
    async def _aopen(self, request: dict[str, Any]) -> AsyncGenerator[AsyncIterator[Any], None]:
        async with self.create_async_client() as client:
            yield aiter(await client.chat_completion(**request))

    def _failure(self, error: Exception) -> Failure | None:
        from huggingface_hub import errors

        http: Any = _transport()
        match error:
            case errors.HfHubHTTPError():
                response = error.response
                said = error.server_message or _said(response) or error
                return http_failure(
                    response.status_code, response.headers, said, request_id=error.request_id
                )
            case errors.InferenceTimeoutError() | http.TimeoutException():
                return Failure(Fault.TIMEOUT, short(error))
            case errors.TextGenerationError():
                return Failure(Fault.BROKEN, str(error))
            case http.HTTPError():
                return Failure(Fault.CONNECTION, cause(error))
            case json.JSONDecodeError():
                return Failure(Fault.UNREADABLE, short(error))
        return None

    def _asked(self) -> Asked:
        url = self.base_url or self.client_kwargs.get("base_url")
        if url is None:
            url = f"{_ROUTER} ({self.inference_provider})" if self.inference_provider else _ROUTER
        return Asked(
            self.model_id,
            str(url).rstrip("/"),
            self._token is not None,
            _KEY,
            address="that the provider serves this model, and base_url, if there is one",
        )

    def _client_arguments(self) -> dict[str, Any]:
        limit = self.timeout
        given = {
            "provider": self.inference_provider,
            "token": self._token,
            "timeout": limit
            and _transport().Timeout(limit, connect=min(limit, self.CONNECT_SECONDS)),
            "bill_to": self.bill_to,
            "base_url": self.base_url,
        }
        there = {name: value for name, value in given.items() if value is not None}
        arguments = {**there, **self.client_kwargs}
        key_there = arguments.get("token") or arguments.get("api_key") or _sdk().get_token()
        if not key_there and "base_url" not in arguments:
            raise missing_key(self._asked())
        return arguments

    def _check_key(self) -> None:
        given = self._token, self.base_url, *map(self.client_kwargs.get, _WAYS)
        there = any(map(os.environ.get, _VARIABLES)) or saved_hub_token(os.environ)
        # In a notebook of Google's the package looks among the secrets there.
        if not any(given) and not there and "google.colab" not in sys.modules:
            raise missing_key(self._asked())

    def _settings(self) -> dict[str, object]:
        given = {
            "provider": self.inference_provider,
            "token": self._token,
            "client_kwargs": self.client_kwargs or None,
            "bill_to": self.bill_to,
            "base_url": self.base_url,
        }
        there = {name: value for name, value in given.items() if value is not None}
        return {**super()._settings(), **there}


HfApiModel = InferenceClientModel


def _sdk() -> ModuleType:
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        raise MissingExtraError("InferenceClientModel", "hub", "huggingface_hub") from error
    return huggingface_hub


def _transport() -> ModuleType:
    """Returns what the package does HTTP with; between its versions that became httpx2."""
    errors: Any = importlib.import_module(f"{_sdk().__name__}.errors")
    return importlib.import_module(errors.HTTPError.__module__.partition(".")[0])


@functools.cache
def _known_parameters() -> frozenset[str]:
    return frozenset(inspect.signature(_sdk().InferenceClient.chat_completion).parameters)


def _said(response: Any) -> str:
    """Returns what the body of an answer says."""
    try:
        body = response.json()
    except (ValueError, RuntimeError):  # no JSON, or a stream that was not read
        return ""
    error = body.get("error", body) if isinstance(body, dict) else body
    return str(error.get("message", error) if isinstance(error, dict) else error)
