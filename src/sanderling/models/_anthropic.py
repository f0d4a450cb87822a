"""Anthropic's models, through the `anthropic` package."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from sanderling.errors import MissingExtraError

from ._access import as_address, as_client_settings, as_key, key_of_environment
from ._anthropic_messages import AnthropicStream, AnthropicWriter, mark, read_message, thinks
from ._api import ApiModel
from ._arguments import check_at_least
from ._body import async_client_options, client_options, with_http_client
from ._chat import known_apart
from ._failures import Asked, Failure, Fault, cause, http_failure, missing_key, short
from ._foreign import get
from ._structured import schema_of
from ._transport import transport_failure
from ._turns import conversation

if TYPE_CHECKING:
    from types import ModuleType

    import anthropic

    from sanderling.messages import ChatMessage, JSONObject

    from ._messages import RoleConversions
    from ._question import Question

_KEY: Final = "ANTHROPIC_API_KEY"
_URL: Final = "https://api.anthropic.com"
_URL_VARIABLE: Final = "ANTHROPIC_BASE_URL"
_WAYS: Final = frozenset({"api_key", "auth_token", "config", "credentials", "profile"})
_PROFILES: Final = Path("~/.config/anthropic")
_MAX_TOKENS: Final = 16_000
_TIMEOUT: Final = 600.0  # that of the package


class AnthropicModel(ApiModel):
    """A model of Anthropic, or of another server that speaks its messages.

    Thinking is kept with a reply and sent back as it was, so that the model goes on from it, and
    cache marks are set where a conversation will not change any more.

    Args:
        model_id: The model, such as ``"claude-sonnet-5"``.
        api_key: By default the environment variable ANTHROPIC_API_KEY, and after it whatever else
            the package knows: ANTHROPIC_AUTH_TOKEN, profiles, workload identity.
        base_url: The address of the server; by default the environment variable ANTHROPIC_BASE_URL,
            else Anthropic's.
        max_tokens: Tokens of a reply at most, thinking included; by default 16,000.
        thinking: Whether and how the model thinks first, as the API has it:
            ``{"type": "adaptive"}``, ``{"type": "enabled", "budget_tokens": 8000}``. While it
            thinks it cannot be held to calling a tool.
        client_kwargs: Further arguments of `anthropic.Anthropic`, but for ``max_retries``, in whose
            place `retry` stands.
        custom_role_conversions: Which role stands for which; replaces the usual ones (tool call to
            assistant, tool response to user).
        **kwargs: Those of `ApiModel`, and parameters of every request, such as ``temperature``.
            Those that only the server knows: ``extra_body={"name": value}``.

    Raises:
        TypeError: No request has such a parameter.
        ValueError: `max_tokens` is not positive, or `thinking` names no type.
        MissingExtraError: The package `anthropic` is not installed.
    """

    model_id: str
    provider: ClassVar[str] = "anthropic"
    _passes_on = False
    _needs = ("anthropic", "anthropic")
    _with_key = frozenset({"base_url"})

    def __init__(
        self,
        model_id: str,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int | None = None,
        thinking: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        custom_role_conversions: RoleConversions | None = None,
        **kwargs: Any,
    ) -> None:
        if max_tokens is not None:
            check_at_least("max_tokens", max_tokens, 1)
            kwargs["max_tokens"] = max_tokens
        if thinking is not None:
            if not isinstance(get(thinking, "type"), str):
                said = 'thinking is as the API has it, such as {"type": "adaptive"}'
                raise ValueError(f"{said}, not {thinking!r}")
            kwargs["thinking"] = dict(thinking)
        self.base_url = as_address("base_url", base_url)
        self.client_kwargs = as_client_settings("client_kwargs", client_kwargs)
        self._api_key = as_key("api_key", api_key)
        self.model_id = model_id
        self._writer = AnthropicWriter(self.provider, model_id)
        super().__init__(model_id, custom_role_conversions=custom_role_conversions, **kwargs)

    def create_client(self) -> anthropic.Anthropic:
        """Returns a client of the `anthropic` package, for blocking code."""
        make = _sdk().DefaultHttpxClient
        arguments = with_http_client(self._client_arguments(), lambda: make(**client_options()))
        client = _sdk().Anthropic(**arguments)
        return cast("anthropic.Anthropic", self._with_access(client))

    def create_async_client(self) -> anthropic.AsyncAnthropic:
        """Returns a client of the `anthropic` package, for the event loop that runs."""
        make = _sdk().DefaultAsyncHttpxClient
        given = self._client_arguments()
        client = _sdk().AsyncAnthropic(
            **with_http_client(given, lambda: make(**async_client_options()))
        )
        return cast("anthropic.AsyncAnthropic", self._with_access(client))

    def _prepare(self, question: Question) -> dict[str, Any]:
        abilities = self.capabilities
        talk = conversation(
            question.messages,
            self._writer,
            self.custom_role_conversions,
            self.flatten_messages_as_text or not abilities.images,
        )
        if abilities.cache_marks:
            mark(talk)
        specific: dict[str, object] = {
            "model": self.model_id,
            "max_tokens": _MAX_TOKENS,
            "messages": [{"role": turn.role, "content": turn.blocks} for turn in talk.turns],
        }
        if talk.system:
            specific["system"] = talk.system
        # What is nothing but white space is refused.
        stops = [stop for stop in question.stops if stop.strip()]
        if stops and self.supports_stop_parameter:
            specific["stop_sequences"] = stops[: abilities.max_stops]
        if question.tools and abilities.tools:
            specific["tools"] = [_tool(tool.to_json_schema()) for tool in question.tools]
            if abilities.tool_choice:
                specific["tool_choice"] = {"type": "any"}
        request = self._parameters(specific, question.options)
        if request.get("tool_choice") == {"type": "any"} and thinks(request.get("thinking")):
            request["tool_choice"] = {"type": "auto"}
        if (schema := schema_of(question.response_format)) is not None:
            strict = _sdk().transform_schema(dict(schema))
            form = {"format": {"type": "json_schema", "schema": strict}}
            # How much effort the model makes is told there as well.
            request["output_config"] = {**form, **(request.get("output_config") or {})}
        if question.streamed:
            request["stream"] = True
        return known_apart(request, self._package_parameters())

    def _package_parameters(self) -> Collection[str]:
        return _known_parameters()

    def _sent_stops(self, request: Mapping[str, Any]) -> Collection[str]:
        return request.get("stop_sequences") or ()

    def _schema_to_check(self, question: Question) -> Mapping[str, Any] | None:
        if get(question.response_format, "type") == "json_object":
            return schema_of(question.response_format)  # objects of unknown fields are not offered
        return super()._schema_to_check(question)

    def _read(self, answer: Any) -> ChatMessage:
        return read_message(answer, self._writer)

    def _reader(self) -> AnthropicStream:
        return AnthropicStream(self._writer)

    def _send(self, request: dict[str, Any]) -> Any:
        return self.client.messages.create(**request)

    async def _asend(self, request: dict[str, Any]) -> Any:
        client = await self._clients.running()
        return await client.messages.create(**request)

    @contextmanager
    def _open(self, request: dict[str, Any]) -> Generator[Iterator[Any], None, None]:
        with self.client.messages.create(**request) as events:
            yield events

    @asynccontextmanager
    async def _aopen(self, request: dict[str, Any]) -> AsyncGenerator[AsyncIterator[Any], None]:
        client = await self._clients.running()
        async with await client.messages.create(**request) as events:
            yield events

    def _failure(self, error: Exception) -> Failure | None:
        sdk = _sdk()
        if isinstance(error, sdk.APITimeoutError):
            return Failure(Fault.TIMEOUT, short(error))
        if isinstance(error, sdk.APIConnectionError):
            return Failure(Fault.CONNECTION, cause(error))
        if isinstance(error, sdk.APIStatusError):
            return _refusal(error)
        if isinstance(error, sdk.CredentialsError):
            return Failure(Fault.ACCESS, short(error))
        if isinstance(error, sdk.APIResponseValidationError | ValueError):
            return Failure(Fault.UNREADABLE, short(error))
        return transport_failure(error)

    def _asked(self) -> Asked:
        given = self.client_kwargs.get("base_url") or self.base_url
        url = str(given or os.environ.get(_URL_VARIABLE) or _URL).rstrip("/")
        key_given = self._api_key is not None or "api_key" in self.client_kwargs
        return Asked(
            self.model_id,
            url,
            key_given,
            _KEY,
            "Anthropic's messages",
            "that base_url is the address of the server, without /v1",
        )

    def _client_arguments(self) -> dict[str, Any]:
        seconds = self.timeout or _TIMEOUT
        given: dict[str, object] = {
            "base_url": self.base_url,
            "api_key": self._api_key or self._key_of_environment(),
            # The package refuses long replies that are not streamed, unless it is told how long.
            "timeout": _sdk().Timeout(seconds, connect=min(seconds, self.CONNECT_SECONDS)),
        }
        there = {name: value for name, value in given.items() if value is not None}
        # Repeating is done once, above: here it would multiply.
        return {**there, **self.client_kwargs, "max_retries": 0}

    def _key_of_environment(self) -> str | None:
        others = {"auth_token", "credentials"} & self.client_kwargs.keys()
        return None if others else key_of_environment(_KEY)

    def _check_key(self) -> None:
        given = self._api_key is not None or not _WAYS.isdisjoint(self.client_kwargs)
        # The package finds keys in several variables and files, all of which can be named there.
        there = any(name.startswith("ANTHROPIC_") and name != _URL_VARIABLE for name in os.environ)
        on_windows = sys.platform == "win32"  # where they are elsewhere
        if not (given or there or on_windows or _PROFILES.expanduser().exists()):
            raise missing_key(self._asked())

    def _with_access(self, client: Any) -> Any:
        if client.api_key is None and client.auth_token is None and client.credentials is None:
            raise missing_key(self._asked())
        return client

    def _settings(self) -> dict[str, object]:
        given = {
            "api_key": self._api_key,
            "base_url": self.base_url,
            "client_kwargs": self.client_kwargs or None,
        }
        there = {name: value for name, value in given.items() if value is not None}
        return {**super()._settings(), **there}


def _sdk() -> ModuleType:
    try:
        import anthropic
    except ModuleNotFoundError as error:
        raise MissingExtraError("AnthropicModel", "anthropic", "anthropic") from error
    return anthropic


@functools.cache
def _known_parameters() -> frozenset[str]:
    create = _sdk().resources.Messages.create
    return frozenset(inspect.signature(create).parameters)


def _refusal(error: anthropic.APIStatusError) -> Failure:
    inner = get(error.body, "error")
    said, code = get(inner, "message") or error.message, get(inner, "type")
    if error.status_code < 400:  # the stream had begun when it came
        return Failure(Fault.BROKEN, str(said), code=str(code or ""), request_id=error.request_id)
    return http_failure(error.status_code, error.response.headers, said, code, error.request_id)


def _tool(schema: JSONObject) -> dict[str, object]:
    function = _mapping(schema["function"])
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "input_schema": function["parameters"],
    }


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
