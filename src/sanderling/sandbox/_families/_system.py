"""What the zygote asks of the system: packets between processes, and what processes there are."""

import contextlib
import errno
import os
import select
import socket
import struct
from collections.abc import Iterator

_CREDENTIALS = struct.Struct("<iII")  # struct ucred { pid_t pid; uid_t uid; gid_t gid; }
_NUMBER = struct.Struct("i")  # of a descriptor


def pair() -> "tuple[int, int]":
    """Returns the descriptors of the two ends of a packet socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return ours.detach(), theirs.detach()


@contextlib.contextmanager
def borrowed(descriptor: int) -> "Iterator[socket.socket]":
    """Has a socket of a descriptor that stays open afterwards."""
    peer = socket.socket(fileno=descriptor)
    try:
        yield peer
    finally:
        peer.detach()


def receive(descriptor: int, size: int, most: int) -> "tuple[bytes | None, list[int]]":
    """Reads a packet; an empty one, where the other end is gone; None, where there is none."""
    with borrowed(descriptor) as peer:
        try:  # not by recv_fds, which forgets its flags in Python 3.11
            space = socket.CMSG_LEN(most * _NUMBER.size)
            data, ancillary, _, _ = peer.recvmsg(size, space, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None, []
        except OSError:
            return b"", []
    found = b"".join(
        told[: len(told) - len(told) % _NUMBER.size]
        for level, kind, told in ancillary
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
    )
    return data, [number for (number,) in _NUMBER.iter_unpack(found)]


def sender(descriptor: int) -> "int | None":
    """Reads a packet; returns the number of the process that sent it; 0 where nobody can any more.

    None is for no packet.
    """
    with borrowed(descriptor) as peer:
        try:
            space = socket.CMSG_SPACE(_CREDENTIALS.size)
            data, ancillary, _, _ = peer.recvmsg(16, space, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            return 0
        for level, kind, told in ancillary:
            if data and (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                pid: int = _CREDENTIALS.unpack(told)[0]
                return pid
    return 0


def readable(descriptor: int) -> bool:
    """Whether there is something to read."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return any(events & select.POLLIN for _, events in poll.poll(0))


def report(reports: int, number: int, *child: int) -> bool:
    """Tells the host; `child` is the number and a pidfd of a new one. Returns whether it heard."""
    return tell(reports, struct.pack(f"<{1 + len(child[:1])}i", number, *child[:1]), *child[1:])


def tell(descriptor: int, data: bytes, *descriptors: int) -> bool:
    """Sends a packet, if that can be done at once. Returns whether it could."""
    with borrowed(descriptor) as peer, contextlib.suppress(OSError):
        numbers = struct.pack(f"{len(descriptors)}i", *descriptors)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if descriptors else []
        peer.sendmsg([data], rights, socket.MSG_DONTWAIT)
        return True
    return False


def refuse(descriptors: "tuple[int, ...]", number: int) -> None:
    """Reports an error on the first of the descriptors, and closes them all."""
    for reports in descriptors[:1]:
        report(reports, number)
    for descriptor in descriptors:
        os.close(descriptor)


def is_process(number: int) -> bool:
    """Whether it is the number of a process, not that of one more thread."""
    try:
        os.close(os.pidfd_open(number))
    except OSError:
        return False
    return True


def is_child(pid: int) -> bool:
    """Whether it is the number of a child of this process that is not buried yet."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:
        return False
    return pid > 0


def shown_number(pidfd: int) -> str:
    """Returns the number by which /proc knows a process: it may be that of another namespace."""
    with open(f"/proc/self/fdinfo/{pidfd}", "rb") as shown:  # noqa: PTH123 - pathlib costs time
        for line in shown:
            if line.startswith(b"Pid:"):
                return line[4:].strip().decode()
    raise ProcessLookupError(errno.ESRCH, "the process has ended")


def children(number: str) -> "list[bytes]":
    """Returns the numbers of the children of a process.

    Raises:
        OSError: It has ended, or the system does not show them.
    """
    found: list[bytes] = []
    for task in os.scandir(f"/proc/{number}/task"):
        with open(f"{task.path}/children", "rb") as shown:  # noqa: PTH123 - pathlib costs time
            found += shown.read().split()
    return found
