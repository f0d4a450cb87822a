"""macOS and Windows, as far as Linux can tell: without their missing modules and functions."""

from __future__ import annotations

import subprocess
import sys

import pytest

both = pytest.mark.parametrize("platform", ["darwin", "win32"])
_LINUX_ALONE = {"WorkFile", "WorkFiles", "keep_files", "probe"}


def said(platform: str, program: str) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"from support.elsewhere import pretend\npretend({platform!r})\n{program}",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        env={
            "PYTHONPATH": ":".join(sys.path),
            "PATH": "/nowhere",
            "HOME": "/nowhere",
        },
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


AGENT = """
from sanderling import CodeAgent, LogLevel, SandboxUnavailable, ScriptedModel
from sanderling import ToolCallingAgent, tool
from support.play import says
model = ScriptedModel(["<code>final_answer(6 * 7)</code>"] * 2)
"""


@both
def test_all_public_names_can_be_had(platform: str) -> None:
    program = (
        "import sanderling, sanderling.sandbox as sandbox, sanderling.runtime as runtime\n"
        "import sanderling.models as models, sanderling.tools as tools, sanderling.cli\n"
        f"left = {_LINUX_ALONE}\n"
        "for module in (sanderling, sandbox, runtime, models, tools):\n"
        "    for name in module.__all__:\n"
        "        if name not in left: getattr(module, name)\n"
        "print('fine')"
    )
    assert said(platform, program) == "fine"


@both
@pytest.mark.parametrize("driver", ["sync", "async", "stopped"])
def test_agents_without_code_run(platform: str, driver: str) -> None:
    program = f"""{AGENT}
import asyncio
from sanderling import AgentInterruptedError

@tool
def add(a: int, b: int) -> int:
    '''Adds.

    Args:
        a: One.
        b: The other.
    '''
    if {driver!r} == "stopped":
        agent.interrupt()
    return a + b

calls = says("", ("add", {{"a": 1, "b": 2}}), ("add", {{"a": 3, "b": 4}}))
model = ScriptedModel([calls, says("", ("final_answer", {{"answer": 42}}))])
agent = ToolCallingAgent([add], model, verbosity_level=LogLevel.OFF)
try:
    print(asyncio.run(agent.arun("Go.")) if {driver!r} == "async" else agent.run("Go."))
except AgentInterruptedError:
    print("stopped")
"""
    assert said(platform, program) == ("stopped" if driver == "stopped" else "42")


@both
def test_the_refusal_names_two_commands(platform: str) -> None:
    program = f"""{AGENT}
try:
    with CodeAgent([], model, verbosity_level=LogLevel.OFF) as agent:
        agent.run("Go.")
except SandboxUnavailable as error:
    print(error)
"""
    told = said(platform, program)
    commands = {
        "darwin": ("`brew install --cask docker`", "`pip install deno=="),
        "win32": ("`wsl --install`", "`pip install sanderling`"),
    }
    for command in commands[platform]:
        assert command in told


@both
def test_a_locked_process_is_refused_at_once(platform: str) -> None:
    program = f"""{AGENT}
try:
    CodeAgent([], model, executor_type="local")
except SandboxUnavailable as error:
    print(error)
"""
    assert 'executor_type="auto"' in said(platform, program)


@both
def test_the_checkup_tells_what_is_missing(platform: str) -> None:
    program = (
        "from sanderling.sandbox import check_up\n"
        "found = check_up()\n"
        "print(found.sound, found.refusal, found.walls[0].remedy)"
    )
    told = said(platform, program)
    assert told.startswith("False")
    assert 'executor_type="auto"' in told


def test_on_linux_nothing_changes() -> None:
    program = """
from sanderling import CodeAgent, ScriptedModel
print(CodeAgent([], ScriptedModel([])).executor_type)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "local"
