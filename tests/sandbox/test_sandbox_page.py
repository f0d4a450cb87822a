"""The page about places and limits says what is so."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from sanderling.sandbox import create_interpreter
from sanderling.sandbox._limits import LIMIT_NAMES, size_text
from sanderling.sandbox.backends._docker import DockerBackend
from sanderling.sandbox.backends._local import LocalBackend
from sanderling.sandbox.backends._wasm import WasmBackend

PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text(encoding="utf-8")
ROWS = {
    row[0].strip(" `"): [cell.strip() for cell in row[1:]]
    for row in (
        line.strip("|\n").split("|") for line in PAGE.splitlines() if line.startswith("| `")
    )
}
PLACES = ("local", "docker", "wasm", "inprocess")
BACKENDS = {"local": LocalBackend, "docker": DockerBackend, "wasm": WasmBackend}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", sorted(LIMIT_NAMES - {"max_processes"}))
def test_each_limit_is_told_with_its_default(name: str, place: str) -> None:
    told = ROWS[name][1 + PLACES.index(place)]
    settings: dict[str, Any] = {name: 10**6}
    if told == "–":
        with pytest.raises(ValueError, match=f"cannot keep {name}"):
            create_interpreter(place, **settings)
        return
    create_interpreter(place, **settings).close()
    if name == "cpu_seconds":
        assert told == "none"
        return
    default = inspect.signature(BACKENDS[place]).parameters[name].default
    assert told == (size_text(default) if name.endswith("_bytes") else f"{default:,}")


def test_the_settings_of_every_place_are_told() -> None:
    further = PAGE.partition("## Further settings")[2].partition("\n## ")[0]
    for place, backend in BACKENDS.items():
        known = set(inspect.signature(backend).parameters) - LIMIT_NAMES - {"imports"}
        rows = [line for line in further.splitlines() if line.startswith(f"| {place} ")]
        told = {name for line in rows for name in re.findall(r"`(\w+)`", line.split("|")[2])}
        assert told == known
