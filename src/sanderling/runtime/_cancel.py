"""Cancels what a run has in progress: from any thread, under either driver, by asking.

Nothing is killed, and nothing is raised into a thread. Whoever waits for something on behalf of a
run leaves a callback with its scope, which ends the wait: an awaited task is cancelled, code is
interrupted in its sandbox, a model that is asked in a thread is left behind. Only a tool that
blocks the thread of the run cannot be ended: the run ends when it returns, and says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ._drivers import Done, tells_events

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from concurrent.futures import Future

    from sanderling.errors import AgentStoppedError

    from ._drivers import AsyncPerformance, AsyncWork, Performance

T = TypeVar("T")


class CancelScope:
    """Ends one run, and the runs beneath it.

    Args:
        parent: The scope that this one ends with.
    """

    def __init__(self, parent: CancelScope | None = None) -> None:
        self._lock = threading.RLock()  # a signal handler of the user's may cancel amid anything
        self._error: AgentStoppedError | None = None
        self._callbacks: list[Callable[[], object]] = []
        self._parent = parent
        if parent is not None:
            parent._adopt(self)

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._error is not None

    def cancel(self, error: AgentStoppedError) -> None:
        """Ends the run with an error; the first one counts. May be called from any thread."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            callbacks = self._callbacks[:]
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Raises the error that the scope was cancelled with, if it was.

        Raises:
            AgentStoppedError: It was.
        """
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Lets go of the parent, once nothing in this scope is in progress any more."""
        if self._parent is not None:
            self._parent.remove(self._follow)

    def add(self, callback: Callable[[], object]) -> None:
        """Has a function called when the scope is cancelled, in the thread that cancels.

        Raises:
            AgentStoppedError: It is cancelled already.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            self._callbacks.append(callback)

    def remove(self, callback: Callable[[], object]) -> None:
        """Takes a function back that `add` was given."""
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    @contextmanager
    def on_cancel(self, callback: Callable[[], object]) -> Iterator[None]:
        """Has a function called when the scope is cancelled meanwhile.

        Raises:
            AgentStoppedError: It is cancelled already.
        """
        self.add(callback)
        try:
            yield
        finally:
            self.remove(callback)

    def result_of(self, future: Future[T]) -> T:
        """Waits for a future; cancels it when the scope is cancelled, or the wait interrupted.

        Raises:
            AgentStoppedError: The scope was cancelled.
        """
        try:
            self.add(future.cancel)
            return future.result()
        except Exception:
            self.check()  # whatever it was, it comes from being cancelled
            raise
        finally:
            self.remove(future.cancel)
            future.cancel()

    def guarded(self, performance: Performance) -> Performance:
        """Carries a performance out in the calling thread, until the scope is cancelled."""
        with closing(performance):
            while True:
                self.check()
                try:
                    event = next(performance)
                except StopIteration as done:
                    self.check()
                    return done.value
                except Exception:
                    self.check()
                    raise
                yield event

    def aguarded(self, work: AsyncWork) -> AsyncWork:
        """Carries work out under asyncio; it is cancelled when the scope is."""
        return self._events(work) if tells_events(work) else self.wait(work)

    async def _events(self, performance: AsyncPerformance) -> AsyncPerformance:
        async with aclosing(performance):
            while True:
                try:
                    piece = await self.wait(performance.__anext__())
                except StopAsyncIteration:
                    return
                yield piece
                if isinstance(piece, Done):
                    return

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Awaits something; cancels it when the scope is cancelled.

        Raises:
            AgentStoppedError: The scope was cancelled.
            RuntimeError: There is no task of asyncio.
        """
        import asyncio

        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an agent runs in a task of asyncio, and this is none")
        awaited = _Awaited(task)
        try:
            self.add(awaited.cancel)
            try:
                with awaited:
                    reply = await work
            finally:
                self.remove(awaited.cancel)
            self.check()
            return reply
        except Exception:
            self.check()
            raise
        finally:
            work.close()

    def _adopt(self, child: CancelScope) -> None:
        with self._lock:
            error = self._error
            if error is None:
                self._callbacks.append(child._follow)
        if error is not None:
            child.cancel(error)

    def _follow(self) -> None:
        if self._parent is not None and self._parent._error is not None:
            self.cancel(self._parent._error)


class _Awaited:
    """What a task awaits, so that it can be cancelled: a time-out that has no time.

    Args:
        task: Who awaits it.
    """

    __slots__ = ("_cancelled", "_is_over", "_others", "_task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self._others = task.cancelling()
        self._cancelled = self._is_over = False

    def cancel(self) -> None:
        """Cancels it, from any thread."""
        with suppress(RuntimeError):  # the loop is closed, and the task is over
            self._task.get_loop().call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if not self._is_over:
            self._cancelled = self._task.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        self._is_over = True
        if not self._cancelled:
            return
        from asyncio import CancelledError

        # As `asyncio.timeout` does: if others want the task to end as well, it goes on ending.
        if self._task.uncancel() <= self._others and kind is CancelledError:
            raise TimeoutError
