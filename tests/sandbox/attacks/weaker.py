"""Interpreters with walls missing, to see which of them stops what. For tests of the walls only."""

from __future__ import annotations

import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from sanderling.sandbox import kernel
from sanderling.sandbox._limits import Limits, Usage
from sanderling.sandbox._workdir import remove_tree
from sanderling.sandbox.lockdown import policy_for

_ZYGOTE = Path(__file__).with_name("zygote.py")


class WeakerLink:
    """A kernel that a zygote forked."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.socket = connection
        try:
            self._process: int | None = os.pidfd_open(pid)
        except ProcessLookupError:
            self._process = None

    def interrupt(self) -> None:
        """Sends SIGINT."""
        self._signal(signal.SIGINT)

    def kill(self) -> str:
        """Ends the process, and waits until it is gone."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            select.select([self._process], [], [])
            os.close(self._process)
            self._process = None
        return "its end is not known"

    def _signal(self, number: int) -> None:
        try:
            if self._process is not None:
                signal.pidfd_send_signal(self._process, number)
        except ProcessLookupError:
            return


class WeakerBackend:
    """Starts kernels behind these walls only.

    Args:
        walls: Names of `case.WALLS`; ``"all but namespaces"`` stands for `lockdown.lock` itself
            on a machine that has no namespaces to give.
        options: Settings of `policy_for`.
    """

    name = "weaker"
    limits = Limits()
    files_remain = True
    is_warm = True
    grace = 1.0
    ways_out = ""

    def __init__(self, walls: str, **options: object) -> None:
        self._walls = walls
        self._options = options
        self._folder: str | None = None
        self._link: WeakerLink | None = None

    def start(self) -> WeakerLink:
        """Starts a kernel, in the place of the one before."""
        self._end()
        self._folder = self._folder or tempfile.mkdtemp(prefix="sanderling-")
        policy = policy_for(
            self._folder,
            namespaces=self._walls == "namespaces",
            **self._options,  # type: ignore[arg-type]  # settings by name
        )
        ours, theirs = socket.socketpair()
        with theirs:
            order = json.dumps({"walls": self._walls, "policy": policy.to_json()})
            _, control = zygote()
            socket.send_fds(control, [order.encode()], [theirs.fileno()])
            self._link = WeakerLink(int(control.recv(16)), ours)
        return self._link

    def usage(self, link: object) -> Usage:
        """Sees nothing."""
        return Usage()

    def close(self) -> None:
        """Ends the kernel and removes its work folder. May be called again."""
        self._end()
        if self._folder is not None:
            remove_tree(self._folder)
            self._folder = None

    def _end(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.kill()


@functools.cache
def zygote() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Starts the process that forks kernels: clean, and with a single thread."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        package = str(Path(kernel.__file__).parent)
        command = [sys.executable, "-I", "-B", str(_ZYGOTE), str(theirs.fileno()), package]
        process = subprocess.Popen(command, env={}, pass_fds=(theirs.fileno(),))
    return process, ours
