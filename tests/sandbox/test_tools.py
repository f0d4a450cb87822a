"""Tools seen from the code: real signatures, calls from any thread, the final answer."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Annotated, Any

import pytest

from sanderling.sandbox import CodeResult, HostObject, Interpreter, ToolRequest, ToolSpec
from support.sandbox import ainterpreter, arun, error, interpreter, run, value


def weather(city: str, days: int = 3, *, unit: str = "C") -> str:
    """Tells the weather."""
    return f"{city} {days} {unit}"


def fail(text: str) -> None:
    raise ValueError(f"cannot do {text}")


TOOLS: dict[str, Any] = {
    "weather": weather,
    "fail": fail,
    "echo": lambda value: value,
    "everything": lambda *args, **kwargs: [list(args), kwargs],
    "final_answer": lambda answer: answer,
    "lock": lambda: threading.Lock(),
}


@pytest.fixture(scope="module", params=["local", "inprocess"])
def python(request: pytest.FixtureRequest) -> Any:
    with interpreter(request.param, TOOLS, additional_authorized_imports=["*"]) as made:
        yield made


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("weather('Oslo')", "Oslo 3 C"),
        ("weather(days=1, city='Rome')", "Rome 1 C"),
        ("weather('Bonn', 2, unit='F')", "Bonn 2 F"),
        ("[weather(c) for c in 'ab']", ["a 3 C", "b 3 C"]),
        ("everything(1, *[2], a=3, **{'b': 4})", [[1, 2], {"a": 3, "b": 4}]),
        ("list(map(echo, [1, {2: (3,)}]))", [1, {2: (3,)}]),
    ],
)
def test_a_call_runs_on_the_host(python: Interpreter, call: str, answer: object) -> None:
    assert value(python, call, TOOLS) == answer


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("weather()", "weather() missing 1 required positional argument: 'city'"),
        ("weather('a', 1, 'C')", "weather() takes from 1 to 2 positional arguments"),
        ("weather('a', day=1)", "weather() got an unexpected keyword argument 'day'"),
    ],
)
def test_arguments_that_do_not_fit_fail_at_the_models_line(
    python: Interpreter, call: str, told: str
) -> None:
    message = error(python, f"x = 1\n{call}", TOOLS)
    assert f"TypeError: {told}" in message
    assert "line 2, in <module>" in message


def test_a_tool_looks_like_the_function_that_it_is(python: Interpreter) -> None:
    code = "import inspect\nstr(inspect.signature(weather)), weather.__doc__, weather.__name__"
    signature, doc, name = value(python, code)
    assert signature.replace("'", "") == "(city: str, days: int = 3, *, unit: str = C) -> str"
    assert (doc, name) == ("Tells the weather.", "weather")


def test_an_error_of_a_tool_is_raised_at_the_call(python: Interpreter) -> None:
    message = error(python, "y = 1\nfail('this')", TOOLS)
    assert "\nValueError: cannot do this" in message
    assert "    fail('this')" in message
    caught = "try:\n    fail('it')\nexcept RuntimeError as e:\n    caught = str(e)\ncaught"
    assert value(python, caught, TOOLS) == "cannot do it"


def test_tools_are_no_variables(python: Interpreter) -> None:
    assert value(python, "'weather' in globals()") is False


def test_new_tools_take_the_place_of_old_ones() -> None:
    with interpreter(tools={"old": lambda: 1, "sum": lambda x: "tool"}) as python:
        assert value(python, "sum([1])", {"sum": lambda x: "tool"}) == "tool"
        python.set_tools([ToolSpec("new", "()", "")])
        assert value(python, "new()", {"new": lambda: 2}) == 2
        assert "NameError" in error(python, "old()")
        assert value(python, "sum([1, 2])") == 3


def test_what_cannot_cross_is_told_at_the_call() -> None:
    with interpreter(tools=TOOLS) as python:
        message = error(python, "echo({'a': [1, print]})", TOOLS)
        assert "CodecError: a builtin_function_or_method cannot cross" in message
        assert "(at echo, argument [0].a[1])" in message
        assert "lock object of the host" in value(python, "repr(lock())", TOOLS)
        message = error(python, "echo('x' * 40_000_000)", TOOLS)
        assert "CodecError: too large" in message
        assert value(python, "echo(1)", TOOLS) == 1


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("f", "(x): pass\nimport os #"),
        ("f", "(x"),
        ("f", ""),
        ("f()", "(x)"),
        ("f", "(x): pass; y = 1; z("),
        ("for", "(x)"),
    ],
)
def test_a_signature_that_is_none_is_refused(name: str, signature: str) -> None:
    with pytest.raises(ValueError, match="not a signature"):
        ToolSpec(name, signature, "")


def test_a_signature_is_never_evaluated() -> None:
    spec = ToolSpec("f", "(x: print('no') = print('no'), y=[1, (2,)]) -> exit()", "")
    with interpreter(tools={}) as python:
        python.set_tools([spec])
        shown = value(python, "repr(f.__wrapped__.__defaults__)")
        assert shown == "(Ellipsis, [1, (2,)])"


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        (weather, "(city: str, days: int = 3, *, unit: str = 'C') -> str"),
        (lambda a, /, b=None, *c, **d: 0, "(a, /, b=None, *c, **d)"),
        (lambda a=inspect: 0, "(a=...)"),
        (lambda a=print, b=(1, [2]): 0, "(a=..., b=(1, [2]))"),
        (print, "(*args, sep=' ', end='\\n', file=None, flush=False)"),
        (min, "(*args, **kwargs)"),
    ],
)
def test_a_function_describes_itself(function: Any, signature: str) -> None:
    assert ToolSpec.of("f", function).signature == signature


class Client:
    """Its text reads as Python, and tells what it should not."""

    def __repr__(self) -> str:
        return "'sk-SECRET'"

    def ask(
        self,
        text: str = "sk-SECRET",
        times: int = 3,
        *,
        share: float = 0.5,
        fast: bool = True,
        more: object = None,
        parts: tuple[str, ...] = ("sk-SECRET",),
    ) -> str:
        """Asks."""
        return f"{text} {times} {share} {fast} {more} {parts}"


class Code(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "'sk-SECRET'"


@pytest.mark.parametrize(
    "default",
    [Client(), [Client()], {"key": (Client(),)}, Code("x"), 10**5000, float("nan")],
    ids=lambda value: type(value).__name__,
)
def test_a_default_is_shown_only_if_it_is_plain_data(default: Any) -> None:
    def tool(a=default) -> None: ...  # type: ignore[no-untyped-def]  # as in the wild

    assert ToolSpec.of("tool", tool).signature == "(a=...) -> None"


def test_what_is_annotated_beside_the_type_is_left_out() -> None:
    def tool(a, b) -> None: ...  # type: ignore[no-untyped-def]  # as in the wild

    annotated: Any = Annotated[int, Client()]
    tool.__annotations__.update(a=annotated, b=list[annotated])
    assert ToolSpec.of("tool", tool).signature == "(a: int, b) -> None"


def test_a_default_of_a_method_is_shown_only_if_it_cannot_be_a_secret() -> None:
    ((name, signature, doc),) = HostObject(Client(), ["ask"]).specs()
    assert (name, doc) == ("ask", "Asks.")
    shown = "text: str = ..., times: int = 3, *, share: float = 0.5, fast: bool = True"
    assert signature.startswith(f"({shown}, more: object = None, parts: ")
    assert signature.endswith(" = ...) -> str")


def test_a_default_that_is_not_shown_holds_all_the_same() -> None:
    with interpreter(tools={}) as python:
        python.set_variables({"client": HostObject(Client(), ["ask"])})
        told = value(python, "client.ask('a'), client.ask(times=1)")
        assert told[0] == "a 3 0.5 True None ('sk-SECRET',)"
        assert told[1].startswith("sk-SECRET 1 ")


def test_annotations_that_do_not_read_as_python_are_left_out() -> None:
    def tool(a, b: list[int], c) -> None: ...  # type: ignore[no-untyped-def]  # as in the wild

    tool.__annotations__.update(
        a=Any, c=inspect.signature(weather).parameters["city"], **{"return": 5}
    )
    text = ToolSpec.of("tool", tool).signature
    assert "b: list[int]" in text
    assert "c)" in text


# The final answer


@pytest.mark.parametrize(
    "code",
    [
        "final_answer(42)\nprint('after')",
        "try:\n    final_answer(42)\nexcept Exception:\n    print('after')",
        "try:\n    final_answer(42)\nfinally:\n    x = 1",
        "def f():\n    for i in range(9):\n        final_answer(42)\nf()",
        "async def f(): final_answer(42)\nawait f()",
        "print(final_answer(42))",
        "final_answer(42)\nfinal_answer(43)",
    ],
)
def test_the_final_answer_ends_the_step(python: Interpreter, code: str) -> None:
    result = run(python, code, TOOLS)
    assert (result.output, result.is_final_answer, result.error) == (42, True, None)
    assert (result.text, result.logs) == ("42", "")


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    final_answer(42)\nexcept BaseException:\n    pass\nprint('went on')",
        "try:\n    final_answer(42)\nfinally:\n    1 / 0",
        "import concurrent.futures as c\nc.ThreadPoolExecutor().map(final_answer, [42]).__next__()",
    ],
)
def test_the_final_answer_stands_whatever_the_code_does(python: Interpreter, code: str) -> None:
    result = run(python, code, TOOLS)
    assert (result.output, result.is_final_answer, result.error) == (42, True, None)


def test_the_final_answer_may_come_from_a_thread() -> None:
    code = (
        "import threading as t\na = t.Thread(target=final_answer, args=(42,)); a.start(); a.join()"
    )
    with interpreter(tools=TOOLS, additional_authorized_imports=["threading"]) as python:
        result = run(python, code, TOOLS)
        assert (result.output, result.is_final_answer, result.logs) == (42, True, "")


def test_a_final_answer_that_failed_is_none(python: Interpreter) -> None:
    def picky(answer: object) -> object:
        raise ValueError("not good enough")

    result = run(python, "final_answer(1)", {"final_answer": picky})
    assert not result.is_final_answer
    assert "ValueError: not good enough" in str(result.error)


def test_an_answer_that_is_slow_to_print_is_named() -> None:
    with interpreter(
        tools=TOOLS, timeout_seconds=30, additional_authorized_imports=["numpy"]
    ) as python:
        for step in ("final_answer(a)", "a", "[a] * 3"):
            code = f"import numpy; a = numpy.zeros((6,) * 8, dtype='i1')\n{step}"
            result = run(python, code, TOOLS)
            assert result.error is None
            assert "too large to be shown" in result.text


def test_the_hosts_own_value_is_the_answer() -> None:
    kept = object()
    with interpreter(tools={"final_answer": lambda x: kept}) as python:
        assert run(python, "final_answer(0)", {"final_answer": lambda x: kept}).output is kept


def test_the_final_answer_survives_the_death_of_the_interpreter() -> None:
    with interpreter(tools=TOOLS, additional_authorized_imports=["os"]) as python:
        code = "import os\ntry:\n    final_answer(42)\nexcept BaseException:\n    os._exit(1)"
        result = run(python, code, TOOLS)
        assert (result.output, result.is_final_answer, result.error) == (42, True, None)


# Several calls at once


def test_threads_call_tools_at_the_same_time(python: Interpreter) -> None:
    meeting = threading.Barrier(8, timeout=20)
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    got = list(pool.map(meet, range(8)))\n"
        "got"
    )

    def meet(n: int) -> int:
        meeting.wait()
        return n * 2

    with interpreter(
        "local" if python.layers else "inprocess",
        {"meet": meet},
        additional_authorized_imports=["concurrent"],
    ) as made:
        assert value(made, code, {"meet": meet}) == [0, 2, 4, 6, 8, 10, 12, 14]
        assert value(made, code, {"meet": meet}) == [0, 2, 4, 6, 8, 10, 12, 14]


def test_tasks_call_tools_at_the_same_time() -> None:
    async def main() -> None:
        waiting: list[ToolRequest] = []
        async with ainterpreter(
            tools={"meet": lambda n: n}, additional_authorized_imports=["asyncio"]
        ) as python:
            code = (
                "import asyncio\n"
                "await asyncio.gather(*(asyncio.to_thread(meet, n) for n in range(4)))"
            )
            async for event in python.aexecute(code):
                if isinstance(event, ToolRequest):
                    assert not event.alone
                    waiting.append(event)
                    if len(waiting) == 4:
                        for request in reversed(waiting):
                            python.reply(request, request.args[0])
                elif isinstance(event, CodeResult):
                    assert event.output == [0, 1, 2, 3]
        assert len(waiting) == 4

    asyncio.run(main())


def test_a_call_from_the_only_thread_says_so(python: Interpreter) -> None:
    execution = python.execute("echo(1)")
    request = next(execution)
    assert isinstance(request, ToolRequest)
    assert request.alone
    assert (request.name, request.args, request.kwargs) == ("echo", (1,), {})
    python.reply(request, 2)
    with pytest.raises(StopIteration) as done:
        next(execution)
    assert done.value.value.output == 2


def test_ids_of_calls_are_never_used_again() -> None:
    seen = set()
    with interpreter(tools=TOOLS, additional_authorized_imports=["os"]) as python:
        for code in ("echo(1), echo(2)", "echo(3)", "import os; os._exit(1)", "echo(4), echo(5)"):
            for event in python.execute(code):
                if isinstance(event, ToolRequest):
                    seen.add(event.id)
                    python.reply(event, 0)
    assert len(seen) == 5


def test_many_calls_from_many_threads() -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    got = list(pool.map(echo, range(1000)))\n"
        "got == list(range(1000))"
    )

    async def main() -> None:
        async with ainterpreter(
            tools=TOOLS, additional_authorized_imports=["concurrent"]
        ) as python:
            assert (await arun(python, code, TOOLS)).output is True

    asyncio.run(main())


def test_a_step_may_make_so_many_calls_and_no_more() -> None:
    with interpreter(tools=TOOLS) as python:
        message = error(python, "n = 0\nwhile True:\n    echo(n); n += 1", TOOLS)
        assert "10,000 tool calls that one step may make are used up" in message
        assert value(python, "n") == 10_000
        assert value(python, "echo(1)", TOOLS) == 1


def test_a_thread_that_outlives_its_step_cannot_call() -> None:
    code = (
        "import threading\n"
        "told = []\n"
        "def late():\n"
        "    while not told:\n"
        "        try: echo(1)\n"
        "        except RuntimeError as error: told.append(str(error))\n"
        "thread = threading.Thread(target=late); thread.start()"
    )
    with interpreter(tools=TOOLS, additional_authorized_imports=["threading"]) as python:
        result = run(python, code, TOOLS)
        assert (result.error, result.threads) == (None, 1)
        assert "ended" in value(python, "thread.join(20); told[0]", TOOLS)


def test_a_call_left_open_by_its_step_fails_in_the_next() -> None:
    code = (
        "import threading\n"
        "told = []\n"
        "def work():\n"
        "    try: echo(1)\n"
        "    except RuntimeError as error: told.append(str(error))\n"
        "thread = threading.Thread(target=work); thread.start()\n"
        "gate()"
    )
    tools = {**TOOLS, "gate": lambda: None}
    with interpreter(tools=tools, additional_authorized_imports=["threading"]) as python:
        open_: dict[str, ToolRequest] = {}
        for event in python.execute(code):
            if isinstance(event, ToolRequest):
                open_[event.name] = event
            if len(open_) == 2:
                python.reply(open_["gate"], None)
        python.reply(open_["echo"], "too late")
        assert value(python, "thread.join(20); told") == ["the step that made this call has ended"]
