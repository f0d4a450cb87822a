"""Tools of the host, called from code."""

from __future__ import annotations

import datetime
import json
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from support.places import Driven

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.places import Place


def echo(*args: Any, **kwargs: Any) -> Any:
    return [list(args), kwargs]


def add(a: int, b: int = 10, *, times: int = 1) -> int:
    """Adds, some times."""
    return (a + b) * times


def fail(text: str) -> None:
    raise ValueError(text)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("add(1, 2)", 3),
        ("add(1)", 11),
        ("add(b=1, a=2)", 3),
        ("add(1, 2, times=3)", 9),
        ("add(*[1, 2], **{'times': 2})", 6),
        ("add(add(1, 1), add(1, 1))", 4),
        ("sum(add(n, n) for n in range(100))", 9900),
        ("echo(1, 'x', [None], k={'a': (1, 2)})", [[1, "x", [None]], {"k": {"a": (1, 2)}}]),
        ("list(map(add, [1, 2]))", [11, 12]),
        ("f = add\nf(0, 0)", 0),
    ],
)
def test_arguments_arrive(python: Driven, code: str, value: object) -> None:
    python.use(add=add, echo=echo)
    assert python.value(code) == value


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("add()", "missing 1 required positional argument: 'a'"),
        ("add(1, 2, 3)", "takes from 1 to 2 positional arguments but 3 were given"),
        ("add(1, c=2)", "unexpected keyword argument 'c'"),
        ("add(1, a=2)", "multiple values for argument 'a'"),
    ],
)
def test_arguments_that_do_not_fit_raise_where_they_are_written(
    python: Driven, code: str, told: str
) -> None:
    python.use(add=add)
    shown = python.error(f"x = 1\n{code}")
    assert "TypeError: add() " in shown
    assert told in shown
    assert f"line 2, in <module>\n    {code}\n" in shown


def test_a_tool_has_a_signature_and_a_docstring(python: Driven) -> None:
    python.use(add=add)
    code = "import inspect\nadd.__name__, inspect.getdoc(add), str(inspect.signature(add))"
    name, doc, signature = python.value(code)
    assert (name, doc) == ("add", "Adds, some times.")
    assert [part in signature for part in ("a", "b", "= 10", "*", "times", "= 1")] == [True] * 6


def test_an_error_of_a_tool_is_raised_where_it_is_called(python: Driven) -> None:
    python.use(fail=fail)
    told = python.error("x = 1\nfail('not today')")
    assert "line 2, in <module>\n    fail('not today')\n" in told
    assert told.endswith("ValueError: not today")
    assert "support" not in told


def test_code_can_catch_an_error_of_a_tool(python: Driven) -> None:
    python.use(fail=fail)
    assert python.value("try: fail('x')\nexcept Exception as e: got = str(e)\ngot") == "x"


class OwnError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "caught", "told"),
    [
        (KeyError("x"), "KeyError", "'x'"),
        (KeyError("x"), "LookupError", "'x'"),
        (KeyError("x"), "ToolError", "'x'"),
        (PermissionError(13, "not you"), "OSError", "[Errno 13] not you"),
        (RuntimeError("x"), "RuntimeError", "x"),
        (SyntaxError("x"), "SyntaxError", "x"),
        (MemoryError("x"), "MemoryError", "x"),
        (json.JSONDecodeError("no", "", 0), "ValueError", "JSONDecodeError: no: line 1 column 1"),
        (
            UnicodeDecodeError("utf-8", b"x", 0, 1, "no"),
            "ValueError",
            "UnicodeDecodeError: ",
        ),
        (OwnError("x"), "ToolError", "OwnError: x"),
        (StopIteration("x"), "ToolError", "StopIteration: x"),
        (ExceptionGroup("x", [KeyError("y")]), "ToolError", "ExceptionGroup: x"),
    ],
)
def test_an_error_of_a_tool_is_caught_by_its_builtin_class(
    python: Driven, error: Exception, caught: str, told: str
) -> None:
    def broken() -> None:
        raise error

    python.use(broken=broken)
    code = f"try:\n    broken()\nexcept {caught} as error:\n    got = str(error)\ngot"
    assert python.value(code).startswith(told)


@pytest.mark.parametrize("key", ["x", 5, ("a", 1)])
def test_a_key_error_of_a_tool_has_the_key(python: Driven, key: object) -> None:
    def broken() -> None:
        raise KeyError(key)

    python.use(broken=broken)
    code = (
        "try:\n    broken()\nexcept KeyError as error:\n    got = error.args[0], repr(error)\ngot"
    )
    assert python.value(code) == (key, f"KeyError({key!r})")


def test_the_tool_itself_is_no_final_answer(python: Driven) -> None:
    python.use(final_answer=lambda answer: answer)
    assert python.run("final_answer = 5").error is None
    assert "it is in final_answer_ now" in python.error("final_answer(final_answer)")
    assert python.run("final_answer(final_answer_)").output == 5


def test_an_error_that_is_of_no_builtin_class_names_its_own(python: Driven) -> None:
    def broken() -> None:
        raise OwnError("not today")

    python.use(broken=broken)
    told = python.error("broken()")
    assert "    broken()\n" in told
    assert told.endswith("\nToolError: OwnError: not today")


def test_an_error_of_a_tool_is_not_taken_for_a_limit_of_the_sandbox(python: Driven) -> None:
    def broken() -> None:
        raise MemoryError("the server has none left")

    python.use(broken=broken)
    assert python.error("broken()").endswith("MemoryError: the server has none left")


def test_tools_come_and_go(python: Driven) -> None:
    python.use(one=lambda: 1)
    assert python.value("one()") == 1
    python.use(two=lambda: 2)
    assert python.value("two()") == 2
    assert "NameError" in python.error("one()")


def test_a_variable_hides_a_tool_for_its_step_and_this_is_told(python: Driven) -> None:
    python.use(add=add)
    result = python.run("print('x')\nadd = 5\nadd(1)")
    assert "hide the tools add" in str(result.error)
    note = (
        "x\nNote: your code assigned to the name of a tool (add). From the next step on it is the "
        "tool again, and what you assigned is in add_.\n"
    )
    assert result.logs == note
    assert python.value("add(1, add_)") == 6
    assert python.run("def add(a): return -a\nadd(3)").output == -3
    assert python.value("add(1, 1), add_(1)") == (2, -1)
    assert python.run("add(1, 2)").logs == ""


@pytest.mark.parametrize(
    "code",
    [
        "final_answer = 5\nfinal_answer(final_answer)",
        "final_answer, other = 5, 6\nprint(final_answer)\nfinal_answer(final_answer)",
        "def made():\n    final_answer = 4\n    return final_answer + 1\nfinal_answer(made())",
        "for final_answer in range(6): pass\nfinal_answer(answer=final_answer)",
        "final_answer = 4\nfinal_answer += 1\nif final_answer: final_answer(final_answer)",
    ],
)
def test_a_variable_called_like_the_final_answer_can_be_the_answer(
    python: Driven, code: str
) -> None:
    python.use(final_answer=lambda answer: answer)
    result = python.run(code)
    assert (result.error, result.output, result.is_final_answer) == (None, 5, True)
    assert "Note" not in result.logs


def test_a_variable_called_like_the_final_answer_is_kept_aside(python: Driven) -> None:
    python.use(final_answer=lambda answer: answer)
    result = python.run("final_answer = 5")
    assert (result.output, result.is_final_answer) == (5, False)
    assert "what you assigned is in final_answer_." in result.logs
    assert python.run("final_answer(final_answer_ + 1)").output == 6


def test_a_function_called_like_the_final_answer_is_called(python: Driven) -> None:
    python.use(final_answer=lambda answer: answer)
    result = python.run("def final_answer(x): return x * 2\nfinal_answer(2)")
    assert (result.output, result.is_final_answer) == (4, False)
    assert python.run("final_answer(3)").is_final_answer


def test_leaving_python_says_what_ends_the_task(python: Driven) -> None:
    python.use(final_answer=lambda answer: answer)
    told = python.error("exit()")
    assert told.endswith("Hint: nothing needs to be left here: final_answer(answer) ends the task.")
    python.use()
    assert "Hint" not in python.error("exit()")


def test_a_tool_that_the_host_does_not_have_fails(python: Driven) -> None:
    python.use(add=add)
    python.tools = {}
    assert "KeyError" in python.error("add(1)")


def test_output_before_a_call_comes_before_it(python: Driven) -> None:
    python.use(add=add)
    assert python.run("print('a', end='')\nprint(add(1, 2), end='')\nprint('b')").logs == "a3b\n"


def test_large_values_cross_both_ways(python: Driven) -> None:
    big = bytes(range(256)) * 40_000
    python.use(big=lambda: big, check=lambda data: data == big)
    python.interpreter.set_variables({"sent": big})
    assert python.value("check(sent), check(big()), len(big() + sent)") == (
        True,
        True,
        2 * len(big),
    )
    assert python.value("sent") == big


# Several at once


@pytest.mark.parametrize(
    "code",
    [
        (
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(4) as pool: got = list(pool.map(meet, range(4)))\n"
            "sorted(got)"
        ),
        (
            "import asyncio\n"
            "sorted(await asyncio.gather(*(asyncio.to_thread(meet, n) for n in range(4))))"
        ),
        (
            "import threading\n"
            "got = []\n"
            "ts = [threading.Thread(target=lambda n=n: got.append(meet(n))) for n in range(4)]\n"
            "[t.start() for t in ts]; [t.join() for t in ts]\n"
            "sorted(got)"
        ),
    ],
)
def test_calls_of_threads_are_open_at_the_same_time(python: Driven, code: str) -> None:
    barrier = threading.Barrier(4, timeout=20)

    def meet(n: int) -> int:
        barrier.wait()
        return n * n

    python.use(meet=meet)
    assert python.value(code) == [0, 1, 4, 9]


def test_many_calls_of_many_threads_get_their_own_replies(python: Driven) -> None:
    python.use(add=add)
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool: got = [*pool.map(lambda n: add(n, 0), range(200))]\n"
        "got == list(range(200))"
    )
    assert python.value(code) is True


def test_one_of_several_may_fail(python: Driven) -> None:
    def odd(n: int) -> int:
        if n % 2:
            raise ValueError(f"{n} is odd")
        return n

    python.use(odd=odd)
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def attempt(n):\n"
        "    try: return odd(n)\n"
        "    except Exception as error: return str(error)\n"
        "with ThreadPoolExecutor(3) as pool: got = list(pool.map(attempt, range(3)))\n"
        "got"
    )
    assert python.value(code) == [0, "1 is odd", 2]


# The final answer


# Without walls it is pytest's own hook, not the kernel's, that sees a thread end by SystemExit.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "code",
    [
        "final_answer(42)",
        "final_answer(answer=42)",
        "final_answer(42)\nprint('never')",
        "def f(): final_answer(42)\nf()\nprint('never')",
        "try: final_answer(42)\nexcept Exception: print('never')",
        "try: final_answer(42)\nexcept BaseException: pass\n'other'",
        "try: final_answer(42)\nfinally: 1 / 0",
        "while True:\n    try:\n        final_answer(42)\n        break\n    except: break",
        "final_answer(42) or final_answer(43)",
        "try: final_answer(42)\nexcept: final_answer(43)",
        "import threading as t\nt = t.Thread(target=final_answer, args=(42,)); t.start(); t.join()",
        "import asyncio\nawait asyncio.to_thread(final_answer, 42)",
    ],
)
def test_the_final_answer_is_the_first_one(python: Driven, code: str) -> None:
    python.use(final_answer=lambda answer: answer)
    result = python.run(f"kept = 1\nprint('said')\n{code}")
    assert result.error is None
    assert result.is_final_answer
    assert (result.output, result.text, result.logs) == (42, "42", "said\n")
    assert python.value("kept") == 1


def test_the_text_of_a_final_answer_is_what_the_code_makes_of_it(python: Driven) -> None:
    python.use(final_answer=lambda answer: answer)
    point = """
import dataclasses
@dataclasses.dataclass
class Point:
    x: int
    def __str__(self): return f"at {self.x}"
"""
    assert python.run(f"{point}\nfinal_answer(Point(1))").text == "at 1"
    assert python.run("final_answer(answer=Point(2))").text == "at 2"


def test_what_the_host_makes_of_the_final_answer_stays_there(python: Driven) -> None:
    made = threading.Lock()  # which could never cross
    python.use(final_answer=lambda answer: made)
    result = python.run("final_answer({'when': 1})")
    assert result.is_final_answer
    assert result.output is made


def test_a_final_answer_that_the_host_refuses_is_none(python: Driven) -> None:
    python.use(final_answer=fail)
    result = python.run("final_answer('too short')")
    assert not result.is_final_answer
    assert "ValueError: too short" in str(result.error)


def test_the_next_step_is_not_final(python: Driven) -> None:
    python.use(final_answer=lambda answer: answer)
    assert python.run("final_answer(1)").is_final_answer
    assert not python.run("2").is_final_answer


# Values that cannot cross


def test_what_cannot_enter_raises_where_the_tool_is_called(walled: Place, python: Driven) -> None:
    python.use(much=lambda: "x" * (40 << 20))
    told = python.error("x = 1\nmuch()")
    assert "line 2" in told
    assert "what much returned did not arrive: too large" in told


def test_what_cannot_leave_raises_where_the_tool_is_called(walled: Place, python: Driven) -> None:
    python.use(echo=echo)
    told = python.error("x = 1\necho(1, thing=[object()])")
    assert "line 2" in told
    assert "a object cannot cross" in told
    assert "echo, argument" in told


def test_types_of_arguments_arrive(python: Driven) -> None:
    seen: list[object] = []
    python.use(take=seen.append)
    python.value("import datetime\ntake((1, {2}, b'3', datetime.date(2026, 1, 2), 10 ** 30))")
    assert seen == [(1, {2}, b"3", datetime.date(2026, 1, 2), 10**30)]


# `parallel`, and tools that are awaited


TASKS = """
import asyncio
tasks = [asyncio.ensure_future(meet.aio(n=n)) for n in range(4)]
[await task for task in tasks]
"""
MEETINGS = [
    "parallel(meet, range(4))",
    "import asyncio\nawait asyncio.gather(*(meet.aio(n) for n in range(4)))",
    TASKS,
]


@pytest.mark.parametrize("code", MEETINGS)
def test_calls_that_are_made_together_are_open_together(python: Driven, code: str) -> None:
    barrier = threading.Barrier(4, timeout=20)

    def meet(n: int) -> int:
        barrier.wait()
        return n * n

    python.use(meet=meet)
    assert python.value(code) == [0, 1, 4, 9]


def test_functions_that_call_tools_run_together(python: Driven) -> None:
    barrier = threading.Barrier(3, timeout=20)

    def meet(n: int) -> int:
        barrier.wait()
        return n * n

    python.use(meet=meet)
    assert python.value("parallel(lambda n: meet(n) + 1, range(3))") == [1, 2, 5]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("parallel(add, [])", []),
        ("parallel(add, [1, 2], [3, 4])", [4, 6]),
        ("parallel(add, range(200), max_workers=3) == [n + 10 for n in range(200)]", True),
        ("parallel(lambda n: add(n, 1), 'ab' and (1, 2, 3))", [2, 3, 4]),
        ("parallel(lambda f: f(), [lambda: add(1, 1), lambda: 'own'])", [2, "own"]),
        ("parallel(str, range(50)) == [str(n) for n in range(50)]", True),
        ("await add.aio(1, b=2)", 3),
    ],
)
def test_parallel_is_map(python: Driven, code: str, value: object) -> None:
    python.use(add=add)
    assert python.value(code) == value


@pytest.mark.parametrize(
    "code",
    [
        "parallel(same, range(1_000), max_workers=1_000) == list(range(1_000))",
        "import asyncio\nawait asyncio.gather(*map(same.aio, range(300))) == list(range(300))",
        "b = [bytes([n]) * 400_000 for n in range(80)]\nparallel(same, b, max_workers=80) == b",
    ],
)
def test_more_calls_than_are_carried_out_at_once_wait(python: Driven, code: str) -> None:
    python.use(same=lambda value: value)
    assert python.value(code) is True


@pytest.mark.parametrize("function", ["odd", "lambda n: odd(n)"])
def test_parallel_ends_all_before_it_raises_the_first_error(python: Driven, function: str) -> None:
    seen: list[int] = []

    def odd(n: int) -> int:
        seen.append(n)
        if n % 2:
            raise ValueError(f"{n} is odd")
        return n

    python.use(odd=odd)
    told = python.error(f"x = 1\nparallel({function}, range(6))")
    assert "line 2, in <module>" in told
    assert "ValueError: 1 is odd" in told
    assert sorted(seen) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "code", ["parallel(add, [1], max_workers=0)", "parallel(add, [()], [1], [2])", "add.aio()"]
)
def test_parallel_and_aio_refuse_what_does_not_fit(python: Driven, code: str) -> None:
    python.use(add=add)
    told = python.error(f"import asyncio\n{'await ' * ('aio' in code)}{code}")
    assert "Error: " in told
    assert python.value("parallel(add, [1])") == [11]


def test_the_final_answer_may_be_awaited(python: Driven) -> None:
    python.use(final_answer=lambda answer: answer)
    result = python.run("await final_answer.aio(42)\nprint('never')")
    assert (result.output, result.is_final_answer, result.logs) == (42, True, "")


def test_an_interrupt_ends_calls_that_are_open_together(
    place: Place, start: Callable[..., Driven]
) -> None:
    if place.name == "wasm":
        pytest.skip("Deno passes an interrupt on late: at times only in the step after this one")
    python = start(timeout_seconds=20)
    ended = threading.Event()

    def stop(n: int) -> None:
        if n == 2:
            python.interpreter.interrupt()
        ended.wait(20)

    python.use(stop=stop, add=add)
    for code in (
        "parallel(stop, range(3))",
        "import asyncio\nawait asyncio.gather(*map(stop.aio, range(3)))",
    ):
        ended.clear()
        threading.Timer(0.5, ended.set).start()
        assert "interrupted" in python.error(f"kept = 1\n{code}")
        result = python.run("import gc; gc.collect(); kept, parallel(add, [1])")
        assert (result.output, result.logs) == ((1, [11]), "")


def test_a_tool_may_be_called_parallel(python: Driven) -> None:
    python.use(parallel=lambda: "mine")
    assert python.value("parallel()") == "mine"


# Images and other agents


def test_images_go_to_tools_and_come_from_them(place: Place, python: Driven) -> None:
    if not place.libraries:
        pytest.skip("Pillow is not there")
    images = pytest.importorskip("PIL.Image")
    seen: list[Any] = []

    def turned(image: Any) -> Any:
        seen.append(image)
        return image.rotate(90, expand=True)

    python.use(turned=turned)
    python.interpreter.set_variables({"photo": images.new("RGB", (5, 3), (1, 2, 3))})
    assert python.value("turned(turned(photo)).size, turned(photo).getpixel((0, 0))") == (
        (5, 3),
        (1, 2, 3),
    )
    assert [image.size for image in seen] == [(5, 3), (3, 5), (5, 3)]


def test_a_tool_may_run_code_of_its_own(place: Place, form: str, python: Driven) -> None:
    thing = threading.Lock()

    def helper(task: str, additional_args: dict[str, Any] | None = None) -> Any:
        """What a managed agent is to the code: a slow tool, with an interpreter of its own."""
        with closing(place.create()) as other:
            inner = Driven(other, "sync")
            inner.use(same=lambda given: given is thing)
            other.set_variables(additional_args or {})
            return inner.value(task)

    python.use(helper=helper)
    python.interpreter.set_variables({"thing": thing})
    code = "helper('[same(thing), number + 1]', additional_args={'thing': thing, 'number': 1})"
    assert python.value(code) == [True, 2]
