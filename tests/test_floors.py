"""Imports only go down the floors of the house, and in no circle within a room."""

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


def modules_used(path: Path) -> set[tuple[str, ...]]:
    """Returns the modules and names that a file imports when it runs, late imports included.

    Those that stand under ``if TYPE_CHECKING`` are left out: two classes may well name each other
    in their annotations, as a run and its session do.
    """
    package = ("sanderling", *path.relative_to(SOURCE).parent.parts)
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    used: set[tuple[str, ...]] = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            used |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module or "").split(".")) if node.module else base
            used |= {(*module, alias.name) for alias in node.names}
    return used


def circle_in(package: Path) -> list[str]:
    """Returns the modules of a circle of imports between the modules of a package, if any."""
    modules = {path.stem: path for path in package.glob("*.py") if path.stem != "__init__"}
    prefix = ("sanderling", *package.relative_to(SOURCE).parts)
    uses = {
        name: {
            parts[len(prefix)]
            for parts in modules_used(path)
            if parts[: len(prefix)] == prefix and len(parts) > len(prefix)
        }
        & modules.keys() - {name}
        for name, path in modules.items()
    }
    while free := {name for name, used in uses.items() if not used & uses.keys()}:
        for name in free:
            del uses[name]
    return sorted(uses)


PACKAGES = sorted({path.parent for path in SOURCE.rglob("*.py")} - {SOURCE})
# Still to be put in order; a package that has no circle any more is taken out here.
WITH_CIRCLES = {"models", "tools", "tools/agent_types"}


def name_of_package(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("package", PACKAGES, ids=name_of_package)
def test_no_package_has_a_circle_of_imports(package: Path) -> None:
    assert bool(circle_in(package)) == (name_of_package(package) in WITH_CIRCLES), circle_in(
        package
    )


# Rooms whose files still use private names of other rooms.
WITH_PRIVATE_IMPORTS = {"models", "prompts", "utils"}


def private_imports(path: Path) -> set[str]:
    """Returns the private modules and names of other rooms that a file imports."""
    room = room_of(path)
    return {
        ".".join(parts)
        for parts in modules_used(path)
        if parts[0] == "sanderling"
        and len(parts) > 2
        and parts[1] != room
        and FLOOR_OF.get(parts[1]) is not None
        and (SOURCE / parts[1]).is_dir()
        and any(part.startswith("_") for part in parts[2:])
    }


@pytest.mark.parametrize("room", sorted(FLOOR_OF), ids=str)
def test_private_names_stay_in_their_room(room: str) -> None:
    used = {name for path in FILES if room_of(path) == room for name in private_imports(path)}
    assert bool(used) == (room in WITH_PRIVATE_IMPORTS), used


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
