"""How many requests a model may make: in a minute, and at once, from whatever thread or task."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from ._arguments import check_more_than_0
from ._copies import OwnLock


class RequestLimits:
    """Lets requests through, in the order in which they come.

    Requests keep the distance that spreads `per_minute` of them evenly: no burst, no waiting for a
    minute to end.

    Args:
        per_minute: How many may begin in a minute; `None` for any number.
        at_once: How many may be going on; `None` for any number.
        clock: Tells seconds; only differences count.
        sleep: Waits, in blocking code.
        asleep: Waits, under asyncio.

    Raises:
        ValueError: A limit is not positive.
        TypeError: It is no number.
    """

    def __init__(
        self,
        per_minute: float | None = None,
        at_once: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        check_more_than_0("requests_per_minute", per_minute)
        check_more_than_0("max_concurrent_requests", at_once, whole=True)
        self.per_minute = per_minute
        self.at_once = at_once
        self._clock, self._sleep, self._asleep = clock, sleep, asleep
        self._lock = OwnLock()
        self._next = float("-inf")
        self._free = at_once or 0
        self._waiting: deque[Future[None]] = deque()

    def __reduce__(self) -> tuple[Any, ...]:
        return RequestLimits, (
            self.per_minute,
            self.at_once,
            self._clock,
            self._sleep,
            self._asleep,
        )

    @contextmanager
    def request(self) -> Iterator[None]:
        """Surrounds one request, which begins when it may."""
        turn = self._turn()
        try:
            turn.result()
        except BaseException:
            self._give_back(turn)
            raise
        try:
            if (wait := self._wait()) > 0:
                self._sleep(wait)
            yield
        finally:
            self._release()

    @asynccontextmanager
    async def arequest(self) -> AsyncIterator[None]:
        """Does what `request` does, under asyncio."""
        turn = self._turn()
        try:
            if not turn.done():
                await asyncio.wrap_future(turn)
        except BaseException:
            self._give_back(turn)
            raise
        try:
            if (wait := self._wait()) > 0:
                await self._asleep(wait)
            yield
        finally:
            self._release()

    def _wait(self) -> float:
        """Takes the next place in time, and returns how far off it is."""
        if self.per_minute is None:
            return 0.0
        with self._lock:
            now = self._clock()
            place = max(now, self._next)
            self._next = place + 60 / self.per_minute
            return place - now

    def _turn(self) -> Future[None]:
        """Returns what is done when one more request may go on."""
        turn: Future[None] = Future()
        with self._lock:
            if self.at_once is None or self._free > 0:
                self._free -= 1
                turn.set_result(None)
            else:
                self._waiting.append(turn)
        return turn

    def _give_back(self, turn: Future[None]) -> None:
        # Whoever stopped waiting may have been let through at the same moment.
        if not turn.cancel():
            self._release()

    def _release(self) -> None:
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._free += 1
