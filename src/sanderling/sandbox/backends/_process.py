"""Kernels in child processes of this one, and how processes end, in words."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

from sanderling.sandbox._limits import Usage
from sanderling.sandbox._snapshots import Pages


class ProcessLink:
    """A kernel in a child process."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._process = process
        self.socket = connection

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def interrupt(self) -> None:
        """Sends SIGINT."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> str:
        """Ends the process; tells how it ended."""
        try:
            # One that is ending of itself tells its own story.
            self._process.wait(0.05 if hung_up(self.socket) else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return "it hung up"
        return ending(self._process.returncode)


def hung_up(connection: socket.socket) -> bool:
    """Returns whether nobody is at the other end of a blocking socket any more."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def ending(status: int) -> str:
    """Tells in words what `subprocess.Popen.returncode` tells in numbers."""
    if status >= 0:
        return f"exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:  # most of those for real time have no name
        return f"signal {-status}"
    return f"{name}, perhaps for want of memory" if name == "SIGKILL" else name


def usage(pid: int) -> Usage:
    """Looks at what a process uses up, where the system shows it: in ``/proc``, see proc(5)."""
    fields = _stat(pid)
    if fields is None:
        return Usage()
    user, system, threads = int(fields[11]), int(fields[12]), int(fields[17])
    ticks = os.sysconf("SC_CLK_TCK")
    return Usage(cpu_seconds=(user + system) / ticks, threads=threads)


def pages(pid: int) -> Pages:
    """Looks at the memory of a process, there as well; zeros where it cannot be seen."""
    fields = _stat(pid)
    return Pages(0, 0) if fields is None else Pages(int(fields[7]), int(fields[21]))


def proportional_bytes(pid: int) -> int:
    """Returns the memory that a process uses, of what it shares with n others one part in n + 1.

    It is 0 where that cannot be seen. Source: ``/proc/pid/smaps_rollup`` in proc(5).
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(b"Pss:"))


def _stat(pid: int) -> list[bytes] | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return stat.rpartition(b")")[2].split()  # behind the name, which the process may choose
