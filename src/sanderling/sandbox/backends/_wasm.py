"""CPython in WebAssembly: the same kernel in Pyodide, behind the permissions of Deno.

It needs no walls of the operating system. What it costs: up to twice the computing time, seconds
to start, no threads, and no libraries beside Python's own. The code may reach the
JavaScript around it, so it is not WebAssembly that holds it but Deno, which grants nothing: the
one permission that Pyodide needs to load its files is given back before the first step.

What Deno guards with no permission is taken away besides: storage (caches and databases lie in
``DENO_DIR``, which is no folder) and graphics processors. What is left, as with other engines of
the web, is a fault in V8 or in Deno itself.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sanderling.errors import SandboxUnavailable
from sanderling.sandbox._limits import Limits, Usage

from ._process import ProcessLink, usage

if TYPE_CHECKING:
    from sanderling.sandbox._backend import Link

DENO_VERSION = "2.9.8"
PYODIDE_VERSION = "314.0.7"
_HERE = Path(__file__).parent
_SCRIPT = _HERE / "_wasm.mjs"
_OTHERS = (_HERE / "_in_pyodide.py", _HERE.parent / "kernel.py")
_MODULE = "pyodide.mjs"
_PAGE = 65536  # bytes; the unit of WebAssembly's memory
_MOST = 4 << 30  # bytes; what 32 bits can address
_HEAP = 256  # megabytes of JavaScript's own objects
_DENO_ITSELF = 2 << 30  # bytes, compiled code and the stacks of threads included
_ENVIRONMENT = {
    "DENO_DIR": os.devnull,
    "DENO_NO_UPDATE_CHECK": "1",
    "DENO_WEBGPU_BACKEND": "none",
    "NO_COLOR": "1",
}


class WasmBackend:
    """Starts Pyodide under Deno, one process at a time. Nothing is downloaded.

    Files are kept in memory, and end with the process.

    Args:
        deno: The program; by default that of this Python's environment, or of the PATH.
        pyodide: The folder of the npm package ``pyodide``; by default ``SANDERLING_PYODIDE`` of the
            environment, or where `npm install` puts it in the user's cache.
        memory_bytes: Memory of Python, at most 4 GiB. On Linux, all of the process, its files
            included, has no more than this and 2 GiB.
    """

    def __init__(
        self,
        *,
        deno: str | os.PathLike[str] | None = None,
        pyodide: str | os.PathLike[str] | None = None,
        memory_bytes: int = 2 << 30,
    ) -> None:
        self._deno = deno
        self._pyodide = pyodide
        self.limits = Limits(memory_bytes=memory_bytes)
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._link: ProcessLink | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """The executor type."""
        return "wasm"

    @property
    def ways_out(self) -> str:
        """What somebody can do who has no Deno or no Pyodide."""
        return (
            f"Ways out: `pip install deno=={DENO_VERSION}` and `npm install --prefix {_cache()} "
            f"pyodide@{PYODIDE_VERSION}`; or deno= and pyodide=, where they are elsewhere."
        )

    @property
    def grace(self) -> float:
        """Seconds that a step has to stop when it is interrupted, by way of Deno's main thread."""
        return 3.0

    @property
    def files_remain(self) -> bool:
        """Whether the work folder outlives the process: it is in its memory."""
        return False

    @property
    def is_warm(self) -> bool:
        """Whether a kernel starts within milliseconds."""
        return False

    def start(self) -> ProcessLink:
        """Starts a process, in the place of the one before.

        Raises:
            SandboxUnavailable: Deno or Pyodide is missing.
        """
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("The interpreter was closed before it started.")
            self._end()
            self._link = _spawn(self._command(), self._memory_bytes + _DENO_ITSELF)
            return self._link

    def usage(self, link: Link) -> Usage:
        """Looks at the processor time of the process."""
        return usage(link.pid) if isinstance(link, ProcessLink) else Usage()

    def close(self) -> None:
        """Ends the process. May be called again."""
        with self._lock:
            self._closed = True
            self._end()

    def check(self) -> None:
        """Looks for Deno and Pyodide.

        Raises:
            SandboxUnavailable: One of them is not there.
        """
        self._command()

    def _end(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.kill()

    def _command(self) -> list[str]:
        deno, pyodide = _find_deno(self._deno), _find_pyodide(self._pyodide)
        readable = [str(path) for path in (pyodide, _SCRIPT, *_OTHERS)]
        for path in readable:
            if "," in path:
                raise SandboxUnavailable(f"Deno cannot be given a path with a comma: {path}.")
        pages = min(self._memory_bytes, _MOST) // _PAGE
        return [
            deno,
            "run",
            "--quiet",
            "--no-prompt",
            "--no-config",
            "--no-lock",
            "--no-npm",
            "--no-remote",
            "--deny-import",
            f"--allow-read={','.join(readable)}",
            f"--v8-flags=--wasm-max-mem-pages={pages},--max-old-space-size={_HEAP}",
            str(_SCRIPT),
            str(pyodide),
            (pyodide / _MODULE).as_uri(),
        ]


def _find_deno(given: str | os.PathLike[str] | None) -> str:
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    found = shutil.which("deno" if given is None else given, path=path)
    if found is None:
        raise SandboxUnavailable(f"there is no program {os.fspath(given or 'deno')!r}.")
    return found


def _find_pyodide(given: str | os.PathLike[str] | None) -> Path:
    default = _cache() / "node_modules" / "pyodide"
    folder = Path(given or os.environ.get("SANDERLING_PYODIDE") or default).resolve()
    if not (folder / _MODULE).is_file():
        raise SandboxUnavailable(f"there is no Pyodide in {folder}.")
    return folder


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sanderling"


def _spawn(command: list[str], memory_bytes: int) -> ProcessLink:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell; the program is the owner's choice
                command,
                env=_ENVIRONMENT,
                cwd="/",
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise SandboxUnavailable(f"Deno could not be started: {error}") from error
    if sys.platform == "linux":
        _limit(process.pid, memory_bytes)
    return ProcessLink(process, ours)


def _limit(pid: int, memory_bytes: int) -> None:
    """Sets what Deno has no setting for, while it still loads."""
    import resource

    resource.prlimit(pid, resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
