"""A thread of its own for a loaded model: some libraries bind their weights to one.

Questions to one model wait for each other there, and what a library hands to a callback comes out
as a generator.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

_Tasks: TypeAlias = "queue.SimpleQueue[Callable[[], None] | None]"
_END = object()


class Worker:
    """Does one thing after the other, in a thread that ends when nobody has the worker any more.

    Args:
        name: Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._starting = threading.Lock()
        self._tasks: _Tasks = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._tasks.put, None)

    def call(self, function: Callable[[], T]) -> T:
        """Returns what a function returns, or raises what it raises."""

        def work(put: Callable[[T], None]) -> None:
            put(function())

        (result,) = self.pump(work, threading.Event())
        return result

    def pump(
        self, work: Callable[[Callable[[T], None]], None], cancelled: threading.Event
    ) -> Generator[T, None, None]:
        """Yields what `work` puts, and raises what it raises.

        Args:
            work: Is given a function to put items with. It ends soon after `cancelled` is set.
            cancelled: Is set when the generator is closed, which then waits for the end of the
                work, if that has begun; otherwise it never will.
        """
        items: queue.SimpleQueue[T | _Raised | object] = queue.SimpleQueue()
        begun, done = threading.Event(), threading.Event()

        def task() -> None:
            begun.set()
            try:
                if not cancelled.is_set():
                    work(items.put)
            except Exception as error:  # raised where the items are read
                items.put(_Raised(error))
            finally:
                items.put(_END)
                done.set()

        self._submit(task)
        try:
            while (item := items.get()) is not _END:
                if isinstance(item, _Raised):
                    raise item.error
                yield item  # type: ignore[misc]  # a T, since it is nothing else
        finally:
            cancelled.set()
            if begun.is_set():
                done.wait()

    def _submit(self, task: Callable[[], None]) -> None:
        with self._starting:
            # A forked child has the object, but not the thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=_serve, args=(self._tasks,), name=self._name, daemon=True
                )
                self._thread.start()
        self._tasks.put(task)


class _Raised:
    def __init__(self, error: Exception) -> None:
        self.error = error


def _serve(tasks: _Tasks) -> None:
    while (task := tasks.get()) is not None:
        task()
        del task  # it may have the last reference to the worker
