"""Makes this process look like one of another system, before Sanderling is imported there.

What Windows and macOS do not have is taken away: modules cannot be imported, and functions and
constants are gone. The standard library is loaded before, since it would look for them itself.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from types import ModuleType

_LOADED = (asyncio, subprocess, tempfile)
_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}
_LINUX: dict[ModuleType, str] = {
    os: "O_PATH O_TMPFILE copy_file_range pidfd_open memfd_create sched_getaffinity unshare setns",
    select: "epoll",
    signal: "pidfd_send_signal",
}
_POSIX: dict[ModuleType, str] = {
    os: "fork register_at_fork O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_CLOEXEC geteuid getuid sysconf "
    "mkfifo killpg setsid WNOHANG waitid",
    select: "poll POLLIN POLLOUT POLLHUP",
    signal: "SIGURG SIGKILL SIGSTOP SIGCONT SIGCHLD SIGALRM SIGHUP SIGUSR1 SIGPIPE pthread_kill "
    "pthread_sigmask setitimer",
    socket: "SCM_RIGHTS send_fds recv_fds MSG_DONTWAIT",
}


class _Missing:
    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> None:
        if name.partition(".")[0] in _MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def pretend(platform: str) -> None:
    """Pretends to be on ``"darwin"`` or ``"win32"``, with even fewer modules than those have."""
    for name in ("ctypes", "ssl", "concurrent.futures.thread", "urllib.request", "uuid"):
        importlib.import_module(name)
    sysconfig.get_config_vars()
    sys.meta_path.insert(0, _Missing())
    for name in _MODULES:
        sys.modules.pop(name, None)
    sys.platform = platform
    for missing in (_LINUX, *([_POSIX] if platform == "win32" else [])):
        for module, names in missing.items():
            for name in names.split():
                if hasattr(module, name):
                    delattr(module, name)
