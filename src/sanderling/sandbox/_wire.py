"""Bytes to and from a kernel: one socket that never blocks, and the two ways to wait for it."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._session import Buffers


class Wire:
    """A socket with an outbox.

    `send` may be called from any thread. All else belongs to whoever drives, which `driven` tells.

    Args:
        connection: The socket; it is the wire's from here on.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._lock = threading.Lock()
        self._outbox: collections.deque[memoryview] = collections.deque()
        self._driver: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextlib.contextmanager
    def driven(self, loop: asyncio.AbstractEventLoop | None = None) -> Iterator[None]:
        """Makes the calling thread the one that drives, with its event loop if it has one."""
        self._driver, self._loop = threading.get_ident(), loop
        try:
            yield
        finally:
            if loop is not None and self._socket.fileno() >= 0:
                loop.remove_writer(self._socket)
            self._driver = self._loop = None

    def send(self, buffers: Buffers) -> None:
        """Sends, or leaves to the driver what the socket does not take at once.

        Where the other end is gone, the bytes are lost; reading will tell.
        """
        with self._lock:
            self._outbox.extend(map(memoryview, buffers))
        loop = self._loop
        if loop is not None:
            if self._driver == threading.get_ident():
                self._flush_in_loop()
            else:
                with contextlib.suppress(RuntimeError):  # the loop is closed, and so is the step
                    loop.call_soon_threadsafe(self._flush_in_loop)
            return
        if not self._flush() and self._driver not in (None, threading.get_ident()):
            # The driver waits for bytes to read, and shall not be woken: this thread waits itself.
            while not self._flush():
                self._poll(select.POLLOUT, 1.0)

    def sent(self) -> bool:
        """Sends what the socket takes; returns whether that was all there is to send."""
        return self._flush()

    def _flush(self) -> bool:
        """Sends as much as the socket takes; returns whether that was all."""
        with self._lock:
            while self._outbox:
                try:
                    sent = self._socket.send(self._outbox[0])
                except BlockingIOError:
                    return False
                except OSError:
                    self._outbox.clear()
                    return True
                self._outbox[0] = self._outbox[0][sent:]
                if not self._outbox[0]:
                    self._outbox.popleft()
            return True

    def _flush_in_loop(self) -> None:
        loop, done = self._loop, self._flush()
        if loop is None or self._socket.fileno() < 0:
            return
        if done:
            loop.remove_writer(self._socket)
        else:
            loop.add_writer(self._socket, self._flush_in_loop)

    def receive(self, space: memoryview) -> int | None:
        """Reads what is there: the number of bytes, 0 at the end, None where nothing is there."""
        try:
            # No flags: descriptors that hostile code may attach are dropped by the system.
            return self._socket.recv_into(space)
        except BlockingIOError:
            return None
        except OSError:
            return 0

    def wait(self, seconds: float) -> None:
        """Blocks until there is something to do, or the time is over."""
        events = select.POLLIN if self._flush() else select.POLLIN | select.POLLOUT
        self._poll(events, seconds)

    def _poll(self, events: int, seconds: float) -> None:
        poll = select.poll()
        with contextlib.suppress(ValueError):  # closed: there is nothing to wait for
            poll.register(self._socket, events)
            poll.poll(seconds * 1000)

    async def await_bytes(self, seconds: float) -> None:
        """Does what `wait` does, under asyncio."""
        loop = asyncio.get_running_loop()
        readable = loop.create_future()

        def wake() -> None:
            if not readable.done():
                readable.set_result(None)

        timer = loop.call_later(seconds, wake)
        loop.add_reader(self._socket, wake)
        try:
            await readable
        finally:
            timer.cancel()
            if self._socket.fileno() >= 0:
                loop.remove_reader(self._socket)

    def close(self) -> None:
        """Closes the socket. May be called again."""
        self._socket.close()
