"""What this machine offers, layer by layer, without touching the process that asks."""

import functools
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ._errors import LockdownError
from ._landlock import TRUNCATE_ABI, abi
from ._linux import machine, syscall
from ._own_root import NAMESPACES, NAMESPACES_REMEDY
from ._paths import interpreter_paths
from ._policy import Policy
from ._rules import KILL
from ._seccomp import REMEDY

_GET_ACTION_AVAIL = 2  # an operation of seccomp(2)
_PATIENCE = 30.0  # seconds for a fresh interpreter on a loaded machine

# Argument 1: the folder that holds this package; argument 2: the policy.
_ENTER = """
import sys
sys.path.insert(0, sys.argv[1])
from lockdown._errors import LockdownError
from lockdown._own_root import enter
from lockdown._policy import Policy
try:
    enter(Policy.from_json(sys.argv[2]))
except LockdownError as error:
    sys.exit(error.reason)
"""

_ENTER_PID_NAMESPACE = """
import os
import sys
sys.path.insert(0, sys.argv[1])
from lockdown._pid_namespace import enter_pid_namespace
sys.exit(0 if enter_pid_namespace(os.getppid(), lambda _: None) else 1)
"""
PID_NAMESPACE = "pid namespace"


@dataclass(frozen=True)
class Layer:
    """One layer of the walls, on this machine."""

    name: str
    available: bool
    required: bool
    """False: it is used where it is available, and `lock` works without it."""
    detail: str
    """What there is, or why it is missing."""
    remedy: str = ""
    """What to do about it, if it is missing."""


def probe() -> tuple[Layer, ...]:
    """Returns what this machine offers; `lock` works if all required layers are available.

    On the first call it starts an interpreter to try the namespaces.
    """
    layers = [_layer("machine", machine)]
    if layers[0].available:
        layers.append(_layer("landlock", _landlock))
        layers.append(_layer("seccomp", _seccomp))
        missing = why_no_namespaces()
        layers.append(
            Layer("namespaces", available=True, required=False, detail=", ".join(NAMESPACES))
            if missing is None
            else _missing(missing, required=False)
        )
        layers.append(
            Layer(PID_NAMESPACE, True, required=False, detail="nothing outlives the host")
            if has_pid_namespaces()
            else _missing(
                LockdownError(PID_NAMESPACE, "the machine gives none", NAMESPACES_REMEDY),
                required=False,
            )
        )
    return tuple(layers)


@functools.cache
def has_pid_namespaces() -> bool:
    """Returns whether a fresh interpreter got a PID namespace for itself and its children."""
    import subprocess

    package = str(Path(__file__).resolve().parents[1])
    command = [sys.executable, "-I", "-S", "-B", "-c", _ENTER_PID_NAMESPACE, package]
    try:
        tried = subprocess.run(  # noqa: S603 - this interpreter, our own script
            command, env={}, stdin=subprocess.DEVNULL, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


@functools.cache
def why_no_namespaces() -> LockdownError | None:
    """Returns why this machine gives a process no namespaces and root of its own; None if it does.

    A fresh interpreter tries it: the process that asks stays as it is.
    """
    import subprocess
    import tempfile

    try:
        machine()
        abi()  # a kernel without Landlock lacks the mount calls, too; and nothing locks without it
    except LockdownError as error:
        reason = f"not tried, since this lacks: {error.layer}"
        return LockdownError("namespaces", reason, f"First get {error.layer}")
    package = str(Path(__file__).resolve().parents[1])
    with tempfile.TemporaryDirectory() as folder:
        policy = Policy(
            read=interpreter_paths(),
            write=(folder, "/dev/null"),
            workdir=folder,
            memory_bytes=0,
            file_bytes=0,
            open_files=0,
            namespaces=True,
            workdir_bytes=1 << 20,
        )
        command = [sys.executable, "-I", "-S", "-B", "-c", _ENTER, package, policy.to_json()]
        try:
            tried = subprocess.run(  # noqa: S603 - this interpreter, our own script
                command,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return LockdownError("namespaces", f"could not be tried: {error}", NAMESPACES_REMEDY)
    if tried.returncode:
        return LockdownError("namespaces", tried.stderr.strip(), NAMESPACES_REMEDY)
    return None


def _landlock() -> str:
    version = abi()
    gap = "" if version >= TRUNCATE_ABI else "; seccomp refuses to truncate by path instead"
    return f"ABI {version}{gap}"


def _seccomp() -> str:
    try:
        syscall("seccomp", _GET_ACTION_AVAIL, 0, struct.pack("<I", KILL))
    except OSError as error:
        raise LockdownError("seccomp", str(error), REMEDY) from error
    return "filters"


def _layer(name: str, find: Callable[[], str]) -> Layer:
    try:
        return Layer(name, available=True, required=True, detail=find())
    except LockdownError as error:
        return _missing(error, required=True)


def _missing(error: LockdownError, *, required: bool) -> Layer:
    return Layer(error.layer, False, required, detail=error.reason, remedy=error.remedy)
