"""What all models behind a provider's API share: the way of a request, from messages to a reply.

A provider's file writes three kinds of hooks, and nothing else:

- pure functions: `_prepare` makes the request, `_read` and `_reader` understand the answer;
- I/O: `_send` and `_open` with the package's client, and `_asend` and `_aopen` where the package
  has an asynchronous one (otherwise worker threads serve the event loop);
- `_failure` tells what an error of the package means.

Everything else is here, once for the four doors: limits, retries, stop sequences that the provider
does not cut, JSON schemas that it does not enforce, clear errors.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractContextManager,
    aclosing,
    asynccontextmanager,
    closing,
    contextmanager,
)
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sanderling._secrets import environment_secrets, secret_values
from sanderling.errors import MissingExtraError

from ._access import check_installed, is_loading
from ._arguments import as_settings, check_more_than_0, check_text
from ._base import Model, ToolLike, as_delta
from ._bounds import ReplyBounds
from ._capabilities import Capabilities, capabilities_of
from ._clients import Clients
from ._copies import Shared
from ._failures import Asked, Failure, masked_error
from ._limits import RequestLimits
from ._messages import roles_of
from ._parameters import check_parameters
from ._profile import ModelProfile, as_profile, profile_setting
from ._question import Question, question_of
from ._retry import Retries, RetryPolicy, abegun, achain, begun
from ._settings import REMOVE_PARAMETER
from ._stop import acut_stream, cut_at_stop, cut_stream
from ._structured import asettle, schema_of, settle, told_and_checked

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage, ChatMessageStreamDelta, MessageLike

    from ._messages import RoleConversions


class Reader(Protocol):
    """Reads one streamed answer."""

    def feed(self, chunk: Any) -> ChatMessageStreamDelta | None:
        """Returns what a chunk adds to the reply, if anything."""

    def end(self) -> ChatMessageStreamDelta | None:
        """Returns what there is to say at the end; raises where the answer is incomplete."""


class ApiModel(Model):
    """Base of the models behind a provider's API.

    Args:
        model_id: The provider's name of the model.
        custom_role_conversions: Which role stands for which; replaces the usual ones (tool call to
            assistant, tool response to user).
        client: A client of the provider's package that you made, instead of one made here. It is
            used for blocking code; an event loop is served with it from worker threads.
        requests_per_minute: How many requests may begin in a minute, whatever thread or task they
            come from.
        retry: Whether, or by which `RetryPolicy`, what may pass is asked again.
        max_concurrent_requests: How many requests may be going on at once.
        timeout: Seconds of silence, of a whole reply or within a stream, after which a request is
            given up; by default that of the provider's package.
        capabilities: What the model can do otherwise than `Capabilities` of its provider says, such
            as ``{"json_schema": False}``.
        profile: How agents are to talk to this model; a `ModelProfile`, or the name of one.
        **kwargs: As for every `Model`.

    Raises:
        ValueError: A limit or the timeout is not positive, there is no such capability, or no
            such role; or there is no `model_id`.
        MissingExtraError: The provider's package is not installed.
        ModelAccessError: There is no key, and one is needed.
        TypeError: An argument is of another type, or no request has such a parameter.
    """

    takes_tool_messages = True
    #: The extra of this distribution that is needed, and what is imported of it.
    _needs: ClassVar[tuple[str, str] | None] = None
    #: The parameter that takes those of the server's own.
    _own_parameters: ClassVar[str] = "extra_body"
    #: Whether parameters that the package does not know are passed on to the model.
    _passes_on: ClassVar[bool] = True
    #: The package's client is not asked for longer than this, in seconds, to make a connection.
    CONNECT_SECONDS: ClassVar[float] = 10.0

    def __init__(
        self,
        model_id: str | None = None,
        custom_role_conversions: RoleConversions | None = None,
        client: Any = None,
        requests_per_minute: float | None = None,
        retry: bool | RetryPolicy | Mapping[str, Any] = True,
        *,
        max_concurrent_requests: int | None = None,
        timeout: float | None = None,
        capabilities: Mapping[str, Any] | None = None,
        profile: ModelProfile | Mapping[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        if model_id is None and self.provider:
            raise ValueError(f"{type(self).__name__} needs a model_id, the name of a model")
        check_text("model_id", model_id)
        check_more_than_0("timeout", timeout, " seconds")
        roles_of(custom_role_conversions)
        super().__init__(model_id=model_id, **kwargs)
        self._check_parameters(self.kwargs)
        self.custom_role_conversions = custom_role_conversions
        self.timeout = timeout
        self.profile = as_profile(profile)
        self._given_capabilities = as_settings("capabilities", capabilities)
        self._capabilities = self._known_capabilities()
        self._retry = RetryPolicy.of(retry)
        self.stream_attempts = self._retry.attempts
        self._retries = Retries(self._retry)
        self._limits = RequestLimits(requests_per_minute, max_concurrent_requests)
        self._given_client = client
        self._clients = Clients(self.create_client, self.create_async_client, client)
        if client is None and not is_loading():
            if self._needs:
                check_installed(type(self).__name__, *self._needs)
            self._check_key()

    def __getstate__(self) -> dict[str, Any]:
        anew = ("_clients", "_retries")  # copies of chance would all wait for the same time
        state = {name: value for name, value in vars(self).items() if name not in anew}
        if self._given_client is not None:
            state["_given_client"] = Shared(
                self._given_client,
                f"a {type(self).__name__} with a client of yours cannot be pickled, as the client "
                "cannot: leave out client=, or make the model anew in the other process",
            )
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if isinstance(given := self._given_client, Shared):
            self._given_client = given.value
        self._retries = Retries(self._retry)
        self._clients = Clients(self.create_client, self.create_async_client, self._given_client)

    # What a provider writes.

    def create_client(self) -> Any:
        """Returns a client of the provider's package, for blocking code."""
        raise NotImplementedError(f"{type(self).__name__} has no create_client")

    def create_async_client(self) -> Any:
        """Returns a client of the provider's package, for the event loop that runs."""
        raise NotImplementedError(f"{type(self).__name__} has no create_async_client")

    def _check_key(self) -> None:
        """Checks that there is a key, where that costs nothing.

        Raises:
            ModelAccessError: There is none.
        """

    def _standing(self) -> str:
        """Returns the model's place in the table of capabilities; called by ``__init__``."""
        return self.provider

    def _known_capabilities(self) -> Capabilities:
        """Returns what the table, and the user, say of the model; called by ``__init__``."""
        return capabilities_of(self._standing(), self.model_id, self._given_capabilities)

    def _prepare(self, question: Question) -> dict[str, Any]:
        """Returns the request: pure."""
        raise NotImplementedError

    def _read(self, answer: Any) -> ChatMessage:
        """Returns the message of a whole answer: pure."""
        raise NotImplementedError

    def _reader(self) -> Reader:
        """Returns what reads one streamed answer."""
        raise NotImplementedError

    def _sent_stops(self, request: Mapping[str, Any]) -> Collection[str]:
        """Returns the stop sequences that a request tells the provider."""
        return request.get("stop") or ()

    def _send(self, request: dict[str, Any]) -> Any:
        """Returns the whole answer to a request."""
        raise NotImplementedError

    def _open(self, request: dict[str, Any]) -> AbstractContextManager[Iterator[Any]]:
        """Opens a streamed answer; leaving the context closes its connection."""
        raise NotImplementedError

    async def _asend(self, request: dict[str, Any]) -> Any:
        """Does what `_send` does, under asyncio."""
        from sanderling._bridge import in_thread

        return await in_thread(lambda: self._send(request))

    @asynccontextmanager
    async def _aopen(self, request: dict[str, Any]) -> AsyncGenerator[AsyncIterator[Any], None]:
        """Does what `_open` does, under asyncio."""
        from ._twins import aiterate

        opened: list[Iterator[Any]] = []

        def chunks() -> Generator[Any, None, None]:
            with self._open(request) as stream:
                opened.append(stream)
                yield from stream

        try:
            async with aclosing(aiterate(chunks())) as stream:
                yield stream
        finally:
            for each in opened:
                self._interrupt(each)

    def _interrupt(self, opened: Iterator[Any]) -> None:
        """Makes a thread that waits for more of a streamed answer return, where that can be done.

        Args:
            opened: What `_open` gave; it may be read to its end already.
        """

    def _package_parameters(self) -> Collection[str]:
        """Returns the parameters of a request that the package knows."""
        return ()

    def _asked(self) -> Asked:
        """Tells who is asked, for error messages."""
        raise NotImplementedError

    def _failure(self, error: Exception) -> Failure | None:
        """Returns what an error of the package means; `None` where it means nothing special."""
        return None

    # What all of them share.

    @property
    def client(self) -> Any:
        """The client of the provider's package, for blocking code."""
        return self._clients.blocking()

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self._capabilities

    @property
    def prefers_async(self) -> bool:
        """Requests that nobody waits for any more are cancelled."""
        return True

    def generate(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """Answers a conversation; see `Model.generate`."""
        question = question_of(
            messages, stop_sequences, response_format, tools_to_call_from, kwargs
        )
        if (schema := self._schema_to_check(question)) is None:
            return self._answer(question)
        plain = replace(question, response_format=None)
        return settle(
            told_and_checked(messages, schema),
            lambda asked: self._answer(replace(plain, messages=asked)),
        )

    async def agenerate(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """Does what `generate` does, under asyncio."""
        question = question_of(
            messages, stop_sequences, response_format, tools_to_call_from, kwargs
        )
        if (schema := self._schema_to_check(question)) is None:
            return await self._aanswer(question)
        plain = replace(question, response_format=None)
        return await asettle(
            told_and_checked(messages, schema),
            lambda asked: self._aanswer(replace(plain, messages=asked)),
        )

    def generate_stream(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Answers piece by piece; closing the generator closes the connection.

        A reply that must fit a schema which the provider does not enforce comes in one piece, as it
        has to be checked first.
        """
        question = question_of(
            messages, stop_sequences, response_format, tools_to_call_from, kwargs
        )
        if self._schema_to_check(question) is not None:
            yield as_delta(
                self.generate(
                    messages, stop_sequences, response_format, tools_to_call_from, **kwargs
                )
            )
            return
        request = self._prepare(replace(question, streamed=True))
        first, deltas = self._retries.call(lambda: begun(self._deltas(request)))
        with closing(deltas):
            yield from cut_stream(chain(first, deltas), self._unsent(question, request))

    async def agenerate_stream(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        """Does what `generate_stream` does, under asyncio."""
        question = question_of(
            messages, stop_sequences, response_format, tools_to_call_from, kwargs
        )
        if self._schema_to_check(question) is not None:
            yield as_delta(
                await self.agenerate(
                    messages, stop_sequences, response_format, tools_to_call_from, **kwargs
                )
            )
            return
        request = self._prepare(replace(question, streamed=True))
        first, deltas = await self._retries.acall(lambda: abegun(self._adeltas(request)))
        async with aclosing(deltas):
            whole = aclosing(achain(first, deltas))
            async with (
                whole as pieces,
                aclosing(acut_stream(pieces, self._unsent(question, request))) as stream,
            ):
                async for delta in stream:
                    yield delta

    @property
    def supports_stop_parameter(self) -> bool:
        """Whether the provider cuts at stop sequences; otherwise that is done here."""
        return self._capabilities.stop

    def _answer(self, question: Question) -> ChatMessage:
        request = self._prepare(question)

        def attempt() -> ChatMessage:
            with self._explained(), self._limits.request():
                return ReplyBounds().whole(self._read(self._send(request)))

        return cut_at_stop(self._retries.call(attempt), self._unsent(question, request))

    async def _aanswer(self, question: Question) -> ChatMessage:
        request = self._prepare(question)
        send = ApiModel._asend if self._given_client is not None else type(self)._asend

        async def attempt() -> ChatMessage:
            with self._explained():
                async with self._limits.arequest():
                    return ReplyBounds().whole(self._read(await send(self, request)))

        return cut_at_stop(await self._retries.acall(attempt), self._unsent(question, request))

    def _deltas(self, request: dict[str, Any]) -> Generator[ChatMessageStreamDelta, None, None]:
        reader, bounds = self._reader(), ReplyBounds()
        with self._explained(bounds), self._limits.request():
            with self._open(request) as chunks:
                for chunk in chunks:
                    if (delta := reader.feed(chunk)) is not None:
                        yield bounds.add(delta)
            if (last := reader.end()) is not None:
                yield last

    async def _adeltas(
        self, request: dict[str, Any]
    ) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        reader, bounds = self._reader(), ReplyBounds()
        open_ = ApiModel._aopen if self._given_client is not None else type(self)._aopen
        with self._explained(bounds):
            async with self._limits.arequest():
                async with open_(self, request) as chunks:
                    async for chunk in chunks:
                        if (delta := reader.feed(chunk)) is not None:
                            yield bounds.add(delta)
                if (last := reader.end()) is not None:
                    yield last

    def _parameters(
        self, specific: Mapping[str, object], call: Mapping[str, object]
    ) -> dict[str, Any]:
        self._check_parameters(call)
        return super()._parameters(specific, call)

    def _check_parameters(self, parameters: Mapping[str, object]) -> None:
        names = [name for name, value in parameters.items() if value is not REMOVE_PARAMETER]
        check_parameters(
            type(self), names, self._package_parameters, self._own_parameters, self._passes_on
        )

    def _schema_to_check(self, question: Question) -> Mapping[str, Any] | None:
        if self._capabilities.json_schema:
            return None
        return schema_of(question.response_format)

    def _unsent(self, question: Question, request: Mapping[str, Any]) -> Sequence[str]:
        """Returns the stop sequences that the provider was not told of."""
        sent = self._sent_stops(request)
        return [stop for stop in question.stops if stop not in sent]

    @contextmanager
    def _explained(self, read: ReplyBounds | None = None) -> Iterator[None]:
        """Turns the errors of the package into ours, and masks secrets in what the server said.

        Args:
            read: What was read of a streamed reply.
        """
        try:
            yield
        except MissingExtraError:
            raise
        except Exception as error:
            begun = read is not None and read.pieces > 0
            ours = masked_error(error, self._failure, self._asked, self._secrets(), begun)
            if ours is error:
                raise
            raise ours from ours.__cause__

    def _secrets(self) -> set[str]:
        """Returns the secrets that a server may have been sent."""
        of_client = {"api_key": getattr(self._given_client, "api_key", None)}
        settings = [self._settings(), of_client]
        return {*secret_values(settings, self.secret_settings), *environment_secrets()}

    def _settings(self) -> dict[str, object]:
        given: dict[str, object] = {
            "custom_role_conversions": self.custom_role_conversions,
            "client": self._given_client,
            "requests_per_minute": self._limits.per_minute,
            "retry": None if self._retry == RetryPolicy() else self._retry.dict(),
            "max_concurrent_requests": self._limits.at_once,
            "timeout": self.timeout,
            "capabilities": self._given_capabilities or None,
            "profile": profile_setting(self.profile),
        }
        there = {name: value for name, value in given.items() if value is not None}
        return {**super()._settings(), **there}
