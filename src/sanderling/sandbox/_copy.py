"""Makes a copy of the locked process that this is, when the zygote agrees: see `_families`."""

import contextlib
import errno
import os
import socket
import struct
import sys
import tempfile
import warnings
from collections.abc import Callable

CHANNEL, GUARD = 3, 4
"""The descriptors that a locked process has: what it serves, and what leads to the zygote."""


class Copier:
    """Copies this process.

    Args:
        zygote: The number of the process that all copies belong to.
        die_with_parent: `lockdown.die_with_parent`.
    """

    def __init__(self, zygote: int, die_with_parent: "Callable[[], None]") -> None:
        self._zygote = zygote
        self._die_with_parent = die_with_parent

    def hand_over(self, listener: int) -> None:
        """Gives the listener of the filter to the zygote."""
        with socket.socket(fileno=os.dup(GUARD)) as guard:
            socket.send_fds(guard, [b"l"], [listener])
        os.close(listener)

    def __call__(self, folder: "str | None") -> bool:
        """Copies this process, as the zygote was told before.

        Args:
            folder: Where the copy will work; None for where it works now.

        Returns:
            Whether this is the copy. There, its channel is in the place of the one before.
        """
        try:
            guard = socket.socket(fileno=GUARD)  # no copy of it: there may be no descriptor left
            try:
                told, descriptors, _, _ = socket.recv_fds(guard, 16, 2)
            finally:
                guard.detach()
        except OSError:
            return False  # the code has closed it: then the zygote has been told
        if told != b"copy":
            return False
        failure = errno.EMFILE
        if len(descriptors) == 2:
            failure = self._fork(folder, *descriptors)
            if failure < 0:
                return True
        for descriptor in descriptors:
            os.close(descriptor)
        if failure:
            os.write(GUARD, struct.pack("<i", failure))
        return False

    def _fork(self, folder: "str | None", channel: int, guard: int) -> int:
        """Returns 0 or an error number; -1 in the copy."""
        with contextlib.suppress(OSError):  # there is none, or none that has ended
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass  # the one between this process and its last copy
        parent = -1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of threads: the copy has none, as is said
                if os.fork():
                    return 0
                parent = os.getpid()
                if os.fork():
                    os._exit(0)
        except OSError as error:
            number = error.errno or errno.EAGAIN
            if parent < 0:
                return number
            os.write(GUARD, struct.pack("<i", number))
            os._exit(1)
        while os.getppid() == parent:
            os.sched_yield()
        self._die_with_parent()
        if os.getppid() != self._zygote:
            os._exit(0)
        os.dup2(channel, CHANNEL)
        os.dup2(guard, GUARD)
        os.close(channel)
        os.close(guard)
        forget_what_was_before()
        if folder is not None:
            move_to(folder)
        os.write(GUARD, b"here")
        return -1


def move_to(folder: str) -> None:
    """Makes this the folder that the code works in."""
    with contextlib.suppress(OSError):  # then it says so where the code opens a file
        os.chdir(folder)
    for name in ("HOME", "TMPDIR", "MPLCONFIGDIR"):
        os.environ[name] = folder


def forget_what_was_before() -> None:
    """Undoes what modules keep from before a fork, and would share with other processes."""
    tempfile.tempdir = None
    # What has a seed of its own beside that of `random`, of the modules that may be loaded here.
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "sympy.core.random" in sys.modules:
        sys.modules["sympy.core.random"].rng.seed()
