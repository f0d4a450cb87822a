from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from sanderling.errors import InterpreterError, SandboxTimeout
from sanderling.sandbox import CodeOutput, HostObject, LocalPythonExecutor, PythonExecutor
from support.tools import Gate


def test_it_runs_code_by_itself() -> None:
    with LocalPythonExecutor(["numpy"]) as python:
        assert python("x = 20\nprint('hi')\nx + 1") == CodeOutput(21, "hi\n", is_final_answer=False)
        output, logs, is_final = python("import numpy\nnumpy.arange(3).sum()")
        assert (output, logs, is_final) == (3, "", False)
        assert python("x").output == 20


@pytest.mark.parametrize(
    ("code", "told"), [(None, "not NoneType$"), (5, "not int$"), (b"5", "not bytes; decode")]
)
def test_what_is_no_text_is_no_code(code: Any, told: str) -> None:
    with LocalPythonExecutor() as python, pytest.raises(TypeError, match=told):
        python(code)


def test_tools_run_in_the_calling_thread() -> None:
    here = threading.get_ident()
    with LocalPythonExecutor(additional_functions={"always": threading.get_ident}) as python:
        python.send_tools({"mine": lambda: threading.get_ident()})
        assert python("mine(), always()").output == (here, here)
        python.send_tools({})
        assert python("always()").output == here
        with pytest.raises(InterpreterError, match="NameError"):
            python("mine()")


def test_calls_from_threads_of_the_code_run_together() -> None:
    meeting = threading.Barrier(4, timeout=20)

    def meet() -> int:
        """Waits for the others."""
        return meeting.wait()

    with LocalPythonExecutor(["concurrent"], additional_functions={"meet": meet}) as python:
        code = (
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(4) as pool: got = [f.result() for f in "
            "[pool.submit(meet) for _ in range(4)]]\n"
            "sorted(got), meet.__doc__"
        )
        assert python(code).output == ([0, 1, 2, 3], "Waits for the others.")


def test_calls_that_have_not_begun_end_with_their_step(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    monkeypatch.setattr("sanderling.sandbox._serving._TOGETHER", 1)
    with LocalPythonExecutor(additional_functions={"hold": gate.hold}) as python:
        python("calls = [hold._start(n) for n in range(3)]")
        assert gate.begun == [0]
        assert python("1 + 1").output == 2


def test_variables_can_come_with_the_code() -> None:
    with LocalPythonExecutor() as python:
        python.send_variables({"a": 1})
        assert python("a + b", {"b": 2}).output == 3
        assert python("b").output == 2


def test_the_final_answer_is_told() -> None:
    with LocalPythonExecutor() as python:
        python.send_tools({"final_answer": lambda answer: answer * 2})
        assert python("print('x')\nfinal_answer(21)\nprint('y')") == (42, "x\n", True)


def test_faults_are_raised_with_what_was_printed() -> None:
    with LocalPythonExecutor(timeout_seconds=0.3) as python:
        with pytest.raises(InterpreterError, match="ZeroDivisionError") as caught:
            python("print('before')\n1 / 0")
        assert caught.value.logs == "before\n"
        with pytest.raises(SandboxTimeout) as late:
            python("print('before')\nwhile True: pass")
        assert late.value.logs == "before\n"
        python.send_tools({"bad": lambda: [].pop()})
        with pytest.raises(InterpreterError, match="\nIndexError: pop from empty list"):
            python("bad()")
        assert python("1").output == 1


class Client:
    def __repr__(self) -> str:
        return "sk-SECRET"

    def ask(self, text: str) -> str:
        return text.upper()


def test_members_of_objects_are_called_and_the_objects_not_shown() -> None:
    found: dict[object, object] = {}
    with LocalPythonExecutor(additional_functions={"look": lambda key: found[key]}) as python:
        python.send_variables({"client": HostObject(Client(), ["ask"])})
        assert python("client.ask('a') + ''.join(parallel(client.ask, 'bc'))").output == "ABC"
        with pytest.raises(InterpreterError, match="KeyError: <Client object of the host>") as told:
            python("look(client)")
    assert "SECRET" not in str(told.value)


def test_an_error_does_not_steer_the_terminal() -> None:
    with LocalPythonExecutor() as python, pytest.raises(InterpreterError) as told:
        python("raise ValueError('\\x1b]0;owned\\x07')")
    assert "ValueError: \\x1b]0;owned\\x07" in str(told.value)
    assert "\x1b" not in str(told.value)


def test_cleanup_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    python = LocalPythonExecutor()
    python("open('file', 'w').close()")
    assert len(list(tmp_path.rglob("file"))) == 1
    python.cleanup()
    python.cleanup()
    assert list(tmp_path.iterdir()) == []


def test_an_executor_can_be_written_by_anybody() -> None:
    class Echo(PythonExecutor):
        def send_tools(self, tools: object) -> None:
            del tools

        def send_variables(self, variables: object) -> None:
            del variables

        def __call__(self, code: str, state: object = None) -> CodeOutput:
            return CodeOutput(code, "", is_final_answer=False)

    echo = Echo()
    assert echo("1").output == "1"
    echo.cleanup()
