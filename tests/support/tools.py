"""Tools that several scenarios use: one sync, one async and sometimes failing."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from sanderling import tool

if TYPE_CHECKING:
    import pytest


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: One of them.
        b: The other.
    """
    return a + b


@tool
async def greet(name: str) -> str:
    """Greets somebody.

    Args:
        name: Whom.
    """
    await asyncio.sleep(0)
    if name == "Nobody":
        raise LookupError("nobody is there")
    return f"Hello, {name}!"


class Gate:
    """Holds a call up until the two that wait behind it for a thread have been cancelled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[int] = []
        self._open = threading.Event()
        cancel, cancelled = Future.cancel, []

        def counted(future: Future[Any]) -> bool:
            cancelled.append(cancel(future))
            if sum(cancelled) == 2:
                self._open.set()
            return cancelled[-1]

        monkeypatch.setattr(Future, "cancel", counted)

    def hold(self, n: int) -> int:
        """Takes its time.

        Args:
            n: Any number.
        """
        self.begun.append(n)
        if not self._open.wait(20):
            raise TimeoutError("nothing was cancelled")
        return n
