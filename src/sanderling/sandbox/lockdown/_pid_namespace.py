"""A PID namespace: a process that is the first in it takes all others along when it ends.

Source: pid_namespaces(7), user_namespaces(7).
"""

import contextlib
import os
import select
import signal
from collections.abc import Callable

from ._linux import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, prctl, syscall

_NEW_USER, _NEW_PID = 0x10000000, 0x20000000


def enter_pid_namespace(host: int, afterwards: "Callable[[int], None]") -> bool:
    """Goes on in a new process: where the machine lets us, the first of a new PID namespace.

    This process stays behind as a guard: it ends with the new one, which dies with it, and kills it
    when the host has ended. Where there is no namespace to be had, this process goes on itself, and
    becomes the one that its orphaned descendants belong to, as the first of a namespace is.

    Args:
        host: The number of the process that all of this is for.
        afterwards: What the guard does when all processes of the namespace have ended; it gets the
            exit status of the first one.

    Returns:
        Whether there is a namespace.

    Raises:
        OSError: The kernel refused what it refuses nobody.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        syscall("unshare", _NEW_PID)
    except OSError:
        try:
            syscall("unshare", _NEW_USER | _NEW_PID)
        except OSError:
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            return False
        map_to_itself(user, group)
    first = os.fork()
    if first:
        # It has no descriptor of ours to keep open: who waits for its end must see it.
        syscall("close_range", 3, 0xFFFFFFFF, 0)
        prctl(PR_SET_PDEATHSIG, 0)
        code = _end_of(first, host)
        try:
            afterwards(code)
        finally:
            os._exit(code & 0xFF)
    return True


def _end_of(first: int, host: int) -> int:
    """Waits for the end of a child, and brings it about once the host has ended; its status."""
    with contextlib.suppress(ProcessLookupError):  # the host has ended already
        select.select([os.pidfd_open(first), os.pidfd_open(host)], [], [])
    os.kill(first, signal.SIGKILL)  # to one that has ended it means nothing
    _, status = os.waitpid(first, 0)
    return os.waitstatus_to_exitcode(status)


def map_to_itself(user: int, group: int) -> None:
    """Makes a process in a new user namespace the user that it was.

    Raises:
        OSError: The kernel refused.
    """
    # The kernel takes a group's map from a process without privilege that gave up setgroups.
    for name, data in (
        ("setgroups", b"deny"),
        ("uid_map", b"%d %d 1" % (user, user)),
        ("gid_map", b"%d %d 1" % (group, group)),
    ):
        place = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(place, data)
        finally:
            os.close(place)
