"""Locked processes that the fork server has made, and templates of them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from sanderling.errors import SandboxUnavailable

from ._process import ending, hung_up, pages, proportional_bytes

if TYPE_CHECKING:
    from sanderling.sandbox._snapshots import Pages

_T = TypeVar("_T")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LAST_WORDS = 5.0  # seconds from the death of a process to the report of it
_PATIENCE = 15.0  # seconds; the fork server's own is shorter


class Orders(Protocol):
    """What a fork server does with one of its children."""

    def copy(self, number: int, *, pause: bool) -> Arrival[ForkedTemplate]:
        """Orders a template of a process; the kernel in it must be told then.

        Args:
            number: Of the process.
            pause: Whether it is paused afterwards.

        Raises:
            SandboxUnavailable: The fork server has ended, and the process with it.
        """

    def use(self, number: int) -> Arrival[ForkedLink]:
        """Orders a process like a template.

        Args:
            number: Of the template.

        Raises:
            SandboxUnavailable: The fork server has ended, and the template with it.
        """


class Arrival(Generic[_T]):
    """A process that was ordered.

    Args:
        reports: Where the fork server reports on it.
        make: Makes what stands for it, of its number, a pidfd and `reports`.
        forget: Called where it is not wanted any more.
    """

    def __init__(
        self,
        reports: socket.socket,
        make: Callable[[int, int, socket.socket], _T],
        forget: Callable[[], object] = lambda: None,
    ) -> None:
        self._reports = reports
        self._make = make
        self._forget = forget

    def result(self, seconds: float) -> _T | None:
        """Returns the process, once it is there; None if the fork server has ended.

        It is called once: what does not come in time is not waited for any more.

        Args:
            seconds: How long to wait.

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
            unless_done.pop_all()
            return self._make(number[0], pidfds[0], self._reports)

    def close(self) -> None:
        """Forgets it: it ends when it comes."""
        self._forget()
        self._reports.close()


class _Child:
    """A child of a fork server.

    Args:
        orders: What the fork server does with it.
        number: By which the fork server knows it.
        pidfd: Of the process: a signal to it reaches no other that gets its number later.
        reports: Where the fork server tells how it ended.
    """

    def __init__(self, orders: Orders, number: int, pidfd: int, reports: socket.socket) -> None:
        self._number = number
        self._pidfd = pidfd
        self._reports = reports
        self._orders = orders
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

    def pages(self) -> Pages:
        """Looks at its memory."""
        return pages(self.pid)

    def resident_bytes(self) -> int:
        """Returns the memory that it uses; 0 once it has ended."""
        return self.pages().resident * _PAGE

    def proportional_bytes(self) -> int:
        """Returns the memory that it uses, of what is shared its share; this takes longer."""
        return proportional_bytes(self.pid)

    def _send(self, number: signal.Signals) -> None:
        with self._lock:
            if self._story is None:
                self._signal(number)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def _patience(self) -> float:
        """Returns for how many seconds it may be ending of itself."""
        return 0.0

    def _end(self) -> str:
        with self._reports:
            # One that is ending of itself tells its own story.
            stuck = not readable(self._pidfd, self._patience())
            self._signal(signal.SIGKILL)
            readable(self._pidfd, _LAST_WORDS)
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


class ForkedTemplate(_Child):
    """A copy of a locked process that has run nothing yet, and never will: see `start`."""

    def start(self) -> ForkedLink:
        """Makes a process like this one, which goes on from where the copy was made.

        Raises:
            SandboxUnavailable: The system refused, or this template has ended.
        """
        try:
            link = self._orders.use(self._number).result(_PATIENCE)
        except TimeoutError as error:
            raise SandboxUnavailable("The copy did not start in time.") from error
        if link is None:
            raise SandboxUnavailable("The process that forks sandboxes has ended.")
        return link


class ForkedLink(_Child):
    """A locked process.

    Args:
        connection: What leads to its kernel.
        orders: What the fork server does with it.
        number: By which the fork server knows it.
        pidfd: Of the process.
        reports: Where the fork server tells how it ended.
    """

    def __init__(
        self,
        connection: socket.socket,
        orders: Orders,
        number: int,
        pidfd: int,
        reports: socket.socket,
    ) -> None:
        super().__init__(orders, number, pidfd, reports)
        self.socket = connection

    def interrupt(self) -> None:
        """Sends SIGINT."""
        self._send(signal.SIGINT)

    def pause(self) -> None:
        """Stops the process, with all of its threads, until `resume`."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets it go on."""
        self._send(signal.SIGCONT)

    def copy(self, *, pause: bool) -> Arrival[ForkedTemplate]:
        """Orders a template of this process; its kernel must be told then.

        Args:
            pause: Whether this process is paused afterwards.

        Raises:
            SandboxUnavailable: The fork server has ended, and this process with it.
        """
        return self._orders.copy(self._number, pause=pause)

    def discard(self) -> None:
        """Ends the process without a look at how it does, and closes its socket."""
        super().discard()
        self.socket.close()

    def _patience(self) -> float:
        return 0.05 if hung_up(self.socket) else 0.0


def readable(descriptor: int, seconds: float | None) -> bool:
    """Waits until there is something to read, or the time is over."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))
