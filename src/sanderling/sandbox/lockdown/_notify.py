"""Seccomp's user notification: calls that another process decides on, while the caller waits.

That process can also put one of its own open files into the caller meanwhile.

The arguments of a call that waits are copies of its registers, so nobody can change them between
the look and the verdict. What lies behind a pointer could be changed, and is never looked at.

Source: seccomp_unotify(2), ``linux/seccomp.h``.
"""

import errno
import fcntl
import functools
import struct
from dataclasses import dataclass

from ._linux import machine, syscall
from ._syscalls import numbers

NEW_LISTENER = 8
"""The flag of `_seccomp.load` that makes it return a listener."""

_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND
_ADD_DESCRIPTOR = 0x40182103  # SECCOMP_IOCTL_NOTIF_ADDFD
_CONTINUE = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
_AT_NUMBER = 1  # SECCOMP_ADDFD_FLAG_SETFD
# struct seccomp_notif { u64 id; u32 pid, flags; struct seccomp_data data; }, and in that
# { int nr; u32 arch; u64 instruction_pointer, args[6]; }
_NOTICE = struct.Struct("<QIIiIQ6Q")
# struct seccomp_notif_resp { u64 id; s64 val; s32 error; u32 flags; }
_VERDICT = struct.Struct("<QqiI")
# struct seccomp_notif_addfd { u64 id; u32 flags, srcfd, newfd, newfd_flags; }
_DESCRIPTOR = struct.Struct("<QIIII")


@dataclass(frozen=True)
class Notice:
    """A call that waits for its verdict."""

    id: int
    """Names it to the kernel."""
    caller: int
    """The thread that makes it, as the reader of the notice numbers threads."""
    call: str
    """The name of the call."""
    arguments: tuple[int, ...]
    """The first argument and so on, each 64 bits wide."""


def next_notice(listener: int) -> "Notice | None":
    """Takes the next notice; None if its caller has died meanwhile."""
    space = bytearray(_NOTICE.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, space)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    number, caller, _, call, _, _, *arguments = _NOTICE.unpack(space)
    return Notice(number, caller, _names()[call], tuple(arguments))


def answer(listener: int, notice: Notice, refusal: int = 0) -> None:
    """Lets a call be made, or makes it fail.

    Args:
        listener: Where the notice came from.
        notice: The call.
        refusal: The error number that the caller gets; 0 lets the call be made.
    """
    flags = 0 if refusal else _CONTINUE
    try:
        fcntl.ioctl(listener, _ANSWER, _VERDICT.pack(notice.id, 0, -refusal, flags))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EINPROGRESS):  # nobody waits any more
            raise


def is_thread_of(thread: int, process: int) -> bool:
    """Returns whether a thread is one of a process."""
    try:
        syscall("tgkill", process, thread, 0)  # no signal: it only looks
    except OSError:
        return False
    return True


def add_descriptor(listener: int, notice: Notice, descriptor: int, number: int) -> None:
    """Opens a file in the caller, which still waits.

    Args:
        listener: Where the notice came from.
        notice: The call.
        descriptor: The file, as this process has it open.
        number: The descriptor that the caller gets; what was open there is closed.

    Raises:
        OSError: The caller has died, or the kernel refused.
    """
    wanted = _DESCRIPTOR.pack(notice.id, _AT_NUMBER, descriptor, number, 0)
    while True:
        try:
            fcntl.ioctl(listener, _ADD_DESCRIPTOR, wanted)
        except InterruptedError:  # by a signal, as it waits for the caller
            continue
        return


@functools.cache
def _names() -> "dict[int, str]":
    return {number: name for name, number in numbers(machine()).items()}
