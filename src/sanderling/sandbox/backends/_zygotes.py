"""The host's side of zygotes: processes that locked processes are forked from.

A zygote is a clean process of its own, never a fork of this one: it has no secret of the host in
its memory and no thread. ``_zygote.py`` says how the two speak.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import fcntl
import functools
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from sanderling.errors import SandboxUnavailable
from sanderling.sandbox._workdir import WorkFolder

from ._forked import Arrival, ForkedLink, readable

_ENTRY = Path(__file__).parent.parent / "_zygote.py"
_KEPT_MEMORY = 32 << 20
_PATIENCE = 30.0  # seconds for a zygote that has to start first, on a loaded machine


def environment(home: str) -> dict[str, str]:
    """Nothing of the host's own: a secret that is not there cannot be read.

    Args:
        home: The work folder.
    """
    threads = str(min(4, os.cpu_count() or 1))
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": home,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        # It tries whether there are semaphores when it is loaded. Behind the walls there are none.
        "JOBLIB_MULTIPROCESSING": "0",
        # Arrow's allocator starts a thread when it is loaded: a process with threads is no zygote.
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        # glibc gives the memory of each larger array back at once, and page faults on the next one
        # cost more than the arithmetic. Keeping this much makes NumPy about three times as fast.
        "MALLOC_MMAP_THRESHOLD_": str(_KEPT_MEMORY),
        "MALLOC_TRIM_THRESHOLD_": str(_KEPT_MEMORY),
    }


class _Gone(Exception):  # noqa: N818 - no fault: the next zygote does what this one did not
    """The zygote has ended."""


class _Zygote:
    """One zygote. It dies with the thread that makes it, so that it cannot outlive its host.

    Args:
        modules: What it imports.

    Raises:
        OSError: No process could be started.
    """

    def __init__(self, modules: frozenset[str]) -> None:
        self.modules = modules
        self._address_space: int | None = None
        # Some modules look for settings and caches at home when they are loaded, and never again.
        self._home = WorkFolder() if modules else None
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_PATIENCE)
        with theirs, _above_the_standard_ones(theirs) as number:
            command = [sys.executable, "-I", "-B", "-X", "utf8", str(_ENTRY), str(number)]
            command += [",".join(sorted(modules)), str(os.getpid()), tempfile.gettempdir()]
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
                    command,
                    env=environment(self._home.path if self._home else "/"),
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(number,),
                )
            except BaseException:
                self._clear()
                raise

    def speaks(self, seconds: float) -> bool:
        """Waits until it stands ready or has ended; returns whether it does or has."""
        with contextlib.suppress(ValueError):  # closed meanwhile
            return readable(self._control.fileno(), seconds)
        return True

    def address_space(self) -> int | None:
        """Returns how many bytes it takes, once it stands ready.

        Raises:
            _Gone: It has ended, or cannot be used.
        """
        if self._address_space is None and self.speaks(0):
            with _gone():
                (self._address_space,) = struct.unpack("<Q", self._control.recv(8))
            self._leave_home()
        if self._address_space == 0:
            raise _Gone
        return self._address_space

    def fork(self, make_orders: Callable[[], bytes]) -> ForkedLink:
        """Forks a process that locks itself as its orders say.

        Args:
            make_orders: Makes them, while the process is on its way.

        Raises:
            _Gone: It has ended.
            SandboxUnavailable: The system refused, or what `make_orders` raises.
        """
        arrival = self._order(b"fork")
        try:
            orders = make_orders()
        except BaseException:
            arrival.close()
            raise
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the report will tell
            arrival.channel.settimeout(_PATIENCE)
            arrival.channel.sendall(len(orders).to_bytes(4, "little") + orders)
        with _gone():
            link = arrival.link(_PATIENCE)
        if link is None:
            raise _Gone
        return link

    def copy(self, number: int, *, stop: bool) -> Arrival:
        """Asks for a copy of the process that this one knows by a number.

        The kernel of that process must be told then.

        Args:
            number: Of the process.
            stop: Whether it is stopped once it is copied.

        Raises:
            SandboxUnavailable: This one has ended, and that process with it.
        """
        try:
            return self._order(b"copy %d %d" % (number, stop))
        except (_Gone, OSError) as error:
            raise SandboxUnavailable(f"No process could be started: {error}") from error

    def _order(self, order: bytes) -> Arrival:
        with contextlib.ExitStack() as unless_done, contextlib.ExitStack() as sent:
            channel, their_channel = socket.socketpair()
            unless_done.callback(channel.close)
            sent.enter_context(their_channel)
            reports, their_reports = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            unless_done.callback(reports.close)
            sent.enter_context(their_reports)
            with _gone():
                numbers = [their_reports.fileno(), their_channel.fileno()]
                socket.send_fds(self._control, [order], numbers)
            unless_done.pop_all()
            return Arrival(channel, reports, self.copy)

    def retire(self) -> None:
        """Lets it end with its last child."""
        with contextlib.suppress(OSError):  # it has ended already
            self._control.send(b"leave")

    def ended(self, seconds: float = 0) -> bool:
        """Returns whether it ends within this time; then nothing of it is left behind."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._clear()
        return True

    def close(self) -> None:
        """Ends it, and with it all of its children."""
        self._process.kill()
        self._process.wait()
        self._clear()

    def _clear(self) -> None:
        self._control.close()
        self._leave_home()

    def _leave_home(self) -> None:
        if self._home is not None:
            self._home.remove()


class Zygotes:
    """The zygotes of one process: a plain one, and one that has loaded what code here imports.

    Args:
        pid: Of the process, which is this one.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._lock = threading.Lock()
        # Zygotes die with the thread that made them: this one lives as long as the process.
        self._spawner = ThreadPoolExecutor(1, thread_name_prefix=f"sanderling-spawner-{pid}")
        self._plain: _Zygote | None = None
        self._loaded: _Zygote | None = None
        self._coming: Future[_Zygote] | None = None
        self._retired: list[_Zygote] = []
        self._wanted: frozenset[str] = frozenset()
        self._gave_up = False
        atexit.register(self._close)

    def fork(
        self, make_orders: Callable[[], bytes], may_import: Callable[[str], bool], memory: int
    ) -> ForkedLink:
        """Forks a locked process.

        Args:
            make_orders: Makes what it reads before it is locked. It may be called again.
            may_import: Whether its code may import a module; where it may import none of those that
                are loaded already, it does not get them.
            memory: The address space that it will have, in bytes.

        Raises:
            SandboxUnavailable: No process could be started, or what `make_orders` raises.
        """
        for _ in range(3):
            zygote = self._choose(may_import, memory)
            try:
                return zygote.fork(make_orders)
            except _Gone as error:
                if not zygote.ended(1):
                    raise SandboxUnavailable(
                        "No process could be started: the one that forks them did not answer; it "
                        "may have as many as its descriptors allow."
                    ) from error
                self._drop(zygote)
            except OSError as error:
                raise SandboxUnavailable(f"No process could be started: {error}") from error
        raise SandboxUnavailable(
            "The process that sandboxes are forked from ended again and again."
        )

    def preload(self, modules: frozenset[str], seconds: float = 0) -> bool:
        """Has these modules loaded for sandboxes to come.

        Args:
            modules: Beside those that were asked for already.
            seconds: How long to wait for it.

        Returns:
            Whether nothing is being loaded any more.
        """
        end = time.monotonic() + seconds
        with self._lock:
            self._wanted |= modules
            self._load()
        while (coming := self._coming) is not None:
            left = max(0, end - time.monotonic())
            if concurrent.futures.wait([coming], left).done and coming.exception() is None:
                coming.result().speaks(max(0, end - time.monotonic()))
            with self._lock:
                self._welcome()
            if time.monotonic() >= end:
                break
        return self._coming is None

    def _choose(self, may_import: Callable[[str], bool], memory: int) -> _Zygote:
        with self._lock:
            self._retired = [zygote for zygote in self._retired if not zygote.ended()]
            self._welcome()
            loaded = self._loaded
            if loaded is not None and any(map(may_import, loaded.modules)):
                size = loaded.address_space()
                if size is not None and size <= memory // 2:
                    return loaded
            if self._plain is None:
                try:
                    self._plain = self._spawner.submit(_Zygote, frozenset()).result()
                except OSError as error:
                    raise SandboxUnavailable(f"No process could be started: {error}") from error
            return self._plain

    def _welcome(self) -> None:
        """Puts the zygote that was loading in its place, if it stands ready."""
        if self._coming is None or not self._coming.done():
            return
        zygote = None
        try:
            zygote = self._coming.result()
            if zygote.address_space() is None:
                return
        except (_Gone, OSError):
            self._gave_up = True
            if zygote is not None:
                zygote.close()
        else:
            if self._loaded is not None:
                self._loaded.retire()
                self._retired.append(self._loaded)
            self._loaded = zygote
        self._coming = None
        self._load()

    def _load(self) -> None:
        have: frozenset[str] = frozenset() if self._loaded is None else self._loaded.modules
        if self._coming is None and not self._gave_up and not self._wanted <= have:
            self._coming = self._spawner.submit(_Zygote, self._wanted)

    def _drop(self, zygote: _Zygote) -> None:
        with self._lock:
            if zygote is self._plain:
                self._plain = None
            elif zygote is self._loaded:
                self._loaded = None
                self._load()

    def _close(self) -> None:
        if self._pid != os.getpid():
            return  # they belong to the process that this one was forked from
        with self._lock:
            coming = self._coming
            mine = [self._plain, self._loaded, *self._retired]
            if coming is not None and coming.done() and coming.exception() is None:
                mine.append(coming.result())
            for zygote in mine:
                if zygote is not None:
                    zygote.close()


@functools.cache
def zygotes(pid: int) -> Zygotes:
    """Returns the zygotes of the process `pid`, this one: a fork of it has its own."""
    return Zygotes(pid)


@contextlib.contextmanager
def _above_the_standard_ones(given: socket.socket) -> Iterator[int]:
    """Has another number of a descriptor, as a host may have closed its standard ones."""
    number = fcntl.fcntl(given.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
    try:
        yield number
    finally:
        os.close(number)


@contextlib.contextmanager
def _gone() -> Iterator[None]:
    try:
        yield
    except (OSError, struct.error) as error:
        raise _Gone from error
