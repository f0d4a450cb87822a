"""What runs in a container: its first process, which keeps watch, and the kernel beside it.

One file, standard library only, CPython 3.9 or newer. Neither this file nor the kernel is in the
image or mounted from the host, who may be another machine: they come over standard input, and
frames follow. Frames to the host go over standard output.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType, ModuleType
    from typing import NoReturn

GREETING = b"sanderling\n"
WORKDIR = "/work"
# Where the kernel speaks and listens, apart from 0 to 2, which are everybody's.
WRITE, READ = 3, 4
_UP, _LOOPBACK = 0x1, 0x8  # linux/if.h
_BOUNDLESS = 1 << 60  # old control groups write some such number for no limit
_OVERHEAD = 32 << 20  # bytes of memory for the first process and for what is not data


def main(limits: Mapping[str, int], volumes: Sequence[str], weaker: bool) -> NoReturn:
    """Serves the host until it is gone, or the kernel is.

    Args:
        limits: ``memory``: bytes of the container; ``file_bytes`` and ``open_files``.
        volumes: Further folders to be read.
        weaker: Whether the container may have weaker walls than usual, and none of ours.
    """
    kernel, lockdown = unpack(weaker)

    def lock() -> dict[str, object]:
        layers: dict[str, object] = {"container": _container(weaker)}
        layers.update(own_walls(lockdown, WORKDIR, limits, volumes))
        return layers

    watch = _Watch()
    os.write(1, GREETING)
    watch.child = os.fork()
    if watch.child:
        watch.keep()
    try:
        watch.leave()
        take_descriptors(0, 1)
        os.chdir(WORKDIR)
        kernel.serve(READ, WRITE, lock)
    finally:
        os._exit(1)


class _Watch:
    """The first process: ends the kernel when the host is gone, which a busy kernel does not see.

    It also is the one that ``docker kill`` sends signals to.
    """

    def __init__(self) -> None:
        self.child = 0
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, self._pass_on)
        signal.signal(signal.SIGTERM, self._end)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        if self.child:
            os.kill(self.child, number)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self.child:
            os.kill(self.child, signal.SIGKILL)

    def leave(self) -> None:
        """Undoes it, in the child."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def keep(self) -> NoReturn:
        """Waits for an end, and exits as the kernel did: 128 and the signal, where it was one."""
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        poll = select.poll()
        poll.register(0, 0)  # only whether the other end is closed: what comes in is the kernel's
        poll.register(self._woken, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self._woken:
                    os.read(self._woken, 512)
                else:
                    poll.unregister(descriptor)
                    os.kill(self.child, signal.SIGKILL)
            self._reap()

    def _reap(self) -> None:
        pid = -1
        while pid:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == self.child:
                os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else status >> 8)


def take_descriptors(read: int, write: int) -> None:
    """Moves both to where the kernel keeps them, and closes all others."""
    os.dup2(write, WRITE)
    os.dup2(read, READ)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.closerange(READ + 1, 256)


def unpack(weaker: bool) -> tuple[ModuleType, ModuleType | str]:
    """Imports what was sent, of which nothing can be imported afterwards.

    Returns:
        The kernel, and the walls of this library, or why they cannot be built here.
    """
    if sys.version_info < (3, 9):  # noqa: UP036 - the Python of this place, not the host's
        sys.exit(f"there is Python {sys.version.split()[0]}; it takes 3.9 or newer")
    kernel = importlib.import_module("kernel")
    lockdown: ModuleType | str = "not wanted"
    if not weaker and sys.version_info < (3, 10):
        lockdown = "they need Python 3.10 or newer"
    elif not weaker:
        lockdown = importlib.import_module("lockdown")
    del sys.meta_path[0]
    return kernel, lockdown


def own_walls(
    lockdown: ModuleType | str, workdir: str, limits: Mapping[str, int], readable: Sequence[str]
) -> dict[str, object]:
    """Builds the walls of this library inside others, which stand without them.

    Args:
        lockdown: What builds them, or why they are not to be built.
        workdir: The folder that stays writable.
        limits: ``memory``: bytes; ``file_bytes`` and ``open_files``.
        readable: Further files and folders to be read.

    Returns:
        What is in force.
    """
    # An allocation shall fail before some other limit ends the kernel, and its variables.
    import resource

    data = max(limits["memory"] - _OVERHEAD, limits["memory"] // 2)
    resource.setrlimit(resource.RLIMIT_DATA, (data, data))
    if isinstance(lockdown, str):
        return {"lockdown": f"not in force: {lockdown}"}
    try:
        lockdown.harden_process((0, 1, 2, WRITE, READ))
        policy = lockdown.policy_for(
            workdir,
            # Address space that is never touched costs nothing: thread stacks, arenas.
            memory_bytes=limits["memory"] + (4 << 30),
            file_bytes=limits["file_bytes"],
            open_files=limits["open_files"],
            extra_read=readable,
            namespaces=False,
        )
        layers: dict[str, object] = lockdown.lock(policy)
    except OSError as error:
        return {"lockdown": f"not in force: {error}"}
    return layers


def _container(weaker: bool) -> dict[str, object]:
    """Looks at the walls from inside.

    Raises:
        PermissionError: One is missing: the engine did not do what it was told.
    """
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    network = sorted(path.name for path in Path("/sys/class/net").iterdir() if _is_way_out(path))
    read_only = bool(os.statvfs("/").f_flag & os.ST_RDONLY)
    capabilities = int(status["CapBnd"], 16)
    no_new_privileges = status["NoNewPrivs"] == "1"
    layers: dict[str, object] = {
        "network": network or "none",
        "root": "read-only" if read_only else "writable",
        "user": os.getuid(),
        "capabilities": hex(capabilities) if capabilities else "none",
        "no_new_privs": no_new_privileges,
        "seccomp": status["Seccomp"] == "2",
        "memory": _limit("memory.max", "memory/memory.limit_in_bytes"),
        "processes": _limit("pids.max", "pids/pids.max"),
    }
    holds = (
        *(read_only, no_new_privileges, not network, not capabilities, os.getuid() != 0),
        *(layers["memory"] is not None, layers["processes"] is not None),
    )
    if not (all(holds) or weaker):
        raise PermissionError(f"the container has weaker walls than were asked for: {layers}")
    return layers


def _limit(*files: str) -> int | str | None:
    """Reads a limit of the control group, new or old; None where there is none."""
    for file in files:
        try:
            text = Path("/sys/fs/cgroup", file).read_text("ascii").strip()
        except OSError:
            continue
        return int(text) if text != "max" and int(text) < _BOUNDLESS else None
    return "unknown"


def _is_way_out(interface: Path) -> bool:
    """Says whether it is up, and no loopback. Each network namespace has some that are down."""
    try:
        flags = int((interface / "flags").read_text("ascii"), 16)
    except NotADirectoryError:  # a file of the bonding driver
        return False
    return bool(flags & _UP) and not flags & _LOOPBACK
