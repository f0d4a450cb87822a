"""What the model reads when its code fails."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from sanderling.errors import InterpreterError
from support.sandbox import error, interpreter, run, value

if TYPE_CHECKING:
    from sanderling.sandbox import Interpreter


def test_a_traceback_shows_the_models_own_lines(python: Interpreter) -> None:
    value(python, "import statistics\ndef inner(data):\n    return statistics.mean(data)")
    told = error(python, "def outer():\n    return inner([])  # here\nouter()")
    lines = told.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "statistics.StatisticsError: mean requires at least one data point"
    assert [line.strip() for line in lines if "step" not in line and "^" not in line][1:-1] == [
        "outer()",
        "return inner([])  # here",
        "return statistics.mean(data)",
    ]
    assert "kernel" not in told
    assert sys.prefix not in told


def test_a_caret_points_at_the_place(python: Interpreter) -> None:
    lines = error(python, "d = {'a': {'b': None}}\nx = d['a']['b']['c']").splitlines()
    place = lines.index("    x = d['a']['b']['c']")
    assert lines[place + 1] == "        ~~~~~~~~~~~^^^^^"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x = = 1", "    x = = 1\n        ^\nSyntaxError: invalid syntax"),
        ("def f():\nreturn 1", "IndentationError: expected an indented block"),
        ("return 1", "SyntaxError: 'return' outside function"),
        ("print('a", "SyntaxError: unterminated string literal"),
        ("a\x00b", "null bytes"),
        ("(" * 500 + ")" * 500, "too many nested parentheses"),
        ("nonlocal x", "SyntaxError: nonlocal declaration not allowed"),
    ],
)
def test_code_that_does_not_parse(python: Interpreter, code: str, told: str) -> None:
    assert told in error(python, code)
    assert value(python, "1") == 1


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "my_variable = 1\nmy_variabel",
            "'my_variabel' is not defined. Did you mean: 'my_variable'?",
        ),
        ("def f():\n    total = 1\n    return totl\nf()", "Did you mean: 'total'?"),
        ("prnt(1)", "Did you mean: 'print'?"),
        ("'a'.uper()", "'str' object has no attribute 'uper'. Did you mean: 'upper'?"),
    ],
)
def test_a_misspelt_name_is_put_right(python: Interpreter, code: str, told: str) -> None:
    assert told in error(python, code)


def test_causes_are_shown(python: Interpreter) -> None:
    told = error(
        python,
        "try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('outer') from e",
    )
    places = [told.index(part) for part in ("KeyError: 'k'", "direct cause", "ValueError: outer")]
    assert places == sorted(places)
    told = error(python, "raise ValueError('outer') from KeyError('never raised')")
    assert told.startswith("KeyError: 'never raised'\n\nThe above")
    assert told.count("Traceback") == 1


def test_a_group_shows_its_parts(python: Interpreter) -> None:
    told = error(python, "raise ExceptionGroup('all', [ValueError('a'), TypeError('b')])")
    assert "ValueError: a" in told
    assert "| Traceback" not in told
    assert "TypeError: b" in told


def test_an_endless_recursion_is_told_briefly(python: Interpreter) -> None:
    told = error(python, "def f(): return f()\nf()")
    assert "RecursionError: maximum recursion depth exceeded" in told
    assert len(told) < 2_000


@pytest.mark.parametrize(
    "code",
    [
        "class E(Exception):\n    def __str__(self): raise ValueError('no')\nraise E",
        "class E(Exception):\n    def __str__(self): return 5\nraise E",
        "class E(Exception):\n    __module__ = None\nraise E",
        "class E(Exception):\n    def __getattr__(self, name): raise SystemExit\nraise E",
        "raise BaseException('base')",
        "raise GeneratorExit",
        "raise KeyboardInterrupt('mine')",
        "import sys_is_not_there",
        "exit(3)",
        "raise SystemExit('bye')",
    ],
)
def test_odd_exceptions_end_the_step_and_no_more(python: Interpreter, code: str) -> None:
    value(python, "still_here = 1")
    assert isinstance(run(python, code).error, InterpreterError)
    assert value(python, "still_here") == 1


def test_odd_values_are_shown_or_said_to_be_odd(python: Interpreter) -> None:
    result = run(python, "class V:\n    def __repr__(self): raise ValueError\nV()")
    assert result.error is None
    assert "whose str() raised ValueError" in result.text
    assert run(python, "[1, 2]").text == "[1, 2]"
    assert run(python, "print()").text == "None"


def test_the_text_of_a_large_value_is_cut(python: Interpreter) -> None:
    result = run(python, "'ab' * 500_000")
    assert len(result.text) < 110_000
    assert "characters cut out here" in result.text
    assert result.output == "ab" * 500_000
    assert len(run(python, "b'x' * 10_000_000").text) < 110_000


def test_a_large_error_is_cut(python: Interpreter) -> None:
    told = error(python, "raise ValueError('x' * 10_000_000)")
    assert len(told) < 110_000
    assert "characters cut out here" in told


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("import socket\nsocket.socket()", "network is off"),
        ("import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9')", "network is off"),
        ("import subprocess\nsubprocess.run(['true'])", "programs cannot be started"),
        ("import os\nos.fork()", "no process can be started"),
        ("import os\nos.execv('/bin/true', ['true'])", "programs cannot be started"),
        ("import os\nos.kill(1, 0)", "other processes are out of reach"),
        ("import os\nos.setuid(0)", "does not allow this operation"),
        ("open('/etc/shadow')", "only files in the work folder"),
        ("open('/usr/lib/new', 'w')", "only files in the work folder"),
        ("x = bytearray(1 << 40)", "memory of the sandbox is used up"),
        ("input('Your name? ')", "nobody types into the sandbox"),
        ("breakpoint()", "nobody types into the sandbox"),
        ("x = 1\n!pip install numpy", "no commands of a shell or a notebook"),
        ("%matplotlib inline\nx = 1", "no commands of a shell or a notebook"),
    ],
)
def test_a_wall_is_explained(code: str, hint: str) -> None:
    with interpreter(additional_authorized_imports=["*"]) as python:
        told = error(python, code)
        assert hint in told.rpartition("Hint: ")[2]
        assert value(python, "1") == 1


def test_ordinary_errors_have_no_hint() -> None:
    with interpreter() as python:
        assert "Hint" not in error(python, "open('not_there.txt', 'x').close(); open('.', 'w')")
        assert "Hint" not in error(python, "1 / 0")
        assert "Hint" not in error(python, "raise EOFError('of a file')")
        assert "Hint" not in error(python, "x = 1 %")
    with interpreter("inprocess") as python:
        assert "Hint" not in error(python, "open('/not_there.txt')")


@pytest.mark.parametrize("leave", ["quit()", "exit(3)"])
def test_who_leaves_a_step_leaves_no_input_closed(leave: str) -> None:
    with interpreter() as python:
        assert "SystemExit" in error(python, leave)
        assert "nobody types" in error(python, "input()")
        assert "len(obj, /)" in run(python, "help(len)").logs


def test_what_is_no_text_can_be_sent_and_saved() -> None:
    with interpreter() as python:
        result = run(python, "print('a\\udc80', chr(0xd800))\n'b\\udc80'")
        assert result.logs == "a\ufffd \ufffd\n"
        assert result.text == "b\ufffd"
        assert result.output == "b\udc80"
        assert error(python, "raise ValueError('c\\udc80')").endswith("ValueError: c\ufffd")


def test_a_tool_that_is_hidden_by_a_variable_is_pointed_at() -> None:
    tools = {"search": lambda text: text}
    with interpreter(tools=tools) as python:
        assert value(python, "search = search('a')\nsearch", tools) == "a"
        told = error(python, "search = 1\nsearch('b')", tools)
        assert "hide the tools search in this step" in told
        assert value(python, "search('c')", tools) == "c"


def test_an_error_in_a_thread_is_printed(python: Interpreter) -> None:
    kind = "local" if python.layers else "inprocess"
    if kind == "inprocess":
        pytest.skip("threads of this process report where its owner wants them to")
    with interpreter(additional_authorized_imports=["threading"]) as made:
        result = run(
            made,
            "import threading\n"
            "def work(): return 1 / 0\n"
            "thread = threading.Thread(target=work, name='mine'); thread.start(); thread.join()",
        )
    assert result.error is None
    assert "Exception in mine:" in result.logs
    assert "def work(): return 1 / 0" in result.logs
    assert "threading.py" not in result.logs
