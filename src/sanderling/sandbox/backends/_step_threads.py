"""Threads that carry out steps of code."""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

Work: TypeAlias = Callable[[], None]

HURRY_AFTER = 0.05
"""How long a step waits for a thread, in seconds, before `StepThreads.hurry` helps it."""

_FEW = 4
_LINGER = 10.0


class StepThreads:
    """A few threads for many steps: while they are busy, the next steps wait for their turn.

    A thread that goes from one short step to the next is cheap; many that are awake at once stand
    in each other's way. Those that only wait (see `waiting`) are made up for by others.

    Args:
        few: How many threads there may be.
        linger: How long a thread stays without work, in seconds; None for until `close`.
    """

    def __init__(self, few: int, linger: float | None = None) -> None:
        self._few = few
        self._linger = linger
        self._lock = threading.Lock()  # of all below
        self._backlog: deque[Work] = deque()
        self._idle: list[_StepThread] = []
        self._count = 0
        self._is_rousing = False
        self._hurried = 0.0
        self._closed = False

    def run(self, work: Work) -> None:
        """Has a thread carry `work` out, as soon as one is free.

        Raises:
            RuntimeError: No thread can be started.
        """
        with self._lock:
            self._backlog.append(work)
            try:
                self._rouse(self._few)
            except RuntimeError:
                self._backlog.remove(work)
                raise

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Takes note that the calling thread, one of these, has nothing to do meanwhile."""
        with self._lock:
            self._few += 1
            self._rouse(self._few)
        try:
            yield
        finally:
            with self._lock:
                self._few -= 1

    def hurry(self) -> None:
        """Adds threads if work has waited too long: those there are seem to be blocked."""
        with self._lock:
            if time.monotonic() - self._hurried < HURRY_AFTER:
                return
            self._hurried = time.monotonic()
            for _ in range(min(len(self._backlog), self._count)):
                self._start()

    def close(self) -> None:
        """Ends the threads, those that are busy after their work."""
        with self._lock:
            self._closed = True
            for thread in self._idle:
                thread.woken.put(None)
            self._idle.clear()

    def serve(self, thread: _StepThread) -> None:
        """Works in a thread that was roused, until it is not needed any more."""
        while True:
            with self._lock:
                self._is_rousing = False
            while (work := self._next(thread)) is not None:
                work()
                del work  # it may hold what shall end before the next one comes
            if not self._is_roused(thread):
                return

    def _rouse(self, most: int) -> None:
        # One thread after the other: all at once, they would only keep each other awake, and the
        # first one may be done with everything before the last is up.
        if self._backlog and not self._is_rousing:
            if self._idle:
                self._is_rousing = True
                self._idle.pop().woken.put(None)
            elif self._count < most:
                self._start()

    def _start(self) -> None:
        _StepThread(self).start()
        self._count += 1
        self._is_rousing = True

    def _next(self, thread: _StepThread) -> Work | None:
        with self._lock:
            if self._backlog:
                work = self._backlog.popleft()
                self._rouse(self._few)
                return work
            if self._closed:
                thread.woken.put(None)
            else:
                self._idle.append(thread)
            return None

    def _is_roused(self, thread: _StepThread) -> bool:
        try:
            thread.woken.get(timeout=self._linger)
        except queue.Empty:
            with self._lock:
                if thread in self._idle:
                    self._idle.remove(thread)
                    self._count -= 1
                    return False
            thread.woken.get()  # it was chosen just then
        with self._lock:
            if self._closed and not self._backlog:
                self._count -= 1
                return False
        return True


class _StepThread(threading.Thread):
    def __init__(self, pool: StepThreads) -> None:
        super().__init__(name="sanderling-code", daemon=True)
        self.woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._pool = pool

    def run(self) -> None:
        self._pool.serve(self)


@functools.cache
def shared_threads() -> StepThreads:
    """Returns those of the whole process."""
    return StepThreads(_FEW, _LINGER)


if hasattr(os, "register_at_fork"):
    # A forked child has the object, but not the threads.
    os.register_at_fork(after_in_child=shared_threads.cache_clear)
