"""Models that never come to an end, and what tells when they are at it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from sanderling import (
    ChatMessage,
    ChatMessageStreamDelta,
    MessageRole,
    Model,
    MultiStepAgent,
)

PATIENCE = 15.0  # far below the hour for which everything here would wait
HOUR = 3600.0


class Flag:
    """An event that a signal finds set or not, and never in between.

    What a signal raises amid the Python code of `threading.Event` may leave its lock taken.
    """

    def __init__(self) -> None:
        self._unset = threading.Lock()
        self.clear()

    def set(self) -> None:
        with contextlib.suppress(RuntimeError):  # it is set already
            self._unset.release()

    def clear(self) -> None:
        self._unset.acquire(blocking=False)

    def wait(self, timeout: float) -> bool:
        is_set = self._unset.acquire(timeout=timeout)
        if is_set:
            self.set()
        return is_set


class Busy:
    """Tells when something is in progress, so that it can be interrupted just then."""

    def __init__(self) -> None:
        self.begun = Flag()
        self.over = Flag()

    @contextlib.contextmanager
    def interrupting(self, agent: MultiStepAgent) -> Iterator[None]:
        def interrupt() -> None:
            if self.begun.wait(PATIENCE):
                agent.interrupt()

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            yield
        finally:
            self.begun.set()
            self.over.set()
            thread.join()


class Stuck(Model):
    """Answers once with code, and then never."""

    def __init__(self, busy: Busy, *first: str) -> None:
        super().__init__(model_id="stuck")
        self._busy = busy
        self._first = list(first)

    def generate(self, messages: Sequence[Any], *args: Any, **kwargs: Any) -> ChatMessage:
        if self._first:
            return ChatMessage(MessageRole.ASSISTANT, self._first.pop(0))
        self._busy.begun.set()
        self._busy.over.wait(HOUR)
        raise ConnectionError("nobody wants to know any more")


class StuckClient(Stuck):
    """The same with asyncio."""

    def __init__(self, busy: Busy, *first: str) -> None:
        super().__init__(busy, *first)
        self.ended = threading.Event()

    async def agenerate(self, messages: Sequence[Any], *args: Any, **kwargs: Any) -> ChatMessage:
        if self._first:
            return ChatMessage(MessageRole.ASSISTANT, self._first.pop(0))
        self._busy.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        raise AssertionError("unreachable")


class Endless(Model):
    """Streams for ever."""

    def __init__(self, busy: Busy) -> None:
        super().__init__(model_id="endless")
        self._busy = busy

    def generate_stream(self, messages: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        yield ChatMessageStreamDelta("On ")
        self._busy.begun.set()
        while True:
            yield ChatMessageStreamDelta("and on ")
