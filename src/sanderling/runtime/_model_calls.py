"""Asks a model from blocking code, such that the wait can end at any time."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from sanderling._warn import capture_warnings
from sanderling.errors import AgentGenerationError
from sanderling.messages import agglomerate_stream_deltas

from ._cancel import CancelScope
from ._context import as_reply
from ._model_thread import ModelThread

if TYPE_CHECKING:
    from sanderling.loop import Generate
    from sanderling.messages import ChatMessage, ChatMessageStreamDelta

    from ._context import RunContext
    from ._drivers import Performance

T = TypeVar("T")


class ModelCalls:
    """The model calls of one run, in another thread than that of the run.

    A model whose calls can be cancelled is awaited on the private event loop; any other is called
    in one thread all along, with copies of the context variables.

    Args:
        context: Of the run.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._scope = context.scope
        self._warned = context.settings.warned
        self._thread: ModelThread | None = None

    def generate(self, effect: Generate) -> ChatMessage:
        """Returns the model's reply.

        Raises:
            AgentGenerationError: The model could not be asked.
            AgentStoppedError: The run was cancelled.
        """
        model = self._context.model
        messages, options = self._context.request(effect)
        try:
            with capture_warnings(self._warned):
                if not model.prefers_async:
                    reply = self._in_thread(partial(model.generate, messages, **options))
                else:
                    from sanderling._bridge import start

                    reply = self._scope.result_of(start(model.agenerate(messages, **options)))
            return as_reply(model, reply)
        except Exception as error:
            raise self._context.generation_error(error) from error

    def stream(self, effect: Generate) -> Performance:
        """Yields the deltas of the model's reply, and returns that.

        Raises:
            AgentGenerationError: The model could not be asked.
            AgentStoppedError: The run was cancelled.
        """
        messages, options = self._context.request(effect)
        try:
            for attempt in itertools.count(1):
                deltas: list[ChatMessageStreamDelta] = []
                try:
                    with closing(self._deltas(messages, options)) as stream:
                        for delta in stream:
                            deltas.append(delta)
                            yield delta
                    return agglomerate_stream_deltas(deltas)
                except AgentGenerationError as error:
                    if not deltas:  # the model has asked again as often as it may
                        raise
                    yield self._context.asked_again(error, attempt)
        except Exception as error:
            raise self._context.generation_error(error) from error

    def _deltas(
        self, messages: Sequence[ChatMessage], options: dict[str, Any]
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        model = self._context.model
        if model.prefers_async:
            return self._awaited(model.agenerate_stream(messages, **options))
        return self._blocking(model.generate_stream(messages, **options))

    def close(self) -> None:
        """Leaves the thread to others."""
        if self._thread is not None:
            self._thread.give_back()
            self._thread = None

    def _in_thread(self, function: Callable[[], T]) -> T:
        if self._thread is None or self._thread.is_left:
            self._thread = ModelThread.take()
        return self._thread.ask(self._scope, function)

    def _blocking(self, stream: Iterator[T]) -> Generator[T, None, None]:
        end = object()
        thread: ModelThread | None = None
        try:
            while True:
                with capture_warnings(self._warned):
                    delta: Any = self._in_thread(lambda: next(stream, end))
                thread = self._thread
                if delta is end:
                    return
                yield delta
        finally:
            close = getattr(stream, "close", None)
            # A thread that was left behind closes the stream when it is done with it.
            if close is not None and thread is not None and not thread.is_left:
                thread.ask(CancelScope(), close)

    def _awaited(self, stream: AsyncIterator[T]) -> Generator[T, None, None]:
        from sanderling._bridge import start

        inbox: SimpleQueue[T | None] = SimpleQueue()
        with capture_warnings(self._warned):
            pump = start(_pump(stream, inbox.put))
        pump.add_done_callback(lambda _: inbox.put(None))
        try:
            with self._scope.on_cancel(lambda: inbox.put(None)):
                while (item := inbox.get()) is not None:
                    yield item
            self._scope.check()
            pump.result()
        finally:
            pump.cancel()


async def _pump(stream: AsyncIterator[T], put: Callable[[T], object]) -> None:
    try:
        async for item in stream:
            put(item)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
