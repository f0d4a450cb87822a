"""``sanderling doctor``: whether this machine's walls hold, and what else can be used here."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sanderling import __version__
from sanderling.console import AgentLogger
from sanderling.models import ModelSource, survey_models
from sanderling.sandbox import Checkup, Executor, check_up, try_executors

_GOOD, _BAD, _SO_WHAT = "green", "bold red", "yellow"
_GAP = "  "


@dataclass(frozen=True, slots=True)
class _Findings:
    sound: bool
    version: str
    python: str
    machine: str
    checkup: Checkup
    executors: tuple[Executor, ...]
    models: tuple[ModelSource, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of a table: cells of plain text, the second of them in a colour."""

    cells: Sequence[str]
    colour: str


def doctor(*, as_json: bool) -> int:
    """Prints what it finds.

    Returns:
        The exit status: 0 if a sandbox opens and all that is required of it holds, otherwise 1.
    """
    checkup = check_up()
    found = _Findings(
        sound=checkup.sound,
        version=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        machine=f"{platform.system()} {platform.release()} {platform.machine()}",
        checkup=checkup,
        executors=tuple(try_executors()),
        models=survey_models(),
    )
    if as_json:
        print(json.dumps(asdict(found), indent=2))
    else:
        _print(found)
    return 0 if found.sound else 1


def _print(found: _Findings) -> None:
    logger = AgentLogger()
    logger.log(f"Sanderling {found.version}, {found.python}, {found.machine}")
    _print_table(logger, "Walls", _walls(found.checkup))
    _print_table(logger, "Tried from inside", _attempts(found.checkup))
    executors = [
        _row(each.name, "works" if each.works else "no", each.works, each.detail)
        for each in found.executors
    ]
    _print_table(logger, "Where code can run", executors)
    models = [
        _row(each.name, "usable" if each.usable else "no", each.usable, each.detail)
        for each in found.models
    ]
    _print_table(logger, "Models", models)
    _print_verdict(logger, found.checkup)


def _walls(checkup: Checkup) -> list[_Row]:
    return [
        _Row(
            (
                wall.name,
                "in force" if wall.in_force else "missing",
                "required" if wall.required else "optional",
                wall.detail,
            ),
            _GOOD if wall.in_force else _BAD if wall.required else _SO_WHAT,
        )
        for wall in checkup.walls
    ]


def _attempts(checkup: Checkup) -> list[_Row]:
    return [
        _Row(
            (each.name, "held" if each.held else "BROKEN", each.detail),
            _GOOD if each.held else _BAD,
        )
        for each in checkup.attempts
    ]


def _row(name: str, state: str, good: bool, detail: str) -> _Row:
    return _Row((name, state, detail), _GOOD if good else _SO_WHAT)


def _print_table(logger: AgentLogger, title: str, rows: Sequence[_Row]) -> None:
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    logger.log(f"\n{title}", style="bold")
    # No line end in a detail may make it look like another row.
    lines = [[logger.plain(" ".join(cell.split())) for cell in row.cells] for row in rows]
    for row, cells in zip(rows, lines, strict=True):
        cells[1].stylize(row.colour)
    *narrow, _ = zip(*lines, strict=True)
    widths = [max(map(len, column)) for column in narrow]
    if not logger.console.is_terminal:  # a line for each, however long
        for cells in lines:
            for cell, width in zip(cells, widths, strict=False):
                cell.pad_right(width - len(cell))
            logger.log(Text(_GAP).join(cells))
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, len(_GAP), 0, 0))
    for width in widths:
        table.add_column(width=width)
    table.add_column()
    for cells in lines:
        table.add_row(*cells)
    logger.log(table)


def _print_verdict(logger: AgentLogger, checkup: Checkup) -> None:
    for wall in checkup.walls:
        if wall.remedy:
            logger.log(f"\nMissing: {wall.name}. {wall.remedy}.")
    if checkup.refusal:
        logger.log(f"\n{checkup.refusal}", style=_BAD)
    elif checkup.sound:
        logger.log("\nAll required walls are there and hold.", style=f"bold {_GOOD}")
    else:
        logger.log("\nNot all required walls hold: run no foreign code here.", style=_BAD)
