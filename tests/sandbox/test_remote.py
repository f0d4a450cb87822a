"""An interpreter from its first step to its last, with code that does not want to end."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import aclosing, closing
from typing import Any

import pytest

from sanderling.errors import (
    InterpreterError,
    SandboxCrashed,
    SandboxTimeout,
    SandboxUnavailable,
    SandboxViolation,
)
from sanderling.sandbox import (
    CodeResult,
    HostObject,
    Interpreter,
    Printed,
    SandboxValue,
    ToolRequest,
)
from sanderling.sandbox._remote import RemoteInterpreter
from support.sandbox import Tools, ainterpreter, answer, arun, interpreter, run, value

ANY: dict[str, Any] = {"additional_authorized_imports": ["*"]}
GO_ON = "while True:\n    try:\n        for _ in iter(int, 1): pass\n    except BaseException: pass"
FORGE = """
import os, json
def say(**fields):
    text = json.dumps({"b": [], **fields}).encode()
    os.write(3, len(text).to_bytes(4, "little") + bytes(4) + text)
"""
NO_ARGUMENTS = "args=[], kwargs={}, alone=True"
SWALLOW = f"print('said')\n{GO_ON}"


@pytest.fixture
def python() -> Any:
    with interpreter(timeout_seconds=0.3, **ANY) as made:
        made.open()
        yield made


def watch(python: Interpreter, code: str) -> CodeResult:
    """Runs one step and answers nothing."""
    execution = python.execute(code)
    while True:
        try:
            next(execution)
        except StopIteration as done:
            result: CodeResult = done.value
            return result


def outcome(python: Interpreter, code: str, form: str) -> CodeResult:
    return run(python, code) if form == "sync" else asyncio.run(arun(python, code))


@pytest.mark.parametrize("form", ["sync", "async"])
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
        "import threading; threading.Event().wait()",
        "import asyncio; await asyncio.sleep(60)",
        "class V:\n    def __str__(self):\n        while True: pass\nV()",
        "import concurrent.futures as c, time\nwith c.ThreadPoolExecutor(): time.sleep(60)",
    ],
)
def test_code_that_takes_too_long_is_stopped_and_keeps_its_state(
    python: Interpreter, code: str, form: str
) -> None:
    run(python, "kept = 1")
    result = outcome(python, f"print('said')\n{code}", form)
    assert isinstance(result.error, SandboxTimeout)
    assert "exceeded 0.3 s and was stopped. Variables keep what they had" in str(result.error)
    assert "KeyboardInterrupt" in str(result.error)
    assert "line " in str(result.error) or "asyncio" in code
    assert result.logs == result.error.logs == "said\n"
    assert value(python, "kept") == 1


@pytest.mark.parametrize("form", ["sync", "async"])
@pytest.mark.parametrize(
    "code",
    [
        SWALLOW,
        "print('said')\nimport itertools; sum(itertools.repeat(1))",
        "print('said')\nimport signal as s; s.signal(s.SIGINT, s.SIG_IGN)\nwhile True: pass",
        "print('said')\nimport signal as s; s.pthread_sigmask(0, [s.SIGINT])\nwhile True: pass",
        f"print('said')\nimport os\nos.write(3, b'\\x10\\0\\0\\0\\0\\0\\0\\0half')\n{GO_ON}",
    ],
)
def test_code_that_cannot_be_stopped_is_killed(python: Interpreter, code: str, form: str) -> None:
    run(python, "kept = [1]\nopen('file', 'w').write('stays')")
    python.set_variables({"sent": 5})
    result = outcome(python, code, form)
    assert isinstance(result.error, SandboxTimeout)
    assert "exceeded 0.3 s and did not stop. The interpreter was restored" in str(result.error)
    assert "files in the work folder remain" in str(result.error)
    assert result.logs == "said\n"
    assert value(python, "kept, sent, open('file').read()") == ([1], 5, "stays")


@pytest.mark.parametrize("form", ["sync", "async"])
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os; os._exit(7)", "exit status 7"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import os; os.kill(os.getpid(), 50)", "signal 50"),
        ("import os; os.close(3)\nwhile True: pass", "hung up"),
        ("import ctypes; ctypes.CDLL(None).abort()", "SIGABRT"),
    ],
)
def test_code_that_ends_its_interpreter(
    python: Interpreter, code: str, told: str, form: str
) -> None:
    run(python, "kept = [1]")
    result = outcome(python, f"kept.append(2)\nprint('said')\n{code}", form)
    assert isinstance(result.error, SandboxCrashed)
    assert told in str(result.error)
    assert "variables are what they were before this step" in str(result.error)
    assert result.logs == "said\n"
    assert value(python, "kept") == [1]


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.write(3, b'garbage' * 100)",
        "import os; os.write(3, b'\\xff' * 8)",
        "import os; os.write(3, b'\\2\\0\\0\\0\\0\\0\\0\\0[]')",
        "import os; os.write(3, (200_000).to_bytes(4, 'little') + bytes(4) + b'[' * 200_000)",
        f"{FORGE}for n in (1, 1): say(t='call', step=1, id=n, name='x', {NO_ARGUMENTS})",
        f"{FORGE}while True: say(t='out', id=1, text='x' * 100_000)",
    ],
)
def test_what_breaks_the_protocol_is_killed(code: str) -> None:
    with interpreter(timeout_seconds=20, **ANY) as python:
        assert isinstance(watch(python, code).error, SandboxViolation)
        assert value(python, "1") == 1


def test_a_forged_end_of_another_step_is_dropped() -> None:
    forged = "v=None, text='', error=None, threads=0, interrupted=False"
    with interpreter(**ANY) as python:
        code = f"{FORGE}for n in (0, 2, 99): say(t='done', id=n, {forged})\n'genuine'"
        assert value(python, code) == "genuine"
        assert value(python, "'second'") == "second"


@pytest.mark.parametrize("form", ["sync", "async"])
def test_a_flood_of_what_nobody_asked_for_meets_the_clock(python: Interpreter, form: str) -> None:
    code = (
        f"{FORGE}while True:\n    try: say(t='out', id=0, text='x')\n    except BaseException: pass"
    )
    assert isinstance(outcome(python, code, form).error, SandboxTimeout)
    assert value(python, "1") == 1


def test_a_forged_call_is_a_call() -> None:
    code = f"{FORGE}say(t='call', id=1, step=1, name='no_such', {NO_ARGUMENTS})\n1"
    with interpreter(**ANY) as python:
        assert run(python, code, {}).error is None
        assert value(python, "1") == 1


def test_output_is_cut_in_the_middle() -> None:
    with interpreter(max_print_outputs_length=1_000) as python:
        logs = run(python, "for i in range(100_000): print(i)").logs
        assert len(logs) < 1_100
        assert logs.startswith("0\n1\n2\n")
        assert logs.endswith("99998\n99999\n")
        assert "characters cut out here" in logs
        assert run(python, "print('x' * 10**7)").logs.count("x") == 999
        assert run(python, "print('short')").logs == "short\n"


def test_output_comes_in_order_as_it_is_printed() -> None:
    tools = {"tool": lambda: None}
    with interpreter(tools=tools, **ANY) as python:
        code = (
            "import sys\n"
            "print('a'); print('b', end=''); tool(); print('c', file=sys.stderr)\n"
            "sys.stdout.write('d'); sys.stdout.flush(); tool()\n"
            "print('e', end='')"
        )
        told: list[object] = []
        for event in python.execute(code):
            if isinstance(event, ToolRequest):
                told.append("tool")
                python.reply(event, None)
            elif isinstance(event, Printed):
                told.append(event.text)
        assert told == ["a\n", "b", "tool", "c\n", "d", "tool", "e"]


def test_output_of_threads_is_captured() -> None:
    with interpreter(**ANY) as python:
        code = (
            "import threading\n"
            "t = threading.Thread(target=print, args=('from a thread',)); t.start(); t.join()"
        )
        assert run(python, code).logs == "from a thread\n"


def test_the_code_may_change_stdout_for_itself() -> None:
    with interpreter(**ANY) as python:
        code = (
            "import contextlib, io, sys\n"
            "with contextlib.redirect_stdout(io.StringIO()) as got: print('caught')\n"
            "sys.stdout = None\n"
            "got.getvalue()"
        )
        assert value(python, code) == "caught\n"
        assert run(python, "print('back')").logs == "back\n"


def test_a_value_that_cannot_leave_is_shown() -> None:
    with interpreter() as python:
        result = run(
            python, "class Thing:\n    def __repr__(self): return '<a thing>'\n[1, Thing()]"
        )
        assert result.output == [1, SandboxValue("Thing", "<a thing>", "result_1")]
        assert result.text == ("[1, <a thing>]\n<Thing object, kept in the sandbox as 'result_1'>")
        result = run(python, "x = []\nx.append(x)\nx")
        assert result.output == SandboxValue("list", "[[...]]", "result_2")
        assert isinstance(value(python, "bytes(100 << 20)"), SandboxValue)


def test_variables_enter() -> None:
    with interpreter() as python:
        python.set_variables({"x": {1: (2, 3)}, "y": b"z"})
        assert value(python, "x, y") == ({1: (2, 3)}, b"z")
        python.set_variables({"x": 5})
        assert value(python, "x, y") == (5, b"z")


def test_large_values_cross_both_ways() -> None:
    big = bytes(range(256)) * 40_000
    tools: Tools = {"big": lambda: big, "check": lambda data: data == big}
    with interpreter(tools=tools) as python:
        python.set_variables({"sent": big})
        assert value(python, "check(sent), check(big())", tools) == (True, True)
        assert value(python, "sent") == big

    async def main() -> None:
        async with ainterpreter(tools=tools) as python:
            python.set_variables({"sent": big})
            result = await arun(python, "check(sent), check(big())", tools)
            assert result.output == (True, True)

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["local", "inprocess"])
def test_large_replies_from_other_threads_arrive(kind: str) -> None:
    big = bytes(5_000_000)
    tools = {"big": lambda: big}
    with interpreter(kind, tools, **ANY) as python:
        code = (
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(4) as pool:\n"
            "    got = [len(f.result()) for f in [pool.submit(big) for _ in range(8)]]\n"
            "got"
        )
        assert value(python, code, tools) == [len(big)] * 8


def test_the_time_of_tools_does_not_count() -> None:
    tools = {"slow": lambda: time.sleep(0.5)}
    with interpreter(tools=tools, timeout_seconds=0.3) as python:
        assert value(python, "slow(); slow(); 1", tools) == 1
        assert isinstance(run(python, "slow()\nwhile True: pass", tools).error, SandboxTimeout)


# Interrupts


@pytest.mark.parametrize("kind", ["local", "inprocess"])
def test_an_interrupt_ends_the_step(kind: str) -> None:
    with interpreter(kind, tools={"started": lambda: None}) as python:
        execution = python.execute("kept = 1\nstarted()\nwhile True: pass")
        request = next(execution)
        assert isinstance(request, ToolRequest)
        python.reply(request, None)
        threading.Timer(0.1, python.interrupt).start()
        with pytest.raises(StopIteration) as done:
            next(execution)
        result = done.value.value
        assert isinstance(result.error, InterpreterError)
        assert str(result.error).startswith("The step was interrupted.")
        assert value(python, "kept") == 1


@pytest.mark.parametrize("kind", ["local", "inprocess"])
def test_an_interrupt_ends_a_step_that_waits_for_a_tool(kind: str) -> None:
    with interpreter(kind, tools={"never": lambda: None}) as python:
        execution = python.execute("kept = 1\nnever()")
        request = next(execution)
        python.interrupt()
        with pytest.raises(StopIteration) as done:
            next(execution)
        assert isinstance(done.value.value.error, InterpreterError)
        assert isinstance(request, ToolRequest)
        python.reply(request, "too late")
        assert value(python, "kept") == 1


def test_an_interrupt_ends_threads_that_wait_for_tools() -> None:
    with interpreter(tools={"never": lambda: None}, timeout_seconds=20, **ANY) as python:
        code = (
            "from concurrent.futures import ThreadPoolExecutor\n"
            "kept = 1\n"
            "with ThreadPoolExecutor(3) as pool: got = list(pool.map(lambda _: never(), range(3)))"
        )
        execution = python.execute(code)
        asked = [next(execution) for _ in range(3)]
        assert all(isinstance(request, ToolRequest) for request in asked)
        python.interrupt()
        with pytest.raises(StopIteration) as done:
            next(execution)
        assert "The step was interrupted" in str(done.value.value.error)
        assert value(python, "kept") == 1


def test_an_interrupt_that_is_ignored_kills() -> None:
    with interpreter(tools={"started": lambda: None}) as python:
        execution = python.execute(f"try: started()\nexcept BaseException: pass\n{GO_ON}")
        next(execution)
        python.interrupt()
        with pytest.raises(StopIteration) as done:
            next(execution)
        assert isinstance(done.value.value.error, SandboxCrashed)
        assert "interrupted and did not stop" in str(done.value.value.error)


def test_an_interrupt_between_steps_does_nothing(python: Interpreter) -> None:
    python.interrupt()
    assert value(python, "1") == 1
    python.interrupt()
    assert value(python, "2") == 2


@pytest.mark.parametrize("kind", ["local", "inprocess"])
def test_closing_the_generator_ends_the_step(kind: str) -> None:
    with interpreter(kind, tools={"ask": lambda: None}) as python:
        for code in ("kept = 1\nask()", "kept += 1\nprint('x')\nwhile True: pass"):
            with closing(python.execute(code)) as execution:
                next(execution)
        assert value(python, "kept") == 2


def test_closing_the_generator_kills_what_goes_on() -> None:
    with interpreter() as python:
        with closing(python.execute(SWALLOW)) as execution:
            assert next(execution) == Printed("said\n")
        assert value(python, "1") == 1


@pytest.mark.parametrize("kind", ["local", "inprocess"])
@pytest.mark.parametrize("way", ["cancel", "close"])
def test_leaving_the_async_form_ends_the_step(kind: str, way: str) -> None:
    async def main() -> None:
        async with ainterpreter(kind) as python:
            reached = asyncio.Event()

            async def drive() -> None:
                async with aclosing(python.aexecute("kept = 1\nprint()\nwhile True: pass")) as it:
                    async for _ in it:
                        reached.set()
                        if way == "close":
                            break

            task = asyncio.create_task(drive())
            await reached.wait()
            if way == "cancel":
                task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() == (way == "cancel")
            assert (await arun(python, "kept")).output == 1

    asyncio.run(main())


# Order


def test_one_step_at_a_time() -> None:
    with interpreter(tools={"ask": lambda: None}) as python:
        first = python.execute("ask()")
        request = next(first)
        with pytest.raises(RuntimeError, match="one at a time"):
            next(python.execute("1"))
        assert isinstance(request, ToolRequest)
        python.reply(request, None)
        with pytest.raises(StopIteration):
            next(first)
        assert value(python, "1") == 1


def test_a_closed_interpreter_says_so(python: Interpreter) -> None:
    python.close()
    python.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(python.execute("1"))
    with pytest.raises(RuntimeError, match="closed"):
        python.open()


def test_closing_from_another_thread_ends_the_step(python: Interpreter) -> None:
    execution = python.execute("print()\nwhile True: pass")
    next(execution)
    threading.Timer(0.05, python.close).start()
    with pytest.raises(StopIteration) as done:
        next(execution)
    assert isinstance(done.value.value.error, SandboxCrashed)


def test_the_layers_are_told(python: Interpreter) -> None:
    assert {"landlock", "seccomp", "rlimits", "no_new_privs"} <= python.layers.keys()


def test_fifty_interpreters_at_once_under_asyncio() -> None:
    async def one(number: int) -> None:
        tools = {"double": lambda n: n * 2}
        async with ainterpreter(tools=tools) as python:
            await arun(python, f"x = {number}")
            everybody.append(python)
            if len(everybody) == 50:
                assembled.set()
            await assembled.wait()
            assert (await arun(python, "double(x)", tools)).output == number * 2

    everybody: list[Interpreter] = []
    assembled = asyncio.Event()

    async def main() -> None:
        before = threading.active_count()
        await asyncio.gather(*map(one, range(50)))
        # The loop's own pool for blocking calls, and the thread that makes processes.
        assert threading.active_count() - before < 40

    asyncio.run(main())


def test_the_async_form_yields_the_result_last() -> None:
    async def main() -> None:
        tools = {"add": lambda a, b: a + b}
        async with ainterpreter(tools=tools) as python:
            await python.aopen()
            events = []
            async for event in python.aexecute("print('x')\nadd(1, b=2)"):
                events.append(event)
                if isinstance(event, ToolRequest):
                    threading.Thread(target=answer, args=(python, event, tools)).start()
            assert events[0] == Printed("x\n")
            assert events[2] == CodeResult(3, "3", "x\n")
            assert len(events) == 3

    asyncio.run(main())


def test_other_tasks_go_on_meanwhile() -> None:
    async def main() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        async with ainterpreter(timeout_seconds=0.5, **ANY) as python:
            task = asyncio.create_task(tick())
            await arun(python, f"{FORGE}while True: say(t='out', id=0, text='x')")
            task.cancel()
        assert ticks > 10

    asyncio.run(main())


def test_a_machine_without_walls_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with interpreter() as python, monkeypatch.context() as elsewhere:
        elsewhere.setattr("sys.platform", "plan9")
        with pytest.raises(SandboxUnavailable, match=r"Ways out: .*inprocess"):
            python.open()


def test_a_copy_knows_the_objects_of_the_host() -> None:
    class Store:
        def get(self) -> int:
            return 7

    store = Store()
    tools: Tools = {"take": lambda given: given is store}
    with interpreter(tools=tools, **ANY) as python:
        python.set_variables({"store": HostObject(store, ["get"])})
        assert value(python, "store.get()") == 7
        if not python.layers.get("snapshots"):
            pytest.skip("no copies can be made here")
        assert isinstance(python, RemoteInterpreter)
        with closing(python.fork()) as twin:
            assert value(twin, "store.get(), take(store)", tools) == (7, True)
