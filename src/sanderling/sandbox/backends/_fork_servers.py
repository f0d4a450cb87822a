"""The host's side of fork servers: processes that locked processes are forked from.

A fork server is a clean process of its own, never a fork of this one: it has no secret of the host
in its memory and no thread. ``_fork_server.py`` says how the two speak.
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

from ._forked import Arrival, ForkedLink, ForkedTemplate, readable

_ENTRY = Path(__file__).parent.parent / "_fork_server.py"
_KEPT_MEMORY = 32 << 20
_PATIENCE = 30.0  # seconds for a fork server to start, on a loaded machine
_MUTE = 5.0  # seconds without an answer of one that stands ready, before it is replaced


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
        "MPLCONFIGDIR": f"{home}/.matplotlib",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        # It tries whether there are semaphores when it is loaded. Behind the walls there are none.
        "JOBLIB_MULTIPROCESSING": "0",
        # Arrow's allocator starts a thread when it is loaded: such a process cannot be forked.
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        # glibc gives the memory of each larger array back at once, and page faults on the next one
        # cost more than the arithmetic. Keeping this much makes NumPy about three times as fast.
        "MALLOC_MMAP_THRESHOLD_": str(_KEPT_MEMORY),
        "MALLOC_TRIM_THRESHOLD_": str(_KEPT_MEMORY),
    }


class _Gone(Exception):  # noqa: N818 - no fault: the next fork server does what this one did not
    """The fork server has ended."""


class _Mute(Exception):  # noqa: N818 - as above
    """The fork server does not answer."""


class _ForkServer:
    """One fork server. It dies with the thread that makes it, so that it cannot outlive its host.

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
        self._control.settimeout(_MUTE)
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
            _Mute: It does not answer.
            SandboxUnavailable: The system refused, or what `make_orders` raises.
        """
        ready = self._address_space is not None or self.speaks(0)
        patience = _MUTE if ready else _PATIENCE
        arrival, channel = self._ordered(b"fork")
        try:
            orders = make_orders()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the report will tell
                channel.settimeout(patience)
                channel.sendall(len(orders).to_bytes(4, "little") + orders)
                channel.settimeout(None)
        except BaseException:
            arrival.close()
            raise
        try:
            link = arrival.result(patience)
        except TimeoutError as error:
            raise _Mute from error
        except struct.error as error:
            raise _Gone from error
        if link is None:
            raise _Gone
        return link

    def copy(self, number: int, *, pause: bool) -> Arrival[ForkedTemplate]:
        """Orders a template of one of its children. See `_forked.Orders`."""
        with _refusals(), contextlib.ExitStack() as sent:
            reports, theirs = self._pair(sent, socket.SOCK_SEQPACKET)
            self._send(b"copy %d %d" % (number, pause), [theirs])
            return Arrival(reports, functools.partial(ForkedTemplate, self))

    def use(self, number: int) -> Arrival[ForkedLink]:
        """Orders a process like a template. See `_forked.Orders`."""
        with _refusals():
            return self._ordered(b"use %d" % number)[0]

    def _ordered(self, order: bytes) -> tuple[Arrival[ForkedLink], socket.socket]:
        with contextlib.ExitStack() as sent:
            reports, their_reports = self._pair(sent, socket.SOCK_SEQPACKET)
            channel, their_channel = self._pair(sent, socket.SOCK_STREAM)
            self._send(order, [their_reports, their_channel])
        made = functools.partial(ForkedLink, channel, self)
        arrival = Arrival(reports, made, forget=channel.close)
        return arrival, channel

    def _pair(
        self, sent: contextlib.ExitStack, kind: socket.SocketKind
    ) -> tuple[socket.socket, socket.socket]:
        """Makes two ends: theirs is closed once it is sent, and ours if it cannot be."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        sent.enter_context(theirs)
        sent.push(lambda _, error, __: ours.close() if error else None)
        return ours, theirs

    def _send(self, order: bytes, ends: list[socket.socket]) -> None:
        try:
            with _gone():
                socket.send_fds(self._control, [order], [end.fileno() for end in ends])
        except _Gone as error:
            if isinstance(error.__cause__, TimeoutError):
                raise _Mute from error
            raise

    def retire(self) -> None:
        """Lets it end with its last child."""
        with contextlib.suppress(OSError):  # it has ended already
            self._control.send(b"leave", socket.MSG_DONTWAIT)

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


class ForkServers:
    """The fork servers of one process: a plain one, and one that has loaded what code here imports.

    Args:
        pid: Of the process, which is this one.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._lock = threading.Lock()
        # ForkServers die with the thread that made them: this one lives as long as the process.
        self._spawner = ThreadPoolExecutor(1, thread_name_prefix=f"sanderling-spawner-{pid}")
        self._plain: _ForkServer | None = None
        self._loaded: _ForkServer | None = None
        self._coming: Future[_ForkServer] | None = None
        self._retired: list[_ForkServer] = []
        self._wanted: frozenset[str] = frozenset()
        self._gave_up = False
        atexit.register(self._close)

    @property
    def is_running(self) -> bool:
        """Whether there is a fork server."""
        return self._plain is not None

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
            server = self._choose(may_import, memory)
            try:
                return server.fork(make_orders)
            except _Mute:
                self._replace(server)
            except _Gone as error:
                if not server.ended(1):
                    raise SandboxUnavailable(
                        "No process could be started: the one that forks them did not answer; it "
                        "may have as many as its descriptors allow."
                    ) from error
                self._drop(server)
            except OSError as error:
                raise SandboxUnavailable(f"No process could be started: {error}") from error
        raise SandboxUnavailable(
            "The process that sandboxes are forked from ended or fell silent again and again."
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

    def _choose(self, may_import: Callable[[str], bool], memory: int) -> _ForkServer:
        with self._lock:
            self._retired = [server for server in self._retired if not server.ended()]
            self._welcome()
            loaded = self._loaded
            if loaded is not None and any(map(may_import, loaded.modules)):
                size = loaded.address_space()
                if size is not None and size <= memory // 2:
                    return loaded
            if self._plain is None:
                try:
                    self._plain = self._spawner.submit(_ForkServer, frozenset()).result()
                except OSError as error:
                    raise SandboxUnavailable(f"No process could be started: {error}") from error
            return self._plain

    def _welcome(self) -> None:
        """Puts the server that was loading in its place, if it stands ready."""
        if self._coming is None or not self._coming.done():
            return
        server = None
        try:
            server = self._coming.result()
            if server.address_space() is None:
                return
        except (_Gone, OSError):
            self._gave_up = True
            if server is not None:
                server.close()
        else:
            if self._loaded is not None:
                self._loaded.retire()
                self._retired.append(self._loaded)
            self._loaded = server
        self._coming = None
        self._load()

    def _load(self) -> None:
        have: frozenset[str] = frozenset() if self._loaded is None else self._loaded.modules
        if self._coming is None and not self._gave_up and not self._wanted <= have:
            self._coming = self._spawner.submit(_ForkServer, self._wanted)

    def _replace(self, server: _ForkServer) -> None:
        """Lets one that is mute live on with its children, which still run."""
        self._drop(server)
        with self._lock:
            server.retire()
            self._retired.append(server)

    def _drop(self, server: _ForkServer) -> None:
        with self._lock:
            if server is self._plain:
                self._plain = None
            elif server is self._loaded:
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
            for server in mine:
                if server is not None:
                    server.close()


@functools.cache
def fork_servers(pid: int) -> ForkServers:
    """Returns the fork servers of the process `pid`, this one: a fork of it has its own."""
    return ForkServers(pid)


@contextlib.contextmanager
def _above_the_standard_ones(given: socket.socket) -> Iterator[int]:
    """Has another number of a descriptor, as a host may have closed its standard ones."""
    number = fcntl.fcntl(given.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
    try:
        yield number
    finally:
        os.close(number)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (_Gone, _Mute) as error:
        raise SandboxUnavailable("The process that forks sandboxes does not answer.") from error
    except OSError as error:
        raise SandboxUnavailable(f"No process could be started: {error}") from error


@contextlib.contextmanager
def _gone() -> Iterator[None]:
    try:
        yield
    except (OSError, struct.error) as error:
        raise _Gone from error
