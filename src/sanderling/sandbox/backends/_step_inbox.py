"""What threads tell a coroutine."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue from any thread to the event loop that it is made in. One coroutine takes from it."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._loop = weakref.ref(loop)  # whose bell may know this inbox for longer
        self._bell = _bells.setdefault(loop, _Bell())
        self._items: deque[T] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, item: T) -> None:
        """Adds an item, from any thread."""
        self._items.append(item)
        if (loop := self._loop()) is not None:
            self._bell.ring(self, loop)

    async def get(self, timeout: float) -> T | None:  # noqa: ASYNC109 - the cheapest way to wait
        """Returns the next item.

        Args:
            timeout: How long to wait for it, in seconds.

        Returns:
            The item; None where there was none in time.
        """
        if not self._items:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(timeout, _wake, self._waiter)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        return self._items.popleft() if self._items else None

    def look(self) -> None:
        """Wakes who waits, if there is something; in the event loop."""
        if self._items and self._waiter is not None:
            _wake(self._waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class _Bell:
    """Wakes an event loop: once for all that is put while it is busy, because that is costly."""

    def __init__(self) -> None:
        self._rung: deque[Inbox[object]] = deque()
        self._is_heard = False

    def ring(self, inbox: Inbox[T], loop: asyncio.AbstractEventLoop) -> None:
        self._rung.append(inbox)  # type: ignore[arg-type]  # nothing is put into it here
        if not self._is_heard:
            self._is_heard = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._is_heard = False
        while self._rung:
            self._rung.popleft().look()


_bells: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Bell] = weakref.WeakKeyDictionary()
