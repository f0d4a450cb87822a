"""What runs in a machine of a provider: the process that an SDK starts, and the kernel beside it.

One file, standard library only, CPython 3.9 or newer. It speaks over its standard streams, of which
some SDKs treat the output as text and as lines. So:

- Input: frames for the kernel, cut into pieces, each with its length in front. A piece of no bytes
  says that the host is alive, and the length `INTERRUPT` stands for SIGINT.
- Output: `GREETING`, before which all is an excuse; then what the kernel said, cut into pieces, as
  Base64 with a dot behind each. ``!`` and a number tell how the kernel ended.
"""

from __future__ import annotations

import base64
import fcntl
import importlib
import importlib.util
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

FILE_BYTES, OPEN_FILES = 256 << 20, 256
GREETING = "sanderling-is-here."
INTERRUPT = 0xFFFFFFFF
_PIECE = 24 << 10  # bytes; some SDKs refuse lines of more than 64 KiB
_READ = 1 << 20
_FREE = 10  # descriptors from here on are nobody's
_EXCUSE = 2_000  # characters


def main(
    packages: Sequence[str], imports: Mapping[str, str], weaker: bool, silence: float
) -> NoReturn:
    """Serves the host until it is gone, or the kernel is.

    Args:
        packages: Requirements for pip.
        imports: Further ones, by the module that makes them unnecessary where it is there.
        weaker: Whether the machine is the only wall.
        silence: Seconds without a word after which the host is taken for dead.
    """
    contained = importlib.import_module("contained")
    kernel, lockdown = contained.unpack(weaker)
    folder = tempfile.mkdtemp(prefix="sanderling_work_")
    workdir, library = os.path.join(folder, "work"), os.path.join(folder, "library")  # noqa: PTH118
    os.mkdir(workdir)  # noqa: PTH102 - one line each
    os.mkdir(library)  # noqa: PTH102
    _install([*packages, *_missing(imports)], library)
    sys.path.append(library)
    limits = {"memory": _memory(), "file_bytes": FILE_BYTES, "open_files": OPEN_FILES}

    def lock() -> dict[str, object]:
        layers: dict[str, object] = {"machine": os.uname().release}
        layers.update(contained.own_walls(lockdown, workdir, limits, [library]))
        return layers

    watch = _Watch()
    if watch.child:
        watch.keep(silence)
    try:
        contained.take_descriptors(watch.kernel_reads, watch.kernel_writes)
        os.chdir(workdir)
        os.environ.update(HOME=workdir, TMPDIR=workdir, MPLCONFIGDIR=workdir, MPLBACKEND="agg")
        kernel.serve(contained.READ, contained.WRITE, lock)
    finally:
        os._exit(1)


def _missing(imports: Mapping[str, str]) -> list[str]:
    return [package for name, package in imports.items() if importlib.util.find_spec(name) is None]


def _install(packages: Sequence[str], folder: str) -> None:
    if not packages:
        return
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-cache-dir"]
    done = subprocess.run(  # noqa: S603 - no shell; the packages are the owner's choice
        [*pip, "--disable-pip-version-check", "--target", folder, "--", *packages],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        sys.exit(f"pip cannot install {', '.join(packages)}: {done.stdout[-_EXCUSE:]}")


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class _Watch:
    """Two processes: the one that keeps watch, and the kernel's."""

    def __init__(self) -> None:
        self.kernel_reads, self._to_kernel = map(_moved, os.pipe())
        self._from_kernel, self.kernel_writes = map(_moved, os.pipe())
        print(f"\n{GREETING}", flush=True)  # noqa: T201 - this is a program
        self.child = os.fork()
        if not self.child:
            return
        os.close(self.kernel_reads)
        os.close(self.kernel_writes)
        os.set_blocking(self._to_kernel, False)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 2)
        self._input = bytearray()
        self._outbox = bytearray()
        self._heard = time.monotonic()

    def keep(self, silence: float) -> NoReturn:
        """Carries pieces to and fro; ends the kernel when the host is gone, and itself with it."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self._from_kernel, select.POLLIN)
        waiting = False
        while time.monotonic() - self._heard < silence:
            if bool(self._outbox) is not waiting:
                waiting = not waiting
                if waiting:
                    poll.register(self._to_kernel, select.POLLOUT)
                else:
                    poll.unregister(self._to_kernel)
            for descriptor, _ in poll.poll(silence * 1000):
                if descriptor == 0:
                    if not self._listen():
                        self._end()
                elif descriptor == self._from_kernel:
                    if not self._report():
                        self._end()
                else:
                    self._deliver()
        self._end()

    def _listen(self) -> bool:
        data = os.read(0, _READ)
        self._heard = time.monotonic()
        self._input += data
        while len(self._input) >= 4:
            size = int.from_bytes(self._input[:4], "little")
            if size == INTERRUPT:
                os.kill(self.child, signal.SIGINT)
                size = 0
            elif len(self._input) < 4 + size:
                break
            self._outbox += self._input[4 : 4 + size]
            del self._input[: 4 + size]
        self._deliver()
        return bool(data)

    def _deliver(self) -> None:
        try:
            while self._outbox:
                del self._outbox[: os.write(self._to_kernel, self._outbox[:_READ])]
        except BlockingIOError:
            pass
        except OSError:  # the kernel is gone, which `_report` will notice
            self._outbox.clear()

    def _report(self) -> bool:
        data = os.read(self._from_kernel, _PIECE)
        if data:
            _say(base64.b64encode(data))
        return bool(data)

    def _end(self) -> NoReturn:
        ended = 0
        deadline = time.monotonic() + 0.1
        while not ended and time.monotonic() < deadline:  # one that ends of itself tells why
            ended, status = os.waitpid(self.child, os.WNOHANG)
            time.sleep(0.005)
        if not ended:
            os.kill(self.child, signal.SIGKILL)
            _, status = os.waitpid(self.child, 0)
        _say(b"!%d" % os.waitstatus_to_exitcode(status))
        os._exit(0)


def _moved(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FREE)
    os.close(descriptor)
    return moved


def _say(text: bytes) -> None:
    text += b".\n"
    while text:
        text = text[os.write(1, text) :]
