"""Models behind an OpenAI-compatible server, through the `openai` package."""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sanderling.errors import MissingExtraError

from ._base import Model, ToolLike
from ._completions import StreamReader, read_completion
from ._endpoints import OPENAI
from ._messages import RoleConversions, to_chat_messages
from ._openai_errors import Asked, generation_error, missing_key
from ._profile import ModelProfile, as_profile, profile_setting
from ._stop import acut_stream, cut_at_stop, cut_stream

if TYPE_CHECKING:
    import asyncio
    from types import ModuleType

    import openai

    from sanderling.messages import ChatMessage, ChatMessageStreamDelta, MessageLike

# OpenAI takes no more in one request; the others are cut here.
_MAX_STOPS = 4


class OpenAIModel(Model):
    """A model of OpenAI, or of any server with its chat completions API.

    That is nearly all of them: vLLM, llama.cpp, Ollama, LM Studio, the Hugging Face router, Gemini,
    Mistral. Requests that fail for a passing reason are repeated by the `openai` package, which
    heeds ``Retry-After``; ``client_kwargs={"max_retries": n}`` sets how often.

    Args:
        model_id: The server's name of the model.
        api_base: The base address, such as ``"http://localhost:8000/v1"``; by default the
            environment variable OPENAI_BASE_URL, else OpenAI's.
        api_key: By default the environment variable OPENAI_API_KEY. A server at an `api_base` may
            need none.
        organization: Whose account is used.
        project: The project in it.
        client_kwargs: Further arguments of `openai.OpenAI`, such as ``timeout`` in seconds.
        custom_role_conversions: Which role stands for which; replaces the usual ones (tool call to
            assistant, tool response to user).
        flatten_messages_as_text: The server takes text only.
        profile: How agents are to talk to this model; a `ModelProfile`, or the name of one.
        **kwargs: Parameters of every request, such as ``temperature``; what the `openai` package
            does not know goes into the body as it is.

    Raises:
        MissingExtraError: When it is first used: the package `openai` is not installed.
    """

    model_id: str

    def __init__(
        self,
        model_id: str,
        api_base: str | None = None,
        api_key: str | None = None,
        organization: str | None = None,
        project: str | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        custom_role_conversions: RoleConversions | None = None,
        flatten_messages_as_text: bool = False,
        profile: ModelProfile | Mapping[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            flatten_messages_as_text=flatten_messages_as_text, model_id=model_id, **kwargs
        )
        self.api_base = api_base
        self.organization = organization
        self.project = project
        self.client_kwargs = dict(client_kwargs or {})
        self.custom_role_conversions = custom_role_conversions
        self.profile = as_profile(profile)
        self._api_key = api_key
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None
        self._async_clients: WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[openai.AsyncOpenAI, AsyncGenerator[None, None]]
        ] = WeakKeyDictionary()

    @property
    def client(self) -> openai.OpenAI:
        """The client of the `openai` package, for blocking code."""
        with self._lock:
            if self._client is None:
                self._client = _sdk().OpenAI(**self._client_arguments())
            return self._client

    def generate(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """Answers a conversation; see `Model.generate`."""
        stops = tuple(stop_sequences or ())
        request = self._request(messages, stops, response_format, tools_to_call_from, kwargs)
        with self._explained():
            completion = self.client.chat.completions.create(**request)
            message = read_completion(_plain(completion), raw=completion)
        return cut_at_stop(message, _unsent(stops, request))

    async def agenerate(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """Does what `generate` does, under asyncio."""
        stops = tuple(stop_sequences or ())
        request = self._request(messages, stops, response_format, tools_to_call_from, kwargs)
        with self._explained():
            client = await self._async_client()
            completion = await client.chat.completions.create(**request)
            message = read_completion(_plain(completion), raw=completion)
        return cut_at_stop(message, _unsent(stops, request))

    def generate_stream(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Answers piece by piece; closing the generator closes the connection."""
        stops = tuple(stop_sequences or ())
        request = self._request(messages, stops, response_format, tools_to_call_from, kwargs)
        with closing(self._deltas(_streamed(request))) as deltas:
            yield from cut_stream(deltas, _unsent(stops, request))

    async def agenerate_stream(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        """Does what `generate_stream` does, under asyncio."""
        stops = tuple(stop_sequences or ())
        request = self._request(messages, stops, response_format, tools_to_call_from, kwargs)
        async with aclosing(self._adeltas(_streamed(request))) as deltas:
            async for piece in acut_stream(deltas, _unsent(stops, request)):
                yield piece

    def _deltas(self, request: Mapping[str, Any]) -> Generator[ChatMessageStreamDelta, None, None]:
        reader = StreamReader()
        with self._explained():
            with self.client.chat.completions.create(**request) as chunks:
                for chunk in chunks:
                    if (delta := reader.feed(_plain(chunk))) is not None:
                        yield delta
            if (last := reader.end()) is not None:
                yield last

    async def _adeltas(
        self, request: Mapping[str, Any]
    ) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        reader = StreamReader()
        with self._explained():
            client = await self._async_client()
            async with await client.chat.completions.create(**request) as chunks:
                async for chunk in chunks:
                    if (delta := reader.feed(_plain(chunk))) is not None:
                        yield delta
            if (last := reader.end()) is not None:
                yield last

    def _request(
        self,
        messages: Sequence[MessageLike],
        stops: Sequence[str],
        response_format: Mapping[str, Any] | None,
        tools: Sequence[ToolLike] | None,
        call: Mapping[str, Any],
    ) -> dict[str, Any]:
        specific: dict[str, object] = {
            "model": self.model_id,
            "messages": to_chat_messages(
                messages, self.custom_role_conversions, self.flatten_messages_as_text
            ),
        }
        if stops and self.supports_stop_parameter:
            specific["stop"] = list(stops[:_MAX_STOPS])
        if response_format is not None:
            specific["response_format"] = response_format
        if tools:
            specific["tools"] = [tool.to_json_schema() for tool in tools]
            specific["tool_choice"] = "required"
        return _for_sdk(self._parameters(specific, call))

    def _client_arguments(self) -> dict[str, Any]:
        given = {
            "base_url": self.api_base,
            "api_key": self._api_key,
            "organization": self.organization,
            "project": self.project,
        }
        arguments = {
            **{name: value for name, value in given.items() if value is not None},
            **self.client_kwargs,
        }
        if "api_key" not in arguments and not os.environ.get(OPENAI.key_variable):
            if self._asked().url == OPENAI.url:
                raise missing_key(self._asked())
            arguments["api_key"] = "none"  # the package insists on one; a local server does not
        return arguments

    async def _async_client(self) -> openai.AsyncOpenAI:
        """Returns the client of the running event loop, which closes it at its end."""
        import asyncio

        loop = asyncio.get_running_loop()
        with self._lock:
            if loop in self._async_clients:
                return self._async_clients[loop][0]
            client: openai.AsyncOpenAI = _sdk().AsyncOpenAI(**self._client_arguments())
            guard = _closing(client)
            self._async_clients[loop] = client, guard
        await anext(guard)  # once begun, it is ended by the loop: loop.shutdown_asyncgens()
        return client

    def _asked(self) -> Asked:
        url = self.client_kwargs.get("base_url") or self.api_base
        url = str(url or os.environ.get("OPENAI_BASE_URL") or OPENAI.url)
        key_given = self._api_key is not None or "api_key" in self.client_kwargs
        return Asked(self.model_id, url.rstrip("/"), key_given)

    def _settings(self) -> dict[str, object]:
        given = {
            "api_base": self.api_base,
            "organization": self.organization,
            "project": self.project,
            "client_kwargs": self.client_kwargs or None,
            "custom_role_conversions": self.custom_role_conversions,
            "profile": profile_setting(self.profile),
        }
        there = {name: value for name, value in given.items() if value is not None}
        return {**super()._settings(), **there}

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except MissingExtraError:
            raise
        except Exception as error:
            explained = generation_error(error, self._asked())
            if explained is error:
                raise
            raise explained from error


OpenAIServerModel = OpenAIModel


def _sdk() -> ModuleType:
    try:
        import openai
    except ModuleNotFoundError as error:
        raise MissingExtraError("OpenAIModel", "openai", "openai") from error
    return openai


async def _closing(client: openai.AsyncOpenAI) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await client.close()


@functools.cache
def _known_parameters() -> frozenset[str]:
    create = _sdk().resources.chat.Completions.create
    return frozenset(inspect.signature(create).parameters)


def _for_sdk(request: Mapping[str, Any]) -> dict[str, Any]:
    """Moves the parameters that the package does not know to where it passes them on."""
    known = _known_parameters()
    arguments = {name: value for name, value in request.items() if name in known}
    if others := {name: value for name, value in request.items() if name not in known}:
        arguments["extra_body"] = {**others, **(request.get("extra_body") or {})}
    return arguments


def _streamed(request: Mapping[str, Any]) -> dict[str, Any]:
    # Without the option the usage of a streamed reply is not told.
    return {"stream_options": {"include_usage": True}, **request, "stream": True}


def _unsent(stops: Sequence[str], request: Mapping[str, Any]) -> Sequence[str]:
    """Returns the stop sequences that the server was not told of."""
    return [stop for stop in stops if stop not in (request.get("stop") or ())]


def _plain(answer: object) -> object:
    """Returns the JSON of what the package read; it reads anything, and checks nothing."""
    to_dict = getattr(answer, "to_dict", None)
    return to_dict(warnings=False) if callable(to_dict) else answer
