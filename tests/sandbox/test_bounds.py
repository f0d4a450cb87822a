"""What a sandbox may make its host hold: calls under way, and replies that nothing reads.

Each case has a process of its own for host, whose memory is measured.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PATIENCE = 90.0  # seconds
MOST_MEMORY = 300  # MB, of which a host takes 30 to 60 anyway
HOST = """
import asyncio, sys, threading
from pathlib import Path
from sanderling import CodeAgent, LogLevel, ScriptedModel, tool
from sanderling.errors import SandboxError
from sanderling.sandbox import LocalPythonExecutor

FORGE = '''
import json, os, struct, sys
frame = sys._getframe()
while frame.f_code.co_name != "_execute": frame = frame.f_back
step = frame.f_locals["number"]
def forge(number, data=None, alone=False):
    fields = {"t": "call", "b": [], "id": number, "step": step, "name": "work", "kwargs": {},
              "alone": alone}
    args = "[]" if data is None else f'["{data}"]'
    text = f'{json.dumps(fields)[:-1]}, "args": {args}}}'.encode()
    frame = memoryview(struct.pack("<II", len(text), 0) + text)
    while frame: frame = frame[os.write(3, frame):]
'''

def executor(code, work, seconds):
    own = {"work": work}
    with LocalPythonExecutor(["*"], additional_functions=own, timeout_seconds=seconds) as python:
        try: return python(FORGE + code).output
        except SandboxError as error: return type(error).__name__

def agent(code, work, seconds):
    return agent_of(code, work, seconds, lambda made: made.run("Go."))

def async_agent(code, work, seconds):
    return agent_of(code, work, seconds, lambda made: asyncio.run(made.arun("Go.")))

def agent_of(code, work, seconds, run):
    model = ScriptedModel([f"<code>{FORGE}{code}</code>"] * 2)
    made = CodeAgent([tool(work)], model, additional_authorized_imports=["*"], max_steps=1,
                     executor_kwargs={"timeout_seconds": seconds}, verbosity_level=LogLevel.OFF)
    with made:
        run(made)
        step = made.memory.steps[1]
        return type(step.error.__cause__).__name__ if step.error else step.action_output

def told(*what):
    # ru_maxrss would be that of the process that started this one, if it is larger.
    status = Path("/proc/self/status").read_text()
    print(int(status.partition("VmHWM:")[2].split()[0]) >> 10, *what)
"""
UNREAD = """
def work() -> str:
    '''Works.'''
    return "x" * (1 << 20)
told({driver}("for number in range(1, 701): forge(number, alone=True)", work, 2))
"""
NEVER_READ = """
def work() -> str:
    '''Works.'''
    return "x" * (1 << 20)
told({driver}('''
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
for number in range(1, 61): forge(number)
time.sleep(600)
''', work, 2))
"""
WAITING = """
go_on, first = threading.Event(), threading.Lock()
def work(data: str) -> None:
    '''Works.

    Args:
        data: Anything.
    '''
    if first.acquire(blocking=False):
        go_on.wait(3)  # by then the host has read all that it reads
        go_on.set()
    go_on.wait()
told({driver}('''
data = "x" * (8 << 20)
for number in range(1, 61): forge(number, data)
"all written"
''', work, 60))
"""

drivers = pytest.mark.parametrize("driver", ["executor", "agent", "async_agent"])


def result(case: str, driver: str) -> str:
    """Runs a case; returns what came of the step, if the memory of its host was bounded."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HOST + case.replace("{driver}", driver)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    memory, _, told = done.stdout.strip().partition(" ")
    assert int(memory) < MOST_MEMORY
    return told


@drivers
def test_replies_that_are_not_read(driver: str) -> None:
    assert result(UNREAD, driver) in ("SandboxTimeout", "SandboxViolation")


@drivers
def test_a_sandbox_that_never_reads_is_ended_by_the_clock(driver: str) -> None:
    assert result(NEVER_READ, driver) in ("SandboxTimeout", "SandboxViolation")


@drivers
def test_calls_that_wait_for_a_slow_tool(driver: str) -> None:
    assert result(WAITING, driver) == "all written"
