"""Code that does not want to end, interpreters that end, and what is left of them."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from contextlib import aclosing, closing
from typing import Any

import pytest

from sanderling.errors import InterpreterError, SandboxCrashed, SandboxError, SandboxTimeout
from sanderling.sandbox import CodeResult, Printed, ToolRequest
from support.places import Driven, Place

GO_ON = "while True:\n    try:\n        for _ in iter(int, 1): pass\n    except BaseException: pass"


def test_code_that_takes_too_long_is_stopped_and_keeps_its_state(
    start: Callable[..., Driven],
) -> None:
    python = start(timeout_seconds=0.3)
    python.value("kept = 1")
    result = python.run("print('said')\nwhile True: pass")
    assert isinstance(result.error, SandboxTimeout)
    assert "exceeded 0.3 s and was stopped. Variables keep what they had" in str(result.error)
    assert "line 2, in <module>" in str(result.error)
    assert result.logs == result.error.logs == "said\n"
    assert python.value("kept") == 1


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(60)",
        "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
        "import asyncio; await asyncio.sleep(60)",
        "import threading; threading.Event().wait()",
    ],
)
def test_code_that_waits_is_stopped(walled: Place, start: Callable[..., Driven], code: str) -> None:
    python = start(timeout_seconds=0.3)
    python.value("kept = 1")
    assert isinstance(python.run(code).error, SandboxTimeout)
    assert python.value("kept") == 1


def check_what_is_left(place: Place, python: Driven, told: str) -> None:
    """Of a variable ``before`` that was 1 before the step that was killed."""
    if place.restores:
        assert "The interpreter was restored: variables are what they were" in told
        assert python.value("before") == 1
    else:
        assert "The interpreter was restarted: all variables" in told
        assert "NameError" in python.error("before")


def test_code_that_cannot_be_stopped_is_killed(walled: Place, start: Callable[..., Driven]) -> None:
    python = start(timeout_seconds=0.3)
    python.use(add=lambda a, b: a + b)
    python.interpreter.set_variables({"sent": 5})
    python.value("before = 1")
    result = python.run(f"print('said')\n{GO_ON}")
    assert isinstance(result.error, SandboxTimeout)
    assert "did not stop. The interpreter was " in str(result.error)
    assert result.logs == "said\n"
    check_what_is_left(walled, python, str(result.error))
    assert python.value("add(sent, 1)") == 6


@pytest.mark.parametrize(
    "code",
    ["import os; os._exit(7)", "import ctypes; ctypes.string_at(0)", "import os; os.abort()"],
)
def test_code_that_ends_its_interpreter(
    walled: Place, start: Callable[..., Driven], code: str
) -> None:
    python = start(timeout_seconds=20)
    python.value("before = 1")
    result = python.run(f"print('said')\n{code}")
    assert isinstance(result.error, SandboxCrashed)
    assert "The interpreter died (" in str(result.error)
    assert result.logs == "said\n"
    check_what_is_left(walled, python, str(result.error))


def test_the_time_of_tools_does_not_count(start: Callable[..., Driven]) -> None:
    python = start(timeout_seconds=0.4)
    python.use(slow=lambda: time.sleep(0.6))
    assert python.value("slow(); slow(); 1") == 1


def test_memory_is_limited(walled: Place, python: Driven) -> None:
    python.value("kept = 1")
    told = python.error("x = bytearray(100 << 30)")
    assert "MemoryError" in told
    assert "memory of the sandbox" in told
    assert python.value("kept") == 1


def test_output_is_cut_in_the_middle(start: Callable[..., Driven]) -> None:
    python = start(max_print_outputs_length=1_000)
    logs = python.run("for i in range(100_000): print(i)").logs
    assert len(logs) < 1_100
    assert logs.startswith("0\n1\n2\n")
    assert logs.endswith("99998\n99999\n")
    assert "characters cut out here" in logs
    assert python.run("print('x' * 10**7)").logs.count("x") == 999
    assert python.run("print('short')").logs == "short\n"


# Interrupts


def test_an_interrupt_ends_the_step(start: Callable[..., Driven]) -> None:
    python = start(timeout_seconds=20)
    python.use(now=lambda: threading.Timer(0.1, python.interpreter.interrupt).start())
    result = python.run("kept = 1\nnow()\nwhile True: pass")
    assert isinstance(result.error, InterpreterError)
    assert str(result.error).startswith("The step was interrupted.")
    assert python.value("kept") == 1


def test_an_interrupt_ends_a_step_that_waits_for_a_tool(start: Callable[..., Driven]) -> None:
    python = start(timeout_seconds=20).interpreter
    Driven(python, "sync").use(never=lambda: None)
    execution = python.execute("kept = 1\nnever()")
    request = next(execution)
    python.interrupt()
    result = ended(execution)
    assert isinstance(result.error, InterpreterError)
    assert isinstance(request, ToolRequest)
    python.reply(request, "too late")
    assert Driven(python, "async").value("kept") == 1


def test_an_interrupt_before_the_code_has_begun_ends_the_step(
    start: Callable[..., Driven],
) -> None:
    python = start(timeout_seconds=60)
    execution = python.interpreter.execute("while True: pass")
    python.interpreter.interrupt()
    with pytest.raises(StopIteration) as end:
        next(execution)
    assert str(end.value.value.error).startswith("The step was interrupted.")
    assert python.value("1") == 1


def test_an_interrupt_between_steps_does_nothing(python: Driven) -> None:
    python.interpreter.interrupt()
    assert python.value("1") == 1
    python.interpreter.interrupt()
    assert python.value("2") == 2


def test_leaving_a_step_ends_it(start: Callable[..., Driven]) -> None:
    python = start(timeout_seconds=20)
    code = "kept = 1\nprint()\nwhile True: pass"

    async def leave() -> None:
        async with aclosing(python.interpreter.aexecute(code)) as execution:
            assert await anext(execution) == Printed("\n")

    if python.form == "async":
        asyncio.run(leave())
    else:
        with closing(python.interpreter.execute(code)) as execution:
            assert next(execution) == Printed("\n")
    assert python.value("kept") == 1


def test_cancelling_a_task_ends_its_step(start: Callable[..., Driven]) -> None:
    python = start(timeout_seconds=20)

    async def cancel() -> None:
        reached = asyncio.Event()

        async def drive() -> None:
            async for _ in python.interpreter.aexecute("kept = 1\nprint()\nwhile True: pass"):
                reached.set()

        task = asyncio.create_task(drive())
        await reached.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(cancel())
    assert python.value("kept") == 1


# Order and ends


def test_one_step_at_a_time(start: Callable[..., Driven]) -> None:
    python = start()
    python.use(ask=lambda: None)
    first = python.interpreter.execute("ask()")
    request = next(first)
    with pytest.raises(RuntimeError, match="one at a time"):
        python.run("1")
    assert isinstance(request, ToolRequest)
    python.interpreter.reply(request, None)
    assert ended(first).error is None
    assert python.value("1") == 1


def test_a_closed_interpreter_says_so(start: Callable[..., Driven]) -> None:
    python = start()
    assert python.value("1") == 1
    python.interpreter.close()
    python.interpreter.close()
    asyncio.run(python.interpreter.aclose())
    with pytest.raises(RuntimeError, match="closed"):
        python.run("1")


def test_closing_ends_the_step_in_progress(walled: Place, start: Callable[..., Driven]) -> None:
    before = walled.leftovers()
    python = start(timeout_seconds=20)
    python.use(now=lambda: threading.Timer(0.1, python.interpreter.close).start())
    result = python.run("now()\nwhile True: pass")
    assert isinstance(result.error, SandboxError)
    assert walled.remains(before) == set()


def test_interpreters_share_nothing(start: Callable[..., Driven]) -> None:
    first, second = start(), start()
    first.value("x = 1\nimport math\nmath.pi = 3")
    assert "NameError" in second.error("x")
    assert first.value("x") == 1
    first.value("del math.pi\nfrom math import tau\nmath.pi = tau / 2")


def test_several_run_at_once(place: Place) -> None:
    async def one(number: int) -> object:
        driven = Driven(place.create(), "async")
        driven.use(double=lambda n: n * 2)
        try:
            await driven.arun(f"x = {number}")
            return (await driven.arun("double(x)")).output
        finally:
            await driven.interpreter.aclose()

    async def main() -> list[object]:
        return await asyncio.gather(*map(one, range(5)))

    assert asyncio.run(main()) == [0, 2, 4, 6, 8]


def test_nothing_is_left_behind(walled: Place, form: str) -> None:
    before = walled.leftovers()

    async def use() -> None:
        driven = Driven(walled.create(timeout_seconds=0.3), "async")
        await driven.interpreter.aopen()
        assert set(walled.leftovers()).difference(before)
        await driven.arun("import os; os._exit(1)")
        await driven.arun(GO_ON)
        await driven.arun("1")
        await driven.interpreter.aclose()

    if form == "async":
        asyncio.run(use())
    else:
        python = walled.create(timeout_seconds=0.3)
        python.open()
        driven = Driven(python, "sync")
        driven.run("import os; os._exit(1)")
        driven.run(GO_ON)
        driven.run("1")
        assert set(walled.leftovers()).difference(before)
        del python, driven  # forgotten, not closed
        gc.collect()
    assert walled.remains(before) == set()


def test_it_is_ready_before_the_first_step_where_that_is_wanted(
    walled: Place, start: Callable[..., Driven]
) -> None:
    python = start()
    assert not python.interpreter.layers
    if python.form == "sync":
        python.interpreter.open()
    else:
        asyncio.run(python.interpreter.aopen())
    assert python.interpreter.layers
    assert python.value("1") == 1


def ended(execution: Any) -> CodeResult:
    with pytest.raises(StopIteration) as done:
        next(execution)
    result: CodeResult = done.value.value
    return result
