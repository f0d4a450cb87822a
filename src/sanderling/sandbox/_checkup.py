"""Whether the walls of this machine hold: which there are, and what comes of trying each."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from sanderling.errors import (
    MissingExtraError,
    SandboxError,
    SandboxLimitExceeded,
    SandboxTimeout,
    SandboxUnavailable,
    install_command,
)

from ._create import ExecutorType, create_interpreter

if TYPE_CHECKING:
    from ._interpreter import CodeResult, Interpreter

MEMORY, FILE, FOLDER = 1 << 30, 1 << 20, 4 << 20
"""Limits in bytes where they are tried: small ones, that the machine itself does not set."""

_PATIENCE = 20.0  # seconds for an attempt on a loaded machine
_SHORT = 0.5  # seconds for code that never ends
_SECRET = "SANDERLING_CHECKUP"  # noqa: S105 - the name of a variable
_ALWAYS_BUILT = {
    "no_new_privs": "no program can give privileges",
    "capabilities": "",
    "rlimits": "",
}
# What a provider's machines take: its package, and where its key is looked for.
_HOSTED = {
    "e2b": ("e2b", "E2B_API_KEY"),
    "modal": ("modal", "MODAL_TOKEN_ID"),
    "blaxel": ("blaxel", "BL_API_KEY"),
}
_UNUSED = "no sandbox has it in force"
_REACHED = "reached"
_OUT_OF_REACH = ("EACCES", "ENOENT")  # refused by Landlock; with a root of its own, not even there


@dataclass(frozen=True, slots=True)
class Wall:
    """One layer around the code.

    Attributes:
        name: Such as ``"landlock"``.
        in_force: Whether a sandbox that was really opened has it.
        required: Whether no sandbox opens without it.
        detail: What there is, or why it is missing.
        remedy: What to do about it, if it is missing.
    """

    name: str
    in_force: bool
    required: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of trying to get past the walls.

    Attributes:
        name: What the code tried.
        held: Whether it was refused, in the way that walls refuse it.
        detail: How it ended.
    """

    name: str
    held: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was found out about the local sandbox.

    Attributes:
        walls: The layers, in the order in which they are looked for.
        attempts: What was tried; nothing, where no sandbox opens.
        refusal: Why no sandbox opens, or ``""``.
    """

    walls: tuple[Wall, ...]
    attempts: tuple[Attempt, ...]
    refusal: str = ""

    @property
    def sound(self) -> bool:
        """Whether a sandbox opens, all that is required is in force, and every attempt failed."""
        return (
            not self.refusal
            and all(wall.in_force for wall in self.walls if wall.required)
            and all(attempt.held for attempt in self.attempts)
        )


@dataclass(frozen=True, slots=True)
class Executor:
    """A place where code may run.

    Attributes:
        name: The executor type.
        works: Whether a line of code ran there.
        detail: How that went, or why it did not.
    """

    name: str
    works: bool
    detail: str


@dataclass(frozen=True, slots=True)
class _Try:
    """Harmless code that gets past a wall if it does not raise, and how the wall refuses it.

    The names of the bait are there, see `_bait`. An OSError counts by its errno.
    """

    name: str
    code: str
    refusals: tuple[str, ...]


_TRIES = (
    _Try("read a file of the host", "open(planted).read()", _OUT_OF_REACH),
    _Try(
        "write outside the work folder",
        "open(unplanted, 'w').close()",
        (*_OUT_OF_REACH, "EROFS"),
    ),
    _Try("list the root folder", "os.listdir('/')", ("EACCES",)),
    _Try(
        "connect to a TCP port of the host",
        "socket.create_connection(tcp, 5).close()",
        ("EPERM", "EACCES", "ENETUNREACH"),
    ),
    _Try(
        "send to a UDP port of the host",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', udp)",
        ("EPERM", "EACCES", "ENETUNREACH"),
    ),
    _Try(
        "start a program",
        "os.waitpid(os.posix_spawn(sys.executable, [sys.executable, '-c', ''], {}), 0)",
        ("EPERM", "EACCES"),
    ),
    _Try(
        "fork",
        # Not by os.fork, which raises by itself there.
        "import ctypes\n"
        "child = ctypes.CDLL(None, use_errno=True).fork()\n"
        "if child == 0: os._exit(0)\n"
        "if child < 0: raise OSError(ctypes.get_errno(), 'fork')\n"
        "os.waitpid(child, 0)",
        ("EPERM", "ENOSYS"),
    ),
    _Try("signal the host process", "os.kill(host, 0)", ("EPERM", "ESRCH")),
    _Try(
        "read the host's environment in /proc",
        "open(f'/proc/{host}/environ', 'rb').read()",
        _OUT_OF_REACH,
    ),
    _Try("find a secret of the host's environment", "os.environ[secret]", ("KeyError",)),
    _Try("use more memory than allowed", "bytes(memory)", ("MemoryError",)),
    _Try(
        "write a larger file than allowed",
        "with tempfile.TemporaryFile(dir='.') as large: large.truncate(file + 1)",
        ("EFBIG",),
    ),
)

_FILL = """
import time
for number in range({count}):
    with open(f"fill-{{number}}", "wb") as file: file.write(bytes({size}))
    time.sleep(0.01)
"""
_SCRIPT = """
import errno, os, socket, sys, tempfile
try:
{code}
    said = {reached!r}
except OSError as error:
    said = errno.errorcode.get(error.errno, repr(error))
except Exception as error:
    said = type(error).__name__
said
"""


def check_up() -> Checkup:
    """Opens local sandboxes and tries their walls, from inside and harmlessly: about a second.

    Meanwhile the environment of this process holds a variable more, as bait.
    """
    try:
        endless = create_interpreter("local", timeout_seconds=_SHORT)
    except SandboxUnavailable as error:
        return Checkup(tuple(_walls({})), (), refusal=str(error))
    try:
        endless.open()
        walls = tuple(_walls(endless.layers))
        stopped = try_to_run_on(endless)
    except SandboxUnavailable as error:
        return Checkup(tuple(_walls({})), (), refusal=str(error))
    finally:
        endless.close()
    tried = create_interpreter(
        "local",
        additional_authorized_imports=["*"],  # what code may import is no wall
        timeout_seconds=_PATIENCE,
        memory_bytes=MEMORY,
        file_bytes=FILE,
        workdir_bytes=FOLDER,
    )
    try:
        return Checkup(walls, (*try_walls(tried), try_to_fill(tried), stopped))
    except SandboxUnavailable as error:
        return Checkup(walls, (stopped,), refusal=str(error))
    finally:
        tried.close()


def try_walls(python: Interpreter) -> tuple[Attempt, ...]:
    """Tries to get out of an interpreter that is not open yet and that allows all imports.

    Raises:
        SandboxUnavailable: It cannot be opened.
    """
    with _bait() as variables:
        python.set_variables(variables)
        return tuple(_attempt(python, each) for each in _TRIES)


def try_to_run_on(python: Interpreter) -> Attempt:
    """Tries to run without end in an interpreter whose steps have a time limit.

    Raises:
        SandboxUnavailable: It cannot be opened.
    """
    begun = time.monotonic()
    result = _run(python, "while True: pass")
    held = isinstance(result.error, SandboxTimeout)
    took = f"after {time.monotonic() - begun:.1f} s"
    detail = f"stopped {took}" if held else f"ended {took}: {_last_line(result)}"
    return Attempt("run without end", held, detail)


def try_to_fill(python: Interpreter) -> Attempt:
    """Tries to write more than the work folder may hold, in files that are small enough each.

    Raises:
        SandboxUnavailable: It cannot be opened.
    """
    result = _run(python, _FILL.format(size=FILE // 2, count=50 * FOLDER // FILE))
    held = isinstance(result.error, SandboxLimitExceeded)
    said = str(result.error).partition(".")[0] if held else f"ended: {_last_line(result)}"
    return Attempt("fill the disk", held, said)


def try_executors() -> Iterator[Executor]:
    """Runs a line of code in every place of this machine; tells what others lack."""
    for name in get_args(ExecutorType):
        if name != "auto" and name not in _HOSTED:
            yield _try_executor(name)
    for name, (package, key) in _HOSTED.items():
        lacks = []
        if find_spec(package) is None:
            lacks.append(f"the package: {install_command(name)}")
        if not os.environ.get(key):
            lacks.append(f"a key: {key} is not set")
        detail = f"lacks {' and '.join(lacks)}" if lacks else f"not tried: {key} is set"
        yield Executor(name, works=not lacks, detail=detail)


def _try_executor(name: str) -> Executor:
    begun = time.monotonic()
    try:
        python = create_interpreter(name, timeout_seconds=_PATIENCE)
        try:
            result = _run(python, "6 * 7")
            walls = "behind walls" if python.layers else "without walls, for code you trust"
        finally:
            python.close()
    except (SandboxError, MissingExtraError, OSError, ValueError) as error:
        return Executor(name, works=False, detail=str(error))
    if result.error is not None or result.output != 42:
        return Executor(name, works=False, detail=f"6 * 7 gave {_last_line(result)}")
    return Executor(name, True, f"{walls}; first result after {time.monotonic() - begun:.2f} s")


def _walls(layers: Mapping[str, object]) -> Iterator[Wall]:
    """Yields what the machine offers, by the layers that an opened sandbox reported."""
    if sys.platform != "linux":
        remedy = 'executor_type="auto" takes the first place that works here'
        yield Wall("machine", False, True, f"this is {sys.platform}", remedy)
        return
    from .lockdown import probe  # it is of Linux alone

    for offered in probe():
        reported = layers.get(offered.name)
        in_force = offered.available and (offered.name == "machine" or bool(reported))
        detail = offered.detail
        if offered.available and not in_force:
            detail = f"{detail}: there, but {_UNUSED}"
        elif offered.name == "seccomp" and in_force:
            detail = str(reported)
        yield Wall(offered.name, in_force, offered.required, detail, offered.remedy)
    for name, meaning in _ALWAYS_BUILT.items():
        found = layers.get(name)
        detail = (meaning or _described(found)) if found else _UNUSED
        yield Wall(name, bool(found), required=True, detail=detail)


def _described(found: object) -> str:
    if not isinstance(found, Mapping):
        return str(found)
    return ", ".join(f"{name} {_amount(value)}" for name, value in found.items())


def _amount(value: object) -> str:
    return f"{value >> 20:,} MiB" if isinstance(value, int) and value >= 1 << 20 else str(value)


@contextlib.contextmanager
def _bait() -> Iterator[dict[str, object]]:
    """Lays out what code would find if a wall were missing; yields the names for it."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sanderling-bait-")))
        (folder / "planted").write_text("bait", encoding="ascii")
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        os.environ[_SECRET] = secrets.token_hex()
        stack.callback(os.environ.pop, _SECRET, None)
        yield {
            "planted": str(folder / "planted"),
            "unplanted": str(folder / "unplanted"),
            "tcp": tcp.getsockname(),
            "udp": udp.getsockname(),
            "host": os.getpid(),
            "secret": _SECRET,
            "memory": MEMORY,
            "file": FILE,
        }


def _attempt(python: Interpreter, each: _Try) -> Attempt:
    code = _SCRIPT.format(code=textwrap.indent(each.code, "    "), reached=_REACHED)
    result = _run(python, code)
    if result.error is not None:
        return Attempt(each.name, held=False, detail=f"unclear: {_last_line(result)}")
    said = str(result.output)
    if said in each.refusals:
        return Attempt(each.name, held=True, detail=f"refused: {said}")
    return Attempt(each.name, held=False, detail=said if said == _REACHED else f"unclear: {said}")


def _run(python: Interpreter, code: str) -> CodeResult:
    execution = python.execute(code)
    while True:
        try:
            next(execution)
        except StopIteration as ended:
            result: CodeResult = ended.value
            return result


def _last_line(result: CodeResult) -> str:
    told = repr(result.output) if result.error is None else str(result.error)
    return told.rstrip().rpartition("\n")[2]
