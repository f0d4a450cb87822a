"""The switch of one run: ends what is in progress, from any thread, under either driver.

Under asyncio what is in progress is cancelled. Under the synchronous driver it depends on what it
is: code is interrupted in its sandbox; what waits for the private event loop (an async tool, or a
model that is asked outside of the main thread) is cancelled there; calls in the pool are left
behind. A model or a tool that blocks the main thread is ended by an exception, which a signal
brings; one tool that blocks another thread is waited for, since nothing can end it there.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sanderling.loop import Effect, Notify, Now

from ._drivers import Done, tells_events

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from types import FrameType

    from sanderling.errors import AgentStoppedError

    from ._drivers import AsyncPerform, AsyncPerformance, AsyncWork, Perform, Performance

_INSTANT = (Now, Notify)  # callbacks are the caller's own code: they are not broken off
_SIGNAL: signal.Signals | None = getattr(signal, "SIGURG", None)
"""Ignored by default, and hardly anybody's; Windows has none."""
CAN_BREAK = _SIGNAL is not None and hasattr(signal, "pthread_kill")
"""Whether this system has what breaks off work that blocks the main thread."""
_PAUSE = 0.02  # seconds between two tries to end what is in progress
_SWALLOWING = ("_weakrefset", "weakref")  # run by the garbage collector, amid anything
_CLEANING = 3.0  # seconds that the broken work has to clean up, before it is broken again


T = TypeVar("T")


class Stop(BaseException):
    """Raised in a thread whose work nobody wants any more; never leaves the run."""


class _Scope:
    """What a task awaits just now, so that it can be cancelled: a time-out that has no time.

    Args:
        task: Who awaits it.
    """

    __slots__ = ("_cancelled", "_others", "task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self._others = task.cancelling()
        self._cancelled = False

    def cancel(self) -> None:
        """Cancels it; to be called in the loop of the task."""
        self._cancelled = self.task.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if not self._cancelled:
            return
        from asyncio import CancelledError

        # As `asyncio.timeout` does: if others want the task to end as well, it goes on ending.
        if self.task.uncancel() <= self._others and kind is CancelledError:
            raise TimeoutError


class Control:
    """Ends one run, and the runs that it has started.

    Args:
        parent: The control of the run that this one works for.
    """

    def __init__(self, parent: Control | None = None) -> None:
        self._lock = threading.RLock()  # a signal handler may call `stop` amid anything
        self._error: AgentStoppedError | None = None
        self._threads: set[int] = set()
        self._break_again = 0.0
        self._scope: _Scope | None = None
        self._wakers: list[Callable[[], object]] = []
        self._children: set[Control] = set()
        self._parent = parent
        if parent is not None:
            parent._adopt(self)

    def release(self) -> None:
        """Takes note that the run has ended; the one that started it has no need of it any more."""
        if self._parent is not None:
            self._parent._children.discard(self)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._error is not None

    def stop(self, error: AgentStoppedError) -> None:
        """Ends the run with an error; the first one counts. May be called from any thread."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            children, scope = list(self._children), self._scope
        self._rouse()
        for child in children:
            child.stop(error)
        if scope is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and so is the run
                scope.task.get_loop().call_soon_threadsafe(self._expire, scope)
        if self._busy:
            # What was about to block, or to start, may not have noticed.
            _thread.start_new_thread(self._insist, ())

    def check(self) -> None:
        """Raises the error that the run was stopped with, if it was.

        Raises:
            AgentStoppedError: It was.
        """
        if self._error is not None:
            raise self._error

    @contextlib.contextmanager
    def waking(self, wake: Callable[[], object]) -> Iterator[None]:
        """Calls `wake`, perhaps several times, when the run is stopped meanwhile."""
        self._wakers.append(wake)
        try:
            self.check()
            yield
        finally:
            self._wakers.remove(wake)

    def guard(self, perform: Perform, effect: Effect) -> Performance:
        """Carries an effect out such that `stop` ends what goes on in the calling thread."""
        performance = perform(effect)
        return performance if isinstance(effect, _INSTANT) else self.driven(performance)

    def aguard(self, perform: AsyncPerform, effect: Effect) -> AsyncWork:
        """Carries an effect out such that `stop` cancels what goes on."""
        if isinstance(effect, _INSTANT):
            return perform(effect)
        self.check()
        work = perform(effect)
        return self._adriven(work) if tells_events(work) else self._awaited(work)

    def call(self, function: Callable[[], T]) -> T:
        """Calls what is not ours and may block, so that `stop` can end it.

        Raises:
            AgentStoppedError: The run was stopped before.
            Stop: It was stopped meanwhile.
        """
        ident = threading.get_ident()
        try:
            with self._lock:
                self.check()
                self._threads.add(ident)
                if ident == _MAIN:
                    _armed.append(self)
            return function()
        finally:
            self._disarm(ident)

    def _disarm(self, ident: int) -> None:
        with self._lock:
            self._threads.discard(ident)
            if ident == _MAIN and self in _armed:
                _armed.remove(self)

    def driven(self, performance: Performance) -> Performance:
        """Carries a performance out in the calling thread, until the run is stopped."""
        with closing(performance):
            while True:
                self.check()
                try:
                    event = next(performance)
                except StopIteration as done:
                    self.check()
                    return done.value
                except (Stop, Exception):
                    self._disarm(threading.get_ident())  # the break may have come amid that
                    self.check()  # whatever it was, it comes from being stopped
                    raise
                yield event

    async def _adriven(self, performance: AsyncPerformance) -> AsyncPerformance:
        async with aclosing(performance):
            while True:
                self.check()
                try:
                    piece = await self._awaited(performance.__anext__())
                except StopAsyncIteration:
                    return
                yield piece
                if isinstance(piece, Done):
                    return

    async def _awaited(self, work: Coroutine[Any, Any, T]) -> T:
        import asyncio

        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an agent runs in a task of asyncio, and this is none")
        try:
            with _Scope(task) as self._scope:
                self.check()
                reply = await work
            self.check()
            return reply
        except Exception:
            self.check()  # whatever it was, it comes from being stopped
            raise
        finally:
            self._scope = None
            work.close()

    @property
    def _busy(self) -> bool:
        return bool(self._threads or self._wakers)

    def _rouse(self) -> None:
        from sanderling._bridge import cancel_wait

        for ident in list(self._threads):
            if ident != _MAIN:
                cancel_wait(ident)
            elif _listening and _SIGNAL is not None:
                signal.pthread_kill(ident, _SIGNAL)
        for wake in list(self._wakers):
            wake()

    def _insist(self) -> None:
        while self._busy:
            time.sleep(_PAUSE)
            self._rouse()

    def breaks(self) -> bool:
        """Returns whether the work in progress is to be broken off now."""
        if self._error is None or time.monotonic() < self._break_again:
            return False
        self._break_again = time.monotonic() + _CLEANING
        return True

    def _expire(self, scope: _Scope) -> None:
        if self._scope is scope:
            scope.cancel()

    def _adopt(self, child: Control) -> None:
        with self._lock:
            self._children.add(child)
            error = self._error
        if error is not None:
            child.stop(error)


_MAIN = threading.main_thread().ident
_armed: list[Control] = []  # those whose work the main thread does just now, innermost last
_listening = False


def listen() -> None:
    """Prepares the main thread for being broken, unless its owner uses the signal himself."""
    global _listening  # noqa: PLW0603 - a signal has one handler for the whole process
    if _listening or threading.current_thread() is not threading.main_thread():
        return
    if _SIGNAL is None or not CAN_BREAK:
        return  # a model or a tool that blocks this thread is waited for
    if signal.getsignal(_SIGNAL) in (signal.SIG_DFL, signal.SIG_IGN):
        signal.signal(_SIGNAL, _on_signal)
        _listening = True


def _on_signal(_: int, frame: FrameType | None) -> None:
    if frame is not None and frame.f_globals.get("__name__") in _SWALLOWING:
        return  # what is raised there is lost; the signal comes again
    if [control for control in _armed if control.breaks()]:
        raise Stop
