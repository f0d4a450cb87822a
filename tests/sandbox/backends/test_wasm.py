"""Pyodide under Deno: what it can do, what it lacks, and how it ends."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sanderling.errors import InterpreterError, SandboxCrashed, SandboxTimeout, SandboxUnavailable
from sanderling.sandbox import Interpreter, Printed, create_interpreter
from support.sandbox import Tools, ainterpreter, arun, error, interpreter, run, specs, value
from support.wasm import denos, require_wasm

ANY: dict[str, Any] = {"additional_authorized_imports": ["*"]}
GO_ON = "while True:\n    try:\n        for _ in iter(int, 1): pass\n    except BaseException: pass"


@pytest.fixture(scope="module", autouse=True)
def _there() -> None:
    require_wasm()


@pytest.fixture(scope="module")
def python() -> Iterator[Interpreter]:
    """One interpreter for most cases: it takes seconds to start."""
    with interpreter("wasm", timeout_seconds=30, **ANY) as made:
        yield made


@pytest.fixture(scope="module")
def hasty() -> Iterator[Interpreter]:
    """One with little patience."""
    with interpreter("wasm", timeout_seconds=0.5, **ANY) as made:
        yield made


# What it can do


def test_it_is_cpython_in_webassembly(python: Interpreter) -> None:
    assert value(python, "import sys; sys.implementation.name, sys.platform") == (
        "cpython",
        "emscripten",
    )
    assert python.layers["permissions"] == "none"
    assert str(python.layers["deno"]).startswith("2.")


def test_steps_share_their_variables(python: Interpreter) -> None:
    result = run(python, "x = 20\nprint('said')\nx + 1")
    assert (result.output, result.logs) == (21, "said\n")
    assert value(python, "x") == 20
    told = error(python, "y = 1\nx / 0")
    assert "line 2" in told
    assert "ZeroDivisionError" in told


def test_tools_are_called_back(python: Interpreter) -> None:
    tools: Tools = {"double": lambda n: 2 * n, "refuse": lambda: 1 / 0}
    python.set_tools(specs(tools))
    code = "import datetime\n[double(n) for n in range(100)], double((1, {2}, b'3'))"
    expected = ([2 * n for n in range(100)], (1, {2}, b"3", 1, {2}, b"3"))
    assert value(python, code, tools) == expected
    assert "ZeroDivisionError: division by zero" in error(python, "refuse()", tools)


def test_large_values_cross(python: Interpreter) -> None:
    data = os.urandom(10_000_000)
    python.set_variables({"data": data})
    assert value(python, "data[::-1]") == data[::-1]


def test_coroutines_run(python: Interpreter) -> None:
    tools = {"double": lambda n: 2 * n}
    python.set_tools(specs(tools))
    code = (
        "import asyncio, time\n"
        "async def later(n):\n    await asyncio.sleep(0.2)\n    return double(n)\n"
        "began = time.monotonic()\n"
        "got = await asyncio.gather(later(1), later(2), later(3))\n"
        "got, time.monotonic() - began < 0.55"
    )
    assert value(python, code, tools) == ([2, 4, 6], True)
    assert value(python, "asyncio.run(later(4))", tools) == 8


def test_it_can_be_driven_under_asyncio() -> None:
    tools = {"double": lambda n: 2 * n}

    async def main() -> object:
        async with ainterpreter("wasm", tools) as python:
            return (await arun(python, "double(21)", tools)).output

    assert asyncio.run(main()) == 42


def test_files_are_kept_from_step_to_step(python: Interpreter) -> None:
    assert value(python, "open('notes', 'w').write('x' * 1000)") == 1000
    assert value(python, "len(open('/work/notes').read())") == 1000


def test_libraries_that_are_part_of_python_are_there(python: Interpreter) -> None:
    code = (
        "import bz2, ctypes, decimal, hashlib, lzma, sqlite3, tempfile, zlib\n"
        "db = sqlite3.connect('db'); db.execute('create table t (x)')\n"
        "with tempfile.NamedTemporaryFile() as f: f.write(b'x')\n"
        "len(lzma.compress(bytes(1000))) < 100"
    )
    assert value(python, code) is True


# What it lacks


@pytest.mark.parametrize(
    "code",
    [
        "import threading; threading.Thread(target=print).start()",
        "from concurrent.futures import ThreadPoolExecutor; ThreadPoolExecutor().submit(print)",
        "import asyncio; await asyncio.to_thread(print)",
    ],
)
def test_it_says_that_there_are_no_threads(python: Interpreter, code: str) -> None:
    assert "can't start new thread: there are none here" in error(python, code)


def test_nobody_answers_on_stdin(python: Interpreter) -> None:
    assert "EOFError" in error(python, "input()")
    code = "import os, js; js.console.log('x'); os.write(1, b'x'), os.write(2, b'x'), os.read(0, 9)"
    assert value(python, code) == (1, 1, b"")


# Ends


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import asyncio; await asyncio.sleep(60)",
        "import asyncio; await asyncio.Event().wait()",
    ],
)
def test_an_overdue_step_is_stopped_and_keeps_its_state(hasty: Interpreter, code: str) -> None:
    value(hasty, "kept = 1")
    result = run(hasty, f"print('said')\n{code}")
    assert isinstance(result.error, SandboxTimeout)
    assert "Variables keep what they had" in str(result.error)
    assert result.logs == "said\n"
    assert value(hasty, "kept") == 1


def test_a_step_that_cannot_be_stopped_is_killed(hasty: Interpreter) -> None:
    tools = {"add": lambda a, b: a + b}
    hasty.set_tools(specs(tools))
    hasty.set_variables({"sent": 5})
    value(hasty, "gone = open('gone', 'w').write('x')")
    result = run(hasty, GO_ON)
    assert isinstance(result.error, SandboxTimeout)
    assert "all variables of earlier steps are gone; so is the work folder" in str(result.error)
    assert "NameError" in error(hasty, "gone")
    assert "FileNotFoundError" in error(hasty, "open('gone')")
    assert value(hasty, "add(sent, 1)", tools) == 6


def test_an_interrupt_ends_the_step(python: Interpreter) -> None:
    execution = python.execute("kept = 1\nprint()\nimport time; time.sleep(60)")
    assert next(execution) == Printed("\n")
    python.interrupt()
    with pytest.raises(StopIteration) as ended:
        next(execution)
    assert isinstance(ended.value.value.error, InterpreterError)
    assert value(python, "kept") == 1


def test_sleeping_takes_no_processor_time(python: Interpreter) -> None:
    (pid,) = denos()[:1]
    value(python, "import time")

    def used() -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = used()
    value(python, "time.sleep(1)")
    assert (used() - before) / os.sysconf("SC_CLK_TCK") < 0.5


def test_code_that_ends_its_interpreter() -> None:
    with interpreter("wasm", **ANY) as python:
        result = run(python, "print('said')\nimport os; os._exit(7)")
        assert isinstance(result.error, SandboxCrashed)
        assert "The interpreter died (exit status 7)" in str(result.error)
        assert result.logs == "said\n"
        assert value(python, "1") == 1


def test_nothing_is_left_behind() -> None:
    before = denos()
    with interpreter("wasm", timeout_seconds=0.5) as python:
        run(python, GO_ON)
        assert denos() == before
        python.open()
        assert len(denos()) == len(before) + 1
    assert denos() == before


HOST = """
import sys
from sanderling.sandbox import create_interpreter
python = create_interpreter("wasm", timeout_seconds=None)
GO_ON = "while True:\\n  try:\\n    while True: pass\\n  except BaseException: pass"
for code in ["print('busy')\\n" + GO_ON] if sys.argv[1] == "busy" else ["1"]:
    for event in python.execute(code): print("ready", flush=True)
print("ready", flush=True)
input()
"""


@pytest.mark.parametrize("mode", ["idle", "busy"])
def test_no_process_outlives_a_host_that_is_killed(mode: str) -> None:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with host:
        assert host.stdout is not None
        assert host.stdout.readline()
        (pid,) = denos(host.pid)
        watch = os.pidfd_open(int(pid))
        try:
            host.kill()
            assert select.select([watch], [], [], 20)[0], "Deno lives on"
        finally:
            os.close(watch)


# Memory


def test_memory_is_limited() -> None:
    with interpreter("wasm", timeout_seconds=30, memory_bytes=256 << 20, **ANY) as python:
        told = error(python, "kept = 1\nx = [bytearray(10 << 20) for _ in range(100)]")
        assert "MemoryError" in told
        assert "memory of the sandbox is used up" in told
        assert value(python, "kept") == 1


def test_memory_outside_of_python_is_limited(python: Interpreter) -> None:
    code = "[js.ArrayBuffer.new(1 << 30) for _ in range(4)]"
    assert "allocation failed" in error(python, f"import js\n{code}")


# What is missing


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for setting in ("deno", "pyodide"):
        options: dict[str, Any] = {setting: tmp_path / "none"}
        python = create_interpreter("wasm", **options)
        with pytest.raises(SandboxUnavailable) as told:
            python.open()
        assert str(tmp_path / "none") in str(told.value)
        assert "pip install deno==" in str(told.value)
        assert f"npm install --prefix {tmp_path}/sanderling pyodide@" in str(told.value)


def test_pyodide_is_looked_for_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SANDERLING_PYODIDE", raising=False)
    with interpreter("wasm") as python, pytest.raises(SandboxUnavailable) as told:
        python.open()
    assert f"no Pyodide in {tmp_path}/sanderling/node_modules/pyodide" in str(told.value)


def test_a_broken_pyodide_tells_what_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "é #%20?"
    for path in (folder, tmp_path / "a,b"):
        path.mkdir()
        text = "export function loadPyodide() { throw new Error('torn') }"
        (path / "pyodide.mjs").write_text(text)
    with interpreter("wasm", pyodide=folder) as python, pytest.raises(SandboxUnavailable) as told:
        python.open()
    assert "Pyodide: Error: torn" in str(told.value)
    comma = tmp_path / "a,b"
    with interpreter("wasm", pyodide=comma) as python, pytest.raises(SandboxUnavailable) as told:
        python.open()
    assert "comma" in str(told.value)


def test_what_is_no_deno_is_refused() -> None:
    with interpreter("wasm", deno="/bin/true") as python, pytest.raises(SandboxUnavailable):
        python.open()
