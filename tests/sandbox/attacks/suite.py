"""All cases, and what they add up to."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from sandbox.attacks import (
    agents,
    bursts,
    calls,
    decoding,
    files,
    language,
    modules,
    network,
    processes,
    remains,
    system,
    uses,
    values,
    wire,
)
from sandbox.attacks.case import WALLS, Case, Layer
from sandbox.attacks.corpus import ELSEWHERE, ROWS, TECHNIQUES
from sandbox.attacks.field import WITHOUT_NAMESPACES
from sandbox.attacks.review import REVIEW

CASES: tuple[Case, ...] = (
    *language.CASES,
    *modules.CASES,
    *files.CASES,
    *processes.CASES,
    *network.CASES,
    *system.CASES,
    *uses.CASES,
    *wire.CASES,
    *values.CASES,
    *remains.CASES,
    *calls.CASES,
    *bursts.CASES,
    *decoding.CASES,
    *agents.CASES,
)
PROGRAMS: dict[str, str] = {
    "142": "sandbox/attacks/test_random_calls.py::test_system_calls_at_random_harm_nothing_else",
    **{technique: place for _, technique, places in REVIEW for place in places if "::" in place},
}
"""Techniques that programs of their own try, with several sandboxes for instance; one test each."""
APART = tuple(case for case in CASES if case.apart)
WHOLE = tuple(case for case in CASES if not case.apart and case.layers != ("namespaces",))
"""Those that are tried behind all walls only: with namespaces and without."""


def walls_to_try(case: Case) -> tuple[str, ...]:
    """Returns behind which walls a case is tried, to see what stops it.

    All escapes within the language try the same once they are out, so they are not tried behind
    each wall: "the C library itself" is.
    """
    singly = (
        () if case in (*language.CASES, *modules.CASES) and case.layers == ("together",) else WALLS
    )
    return ("process", WITHOUT_NAMESPACES, *singly)


def techniques_tried() -> set[str]:
    """Returns the numbers of the techniques that a case or a program tries."""
    cases = {of for case in CASES for of in case.of if of in TECHNIQUES}
    return cases | (PROGRAMS.keys() - ELSEWHERE.keys())


def ends() -> Counter[str]:
    """Returns how many cases end how."""
    return Counter(case.end for case in CASES)


def totals() -> dict[str, int]:
    """Returns what the suite counts."""
    remaining = ends()["remains"]
    return {
        "techniques in the collection": len(TECHNIQUES),
        "of these, tried as code": len(techniques_tried()),
        "of these, no code for an interpreter": len(ELSEWHERE),
        "rows of attempts on the walls": len(ROWS),
        "cases": len(CASES),
        "cases refused by the system": ends()["refused"],
        "cases contained: the code got what it wanted, and nothing happened outside": ends()[
            "contained"
        ],
        "cases ended by a limit or the clock": ends()["limited"],
        "cases that only ended their own interpreter": ends()["ended"],
        "cases in which the host saw the protocol broken, and killed": ends()["violation"],
        "cases that work: what is not stopped, below": remaining,
    }


def by_layer() -> dict[str, tuple[int, int, int]]:
    """Returns for each layer: cases it stops; of those tried with walls missing, how many it stops
    alone, and how many nothing else does."""
    return {
        layer: (
            sum(layer in case.layers for case in CASES),
            sum(layer in case.layers for case in APART),
            sum(case.layers == (layer,) for case in APART),
        )
        for layer in get_args(Layer)
    }


def markdown() -> str:
    """Returns the tables of ``docs/security.md``."""
    lines = ["| What | Count |", "|---|---|"]
    lines += [f"| {name} | {count} |" for name, count in totals().items()]
    lines += [
        "",
        f"| Layer | Cases it stops | Alone, of {len(APART)} tried apart | Nothing else does |",
        "|---|---|---|---|",
    ]
    for layer, (meant, alone, only) in by_layer().items():
        lines.append(f"| {layer} | {meant} | {alone or '–'} | {only or '–'} |")
    return "\n".join(lines)
