"""Where the kernel begins in Pyodide: CPython without threads, sockets and a clock to sleep by."""

from __future__ import annotations

import asyncio
import importlib
import json
import operator
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn, SupportsIndex

if TYPE_CHECKING:
    from collections.abc import Callable

_kernel = importlib.import_module("kernel")
sys.path.remove("/kernel")  # where both files were found

# Where the kernel speaks and listens, apart from 0 to 2, which are everybody's.
_WRITE, _READ = 3, 4
_LONGEST = 60.0  # seconds of one pause
_EVER = 3600.0


def serve(lock: Callable[[], str], pause: Callable[[float], object]) -> None:
    """Makes good what Pyodide lacks, then serves the host over stdin and stdout.

    Args:
        lock: Gives back the permissions that are left; returns the layers as JSON.
        pause: Does nothing for a number of milliseconds, or until an interrupt comes.
    """
    os.environ.pop("_", None)  # a path of the host
    os.dup2(1, _WRITE)
    os.dup2(0, _READ)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)

    def sleep(seconds: float | SupportsIndex, /) -> None:
        wanted = seconds if isinstance(seconds, float) else operator.index(seconds)
        if wanted < 0:
            raise ValueError("sleep length must be non-negative")
        end = time.monotonic() + wanted
        while (left := end - time.monotonic()) > 0:
            pause(min(left, _LONGEST) * 1000)

    time.sleep = sleep
    asyncio._set_running_loop(None)  # Pyodide's own, which lives on JavaScript's
    asyncio.new_event_loop = asyncio.events.new_event_loop = _Loop
    threading.Thread.start = _refuse_thread  # type: ignore[method-assign]  # says more
    _kernel.serve(_READ, _WRITE, lambda: json.loads(lock()))


class _Loop(asyncio.BaseEventLoop):
    """Knows timers only: neither sockets nor threads are there for something else to come from."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self

    def select(self, timeout: float | None) -> list[object]:
        """Sleeps, where other loops wait for sockets too."""
        if timeout != 0:
            time.sleep(_EVER if timeout is None else timeout)
        return []

    def _process_events(self, events: list[object]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def _refuse_thread(self: threading.Thread) -> NoReturn:  # noqa: ARG001 - it is a method
    raise RuntimeError("can't start new thread: there are none here; do one thing after the other")
