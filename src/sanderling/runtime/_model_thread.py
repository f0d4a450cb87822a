"""Threads in which runs ask models, so that a run never waits longer than it wants to.

A run asks its model in one thread all along; the thread then serves other runs. Where a run is
interrupted, or Ctrl-C is pressed, it stops waiting at once, and leaves thread and request behind.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ._cancel import CancelScope

T = TypeVar("T")

_MOST_IDLE = 32
_idle: list[ModelThread] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a child has none of the threads


class ModelThread:
    """A thread that makes one call at a time for somebody who waits for it."""

    def __init__(self) -> None:
        self._call: _Call | None = None
        self.is_left = False
        self._wake = threading.Lock()
        self._wake.acquire()
        thread = threading.Thread(target=self._serve, name="sanderling-model", daemon=True)
        thread.start()

    @classmethod
    def take(cls) -> ModelThread:
        """Returns a thread that nobody uses."""
        try:
            return _idle.pop()
        except IndexError:
            return cls()

    def give_back(self) -> None:
        """Leaves the thread to others."""
        if self.is_left:
            return
        if len(_idle) < _MOST_IDLE:
            _idle.append(self)
        else:
            self._leave()

    def ask(self, scope: CancelScope, function: Callable[[], T]) -> T:
        """Calls a function in the thread, with the context variables of the caller, and waits.

        Where the wait ends early, the call goes on to its own end; `is_left` then says that the
        thread is of no use to others any more.

        Raises:
            AgentStoppedError: The scope was cancelled.
            Exception: The function raised this.
        """
        call = _Call(function)
        scope.add(call.leave)
        try:
            self._call = call
            self._wake.release()
            call.done.acquire()
        finally:
            scope.remove(call.leave)
            self._call = None
            if not call.is_over:
                self._leave()
        scope.check()
        result: T = call.result()
        return result

    def _leave(self) -> None:
        self.is_left = True
        with suppress(RuntimeError):  # it is awake, and finds no further call
            self._wake.release()

    def _serve(self) -> None:
        while True:
            self._wake.acquire()
            call = self._call
            if call is None:
                return
            call.run()
            del call  # its reply may be large


class _Call:
    __slots__ = ("_context", "_error", "_function", "_value", "done", "is_over")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._context = contextvars.copy_context()
        self._value: Any = None
        self._error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()
        self.is_over = False

    def leave(self) -> None:
        """Ends the wait; may be called from any thread."""
        with suppress(RuntimeError):  # it has ended
            self.done.release()

    def run(self) -> None:
        """Makes the call, and ends the wait."""
        try:
            self._value = self._context.run(self._function)
        except BaseException as error:  # raised again in the thread that waits
            self._error = error
        self.is_over = True
        self.leave()

    def result(self) -> Any:
        """Returns what the call returned, or raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._value
