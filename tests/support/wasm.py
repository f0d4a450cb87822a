"""Whether Deno and Pyodide are here, and which processes of Deno are left of a test.

``.ci/wasm`` installs both. Nothing is downloaded here.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from sanderling.errors import SandboxUnavailable
from sanderling.sandbox.backends._wasm import WasmBackend


def require_wasm() -> None:
    """Skips the test where they are missing; fails it where SANDERLING_REQUIRE names wasm."""
    backend = WasmBackend()
    try:
        backend.start().socket.close()
    except SandboxUnavailable as error:
        reason = f"{error} Run .ci/wasm"
        if "wasm" in os.environ.get("SANDERLING_REQUIRE", "").split(","):
            pytest.fail(f"wasm is required, and {reason}")
        pytest.skip(reason)
    finally:
        backend.close()


def denos(host: int | None = None) -> list[str]:
    """The processes of Deno that this one (or `host`) has started, dead or alive."""
    found = []
    for task in Path(f"/proc/{host or os.getpid()}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has ended meanwhile
            for pid in (task / "children").read_text().split():
                with contextlib.suppress(OSError):
                    if Path(f"/proc/{pid}/comm").read_text().strip() == "deno":
                        found.append(pid)
    return found
