"""The page that says where everything is tested tells the truth."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "agents.md"
LINES = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
ROWS = [
    cells
    for line in LINES
    if not set(line) <= set("|- ")
    for cells in [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]]
    if cells != ["What", "Here", "Test"]
]


@cache
def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_every_row_is_full_and_names_a_test_that_exists(row: list[str]) -> None:
    assert len(row) == 3
    assert all(row)
    path, _, name = row[2].partition("::")
    assert name.startswith("test_")
    assert name in functions_of(TESTS / path), row[2]


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 120
