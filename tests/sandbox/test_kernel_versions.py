"""The kernel is one file, and runs in any CPython from 3.9 on, whatever the host is."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sanderling.sandbox import Interpreter, kernel
from sanderling.sandbox._limits import Limits, Usage
from sanderling.sandbox._remote import RemoteInterpreter
from support.sandbox import Tools, error, run, specs, value

PROGRAM = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("kernel", sys.argv[1])
kernel = importlib.util.module_from_spec(spec)
sys.modules["kernel"] = kernel
spec.loader.exec_module(kernel)
kernel.serve(int(sys.argv[2]), int(sys.argv[2]), lambda: {"walls": "none: this is a test"})
"""
TOOLS: Tools = {"add": lambda a, b=2: a + b, "final_answer": lambda answer: answer}


class Unlocked:
    """A kernel without walls, in another Python; it is a backend and its only link."""

    name = "unlocked"
    limits = Limits()
    files_remain = True
    is_warm = True
    grace = 1.0
    ways_out = ""

    def __init__(self, python: str) -> None:
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self.socket: socket.socket

    def start(self) -> Unlocked:
        self.socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [self._python, "-I", "-c", PROGRAM, kernel.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
            )
        return self

    def interrupt(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> str:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        return "killed"

    def usage(self, link: object) -> Usage:
        return Usage()

    def close(self) -> None:
        self.kill()


def pythons() -> Iterator[str]:
    for minor in range(9, 15):
        name = f"python3.{minor}"
        roots = sorted(Path("~/.pyenv/versions").expanduser().glob(f"3.{minor}.*/bin/{name}"))
        yield str(roots[-1]) if roots else shutil.which(name) or name


@pytest.fixture(params=pythons(), ids=os.path.basename, scope="module")
def python(request: pytest.FixtureRequest) -> Iterator[Interpreter]:
    if not Path(request.param).exists():
        pytest.skip(f"there is no {request.param} here")
    made = RemoteInterpreter(Unlocked(request.param), imports=["sys"], timeout_seconds=2)
    made.set_tools(specs(TOOLS))
    yield made
    made.close()


def test_it_runs_steps(python: Interpreter) -> None:
    python.set_variables({"given": {1: (2.5, b"x", 2**70)}})
    assert value(python, "import sys\nprint('hi')\n[given, sys.version_info[0]]") == [
        {1: (2.5, b"x", 2**70)},
        3,
    ]
    assert run(python, "print('hi')").logs == "hi\n"


def test_it_calls_tools(python: Interpreter) -> None:
    assert value(python, "add(1), add(b=5, a=5)", TOOLS) == (3, 10)
    assert "missing 1 required positional argument: 'a'" in error(python, "add()", TOOLS)
    assert run(python, "final_answer(7)", TOOLS).is_final_answer


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def f():\n    return 1 / 0\nf()", "    return 1 / 0"),
        ("x = = 1", "    x = = 1\n        ^\nSyntaxError: invalid syntax"),
        ("import os", "ImportNotAllowed: Import of os is not allowed"),
        ("raise ValueError('a') from KeyError('b')", "KeyError: 'b'\n\nThe above exception"),
        ("while True: pass", "KeyboardInterrupt"),
    ],
)
def test_it_explains_errors(python: Interpreter, code: str, told: str) -> None:
    message = error(python, code)
    assert told in message
    assert "kernel" not in message


def test_it_awaits(python: Interpreter) -> None:
    assert value(python, "async def f(): return 5\nawait f()") == 5
