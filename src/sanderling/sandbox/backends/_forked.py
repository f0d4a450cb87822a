"""Locked processes that were forked from a zygote, and the copies of them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sanderling.errors import SandboxUnavailable

from ._process import ending, hung_up, pages

if TYPE_CHECKING:
    from sanderling.sandbox._snapshots import Pages

_LAST_WORDS = 5.0  # seconds from the death of a process to the report of it


class CopyOrder(Protocol):
    """Asks the zygote for a copy of one of its children: see `_Zygote.copy`."""

    def __call__(self, number: int, *, stop: bool) -> Arrival:
        """Says what it will come as."""


class Arrival:
    """A process that was asked for.

    Args:
        channel: What leads to its kernel.
        reports: Where the zygote tells of it.
        copy: How a copy of it can be had.
    """

    def __init__(self, channel: socket.socket, reports: socket.socket, copy: CopyOrder) -> None:
        self.channel = channel
        self._reports = reports
        self._copy = copy

    def fileno(self) -> int:
        """Returns a descriptor that can be read once `link` does not wait."""
        return self._reports.fileno()

    def link(self, seconds: float) -> ForkedLink | None:
        """Returns the process, once it is there; None if the zygote has ended.

        It is called once: what does not come in time is not waited for any more.

        Raises:
            TimeoutError: It has not come within this time.
            SandboxUnavailable: The system refused.
        """
        with contextlib.ExitStack() as unless_done:
            unless_done.callback(self.close)
            if not readable(self._reports.fileno(), seconds):
                raise TimeoutError
            try:
                report, pidfds, _, _ = socket.recv_fds(self._reports, 8, 1)
            except OSError:
                return None
            if not report:
                return None
            refused, *number = struct.unpack(f"<{len(report) // 4}i", report)
            if refused or not pidfds:
                why = os.strerror(refused) if refused else "this process has no descriptors left"
                raise SandboxUnavailable(f"No process could be started: {why}.")
            self.channel.settimeout(None)
            unless_done.pop_all()
            return ForkedLink(self.channel, pidfds[0], self._reports, number[0], self._copy)

    def close(self) -> None:
        """Wants it no more: it ends when it comes."""
        self.channel.close()
        self._reports.close()


class ForkedLink:
    """A locked process, child of a zygote.

    Args:
        connection: What leads to its kernel.
        pidfd: Of the process: a signal to it reaches no other that gets its number later.
        reports: Where the zygote tells how it ended.
        number: By which the zygote knows it.
        copy: How a copy of it can be had.
    """

    def __init__(
        self,
        connection: socket.socket,
        pidfd: int,
        reports: socket.socket,
        number: int,
        copy: CopyOrder,
    ) -> None:
        self.socket = connection
        self._pidfd = pidfd
        self._reports = reports
        self._number = number
        self._copy = copy
        self._owner = os.getpid()
        self._lock = threading.Lock()  # of the two above, which close
        self._story: str | None = None

    @property
    def pid(self) -> int:
        """The number of the process; -1 once it has ended, or where that cannot be seen."""
        with self._lock:
            if self._story is not None:
                return -1
            try:
                lines = Path(f"/proc/self/fdinfo/{self._pidfd}").read_text("ascii").splitlines()
            except OSError:  # this process has no descriptors left
                return -1
        return next(int(line[4:]) for line in lines if line.startswith("Pid:"))

    def interrupt(self) -> None:
        """Sends SIGINT."""
        self._send(signal.SIGINT)

    def pages(self) -> Pages:
        """Looks at its memory."""
        return pages(self.pid)

    def pause(self) -> None:
        """Stops the process, with all of its threads, until `resume`."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets it go on."""
        self._send(signal.SIGCONT)

    def copy(self, *, pause: bool) -> Arrival:
        """Asks for a copy; the kernel of this process must be told then.

        Args:
            pause: Whether this process is paused once it is copied.

        Raises:
            SandboxUnavailable: The zygote has ended, and this process with it.
        """
        return self._copy(self._number, stop=pause)

    def alive(self) -> bool:
        """Whether it has not ended."""
        with self._lock:
            return self._story is None and not readable(self._pidfd, 0)

    def kill(self) -> str:
        """Ends the process; tells how it ended. In a fork of its host it does nothing."""
        with self._lock:
            if self._story is None and self._owner == os.getpid():
                self._story = self._end()
            return self._story or ""

    def discard(self) -> None:
        """Ends the process without a look at how it does."""
        with self._lock:
            if self._story is None and self._owner == os.getpid():
                self._story = "nobody needed it any more"
                self._signal(signal.SIGKILL)
                os.close(self._pidfd)
                self._reports.close()
        self.socket.close()

    def _send(self, number: signal.Signals) -> None:
        with self._lock:
            if self._story is None:
                self._signal(number)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def _end(self) -> str:
        with self._reports:
            # One that is ending of itself tells its own story.
            stuck = not readable(self._pidfd, 0.05 if hung_up(self.socket) else 0)
            self._signal(signal.SIGKILL)
            readable(self._pidfd, None)
            os.close(self._pidfd)
            self._reports.settimeout(_LAST_WORDS)
            try:
                report = self._reports.recv(4)
            except OSError:
                report = b""
        if stuck:
            return "it hung up"
        if not report:
            return "the process that it was forked from has ended, and it with that"
        return ending(os.waitstatus_to_exitcode(*struct.unpack("<i", report)))


def readable(descriptor: int, seconds: float | None) -> bool:
    """Waits until there is something to read, or the time is over."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))
