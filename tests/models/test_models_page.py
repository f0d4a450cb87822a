"""docs/models.md tells what the tests prove, no more and no less."""

from __future__ import annotations

import ast
from pathlib import Path

from support.dialects.dialect import FEATURES
from support.model_table import IN_PROCESS, markdown

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")


def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_table_is_that_of_the_tests() -> None:
    assert markdown() in PAGE


def test_every_cell_has_a_test() -> None:
    folder = Path(__file__).parent
    scenarios = functions_of(folder / "conformance" / "test_scenarios.py")
    assert {f"test_{feature}" for feature in FEATURES} <= scenarios
    for name, tests in IN_PROCESS.items():
        assert set(tests) <= set(FEATURES), name
        for test in tests.values():
            file, _, function = test.partition("::")
            assert function in functions_of(folder / file), test
