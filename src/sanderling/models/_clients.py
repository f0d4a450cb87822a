"""The clients of a provider's package that one model keeps: one to block, one for each loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any


class Clients:
    """Makes clients when they are first needed, and closes them.

    They are closed when nobody has the model any more, that of an event loop also at the end of the
    loop. What the user gave stays as it is.

    Args:
        make: Makes a client for blocking code.
        amake: Makes one for the event loop that runs.
        given: A client for blocking code that the user made.
    """

    def __init__(
        self, make: Callable[[], Any], amake: Callable[[], Any], given: Any = None
    ) -> None:
        self._make, self._amake = make, amake
        self._lock = threading.Lock()
        self._blocking = given
        self._async: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None, Any]]
        ] = weakref.WeakKeyDictionary()

    def blocking(self) -> Any:
        """Returns the client for blocking code."""
        with self._lock:
            if self._blocking is None:
                self._blocking = self._make()
                if (close := getattr(self._blocking, "close", None)) is not None:
                    weakref.finalize(self, close)
            return self._blocking

    async def running(self) -> Any:
        """Returns the client of the running event loop, which closes it at its end."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop in self._async:
                return self._async[loop][0]
            client = self._amake()
            guard = _closing(client)
            self._async[loop] = client, guard
        await anext(guard)  # once begun, it is ended by the loop: loop.shutdown_asyncgens()
        finalizer = weakref.finalize(self, _close_in, loop, guard)
        finalizer.atexit = False  # the loop's own end comes first
        await guard.asend(finalizer)
        return client


def _close_in(
    loop: asyncio.AbstractEventLoop, guard: AsyncGenerator[None, weakref.finalize[..., Any] | None]
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed, and has closed the client
        loop.call_soon_threadsafe(lambda: loop.create_task(_closed(guard)))


async def _closed(guard: AsyncGenerator[None, Any]) -> None:
    await guard.aclose()


async def _closing(client: Any) -> AsyncGenerator[None, weakref.finalize[..., Any] | None]:
    finalizer = None
    try:
        finalizer = yield
        yield
    finally:
        if finalizer is not None:
            finalizer.detach()
        close: Callable[[], Awaitable[None]] | None = getattr(client, "aclose", None)
        close = close or getattr(client, "close", None)
        if close is not None:
            await close()
