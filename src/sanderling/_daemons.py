"""A pool of threads that nobody has to wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class DaemonPool(Executor):
    """Calls functions in threads that do not keep the process from ending.

    A thread that runs a tool cannot be killed. When its run is over before the tool is, as after
    Ctrl-C, the thread is left behind: it ends with the tool, or with the process.

    Args:
        most: How many threads there may be.
        name: What their names begin with.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._lock = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._closed = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Has a function called.

        Raises:
            RuntimeError: The pool is closed.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is closed")
            self._work.put((future, partial(fn, *args, **kwargs)))
            if not self._idle.acquire(blocking=False) and len(self._threads) < self._most:
                name = f"{self._name}_{len(self._threads)}"
                thread = threading.Thread(target=self._serve, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls.

        Args:
            wait: Whether to wait for the calls in progress.
            cancel_futures: Whether those that have not begun are dropped.
        """
        with self._lock:
            self._closed = True
            if cancel_futures:
                self._drop()
            for _ in self._threads:
                self._work.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def _drop(self) -> None:
        try:
            while (work := self._work.get_nowait()) is not None:
                work[0].cancel()
        except Empty:
            pass

    def _serve(self) -> None:
        while True:
            try:
                work = self._work.get_nowait()
            except Empty:
                self._idle.release()
                work = self._work.get()
            if work is None:
                return
            future, call = work
            if future.set_running_or_notify_cancel():
                try:
                    result = call()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    del result
            del work, future, call  # what they hold is not needed until the next call
