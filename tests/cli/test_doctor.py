"""The doctor as a command: on this machine, and on machines that lack a wall or pretend to one."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sanderling.cli._arguments import asked_command, read_arguments
from sanderling.sandbox import probe
from support.openai_server import Answer, serving

COMMAND = [sys.executable, "-m", "sanderling", "doctor"]
OTHER_KERNEL = Path(__file__).parents[1] / "support" / "other_kernel.py"
REFUSED, UNKNOWN, INVALID = 1, 38, 22  # errno
PRETENDED = "landlock_add_rule=0,landlock_restrict_self=0"

pytestmark = pytest.mark.skipif(
    not all(layer.available for layer in probe() if layer.required),
    reason="this machine has no walls to look at",
)


def run(command: list[str], status: int, host: str | None = None, **variables: str) -> str:
    with socket.socket() as nobody:  # bound, and not listening: no local server of this machine
        nobody.bind(("127.0.0.1", 0))
        host = host or f"127.0.0.1:{nobody.getsockname()[1]}"
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**kept, "OLLAMA_HOST": host, **variables},
            timeout=50,
        )
    assert done.stderr == ""
    assert done.returncode == status, done.stdout
    return done.stdout


def report(*command: str, status: int = 0, **variables: str) -> dict[str, Any]:
    found = json.loads(run([*(command or COMMAND), "--json"], status, **variables))
    assert found["sound"] is (status == 0)
    return dict(found)


def elsewhere(replies: str, *, status: int) -> dict[str, Any]:
    return report(sys.executable, str(OTHER_KERNEL), replies, "doctor", status=status)


def named(entries: list[dict[str, Any]], **wanted: object) -> list[str]:
    return [each["name"] for each in entries if wanted.items() <= each.items()]


def test_the_walls_of_this_machine_are_told_and_hold() -> None:
    checkup = report()["checkup"]
    assert checkup["refusal"] == ""
    assert named(checkup["walls"], required=True, in_force=True) == [
        "machine",
        "landlock",
        "seccomp",
        "no_new_privs",
        "capabilities",
        "rlimits",
    ]
    assert named(checkup["walls"], required=False) == ["namespaces", "pid namespace"]
    assert len(named(checkup["attempts"], held=True)) == len(checkup["attempts"]) == 14


def test_where_code_can_run_and_on_which_models() -> None:
    secret = "sk-not-to-be-shown"
    output = run([*COMMAND, "--json"], 0, GROQ_API_KEY=secret)
    found = json.loads(output)
    assert named(found["executors"], works=True)[:2] == ["local", "inprocess"]
    lacking = [each for each in found["executors"] if each["name"] in ("e2b", "modal", "blaxel")]
    assert len(lacking) == 3
    assert all("_" in each["detail"] and not each["works"] for each in lacking)
    assert "Groq" in named(found["models"], usable=True, detail="GROQ_API_KEY is set")
    assert {"Ollama", "OpenAI"} <= set(named(found["models"], usable=False))
    assert secret not in output


def test_the_table_for_a_pipe_has_a_line_for_each() -> None:
    lines = run(COMMAND, 0).splitlines()
    rows = [line.split() for line in lines if line.startswith(("landlock", "fork"))]
    assert rows[0][:5] == ["landlock", "in", "force", "required", "ABI"]
    assert rows[1:] in ([["fork", "held", "refused:", each]] for each in ("ENOSYS", "EPERM"))
    assert {"Walls", "Tried from inside", "Where code can run", "Models"} <= set(lines)
    assert lines[-1] == "All required walls are there and hold."
    assert all(line == line.rstrip() and "\x1b" not in line for line in lines)


def test_the_table_for_a_terminal_has_colours() -> None:
    ours, theirs = pty.openpty()
    command = subprocess.Popen(COMMAND, stdout=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        pass  # how a terminal tells that the other end is closed
    finally:
        os.close(ours)
    assert command.wait(30) == 0
    assert b"\x1b[32mheld" in shown


@pytest.mark.parametrize(
    ("replies", "missing", "remedy"),
    [
        (f"landlock_create_ruleset={UNKNOWN}", "landlock", "lsm="),
        (f"seccomp={INVALID}", "seccomp", "CONFIG_SECCOMP_FILTER"),
    ],
)
def test_a_required_wall_that_is_missing(replies: str, missing: str, remedy: str) -> None:
    found = elsewhere(replies, status=1)
    (wall,) = [each for each in found["checkup"]["walls"] if each["name"] == missing]
    assert not wall["in_force"]
    assert wall["required"]
    assert remedy in wall["remedy"]
    assert missing in found["checkup"]["refusal"]
    assert found["checkup"]["attempts"] == []
    assert "local" in named(found["executors"], works=False)
    assert "inprocess" in named(found["executors"], works=True)


def test_a_missing_wall_in_the_table() -> None:
    replies = f"landlock_create_ruleset={UNKNOWN}"
    lines = run([sys.executable, str(OTHER_KERNEL), replies, "doctor"], 1).splitlines()
    row = next(line for line in lines if line.startswith("landlock"))
    assert row.split()[:3] == ["landlock", "missing", "required"]
    assert any(line.startswith("Missing: landlock. It needs Linux 5.13") for line in lines)
    assert lines[-1].startswith("The sandbox did not start")


def test_an_optional_wall_that_is_missing_does_not_count() -> None:
    found = elsewhere(f"unshare={REFUSED}", status=0)
    (wall,) = [each for each in found["checkup"]["walls"] if each["name"] == "namespaces"]
    assert not wall["in_force"]
    assert "user.max_user_namespaces" in wall["remedy"]


@pytest.mark.parametrize(
    ("replies", "broken"),
    [
        (PRETENDED, {"read a file of the host", "list the root folder"}),
        (f"{PRETENDED},seccomp=0", {"connect to a TCP port of the host", "start a program"}),
    ],
)
def test_a_wall_that_is_only_pretended_is_found_out(replies: str, broken: set[str]) -> None:
    for _ in range(3):
        found = elsewhere(f"unshare={REFUSED},{replies}", status=1)
        missing = named(found["checkup"]["walls"], required=True, in_force=False)
        if not missing:
            break  # now and then a sandbox does not start at all without its filter
    assert missing == []
    assert broken <= set(named(found["checkup"]["attempts"], held=False))


def test_what_a_local_server_says_is_only_text() -> None:
    names = ["[red]m\x1b[2J\nlandlock  in force", "x" * 1000]
    listing = json.dumps({"data": [{"id": name} for name in names]})
    with serving(Answer(listing)) as server:
        output = run(COMMAND, 0, host=server.url.removeprefix("http://").removesuffix("/v1"))
    (row,) = [line for line in output.splitlines() if line.startswith("Ollama")]
    assert "usable" in row
    assert "[red]m\\x1b[2J landlock in force" in row
    assert len(row) < 300
    assert "\x1b" not in output


@pytest.mark.parametrize(
    ("argv", "task"),
    [
        (["--", "doctor"], "doctor"),
        (["doctor", "my", "code"], "doctor my code"),
        (["doctor my code"], "doctor my code"),
        (["doctor", "--max-steps", "3"], "doctor"),
    ],
)
def test_a_task_can_begin_with_the_word(argv: list[str], task: str) -> None:
    assert asked_command(argv) is None
    assert read_arguments(argv).task == task


def test_an_unknown_option_is_told() -> None:
    done = subprocess.run([*COMMAND, "--frob"], capture_output=True, text=True, timeout=50)
    assert done.returncode == 2
    assert "sanderling doctor: error: unrecognized arguments: --frob" in done.stderr
