"""The kernel, its walls and what starts them, as a text that can be sent to another machine."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).parent


def parcel(start: str, arguments: Mapping[str, object]) -> bytes:
    """Packs all modules for `boot`.

    Args:
        start: The module whose ``main`` is called: ``"contained"`` or ``"guard"``.
        arguments: What it is called with; plain JSON.
    """
    text = json.dumps({"modules": _modules(), "start": start, "arguments": arguments})
    return struct.pack("<I", len(text)) + text.encode("ascii")


@functools.cache
def boot() -> str:
    """Returns the program that unpacks a parcel, for ``python -c``."""
    return (_HERE / "_boot.py").read_text("utf-8")


@functools.cache
def _modules() -> dict[str, str]:
    """Returns the modules by the names that they have there."""
    files = {
        "kernel": _HERE.parent / "kernel.py",
        "contained": _HERE / "_contained.py",
        "guard": _HERE / "_guard.py",
    }
    for path in (_HERE.parent / "lockdown").glob("*.py"):
        files["lockdown" if path.stem == "__init__" else f"lockdown.{path.stem}"] = path
    return {name: path.read_text("utf-8") for name, path in files.items()}
