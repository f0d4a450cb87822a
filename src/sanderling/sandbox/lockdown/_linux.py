"""System calls that Python does not offer, by name."""

import ctypes
import functools
import os
import sys
from collections.abc import Callable

from ._errors import LockdownError
from ._syscalls import MACHINES, numbers

Argument = int | bytes | ctypes.Array[ctypes.c_char] | None

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_UNUSED = (0,) * 6  # a call has as many arguments at most
_REMEDY = "Use another executor, such as docker"


@functools.cache
def machine() -> str:
    """Returns the machine whose system calls this process makes.

    Raises:
        LockdownError: Not Linux, or neither x86_64 nor aarch64 with 64-bit Python.
    """
    if sys.platform != "linux":
        raise LockdownError("machine", f"the walls are Linux's, this is {sys.platform}", _REMEDY)
    name = os.uname().machine
    if name not in MACHINES or sys.maxsize < 2**32:
        raise LockdownError(
            "machine", f"needs 64-bit Python on {' or '.join(MACHINES)}, this is {name}", _REMEDY
        )
    return name


def syscall(name: str, *arguments: Argument) -> int:
    """Makes the system call `name`.

    Args:
        name: A name of `_syscalls.NUMBERS`.
        arguments: Numbers as they are; bytes and buffers by address; None as a null pointer.

    Returns:
        What the kernel returned.

    Raises:
        OSError: The kernel refused; its text begins with the name of the call.
    """
    function, table = _entry()
    result = function(table[name], *arguments, *_UNUSED[len(arguments) :])
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def prctl(option: int, *arguments: int) -> int:
    """Makes ``prctl(option, ...)`` with all unused arguments zero, as the kernel demands.

    Raises:
        OSError: The kernel refused.
    """
    return syscall("prctl", option, *arguments)


@functools.cache
def _entry() -> tuple[Callable[..., int], dict[str, int]]:
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    # Of a pointer's type each: it takes numbers as well, and is as wide as a register.
    function.argtypes = [ctypes.c_long, *[ctypes.c_void_p] * len(_UNUSED)]
    return function, numbers(machine())
