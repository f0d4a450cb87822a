"""The examples of a page of the documentation: programs, each with what it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_DOCS = Path(__file__).parents[2] / "docs"
_EXAMPLE = re.compile(r"```python\n(.*?)```\s+It prints:\s+```text\n(.*?)```", re.DOTALL)


def page(name: str) -> str:
    """Returns the text of a page."""
    return (_DOCS / name).read_text("utf-8")


def examples(name: str) -> list[tuple[str, str]]:
    """Returns the programs of a page and what they print."""
    return _EXAMPLE.findall(page(name))


def check_example(program: str, printed: str, folder: Path) -> None:
    """Runs a program in a process of its own."""
    file = folder / "example.py"
    file.write_text(program, "utf-8")
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.stderr == ""
    assert done.stdout == printed
