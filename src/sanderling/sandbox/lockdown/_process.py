"""The plain parts of the walls: descriptors, session, capabilities, limits, no new privileges."""

import contextlib
import errno
import os
import signal
import struct
from collections.abc import Iterable

from ._errors import LockdownError
from ._linux import (
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_CLEAR_ALL,
    PR_CAPBSET_DROP,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    prctl,
    syscall,
)

DIE_WITH_PARENT = (PR_SET_PDEATHSIG, signal.SIGKILL)
"""Arguments of prctl(2): the kernel kills the caller when the thread that made it ends."""

_CAPABILITY_VERSION_3 = 0x20080522  # linux/capability.h: two 32-bit words for each set
_MORE_CAPABILITIES_THAN_THERE_ARE = 64
_LAST_DESCRIPTOR = 0xFFFFFFFF
_QUEUED_SIGNALS = 64  # of all processes of the user, who may queue no more when the code has them


def harden_process(keep_fds: Iterable[int]) -> None:
    """Cuts a fresh child loose from what it inherited; call it before `lock`.

    It becomes the leader of its own session, without a terminal, dies with its parent, and gets all
    signals: children of a process that ignores theirs are buried by the system, and nobody learns
    how they ended.

    Args:
        keep_fds: The descriptors that stay open; all others are closed.

    Raises:
        OSError: The kernel refused.
    """
    with contextlib.suppress(PermissionError):  # it leads its session already
        os.setsid()
    die_with_parent()
    _hear_signals()
    next_fd = 0
    for kept in sorted(set(keep_fds)):
        if kept > next_fd:
            syscall("close_range", next_fd, kept - 1, 0)
        next_fd = kept + 1
    syscall("close_range", next_fd, _LAST_DESCRIPTOR, 0)


def _hear_signals() -> None:
    # Python ignores two, and raises errors instead.
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) == signal.SIG_IGN:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def die_with_parent() -> None:
    """Has the kernel kill this process when the *thread* that made it ends.

    So make it from a thread that lives as long as its parent. A parent that is gone already is not
    noticed: its end of the channel is.

    Raises:
        OSError: The kernel refused.
    """
    prctl(*DIE_WITH_PARENT)


def require_single_thread() -> None:
    """Landlock and seccomp lock one thread: another one would stay outside.

    Raises:
        LockdownError: This process has more than one thread.
    """
    try:
        with os.scandir("/proc/self/task") as tasks:
            count = sum(1 for _ in tasks)
    except OSError as error:
        raise LockdownError(
            "single thread", f"/proc cannot be read ({error})", "Mount /proc on this machine"
        ) from error
    if count > 1:
        raise LockdownError(
            "single thread",
            f"{count} threads run already",
            "Lock a freshly forked child, before anything in it starts a thread",
        )


def drop_capabilities() -> None:
    """Gives up all capabilities, and the chance to get one back.

    Raises:
        LockdownError: The kernel refused.
    """
    try:
        for number in range(_MORE_CAPABILITIES_THAN_THERE_ARE):
            try:
                prctl(PR_CAPBSET_DROP, number)
            except PermissionError:
                break  # without CAP_SETPCAP the set stays, and no_new_privs keeps it unused
            except OSError as error:
                if error.errno == errno.EINVAL:  # past the last capability of this kernel
                    break
                raise
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
        syscall("capset", struct.pack("<Ii", _CAPABILITY_VERSION_3, 0), bytes(24))
    except OSError as error:
        raise LockdownError("capabilities", str(error), "They must be droppable") from error


def set_limits(
    *, memory_bytes: int, file_bytes: int, open_files: int, cpu_seconds: int | None
) -> dict[str, int]:
    """Sets the resource limits, hard and soft; one that is lower already stays.

    Returns:
        The limits in force, by the kernel's name without ``RLIMIT_``; bytes, counts or seconds.

    Raises:
        LockdownError: The kernel refused.
    """
    import resource  # not on Windows, where this package can be imported, too

    wanted = {
        # AS, not DATA: shared anonymous memory passes by DATA. It bounds the threads, too.
        "AS": memory_bytes,
        "FSIZE": file_bytes,
        "NOFILE": open_files,
        # Not 0, which would not keep a core from a program that core_pattern pipes it to: core(5).
        "CORE": 1,
        "MEMLOCK": 0,
        "SIGPENDING": _QUEUED_SIGNALS,
    }
    if cpu_seconds is not None:
        wanted["CPU"] = cpu_seconds
    in_force: dict[str, int] = {}
    for name, value in wanted.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        try:
            _, hard = resource.getrlimit(kind)
            limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (limit, limit))
        except (OSError, ValueError, OverflowError) as error:
            raise LockdownError(
                "rlimits", f"RLIMIT_{name}={value}: {error}", "Ask for a limit that is possible"
            ) from error
        in_force[name] = limit
    return in_force


def forbid_new_privileges() -> None:
    """No set-uid program or file capability counts any more; no other process may trace this one.

    Raises:
        LockdownError: The kernel refused.
    """
    try:
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        prctl(PR_SET_DUMPABLE, 0)
    except OSError as error:
        raise LockdownError("no_new_privs", str(error), "It needs Linux 3.5 or newer") from error


def let_be_traced() -> None:
    """Lets processes of the same user trace this one, as its parent must to copy it.

    Those in other sandboxes still cannot: Landlock and seccomp keep them from it.

    Raises:
        LockdownError: The kernel refused.
    """
    try:
        prctl(PR_SET_DUMPABLE, 1)
    except OSError as error:
        raise LockdownError("no_new_privs", str(error), "It needs Linux 3.5 or newer") from error
