"""Packets between the host and the fork server, and what the system shows of processes."""

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator

_NUMBER = struct.Struct("i")  # of a descriptor


@contextlib.contextmanager
def borrowed(descriptor: int) -> "Iterator[socket.socket]":
    """Gives a socket of a descriptor that stays open afterwards."""
    peer = socket.socket(fileno=descriptor)
    try:
        yield peer
    finally:
        peer.detach()


def receive(descriptor: int, size: int, most: int) -> "tuple[bytes | None, list[int]]":
    """Reads a packet without waiting.

    Args:
        descriptor: A packet socket.
        size: The most bytes that it holds.
        most: The most descriptors that come with it.

    Returns:
        The bytes and the descriptors; no bytes if the other end is closed, None if there is no
        packet.
    """
    with borrowed(descriptor) as peer:
        try:  # not by recv_fds, which forgets its flags in Python 3.11
            space = socket.CMSG_LEN(most * _NUMBER.size)
            data, ancillary, _, _ = peer.recvmsg(size, space, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None, []
        except OSError:
            return b"", []
    received = b"".join(
        content[: len(content) - len(content) % _NUMBER.size]
        for level, kind, content in ancillary
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
    )
    return data, [number for (number,) in _NUMBER.iter_unpack(received)]


def report(reports: int, number: int, *child: int) -> bool:
    """Sends the host a report.

    Args:
        reports: The packet socket.
        number: An error number, a wait status, or 0.
        child: The number of a new process, and a pidfd of it.

    Returns:
        Whether the host can receive it.
    """
    with borrowed(reports) as peer, contextlib.suppress(OSError):
        data = struct.pack(f"<{1 + len(child[:1])}i", number, *child[:1])
        numbers = struct.pack(f"{len(child[1:])}i", *child[1:])
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if numbers else []
        peer.sendmsg([data], rights, socket.MSG_DONTWAIT)
        return True
    return False


def refuse(descriptors: "tuple[int, ...]", number: int) -> None:
    """Reports an error on the first of the descriptors, and closes them all."""
    for reports in descriptors[:1]:
        report(reports, number)
    for descriptor in descriptors:
        os.close(descriptor)


def open_descriptors(pidfd: int, inode: int) -> "list[int]":
    """Returns the descriptors of a process that refer to one socket.

    Raises:
        OSError: The process has ended, or the system does not show them.
    """
    folder = f"/proc/{_shown_number(pidfd)}/fd"
    wanted = f"socket:[{inode}]"
    # pathlib costs time
    return [int(name) for name in os.listdir(folder) if os.readlink(f"{folder}/{name}") == wanted]  # noqa: PTH115, PTH208


def _shown_number(pidfd: int) -> str:
    """Returns the number by which /proc knows a process: it may be that of another namespace."""
    with open(f"/proc/self/fdinfo/{pidfd}", "rb") as shown:  # noqa: PTH123 - pathlib costs time
        for line in shown:
            if line.startswith(b"Pid:"):
                return line[4:].strip().decode()
    raise ProcessLookupError(errno.ESRCH, "the process has ended")
