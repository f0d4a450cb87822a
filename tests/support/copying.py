"""Interpreters whose processes are copied, and code that tampers with that."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sanderling.sandbox import create_interpreter
from sanderling.sandbox._remote import RemoteInterpreter
from support.processes import sandboxes
from support.sandbox import run

END = "import os; os._exit(1)"
CLONE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
number = 56 if os.uname().machine == "x86_64" else 220
def clone(flags):
    thread = ctypes.c_int()
    place = ctypes.addressof(thread)
    last = (0, place) if number == 220 else (place, 0)
    pid = libc.syscall(number, ctypes.c_ulong(flags), 0, 0, *map(ctypes.c_ulong, last))
    return pid, ctypes.get_errno()
"""
FORK, PARENT = 0x01200011, 0x8000


@contextlib.contextmanager
def copyable(**options: Any) -> Iterator[RemoteInterpreter]:
    options = {"timeout_seconds": 5, "additional_authorized_imports": ["*"], **options}
    python = create_interpreter("local", **options)
    assert isinstance(python, RemoteInterpreter)
    try:
        python.open()
        assert python.layers["snapshots"] is True, python.layers
        yield python
    finally:
        python.close()


def copied(python: RemoteInterpreter) -> None:
    """Runs an empty step, after which a copy is made, and waits for that."""
    run(python, "0")
    python._resources.checkpoint.settle()


def seconds_of(act: Callable[[], object]) -> float:
    """How long it takes to do something."""
    began = time.monotonic()
    act()
    return time.monotonic() - began


def ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def few(most: int) -> bool:
    """Whether no more sandboxes than these are left, once those that were told to end have."""
    until = time.monotonic() + 30
    while len(sandboxes()) > most and time.monotonic() < until:
        time.sleep(0.01)
    return len(sandboxes()) <= most
