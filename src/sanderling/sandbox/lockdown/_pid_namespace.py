"""A PID namespace: a process that is the first in it takes all others along when it ends.

Source: pid_namespaces(7), user_namespaces(7).
"""

import os

from ._linux import PR_SET_CHILD_SUBREAPER, prctl, syscall

_NEW_USER, _NEW_PID = 0x10000000, 0x20000000


def enter_pid_namespace() -> bool:
    """Goes on in a new process: where the machine lets us, the first of a new PID namespace.

    This process stays behind as a guard: it ends with the new one, which dies with it. Where there
    is no namespace to be had, this process goes on itself, and becomes the one that its orphaned
    descendants belong to, as the first of a namespace is.

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
        _, status = os.waitpid(first, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    return True


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
