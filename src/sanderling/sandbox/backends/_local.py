"""A process of this machine, locked by its kernel: Landlock, seccomp and what belongs to them."""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from sanderling.errors import SandboxUnavailable

if TYPE_CHECKING:
    from sanderling.sandbox._workdir import WorkFolder

_ENTRY = Path(__file__).parent.parent / "_locked.py"
_WAYS_OUT = (
    "Code runs only behind walls that hold. Ways out: a Linux kernel of 5.13 or newer with "
    'Landlock and seccomp; or executor_type="inprocess", which has no walls, for code you trust.'
)

_KEPT_MEMORY = 32 << 20


class LocalLink:
    """A locked process."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._process = process
        self.socket = connection

    def interrupt(self) -> None:
        """Sends SIGINT."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> str:
        """Ends the process; tells how it ended."""
        try:
            # One that is ending of itself tells its own story.
            self._process.wait(0.05 if self._hung_up() else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return "it hung up"
        status = self._process.returncode
        if status >= 0:
            return f"exit status {status}"
        name = signal.Signals(-status).name
        return f"{name}, perhaps for want of memory" if name == "SIGKILL" else name

    def _hung_up(self) -> bool:
        try:
            return self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


class LocalBackend:
    """Starts locked processes, one at a time, all in the same private work folder.

    Args:
        memory_bytes: Address space of the process.
        file_bytes: Largest size of one file.
        open_files: Number of descriptors.
        cpu_seconds: Processor time of the process; None for no limit.
        extra_read: Files and folders that the code may read besides.
        workdir_bytes: Makes the work folder a tmpfs of this size, which ends with the process.
    """

    def __init__(
        self,
        *,
        memory_bytes: int = 4 << 30,
        file_bytes: int = 256 << 20,
        open_files: int = 256,
        cpu_seconds: int | None = None,
        extra_read: tuple[str, ...] = (),
        workdir_bytes: int | None = None,
    ) -> None:
        self._memory_bytes = memory_bytes
        self._file_bytes = file_bytes
        self._open_files = open_files
        self._cpu_seconds = cpu_seconds
        self._extra_read = tuple(extra_read)
        self._workdir_bytes = workdir_bytes
        self._lock = threading.Lock()
        self._folder: WorkFolder | None = None
        self._link: LocalLink | None = None
        self._closed = False

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
        return self._workdir_bytes is None

    def start(self) -> LocalLink:
        """Starts a process, in the place of the one before.

        Raises:
            SandboxUnavailable: This machine cannot lock a process.
        """
        if sys.platform != "linux" or not sys.executable:
            raise SandboxUnavailable(f"There are no walls for {sys.platform}.")
        from sanderling.sandbox._workdir import WorkFolder
        from sanderling.sandbox.lockdown import LockdownError, policy_for

        with self._lock:
            if self._closed:
                raise SandboxUnavailable("The interpreter was closed before it started.")
            self._end()
            self._folder = self._folder or WorkFolder()
            try:
                policy = policy_for(
                    self._folder.path,
                    memory_bytes=self._memory_bytes,
                    file_bytes=self._file_bytes,
                    open_files=self._open_files,
                    cpu_seconds=self._cpu_seconds,
                    extra_read=self._extra_read,
                    workdir_bytes=self._workdir_bytes,
                )
            except LockdownError as error:
                raise SandboxUnavailable(str(error)) from error
            # A locked process dies with the thread that made it, so that it cannot outlive its
            # host; so it is made by a thread that lives as long as the host.
            spawn = functools.partial(_spawn, policy.to_json(), self._folder.path)
            self._link = _spawner(os.getpid()).submit(spawn).result()
            return self._link

    def close(self) -> None:
        """Ends the process and removes its work folder. May be called again."""
        with self._lock:
            self._closed = True
            self._end()
            if self._folder is not None:
                self._folder.remove()
                self._folder = None

    def _end(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.kill()


@functools.cache
def _spawner(pid: int) -> ThreadPoolExecutor:
    """One for each process: a fork of this one has no threads."""
    return ThreadPoolExecutor(1, thread_name_prefix=f"sanderling-spawner-{pid}")


def _spawn(policy: str, folder: str) -> LocalLink:
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-I", "-B", "-X", "utf8", str(_ENTRY), str(theirs.fileno())]
        try:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
                [*command, policy],
                env=_environment(folder),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        except OSError as error:
            ours.close()
            raise SandboxUnavailable(f"No process could be started: {error}") from error
    return LocalLink(process, ours)


def _environment(folder: str) -> dict[str, str]:
    """Nothing of the host's own: a secret that is not there cannot be read."""
    threads = str(min(4, os.cpu_count() or 1))
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": folder,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        # glibc gives the memory of each larger array back at once, and page faults on the next one
        # cost more than the arithmetic. Keeping this much makes NumPy about three times as fast.
        "MALLOC_MMAP_THRESHOLD_": str(_KEPT_MEMORY),
        "MALLOC_TRIM_THRESHOLD_": str(_KEPT_MEMORY),
    }
