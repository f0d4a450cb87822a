"""``sanderling models`` as a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from sanderling.cli._arguments import asked_command
from support.openai_server import Answer, serving

COMMAND = [sys.executable, "-m", "sanderling", "models"]


def run(*options: str, **variables: str) -> tuple[int, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        [*COMMAND, *options],
        capture_output=True,
        text=True,
        env={**kept, "OLLAMA_HOST": "127.0.0.1:9", **variables},
        timeout=50,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_line_for_each_with_what_to_do() -> None:
    secret = "sk-not-to-be-shown"
    status, output = run(GROQ_API_KEY=secret)
    assert secret not in output
    lines = output.splitlines()
    assert lines[0] == "In this process"
    assert {"In this process", "Servers on this machine", "Providers"} <= set(lines)
    rows = {line.partition("  ")[0]: line.split(maxsplit=1)[1] for line in lines if "  " in line}
    assert rows["Groq"].startswith("usable  GROQ_API_KEY is set → OpenAIModel(")
    assert rows["Mistral"].endswith("MISTRAL_API_KEY is not set → export MISTRAL_API_KEY=…")
    assert status == 0


def test_the_same_as_data() -> None:
    status, output = run("--json")
    found = json.loads(output)
    assert {"name", "usable", "detail", "model", "place", "todo"} == set(found[0])
    assert status == (0 if any(each["usable"] for each in found) else 1)


def test_names_that_a_server_tells_are_shown_as_they_are() -> None:
    listing = {"data": [{"id": "[bold]x[/bold]\x1b[31m\nOpenAI  usable"}]}
    with serving(Answer(json.dumps(listing))) as server:
        _, output = run(OLLAMA_HOST=server.url.removesuffix("/v1"))
    (line,) = [each for each in output.splitlines() if each.startswith("Ollama")]
    assert "usable" in line
    assert "[bold]x[/bold]" in line
    assert "\x1b" not in output


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (["models"], "models"),
        (["models", "--json"], "models"),
        (["doctor"], "doctor"),
        (["models", "of", "ships"], None),
        (["--", "models"], None),
        ([], None),
    ],
)
def test_a_task_is_told_from_a_command(line: list[str], command: str | None) -> None:
    assert asked_command(line) == command


def test_help_and_mistakes() -> None:
    status, output = run("--help")
    assert status == 0
    assert "no provider is" in output
    done = subprocess.run([*COMMAND, "--jsno"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--jsno" in done.stderr
