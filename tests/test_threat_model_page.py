"""The threat model names tests that are there, and the page fits on a screen."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "threat-model.md"


def test_each_claim_names_a_test_that_exists() -> None:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for *_, tests, _ in rows:
        named = re.findall(r"`([^`]+)`", tests)
        assert named, tests
        for name in named:
            assert (TESTS / name).exists(), name


def test_it_fits_on_a_screen() -> None:
    assert len(PAGE.read_text().splitlines()) < 45
