"""The page tells what the suite counts, no more and no less."""

from __future__ import annotations

from pathlib import Path

from sandbox.attacks.corpus import ELSEWHERE
from sandbox.attacks.suite import CASES, markdown

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")


def test_the_figures_are_those_of_the_suite() -> None:
    assert markdown() in PAGE


def test_what_is_not_stopped_is_said() -> None:
    assert [case.name for case in CASES if case.end == "remains" and case.name not in PAGE] == []


def test_what_is_no_code_is_said() -> None:
    assert [number for number in ELSEWHERE if f"| {number} |" not in PAGE] == []
