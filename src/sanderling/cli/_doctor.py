"""``sanderling doctor``: whether this machine's walls hold, and what else can be used here."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass

from sanderling import __version__
from sanderling.console import AgentLogger
from sanderling.models import ModelSource, survey_models
from sanderling.sandbox import Checkup, Executor, check_up, try_executors

from ._tables import BAD, GOOD, SO_WHAT, Row, print_table


@dataclass(frozen=True, slots=True)
class _Findings:
    sound: bool
    version: str
    python: str
    machine: str
    checkup: Checkup
    executors: tuple[Executor, ...]
    models: tuple[ModelSource, ...]


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
    print_table(logger, "Walls", _walls(found.checkup))
    print_table(logger, "Tried from inside", _attempts(found.checkup))
    executors = [
        _row(each.name, "works" if each.works else "no", each.works, each.detail)
        for each in found.executors
    ]
    print_table(logger, "Where code can run", executors)
    models = [
        _row(each.name, "usable" if each.usable else "no", each.usable, each.detail)
        for each in found.models
    ]
    print_table(logger, "Models", models)
    _print_verdict(logger, found.checkup)


def _walls(checkup: Checkup) -> list[Row]:
    return [
        Row(
            (
                wall.name,
                "in force" if wall.in_force else "missing",
                "required" if wall.required else "optional",
                wall.detail,
            ),
            GOOD if wall.in_force else BAD if wall.required else SO_WHAT,
        )
        for wall in checkup.walls
    ]


def _attempts(checkup: Checkup) -> list[Row]:
    return [
        Row(
            (each.name, "held" if each.held else "BROKEN", each.detail),
            GOOD if each.held else BAD,
        )
        for each in checkup.attempts
    ]


def _row(name: str, state: str, good: bool, detail: str) -> Row:
    return Row((name, state, detail), GOOD if good else SO_WHAT)


def _print_verdict(logger: AgentLogger, checkup: Checkup) -> None:
    for wall in checkup.walls:
        if wall.remedy:
            logger.log(f"\nMissing: {wall.name}. {wall.remedy}.")
    if checkup.refusal:
        logger.log(f"\n{checkup.refusal}", style=BAD)
    elif checkup.sound:
        logger.log("\nAll required walls are there and hold.", style=f"bold {GOOD}")
    else:
        logger.log("\nNot all required walls hold: run no foreign code here.", style=BAD)
