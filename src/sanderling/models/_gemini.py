"""Google's Gemini models, through the `google-genai` package."""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import re
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Generator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sanderling.errors import MissingExtraError

from ._access import as_address, as_client_settings, as_key, key_of_environment
from ._api import ApiModel
from ._arguments import check_at_least
from ._body import async_client_options, client_options
from ._failures import Asked, Failure, Fault, http_failure, missing_key, short
from ._foreign import get, is_object, sequence, text
from ._gemini_contents import GeminiStream, GeminiWriter, read_response
from ._structured import schema_of
from ._transport import transport_failure
from ._turns import conversation

if TYPE_CHECKING:
    from types import ModuleType

    from google import genai
    from google.genai.client import AsyncClient
    from google.genai.models import AsyncModels

    from sanderling.messages import ChatMessage, JSONObject

    from ._messages import RoleConversions
    from ._question import Question

_KEYS: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")  # in the order of the package
_WAYS: Final = frozenset({"api_key", "credentials", "vertexai", "enterprise"})
_CLOUD: Final = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")
_URL: Final = "https://generativelanguage.googleapis.com"
_TIMEOUT: Final = 600.0
_answers: ContextVar[list[Any]] = ContextVar("answers")
_ROLES: Final[Mapping[str, str]] = {"user": "user", "assistant": "model"}


class GeminiModel(ApiModel):
    """A Gemini model, by Google's own API: the one with a key, or that of Google Cloud.

    The signatures of its thinking are kept with a reply and sent back as they were.

    Args:
        model_id: The model, such as ``"gemini-3-flash"``.
        api_key: By default the environment variable GEMINI_API_KEY or GOOGLE_API_KEY.
        base_url: The address of the server; by default Google's.
        max_tokens: Tokens of a reply at most, thinking included; also for a single call.
        thinking: Whether and how the model thinks first, as the API has it:
            ``{"include_thoughts": True, "thinking_level": "high"}``.
        client_kwargs: Further arguments of `google.genai.Client`, such as
            ``{"vertexai": True, "project": ..., "location": ...}`` for Google Cloud.
        custom_role_conversions: Which role stands for which; replaces the usual ones (tool call to
            assistant, tool response to user).
        **kwargs: Those of `ApiModel`, and parameters of every request, by their names in
            `google.genai.types.GenerateContentConfig`, such as ``temperature`` and
            ``safety_settings``. Those that only the server knows: ``extra_body={"name": value}``.

    Raises:
        TypeError: No request has such a parameter.
        ValueError: `max_tokens` is not positive, or `thinking` is no mapping.
        MissingExtraError: The package `google-genai` is not installed.
    """

    model_id: str
    provider: ClassVar[str] = "gemini"
    _passes_on = False
    _needs = ("gemini", "google.genai")
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
            kwargs["max_output_tokens"] = max_tokens
        if thinking is not None:
            if not is_object(thinking):
                said = 'thinking is as the API has it, such as {"thinking_level": "high"}'
                raise ValueError(f"{said}, not {thinking!r}")
            kwargs["thinking_config"] = dict(thinking)
        self.base_url = as_address("base_url", base_url)
        self.client_kwargs = as_client_settings("client_kwargs", client_kwargs)
        self._api_key = as_key("api_key", api_key)
        self.model_id = model_id
        self._writer = GeminiWriter(self.provider, model_id)
        super().__init__(model_id, custom_role_conversions=custom_role_conversions, **kwargs)

    def create_client(self) -> genai.Client:
        """Returns a client of the `google-genai` package, for blocking code."""
        http = _http().Client(follow_redirects=True, **client_options(_note))
        client = self._made(httpx_client=http)
        weakref.finalize(client, http.close)
        return client

    def create_async_client(self) -> _AsyncGemini:
        """Returns a client of the `google-genai` package, for the event loop that runs."""
        # Left to itself the package takes aiohttp where that is installed, whose time limit is that
        # of a whole reply, and not of silence.
        http = _http().AsyncClient(follow_redirects=True, **async_client_options(_note))
        return _AsyncGemini(self._made(httpx_async_client=http).aio, http)

    def _made(self, **options: Any) -> genai.Client:
        sdk = _sdk()
        seconds = self.timeout or _TIMEOUT
        given = self.client_kwargs.get("http_options") or {}
        theirs = given if isinstance(given, Mapping) else given.model_dump(exclude_none=True)
        options |= {
            "timeout": math.ceil(seconds * 1000),  # of silence
            # The package tells the server the same as the limit of a whole reply.
            "headers": {"X-Server-Timeout": str(math.ceil(max(seconds, _TIMEOUT)))},
        }
        if self.base_url is not None:
            options["base_url"] = self.base_url
        # Repeating is done once, above: here it would multiply.
        http_options = {**options, **theirs, "retry_options": {"attempts": 1}}
        arguments = {**self.client_kwargs, "http_options": http_options}
        if self._api_key is not None:
            arguments["api_key"] = self._api_key
        elif _WAYS.isdisjoint(self.client_kwargs) and not any(map(os.environ.get, _CLOUD)):
            keys = filter(None, map(key_of_environment, _KEYS))
            arguments["api_key"] = next(keys, None)
        self._check_key()
        client: genai.Client = sdk.Client(**arguments)
        return client

    def _prepare(self, question: Question) -> dict[str, Any]:
        abilities = self.capabilities
        talk = conversation(
            question.messages,
            self._writer,
            self.custom_role_conversions,
            self.flatten_messages_as_text or not abilities.images,
        )
        specific: dict[str, object] = {}
        if talk.system:
            specific["system_instruction"] = {"parts": talk.system}
        if question.stops and self.supports_stop_parameter:
            specific["stop_sequences"] = list(question.stops[: abilities.max_stops])
        if (schema := schema_of(question.response_format)) is not None:
            specific["response_mime_type"] = "application/json"
            if get(question.response_format, "type") == "json_schema":
                specific["response_json_schema"] = dict(schema)
        if question.tools and abilities.tools:
            declared = [_tool(tool.to_json_schema()) for tool in question.tools]
            specific["tools"] = [{"function_declarations": declared}]
            # The package would otherwise look whether it shall call them itself.
            specific["automatic_function_calling"] = {"disable": True}
            if abilities.tool_choice:
                specific["tool_config"] = {"function_calling_config": {"mode": "ANY"}}
        options = dict(question.options)
        if "max_tokens" in options:
            options["max_output_tokens"] = options.pop("max_tokens")
        parameters = self._parameters(specific, options)
        own = parameters.pop("extra_body", None) or {}
        known = self._package_parameters()
        config = {name: value for name, value in parameters.items() if name in known}
        others = {name: value for name, value in parameters.items() if name not in known}
        if others := {**others, **own}:
            options = config.get("http_options") or {}
            config["http_options"] = {
                **options,
                "extra_body": {**others, **options.get("extra_body", {})},
            }
        contents = [{"role": _ROLES[turn.role], "parts": turn.blocks} for turn in talk.turns]
        return {"model": self.model_id, "contents": contents, "config": config}

    def _package_parameters(self) -> Collection[str]:
        _sdk()
        from google.genai import types

        return types.GenerateContentConfig.model_fields

    def _sent_stops(self, request: Mapping[str, Any]) -> Collection[str]:
        return get(request["config"], "stop_sequences") or ()

    def _read(self, answer: Any) -> ChatMessage:
        return read_response(answer, self._writer)

    def _reader(self) -> GeminiStream:
        return GeminiStream(self._writer)

    def _send(self, request: dict[str, Any]) -> Any:
        return self.client.models.generate_content(**request)

    async def _asend(self, request: dict[str, Any]) -> Any:
        client = await self._clients.running()
        return await client.models.generate_content(**request)

    @contextmanager
    def _open(self, request: dict[str, Any]) -> Generator[Iterator[Any], None, None]:
        answers = _begin()
        try:
            with closing(self.client.models.generate_content_stream(**request)) as pieces:
                yield pieces
        finally:
            for answer in answers:
                answer.close()

    @asynccontextmanager
    async def _aopen(self, request: dict[str, Any]) -> AsyncGenerator[AsyncIterator[Any], None]:
        client = await self._clients.running()
        answers = _begin()
        try:
            async with aclosing(await client.models.generate_content_stream(**request)) as pieces:
                yield pieces
        finally:
            for answer in answers:
                await answer.aclose()

    def _failure(self, error: Exception) -> Failure | None:
        _sdk()
        from google.auth.exceptions import GoogleAuthError
        from google.genai import errors

        if isinstance(error, errors.APIError):
            return _refusal(error)
        if isinstance(error, GoogleAuthError):
            return Failure(Fault.ACCESS, short(error))
        if isinstance(error, ValueError):  # JSON that is none, or of another form
            return Failure(Fault.UNREADABLE, short(error))
        return transport_failure(error)

    def _check_key(self) -> None:
        given = self._api_key is not None or not _WAYS.isdisjoint(self.client_kwargs)
        if not given and not any(map(os.environ.get, (*_KEYS, *_CLOUD))):
            raise missing_key(self._asked())

    def _asked(self) -> Asked:
        return Asked(
            self.model_id,
            (self.base_url or _URL).rstrip("/"),
            self._api_key is not None or "api_key" in self.client_kwargs,
            _KEYS[-1],
            "answers of Gemini",
            "that base_url is the address of the server, without a version",
        )

    def _settings(self) -> dict[str, object]:
        given = {
            "api_key": self._api_key,
            "base_url": self.base_url,
            "client_kwargs": self.client_kwargs or None,
        }
        there = {name: value for name, value in given.items() if value is not None}
        return {**super()._settings(), **there}


@dataclass(frozen=True, slots=True)
class _AsyncGemini:
    """The package's client for one event loop.

    Attributes:
        client: The client.
        http: What it does HTTP with, and does not close.
    """

    client: AsyncClient
    http: Any

    @property
    def models(self) -> AsyncModels:
        """What answers."""
        return self.client.models

    async def aclose(self) -> None:
        """Closes both."""
        await self.client.aclose()
        await self.http.aclose()


def _sdk() -> Any:
    try:
        return importlib.import_module("google.genai")
    except ModuleNotFoundError as error:
        raise MissingExtraError("GeminiModel", "gemini", "google.genai") from error


def _http() -> ModuleType:
    """Returns the library that the package does HTTP with: one of the two is installed."""
    return importlib.import_module("httpx2" if importlib.util.find_spec("httpx2") else "httpx")


def _begin() -> list[Any]:
    """Returns where the answers to requests that are made from here on are noted.

    The package leaves the closing of a streamed answer to the garbage collector.
    """
    answers: list[Any] = []
    _answers.set(answers)
    return answers


def _note(answer: Any) -> None:
    _answers.get([]).append(answer)


def _refusal(error: Any) -> Failure:
    said, code = error.message or str(error), error.status or ""
    if get(error.response, "status_code") == 200:  # the stream had begun when it came
        return Failure(Fault.BROKEN, str(said), code=str(code))
    headers = get(error.response, "headers") or {}
    failure = http_failure(error.code or 0, headers, said, code)
    if failure.retry_after is None:
        failure = replace(failure, retry_after=_retry_delay(error.details))
    return failure


def _retry_delay(details: object) -> float | None:
    """Returns how many seconds the provider asks to wait, which it tells in the body.

    https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto
    """
    for detail in sequence(get(get(details, "error"), "details")):
        told = re.fullmatch(r"(\d+(\.\d+)?)s", text(get(detail, "retryDelay")) or "")
        if told is not None:
            return float(told[1])
    return None


def _tool(schema: JSONObject) -> dict[str, object]:
    function = schema["function"]
    return {
        "name": get(function, "name"),
        "description": get(function, "description"),
        "parameters_json_schema": get(function, "parameters"),
    }
