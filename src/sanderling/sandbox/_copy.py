"""Makes a copy of the locked process that this is, when the fork server lets it: see `_forking`."""

import contextlib
import os
import socket
import sys
import tempfile
import warnings

CHANNEL, SUPERVISOR = 3, 4
"""The descriptors of a process that is to be locked; the second is closed before foreign code."""

_MAY_I_FORK = 0x7FFFFFFF  # see `_forking`


def hand_over(listener: int) -> None:
    """Gives the listener of the filter to the fork server."""
    with socket.socket(fileno=SUPERVISOR) as supervisor:
        socket.send_fds(supervisor, [b"l"], [listener])
    os.close(listener)


class Copier:
    """Copies this process."""

    def __init__(self) -> None:
        self._fork = os.fork

    def __call__(self, folder: "str | None") -> bool:
        """Copies this process, as the host has ordered.

        Args:
            folder: Where the copy will work; None for where it works now.

        Returns:
            Whether this is the copy, which runs once it is put to use. There, the channel leads to
            another place.
        """
        with contextlib.suppress(OSError):  # always: no process has this number
            os.kill(_MAY_I_FORK, 0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of threads, which the copy does not have
                if self._fork():
                    return False
        except OSError:
            return False  # the fork server knows
        forget_what_was_before()
        if folder is not None:
            move_to(folder)
        return True


def move_to(folder: str) -> None:
    """Makes this the folder that the code works in."""
    with contextlib.suppress(OSError):  # then it says so where the code opens a file
        os.chdir(folder)
    os.environ.update(HOME=folder, TMPDIR=folder, MPLCONFIGDIR=f"{folder}/.matplotlib")


def forget_what_was_before() -> None:
    """Undoes what modules keep from before a fork, and would share with other processes."""
    tempfile.tempdir = None
    # What has a seed of its own beside that of `random`, of the modules that may be loaded here.
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "sympy.core.random" in sys.modules:
        sys.modules["sympy.core.random"].rng.seed()
