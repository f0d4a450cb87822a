"""Ctrl-C with several tools under way: neither the exception nor the process waits for them."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PATIENCE = 30.0  # far below the hour that the tools take

PROGRAM = """
import asyncio, os, signal, sys, threading
from sanderling import AgentInterruptedError, CodeAgent, LogLevel, ScriptedModel, ToolCallingAgent
from sanderling import LocalPythonExecutor, tool
from support.play import says

agent_kind, driver, ending = sys.argv[1:]
begun = threading.Barrier(3)

@tool
def hang(n: int) -> int:
    '''Never returns.

    Args:
        n: A number.
    '''
    begun.wait()
    threading.Event().wait(3600)
    return n

def end():
    begun.wait()
    if ending == "ctrl-c":
        os.write(1, b"begun\\n")  # a thread that prints may keep its lock at the end
    else:
        agent.interrupt()

silent = {"verbosity_level": LogLevel.OFF}
if agent_kind == "calls":
    model = ScriptedModel([says("", ("hang", {"n": 1}), ("hang", {"n": 2}))])
    agent = ToolCallingAgent([hang], model, **silent)
elif agent_kind == "code":
    model = ScriptedModel(["<code>parallel(hang, [1, 2])</code>"])
    agent = CodeAgent([hang], model, **silent)
elif agent_kind == "managed":
    inner = says("", ("hang", {"n": 1}), ("hang", {"n": 2}))
    worker = ToolCallingAgent([hang], ScriptedModel([inner, says("", ("never", {}))]),
                              name="worker", description="Works.", **silent)
    calls = [("worker", {"task": "Go."}), ("final_answer", {"answer": 1})]
    model = ScriptedModel([says("", *calls)])
    agent = ToolCallingAgent([], model, managed_agents=[worker], **silent)

threading.Thread(target=end, daemon=True).start()
try:
    if agent_kind == "executor":
        LocalPythonExecutor(additional_functions={"hang": hang})("parallel(hang, [1, 2])")
    elif driver == "sync":
        agent.run("Go.")
    else:
        asyncio.run(agent.arun("Go."))
except (KeyboardInterrupt, AgentInterruptedError) as error:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(type(error).__name__)
"""


def ended(kind: str, driver: str, ending: str) -> str:
    """Returns what the program says at its end."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, kind, driver, ending],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    ) as process:
        try:
            if ending == "ctrl-c":
                assert process.stdout is not None
                assert process.stdout.readline() == "begun\n", process.communicate()
                _press(process)
            said, complaints = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0, complaints
    return said.strip()


def _press(process: subprocess.Popen[str]) -> None:
    """Presses Ctrl-C, again after a while: Python forgets one that comes just before a wait."""
    for _ in range(4):
        process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE / 4)
        except subprocess.TimeoutExpired:
            continue
        return


@pytest.mark.parametrize("driver", ["sync", "async"])
@pytest.mark.parametrize("kind", ["calls", "code", "managed"])
def test_ctrl_c_waits_for_no_tool(kind: str, driver: str) -> None:
    assert ended(kind, driver, "ctrl-c") == "KeyboardInterrupt"


@pytest.mark.parametrize("driver", ["sync", "async"])
def test_no_process_waits_for_tools_of_a_run_that_was_interrupted(driver: str) -> None:
    assert ended("calls", driver, "interrupt") == "AgentInterruptedError"


def test_ctrl_c_waits_for_no_function_of_an_executor() -> None:
    assert ended("executor", "sync", "ctrl-c") == "KeyboardInterrupt"
