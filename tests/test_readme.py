"""What the README shows works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def last_line(script: Path, *arguments: str) -> str:
    """Runs a script on the embedded model, and returns what it printed last."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, script, *arguments],
        cwd=script.parent,
        env={**kept, "OLLAMA_HOST": "127.0.0.1:1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_the_example_runs_on_the_embedded_model(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(example)
    assert last_line(script) == re.findall(r"# ([\d.]+)$", example, re.MULTILINE)[-1]


def test_the_embedded_model_solves_the_tasks_of_the_examples() -> None:
    script = ROOT / "examples" / "tools_and_answer.py"
    (task,) = re.findall(rf'python examples/{script.name} "(.*)"', script.read_text("utf-8"))
    assert last_line(script) == "The answer: 1.25"
    assert last_line(script, task) == "The answer: 7.75"


def test_the_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    commands = re.findall(r"^    make (\w+)", README, re.MULTILINE)
    assert commands == ["run", "test"]
    for command in commands:
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


def test_every_extra_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    _, _, table = README.partition("| for | extras |")
    named = set(re.findall(r"`([a-z0-9-]+)`", table.partition("\n\n")[0]))
    assert named == set(project["optional-dependencies"])


def test_what_is_pinned_names_no_index() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    for line in lines:
        assert re.fullmatch(r"#.*|[a-z0-9-]+==[0-9][\w.]*", line), line
