"""What the page about executors shows works as it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sanderling.sandbox import create_interpreter

PAGE = (Path(__file__).parents[2] / "docs" / "executors.md").read_text("utf-8")


@pytest.mark.parametrize("snippet", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_a_snippet_runs(snippet: str, run_python: Callable[[str], str]) -> None:
    assert run_python(snippet) == ""


def test_the_page_knows_every_place() -> None:
    told = re.findall(r'^\| `"(\w+)"`', PAGE, re.MULTILINE)
    with pytest.raises(ValueError, match="Choose of") as refused:
        create_interpreter("nowhere")
    known = re.findall(r'"(\w+)"', str(refused.value))
    assert set(told) | {"auto"} == set(known)
