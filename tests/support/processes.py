"""Looks at processes from outside, as the system shows them."""

from __future__ import annotations

import contextlib
import gc
import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path

from sanderling.sandbox.backends._local import preload
from support.sandbox import interpreter


def children(pid: int) -> set[int]:
    """The processes that `pid` has started and that are still there, dead or alive."""
    found: set[int] = set()
    with contextlib.suppress(OSError):  # a process that ends
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread that ends
                found.update(map(int, (task / "children").read_text().split()))
    return found


def offspring(pid: int | None = None) -> set[int]:
    """The children of `pid` or of this process, and theirs."""
    first = children(os.getpid() if pid is None else pid)
    return first.union(*map(offspring, first))


def fork_servers(pid: int | None = None) -> set[int]:
    """The fork servers of `pid` or of this process that are alive, without their guards."""
    parent = os.getpid() if pid is None else pid
    found = {child for child in children(parent) if b"_fork_server.py" in _command(child)}
    return {next(iter(children(child)), child) if _guards(child) else child for child in found}


def _guards(pid: int) -> bool:
    """Whether the children of a process live in a PID namespace that it is not in itself."""
    spaces = Path(f"/proc/{pid}/ns")
    try:
        return (spaces / "pid").readlink() != (spaces / "pid_for_children").readlink()
    except OSError:
        return False


def sandboxes(pid: int | None = None) -> set[int]:
    """The processes that were forked from those."""
    return {child for server in fork_servers(pid) for child in children(server)}


def lasting(processes: set[int], seconds: float = 30) -> set[int]:
    """Those of the processes that do not end in time: some were told to just before."""
    found = set()
    for pid in processes:
        with contextlib.suppress(ProcessLookupError), watch(pid) as ends:
            if not ends(seconds):
                found.add(pid)
    return found


def descriptors() -> set[str]:
    """What this process has open: each number, and what it leads to."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(f"{entry.name} {entry.readlink()}")
    return {shown for shown in found if "/proc" not in shown}


def resident() -> int:
    """The bytes of memory that this process takes."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def settle() -> None:
    """Waits until no fork server starts or ends any more."""
    if not preload(frozenset(), 30):
        raise AssertionError("modules are still being loaded")
    for _ in range(1_000):
        with interpreter() as python:
            python.open()
        if len(fork_servers()) <= 2:  # the plain one, and the one with modules
            break
    with interpreter() as python:
        python.open()
    gc.collect()


@contextlib.contextmanager
def watch(pid: int) -> Iterator[Callable[[float], bool]]:
    """Gives a function that waits for the end of `pid`, and tells whether it has ended."""
    descriptor = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        yield lambda seconds: bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
