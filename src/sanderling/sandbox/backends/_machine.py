"""Machines of a provider: what is the same for all of them.

A provider's SDK starts one process in a machine, sends to its standard input and hands over its
output. `_guard` is that process, and the kernel runs beside it. So a provider is a small file.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import queue
import select
import shlex
import socket
import struct
import sys
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from sanderling.errors import MissingExtraError, SandboxUnavailable
from sanderling.sandbox._limits import Limits, Usage

from ._guard import FILE_BYTES, GREETING, INTERRUPT, OPEN_FILES
from ._packages import checked, packages_for
from ._parcel import boot, parcel
from ._process import ending

if TYPE_CHECKING:
    from sanderling.sandbox._backend import Link

Sink: TypeAlias = "Callable[[str | bytes], None]"
Milestone: TypeAlias = Literal["speaks", "greets", "ended"]

_START = 600.0  # seconds; packages may have to be installed
_FAREWELL = 30.0
_PULSE = 60.0  # seconds between two signs of life
_SILENCE = 5 * _PULSE
_PIECE = 256 << 10
_LONGEST = 1 << 20  # characters without a dot, which no guard writes
_SHOWN = 2_000
# What the provider puts into the environment of its processes is not the code's business.
_PYTHON = 'env -i PATH="$PATH" TMPDIR="${TMPDIR:-/tmp}" LANG=C.UTF-8 python3 -I -B -X utf8'


class Machine(Protocol):
    """A machine with one process in it. Its methods block, and raise whatever the SDK raises."""

    def run(self, command: str, said: Sink) -> None:
        """Runs a shell command to its end, however long it takes, and hands over what it writes.

        Args:
            command: Is run once; what `write` sends is its standard input.
            said: Takes text or bytes, as they come; whether lines keep their ends does not matter.
        """

    def write(self, data: bytes) -> None:
        """Sends to the command, once that has written something; never called twice at once."""

    def go_offline(self) -> None:
        """Takes the network away, where the provider can do that to a machine that runs."""

    def stay(self) -> None:
        """Says that the machine is still in use; called about every minute."""

    def end(self) -> None:
        """Ends the machine and what runs in it."""


class MachineLink:
    """A kernel in a machine."""

    def __init__(self, machine: Machine) -> None:
        self.socket, self._inner = socket.socketpair()
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._machine = machine
        self._reader = threading.Thread(target=self._read, name="sanderling-read", daemon=True)
        self._writer = threading.Thread(target=self._write, name="sanderling-write", daemon=True)
        self._milestones: queue.SimpleQueue[Milestone] = queue.SimpleQueue()
        self._greeted = False
        self._interrupted = False
        self._leaving = False
        self._talk = ""  # until the greeting
        self._rest = ""  # after it, without a dot at its end
        self._story = ""
        self._fault: Exception | None = None  # of the machine's end

    # Starting

    def start(self, arguments: Mapping[str, object], offline: bool) -> None:
        """Starts the kernel and waits until it is there.

        Raises:
            SandboxUnavailable: It does not come up.
        """
        self._reader.start()
        self._await("speaks")
        patience = _START
        try:
            self._machine.write(parcel("guard", arguments))
        except Exception as error:  # most likely the command has ended, and is about to tell why
            self._story = f"{type(error).__name__}: {error}"[:_SHOWN]
            patience = _FAREWELL
        self._await("greets", patience)
        if offline:
            self._machine.go_offline()
        self._writer.start()

    def _await(self, milestone: Milestone, seconds: float = _START) -> None:
        try:
            reached = self._milestones.get(timeout=seconds)
        except queue.Empty:
            said = self._story or f"nothing was heard of it for {seconds:g} s"
            raise SandboxUnavailable(f"{said}.") from None
        if reached != milestone:
            said = self._talk.strip().removeprefix(".").strip().removesuffix(".")
            raise SandboxUnavailable(f"{said[-_SHOWN:] or self._story or 'it said nothing'}.")

    # What two threads do

    def _read(self) -> None:
        try:
            program = f"echo .; exec {_PYTHON} -c {shlex.quote(boot())} 2>&1"
            self._machine.run(shlex.join(["sh", "-c", program]), self._hear)
        except Exception as error:
            self._story = self._story or f"{type(error).__name__}: {error}"[:_SHOWN]
        finally:
            self._milestones.put("ended")
            with contextlib.suppress(OSError):  # the host has hung up
                self._inner.shutdown(socket.SHUT_WR)

    def _hear(self, piece: str | bytes) -> None:
        text = piece if isinstance(piece, str) else piece.decode("ascii", "replace")
        if not self._greeted:
            if not self._talk:
                self._milestones.put("speaks")
            self._talk, greeting, text = (self._talk + text)[-_LONGEST:].partition(GREETING)
            self._greeted = bool(greeting)
            if not self._greeted:
                return
            self._milestones.put("greets")
        *pieces, self._rest = "".join((self._rest, *text.split())).split(".")
        if len(self._rest) > _LONGEST:
            raise ValueError("what is no frame of a kernel came out of the machine")
        for each in pieces:
            if each.startswith("!"):
                self._story = ending(int(each[1:5]))
            else:
                self._inner.sendall(base64.b64decode(each, validate=True))

    def _write(self) -> None:
        poll = select.poll()
        poll.register(self._inner, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        due = time.monotonic() + _PULSE
        try:
            while not self._leaving:
                left = max(0.0, due - time.monotonic())
                ready = [descriptor for descriptor, _ in poll.poll(left * 1000)]
                if self._woken.fileno() in ready:
                    self._woken.recv(1 << 10)
                if self._interrupted:
                    self._interrupted = False
                    self._machine.write(struct.pack("<I", INTERRUPT))
                if self._inner.fileno() in ready:
                    data = self._inner.recv(_PIECE)
                    if not data:
                        break
                    self._machine.write(struct.pack("<I", len(data)) + data)
                if time.monotonic() >= due:
                    due += _PULSE
                    self._machine.write(struct.pack("<I", 0))
                    with contextlib.suppress(Exception):  # then it ends when its time is over
                        self._machine.stay()
        except Exception as error:
            self._story = self._story or f"{type(error).__name__}: {error}"[:_SHOWN]
        finally:
            self._end()

    def _end(self) -> None:
        try:
            self._machine.end()
        except Exception as error:
            self._fault = error
        finally:
            with contextlib.suppress(OSError):  # the host has hung up
                self._inner.shutdown(socket.SHUT_RDWR)

    # For the host

    def interrupt(self) -> None:
        """Has SIGINT sent, without waiting for it."""
        self._interrupted = True
        self._nudge()

    def kill(self) -> str:
        """Has the machine ended, without waiting for it. Tells how the kernel ended before."""
        self._leaving = True
        self._nudge()
        return self._story or "it hung up"

    def _nudge(self) -> None:
        with contextlib.suppress(OSError):  # full, so it will wake; or closed
            self._wake.send(b".")

    def finish(self) -> None:
        """Waits until the machine has ended."""
        if self._writer.ident is None:
            self._end()
        else:
            self._writer.join(_FAREWELL)
        self._reader.join(_FAREWELL)
        if self._writer.is_alive() or self._fault is not None:
            why = self._fault or f"it does not answer for {_FAREWELL:g} s"
            what = f"{type(self._machine).__name__} may be left behind: {why}"
            warnings.warn(what, RuntimeWarning, stacklevel=2)
        for each in (self._inner, self._wake, self._woken):
            each.close()


class MachineBackend(ABC):
    """Starts machines, one at a time. The work folder ends with the machine.

    The machine is the wall around the code. The walls of this library are built inside as well,
    where its system lets us; ``layers`` tells. With those the code has no network and starts no
    program. Nothing of the host's files and environment goes in, and no key.

    Args:
        imports: What the code may import. The packages that it needs and the machine does not have
            are installed, unless `packages` says which.
        packages: Requirements for pip.
        allow_weaker: Leaves the walls of this library out, and the network on.

    Raises:
        ValueError: A requirement is none.
    """

    def __init__(
        self,
        *,
        imports: Sequence[str] = (),
        packages: Sequence[str] | None = None,
        allow_weaker: bool = False,
    ) -> None:
        self._packages = checked(packages or ())
        self._imports = packages_for(imports) if packages is None else {}
        self._allow_weaker = allow_weaker
        self._lock = threading.Lock()
        self._link: MachineLink | None = None
        self._closed = False

    @abstractmethod
    def _create(self) -> Machine:
        """Makes a machine with the provider's SDK."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The executor type."""

    @property
    def limits(self) -> Limits:
        """What `_guard` sets; all else is the provider's."""
        return Limits(file_bytes=FILE_BYTES, open_files=OPEN_FILES)

    def usage(self, link: Link) -> Usage:
        """Sees nothing: the machine is elsewhere."""
        return Usage()

    @property
    @abstractmethod
    def ways_out(self) -> str:
        """What somebody can do who gets no machine."""

    @property
    def grace(self) -> float:
        """Seconds that a step has to stop when it is interrupted, by way of the provider."""
        return 3.0

    @property
    def files_remain(self) -> bool:
        """The work folder ends with the machine."""
        return False

    @property
    def is_warm(self) -> bool:
        """Whether a kernel starts within milliseconds."""
        return False

    def check(self) -> None:
        """Looks for the provider's package, which has the name of the executor type.

        Raises:
            MissingExtraError: It is not installed.
        """
        if self.name in sys.modules:
            found = sys.modules[self.name] is not None
        else:
            found = importlib.util.find_spec(self.name) is not None
        if not found:
            raise MissingExtraError(f'executor_type="{self.name}"', self.name, self.name)

    def start(self) -> MachineLink:
        """Starts a machine, in the place of the one before.

        Raises:
            SandboxUnavailable: The provider gives none, or it has no Python.
            MissingExtraError: The provider's SDK is not installed.
        """
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("The interpreter was closed before it started.")
            self._end()
            try:
                self._link = self._start(self._create())
            except (SandboxUnavailable, MissingExtraError):
                raise
            except Exception as error:
                raise SandboxUnavailable(f"{type(error).__name__}: {error}.") from error
            return self._link

    def _start(self, machine: Machine) -> MachineLink:
        link = MachineLink(machine)
        try:
            link.start(self._arguments(), offline=not self._allow_weaker)
        except BaseException:
            link.socket.close()
            link.finish()
            raise
        return link

    def _arguments(self) -> dict[str, object]:
        """Returns the arguments of `_guard.main`."""
        return {
            "packages": self._packages,
            "imports": self._imports,
            "weaker": self._allow_weaker,
            "silence": _SILENCE,
        }

    def close(self) -> None:
        """Ends the machine. May be called again."""
        with self._lock:
            self._closed = True
            self._end()

    def _end(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.kill()
            link.finish()
