"""From blocking code to coroutines, and back.

`wait_for` lets code without an event loop call a coroutine: one private loop, in a thread of its
own, serves all callers, so that what a coroutine keeps (an HTTP connection, say) lives on between
calls. `in_thread` lets an event loop call code that blocks.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import functools
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from ._daemons import DaemonPool

T = TypeVar("T")

# Waiting is all that most of these threads do, and a blocked caller may need a second one.
_MAX_THREADS = 256


class _Portal:
    """An event loop that runs in a thread of its own."""

    def __init__(self) -> None:
        started: Future[asyncio.AbstractEventLoop] = Future()
        self.thread = threading.Thread(
            target=self._serve, args=(started,), name="sanderling-portal", daemon=True
        )
        self.thread.start()
        self.loop = started.result()

    @staticmethod
    def _serve(started: Future[asyncio.AbstractEventLoop]) -> None:
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            started.set_result(loop)
            loop.run_forever()

    def close(self) -> None:
        """Cancels what runs, closes the loop and ends the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


_lock = threading.Lock()


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, with the caller's context variables, and returns its result.

    An interrupt of the caller (Ctrl-C) cancels the coroutine.

    Raises:
        RuntimeError: The caller is itself a coroutine that the private loop runs; it would wait
            for itself.
    """
    future = start(coroutine)
    try:
        return future.result()
    finally:
        future.cancel()


def start(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Starts a coroutine on the private loop, with the caller's context variables.

    Returns:
        Its result to come; `Future.cancel` cancels the coroutine, and ends the wait at once.

    Raises:
        RuntimeError: The caller is itself a coroutine that the private loop runs; it would wait
            for itself.
    """
    portal = _open_portal()
    if threading.current_thread() is portal.thread:
        coroutine.close()
        raise RuntimeError(
            "An async tool called another async tool without await. "
            "Use `await tool.acall(arguments)` or `await tool(...)` inside async tools."
        )
    future: Future[T] = Future()
    context = contextvars.copy_context()
    portal.loop.call_soon_threadsafe(_start, coroutine, future, portal.loop, context)
    return future


def _start(
    coroutine: Coroutine[Any, Any, T],
    future: Future[T],
    loop: asyncio.AbstractEventLoop,
    context: contextvars.Context,
) -> None:
    if future.cancelled():
        coroutine.close()
        return
    task = loop.create_task(_outcome(coroutine), context=context)

    def cancel(future: Future[T]) -> None:
        if future.cancelled():
            loop.call_soon_threadsafe(task.cancel)

    def finish(task: asyncio.Task[tuple[T, None] | tuple[None, BaseException]]) -> None:
        coroutine.close()  # it has not begun where the task was cancelled at once
        if task.cancelled():
            future.cancel()
        elif future.set_running_or_notify_cancel():
            value, error = task.result()
            if error is None:
                future.set_result(value)  # type: ignore[arg-type]  # a T, as there is no error
            else:
                future.set_exception(error)

    future.add_done_callback(cancel)
    task.add_done_callback(finish)


async def _outcome(
    coroutine: Coroutine[Any, Any, T],
) -> tuple[T, None] | tuple[None, BaseException]:
    try:
        return await coroutine, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        # An exit that is raised inside a task would end the loop and leave every caller waiting.
        return None, error


async def in_thread(function: Callable[[], T]) -> T:
    """Runs a function in a worker thread, with the caller's context variables.

    When the awaiting task is cancelled, the function runs on to its end, since a thread cannot be
    stopped; but nobody waits for it, not even the end of the process.
    """
    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(
        _threads(), run, _without_signals, function
    )


def _without_signals(function: Callable[[], T]) -> T:
    try:
        return function()
    except BaseException as error:
        if isinstance(error, Exception | SystemExit) and not isinstance(error, StopIteration):
            raise
        # A future refuses StopIteration. KeyboardInterrupt would end the event loop, and the others
        # would seem to say that the awaiting task is cancelled or closed.
        raise RuntimeError(f"The tool raised {type(error).__name__}") from error


def _open_portal() -> _Portal:
    with _lock:
        return _shared_portal()


@functools.cache
def _shared_portal() -> _Portal:
    portal = _Portal()
    atexit.register(portal.close)
    return portal


@functools.cache
def _threads() -> DaemonPool:
    return DaemonPool(_MAX_THREADS, "sanderling-tool")


def _forget() -> None:
    # A forked child has these objects, but not their threads.
    global _lock  # noqa: PLW0603 - it may be held by a thread that the child does not have
    _lock = threading.Lock()
    if _shared_portal.cache_info().currsize:
        atexit.unregister(_shared_portal().close)
    _shared_portal.cache_clear()
    _threads.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
