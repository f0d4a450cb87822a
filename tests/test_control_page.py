"""The page about the control of runs tells the truth."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.pages import check_example, examples, page

EXAMPLES = examples("control.md")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_the_page_says(number: int, tmp_path: Path) -> None:
    check_example(*EXAMPLES[number], tmp_path)


def test_every_program_of_the_page_is_an_example() -> None:
    assert len(EXAMPLES) == page("control.md").count("```python") == 6
