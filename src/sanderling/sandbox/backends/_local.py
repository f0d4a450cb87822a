"""A process of this machine, locked by its kernel: Landlock, seccomp and what belongs to them."""

from __future__ import annotations

import copy
import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sanderling.errors import SandboxError, SandboxUnavailable
from sanderling.sandbox._limits import Limits, Usage, require_positive

from ._fork_servers import environment, fork_servers
from ._forked import ForkedLink
from ._process import usage

if TYPE_CHECKING:
    from sanderling.sandbox._backend import Link
    from sanderling.sandbox._workroom import WorkRoom

_WAYS_OUT = (
    "Code runs only behind walls that hold. Ways out: a Linux kernel of 5.13 or newer with "
    'Landlock and seccomp; executor_type="docker" or "wasm"; or executor_type="inprocess", which '
    "has no walls, for code you trust."
)


class LocalBackend:
    """Starts locked processes, one at a time, all in the same private work folder.

    Args:
        memory_bytes: Address space of the process.
        file_bytes: Largest size of one file.
        workdir_bytes: What all files in the work folder may take. This process looks at it when a
            step begins, while it runs and when it ends, so for a moment it may be more.
        workdir_files: How many files and folders it may hold.
        workdir_in_memory: Makes the work folder a tmpfs, which ends with the process: then the
            system itself keeps those two. It needs namespaces.
        open_files: Number of descriptors.
        max_threads: Threads at a time, those of numeric libraries not counted.
        extra_read: Files and folders that the code may read besides.
        snapshot_bytes: How much a work folder may hold for a snapshot or a fork of it to be made.
        imports: What the code may import: of this it may find loaded what `preload` has loaded.

    Raises:
        ValueError: A limit is no positive whole number, or a path to be read does not exist.
    """

    def __init__(
        self,
        *,
        memory_bytes: int = 4 << 30,
        file_bytes: int = 256 << 20,
        workdir_bytes: int = 1 << 30,
        workdir_files: int = 65_536,
        workdir_in_memory: bool = False,
        open_files: int = 256,
        max_threads: int = 128,
        extra_read: Sequence[str] = (),
        snapshot_bytes: int = 1 << 30,
        imports: Sequence[str] = (),
    ) -> None:
        self.limits = Limits(
            memory_bytes=memory_bytes,
            file_bytes=file_bytes,
            workdir_bytes=workdir_bytes,
            workdir_files=workdir_files,
            open_files=open_files,
            max_threads=max_threads,
        )
        self._workdir_in_memory = workdir_in_memory
        self._extra_read = _paths(extra_read)
        require_positive("snapshot_bytes", snapshot_bytes, whole=True)
        self._snapshot_bytes = snapshot_bytes
        self._imports = tuple(imports)
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._room: WorkRoom | None = None
        self._place = ""  # the work folder, in that room
        self._link: ForkedLink | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """The executor type."""
        return "local"

    @property
    def ways_out(self) -> str:
        """What somebody can do whose machine cannot lock a process."""
        return _WAYS_OUT

    @property
    def grace(self) -> float:
        """Seconds that a step has to stop when it is interrupted."""
        return 1.0

    @property
    def files_remain(self) -> bool:
        """Whether the work folder outlives the process."""
        return not self._workdir_in_memory

    @property
    def is_warm(self) -> bool:
        """Whether a kernel starts within milliseconds."""
        return fork_servers(os.getpid()).is_running

    def start(self) -> ForkedLink:
        """Starts a process, in the place of the one before.

        Raises:
            SandboxUnavailable: This machine cannot lock a process.
        """
        if sys.platform != "linux" or not sys.executable:
            raise SandboxUnavailable(f"There are no walls for {sys.platform}.")
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("The interpreter was closed before it started.")
            self._end()
            self._link = fork_servers(os.getpid()).fork(
                self._orders, self._may_import, self.limits.known()["memory_bytes"]
            )
            return self._link

    def _orders(self) -> bytes:
        from sanderling.sandbox.lockdown import LockdownError, policy_for

        limits = self.limits.known()
        try:
            room = self._entered()
            self._place = room.out_of_reach(self._place)
            policy = policy_for(
                self._place,
                memory_bytes=limits["memory_bytes"],
                file_bytes=limits["file_bytes"],
                open_files=limits["open_files"],
                extra_read=self._extra_read,
                extra_write=[room.branches] if self.files_remain else [],
                workdir_bytes=limits["workdir_bytes"] if self._workdir_in_memory else None,
                workdir_files=limits["workdir_files"],
            )
        except LockdownError as error:
            raise SandboxUnavailable(str(error)) from error
        except OSError as error:
            raise SandboxUnavailable(f"no work folder could be made: {error}") from error
        if self._workdir_in_memory and not policy.namespaces:
            raise SandboxUnavailable(
                "workdir_in_memory needs namespaces, which this machine does not let us have"
            )
        orders = {"environment": environment(self._place), "policy": policy.to_json()}
        return json.dumps(orders).encode()

    def usage(self, link: Link) -> Usage:
        """Looks at what a process uses up, and at the work folder."""
        used = usage(link.pid) if isinstance(link, ForkedLink) else Usage()
        room = self._room
        if room is None or self._workdir_in_memory:
            return used
        try:
            size, files = room.measure(self._place, self.limits.files_ceiling or 0)
        except OSError:  # this process has no descriptors left: the next look will tell
            return used
        return replace(used, workdir_bytes=size, workdir_files=files)

    def close(self) -> None:
        """Ends the process and removes its work folder. May be called again.

        In a fork of its host it does nothing: both belong to the host.
        """
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            self._end()
            if self._room is not None:
                self._room.leave(self._place)
                self._room = None

    def work_folder(self, *, make: bool) -> str | None:
        """Returns the work folder; None where there is none yet, and none is to be made.

        Raises:
            SandboxError: It is in memory, where this process does not see it, or cannot be made.
        """
        if self._workdir_in_memory:
            raise SandboxError(
                "A work folder in memory (workdir_in_memory=True) cannot be reached from outside, "
                "so that files= and keep_files= do not go with it."
            )
        with self._lock:
            if self._closed:
                return None
            try:
                if make:
                    self._entered()
            except OSError as error:
                raise SandboxUnavailable(f"No work folder could be made: {error}") from error
            return self._place if self._room is not None else None

    # Copies

    def save_files(self) -> str | None:
        """Copies the files of the work folder to where no sandbox reaches them.

        Returns:
            A name for `put_back` and `forget_files`; None where the files live within the sandbox.

        Raises:
            SandboxError: They are too many.
        """
        if not self.files_remain:
            return None
        with self._lock:
            return self._entered().save(self._place, self._snapshot_bytes)

    def put_back(self, saved: str | None) -> None:
        """Makes the work folder hold what was saved.

        Raises:
            SandboxError: That did not work.
        """
        if saved is not None:
            with self._lock:
                self._entered().put_back(saved, self._place)

    def forget_files(self, saved: str | None) -> None:
        """Removes what was saved."""
        if saved is not None and self._owner == os.getpid() and self._room is not None:
            self._room.discard(saved)

    def branch(self) -> tuple[LocalBackend, str | None]:
        """Returns a backend for a fork, and the folder it works in: a copy of this one.

        None stands for this very folder, where the files live within the sandbox.

        Raises:
            SandboxError: There are too many files to copy.
        """
        twin = copy.copy(self)
        twin._lock = threading.Lock()
        twin._link = None
        with self._lock:
            room = self._entered()
            folder = None
            if self.files_remain:
                folder = twin._place = room.branch(self._place, self._snapshot_bytes)
            room.join()
        return twin, folder

    def _entered(self) -> WorkRoom:
        from sanderling.sandbox._workroom import WorkRoom

        if self._room is None:
            self._room = WorkRoom()
            self._place = self._room.first
        return self._room

    def _end(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.kill()

    def _may_import(self, module: str) -> bool:
        package = module.partition(".")[0]
        return any(name.partition(".")[0] in ("*", package) for name in self._imports)


def _paths(given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str | os.PathLike):  # the first letter of most is "/", which is all
        raise ValueError(f"extra_read is a list of files and folders, not one: [{str(given)!r}]")
    for path in given:
        if not os.path.lexists(path):
            raise ValueError(f"extra_read: there is no file or folder {str(path)!r}")
    return tuple(map(os.path.abspath, given))


def preload(modules: frozenset[str], seconds: float = 0) -> bool:
    """Has modules loaded for the sandboxes that will start in this process.

    Args:
        modules: Of `kernel.PRELOADABLE`, beside those that code has imported.
        seconds: How long to wait for it.

    Returns:
        Whether nothing is being loaded any more.
    """
    return fork_servers(os.getpid()).preload(modules, seconds)
