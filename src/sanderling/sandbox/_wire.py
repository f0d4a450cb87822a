"""Bytes to and from a kernel: one socket that never blocks, and the two ways to wait for it."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ._clock import LONGEST_WAIT

if TYPE_CHECKING:
    from ._session import Buffers

# In seconds: nothing wakes a thread for what another one sends and for a socket with room, both.
_SHORT_WAIT = 0.01


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
        self._message_sent = threading.Condition()
        self._outbox: collections.deque[collections.deque[memoryview]] = collections.deque()
        self._driver: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: Callable[[], None] | None = None

    @property
    def unsent(self) -> int:
        """How many messages the other end has not taken yet."""
        return len(self._outbox)

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
        message = collections.deque([memoryview(buffer) for buffer in buffers])
        with self._lock:
            self._outbox.append(message)
        loop = self._loop
        if loop is not None:
            if self._driver == threading.get_ident():
                self._flush_in_loop()
            else:
                with contextlib.suppress(RuntimeError):  # the loop is closed, and so is the step
                    loop.call_soon_threadsafe(self._flush_in_loop)
            return
        done = self._flush()
        if self._driver not in (None, threading.get_ident()):
            with self._message_sent:
                self._message_sent.notify()
            # The driver may be waiting for bytes to read. It sends the rest when it waits next.
            end = time.monotonic() + LONGEST_WAIT
            while not done and (left := end - time.monotonic()) > 0:
                self._poll(select.POLLOUT, left)
                done = self._flush()

    def sent(self) -> bool:
        """Sends what the socket takes; returns whether that was all there is to send."""
        return self._flush()

    def _flush(self) -> bool:
        """Sends as much as the socket takes; returns whether that was all."""
        with self._lock:
            try:
                while self._outbox:
                    message = self._outbox[0]
                    while message:
                        message[0] = message[0][self._socket.send(message[0]) :]
                        if not message[0]:
                            message.popleft()
                    self._outbox.popleft()
            except BlockingIOError:
                return False
            except OSError:
                self._outbox.clear()
            return True

    def _flush_in_loop(self) -> None:
        loop, done = self._loop, self._flush()
        if self._wake is not None:
            self._wake()
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
        """Blocks until there is something to read or to send, or the time is over."""
        events = select.POLLIN if self._flush() else select.POLLIN | select.POLLOUT
        self._poll(events, seconds)

    def wait_while(self, is_full: Callable[[], bool], seconds: float) -> None:
        """Blocks while nothing is to be read, until another thread sends or the time is over."""
        done = self._flush()
        with self._message_sent:
            if is_full():
                self._message_sent.wait(seconds if done else min(seconds, _SHORT_WAIT))

    def _poll(self, events: int, seconds: float) -> None:
        poll = select.poll()
        with contextlib.suppress(ValueError):  # closed: there is nothing to wait for
            poll.register(self._socket, events)
            poll.poll(seconds * 1000)

    async def await_turn(self, seconds: float, *, is_full: bool) -> None:
        """Does what `wait` does under asyncio, or `wait_while` if nothing is to be read."""
        loop = asyncio.get_running_loop()
        ready = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        timer = loop.call_later(seconds, wake)
        if is_full:
            self._wake = wake
        else:
            loop.add_reader(self._socket, wake)
        try:
            await ready
        finally:
            timer.cancel()
            self._wake = None
            if self._socket.fileno() >= 0:
                loop.remove_reader(self._socket)

    def close(self) -> None:
        """Closes the socket. May be called again."""
        self._socket.close()
