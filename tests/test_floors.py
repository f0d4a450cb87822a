"""Imports only go down the floors of the house."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import sanderling

SOURCE = Path(sanderling.__file__).parent
# From the ground up; rooms on one floor do not know each other.
FLOORS = (
    {"_arguments", "_daemons", "_lazy", "_registry", "_secrets", "_show", "_version"},
    {"_bridge"},
    {"_warn", "errors", "messages"},
    {"sandbox"},
    {"tools"},
    {"models"},
    {"memory", "testing"},
    {"loop"},
    {"runtime"},
    {"console"},
    {"agents"},
    {"__init__"},
    {  # the import paths of smolagents
        "agent_types",
        "default_tools",
        "e2b_executor",
        "local_python_executor",
        "monitoring",
        "prompts",
        "remote_executors",
        "utils",
    },
    {"types"},
    {"cli"},
    {"__main__"},
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
FILES = sorted([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyi")])


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].partition(".")[0]


def imported(path: Path) -> set[str]:
    """Returns the rooms that a file imports from, those for type checking included."""
    package = ["sanderling", *path.relative_to(SOURCE).parent.parts]
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            names += [f"{module}.{alias.name}" for alias in node.names]
    split = [name.split(".") for name in names]
    return {
        parts[1] if parts[1] in FLOOR_OF else "__init__"
        for parts in split
        if parts[0] == "sanderling" and len(parts) > 1
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_only_go_down(path: Path) -> None:
    room = room_of(path)
    upwards = {
        other
        for other in imported(path)
        if other != room and FLOOR_OF[other] >= FLOOR_OF[room] and other != "_version"
    }
    assert not upwards


def test_every_room_has_a_floor() -> None:
    assert {room_of(path) for path in FILES} == set(FLOOR_OF)


@pytest.mark.parametrize(
    "path",
    [SOURCE / "sandbox" / "kernel.py", *sorted((SOURCE / "sandbox" / "lockdown").rglob("*.py"))],
    ids=lambda path: path.name,
)
def test_what_runs_inside_needs_only_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for inner in ast.walk(node)
    }
    modules = set()
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue  # numpy and its like are used where they are there
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.add((node.module or "").split(".")[0])
    assert modules <= set(sys.stdlib_module_names)
