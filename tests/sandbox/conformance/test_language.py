"""Steps of code: what stays, what is printed, what comes out, what the model reads of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from sanderling.errors import InterpreterError
from sanderling.sandbox import BASE_BUILTIN_MODULES

if TYPE_CHECKING:
    from support.places import Driven


def test_variables_stay(python: Driven) -> None:
    python.value("x = 1")
    python.value("x += 1")
    assert python.value("x") == 2


def test_functions_and_classes_stay(python: Driven) -> None:
    python.value("def double(n): return n * 2\nclass Thing:\n    size = 4")
    python.value("class More(Thing):\n    def grown(self): return double(super().size)\n")
    assert python.value("More().grown()") == 8


def test_imports_stay(python: Driven) -> None:
    python.value("import math as m")
    assert python.value("m.floor(2.5)") == 2


def test_a_function_sees_what_was_defined_after_it(python: Driven) -> None:
    python.value("def get(): return defined_later")
    python.value("defined_later = 5")
    assert python.value("get()") == 5


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("x = 5", 5),
        ("x = y = [1]", [1]),
        ("x = 4\nx += 1", 5),
        ("x: int = 9", 9),
        ("x: int", None),
        ("a, *b = 1, 2, 3", (1, 2, 3)),
        ("d = {}\nd['k'] = 3", 3),
        ("d = {'k': 3}\nd['k'] += 1", 4),
        ("d = [{'k': 3}]\nd[0]['k'] += 1", None),  # to read it again could do something
        ("x = 1\nif x: y = 7\nelse: y = 8", 7),
        ("x = 0\nif x: y = 7\nelif not x: y = 8", 8),
        ("x = 0\nif x: y = 7", None),
        ("for n in range(4): n * 2", 6),
        ("for n in range(4): m = n\nelse: m = 'else'", "else"),
        ("for n in range(4):\n    m = n\n    print(m)", None),
        ("n = 0\nwhile n < 3: n += 1", 3),
        ("n = 0\nfor i in range(3):\n    for j in range(2): n += i * j", 3),
        ("n = 7\nfor i in []: n = i", 7),
        ("for i in []: never = i", None),
        ("import io\nwith io.StringIO('a b') as f:\n    for n in f: words = n.split()", ["a", "b"]),
        ("with open('f', 'w') as file:\n    n = file.write('abc')", 3),
        ("try:\n    x = int('a')\nexcept ValueError:\n    x = 1", 1),
        ("import math", None),
        ("pass", None),
        ("async def later(): return 4\nx = await later()", 4),
    ],
)
def test_the_value_of_a_step_is_that_of_its_last_statement(
    python: Driven, code: str, value: object
) -> None:
    result = python.run(code)
    assert (result.error, result.output, result.text) == (None, value, str(value))
    assert "<value>" not in python.value("list(globals())")


def test_the_value_of_a_definition_is_what_it_defines(python: Driven) -> None:
    assert python.run("def double(n):\n    return n * 2").text == "<function double>"
    assert python.run("class Thing: pass").text == "<class '__main__.Thing'>"
    assert python.value("double(2)") == 4


def test_an_error_of_a_last_assignment_points_at_its_part(python: Driven) -> None:
    told = python.error("x = [1]\nif x:\n    y = x[0] / 0")
    assert "line 3, in <module>\n    y = x[0] / 0\n" in told
    assert told.endswith("ZeroDivisionError: division by zero")


def test_the_text_of_a_value_has_no_address(python: Driven) -> None:
    assert python.run("x = [object(), len]").text == "[<object object>, <built-in function len>]"
    assert python.run("'<a at 0x12>'").text == "<a at 0x12>"


@pytest.mark.parametrize(
    ("code", "digits"),
    [("10**20000", "20,001"), ("10**20000 - 1", "20,000"), ("-(7**9999)", "8,451")],
)
def test_the_text_of_a_long_int_is_how_long_it_is(python: Driven, code: str, digits: str) -> None:
    assert python.run(code).text == f"<an int of {digits} digits>"


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("1 + 1", 2, "2"),
        ("", None, "None"),
        ("# nothing", None, "None"),
        ("'a'\n'b'", "b", "b"),
        ("x = 4\nx", 4, "4"),
        ("print('x')", None, "None"),
        ("[n ** 2 for n in range(3)];", [0, 1, 4], "[0, 1, 4]"),
    ],
)
def test_the_value_is_that_of_the_last_expression(
    python: Driven, code: str, value: object, text: str
) -> None:
    result = python.run(code)
    assert result.error is None
    assert (result.output, result.text) == (value, text)
    assert not result.is_final_answer


def test_await_works_at_the_top(python: Driven) -> None:
    code = (
        "import asyncio\n"
        "async def twice(n):\n    await asyncio.sleep(0)\n    return n * 2\n"
        "got = await asyncio.gather(twice(1), twice(2))\n"
        "[*got, await twice(3)]"
    )
    assert python.value(code) == [2, 4, 6]


def test_it_is_the_whole_language(python: Driven) -> None:
    code = (
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Point:\n    x: int\n    y: int = 0\n"
        "def count():\n"
        "    total = 0\n"
        "    def more():\n        nonlocal total\n        total += 1\n        return total\n"
        "    return more\n"
        "more = count(); more()\n"
        "match Point(3):\n    case Point(x=n, y=0): found = n\n"
        "first, *rest = (c for c in 'abc')\n"
        "f'{found!r:>3}', more(), rest, (n := 7) and n"
    )
    assert python.value(code) == ("  3", 2, ["b", "c"], 7)


def test_what_is_printed_is_captured_in_order(python: Driven) -> None:
    result = python.run("print('a', end='')\nprint('b', 3, sep='-')\nprint('é ☂')")
    assert result.logs == "ab-3\né ☂\n"
    assert python.run("1").logs == ""


def test_what_threads_print_is_captured(python: Driven) -> None:
    code = "import threading\nt = threading.Thread(target=print, args=('x',))\nt.start(); t.join()"
    assert python.run(code).logs == "x\n"


def test_what_was_printed_before_an_error_is_kept(python: Driven) -> None:
    result = python.run("print('before')\n1 / 0\nprint('after')")
    assert result.logs == "before\n"
    assert result.error is not None
    assert result.error.logs == "before\n"


def test_an_error_names_the_line(python: Driven) -> None:
    code = "def f(n):\n    return 1 / n\n\nx = 3\nf(0)"
    result = python.run(code)
    assert isinstance(result.error, InterpreterError)
    told = str(result.error)
    assert told.startswith("Traceback (most recent call last):\n")
    assert ", line 5, in <module>\n    f(0)\n" in told
    assert ", line 2, in f\n    return 1 / n\n" in told
    assert told.endswith("ZeroDivisionError: division by zero")
    assert "kernel" not in told
    assert "/" not in told.replace("1 / n", "")
    assert python.value("x") == 3


def test_an_error_in_code_of_an_earlier_step_shows_that_code(python: Driven) -> None:
    python.value("def broken():\n    raise KeyError('from before')")
    assert "    raise KeyError('from before')\n" in python.error("broken()")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x = = 1", "SyntaxError: invalid syntax"),
        ("if 1:\nx", "IndentationError: expected an indented block"),
        ("'\\ud800'.encode()", "UnicodeEncodeError"),
        ("no_such_name", "NameError: name 'no_such_name' is not defined"),
        ("some_value = 1\nsome_valeu", "Did you mean: 'some_value'"),
        ("[][0]", "IndexError: list index out of range"),
        ("raise ValueError('an ☂\\nand more')", "ValueError: an ☂\nand more"),
        ("assert 1 == 2, 'not so'", "AssertionError: not so"),
        ("def f(): f()\nf()", "RecursionError"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise BaseException('base')", "BaseException: base"),
        ("class E(Exception):\n    def __str__(self): 1 / 0\nraise E", "E"),
        (
            "try: 1 / 0\nexcept ZeroDivisionError as e: raise OSError('second') from e",
            "direct cause",
        ),
        ("raise ExceptionGroup('several', [ValueError(1), TypeError(2)])", "TypeError: 2"),
        ("await 5", "object int can't be used in 'await' expression"),
    ],
)
def test_errors_are_told_and_survived(python: Driven, code: str, told: str) -> None:
    python.value("kept = 1")
    assert told in python.error(code)
    assert python.value("kept") == 1


# Imports


def test_only_authorized_modules_can_be_imported(start: Callable[..., Driven]) -> None:
    python = start(additional_authorized_imports=["json", "xml.*"])
    told = python.error("x = 1\nimport subprocess")
    assert "line 2" in told
    assert "Import of subprocess is not allowed. Authorized imports are: " in told
    assert "'json'" in told
    assert "other programs cannot be started in the sandbox" in told
    assert (
        python.value("import json.decoder; from xml.dom import minidom; json.dumps([1])") == "[1]"
    )
    for name in BASE_BUILTIN_MODULES:
        python.value(f"import {name}")
    assert "Import of os is not allowed" in python.error("from os import path")
    assert "Import of os is not allowed" in python.error("__import__('os')")
    assert python.value("import random; random.Random(1).random() < 1")  # imports what it likes
