"""Code in this very process: live objects, the same rules, no walls."""

from __future__ import annotations

import asyncio
import cProfile
import gc
import multiprocessing
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, aclosing

import pytest

from sanderling.errors import SandboxTimeout
from sanderling.sandbox import (
    CodeResult,
    Interpreter,
    Printed,
    ToolRequest,
    ToolSpec,
    create_interpreter,
)
from support.sandbox import Tools, error, interpreter, run, value


class Live:
    """An object that could not cross a wire."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0


@pytest.fixture
def python() -> Iterator[Interpreter]:
    with interpreter("inprocess", timeout_seconds=0.3) as made:
        yield made


def test_objects_are_the_hosts_own(python: Interpreter) -> None:
    live = Live()
    python.set_variables({"live": live})
    assert value(python, "live.count += 1\nlive") is live
    assert live.count == 1
    tools: Tools = {"give": lambda: live, "take": lambda thing: thing is live}
    with interpreter("inprocess", tools) as made:
        assert value(made, "take(give())", tools) is True


def test_it_has_no_walls_and_says_so(python: Interpreter) -> None:
    python.open()
    assert python.layers == {}


def test_code_has_one_thread_of_its_own(python: Interpreter) -> None:
    python.set_variables({"thread": threading.get_ident})
    first = value(python, "thread()")
    with interpreter("inprocess") as other:
        other.set_variables({"thread": threading.get_ident})
        assert value(other, "thread()") != first
    assert value(python, "thread()") == first


def test_steps_that_block_do_not_keep_others_waiting() -> None:
    started, release = threading.Semaphore(0), threading.Event()

    def block() -> None:
        started.release()
        release.wait()

    async def main() -> list[str]:
        with ExitStack() as stack:
            made = [stack.enter_context(interpreter("inprocess")) for _ in range(30)]
            steps = [asyncio.create_task(_calling_what_it_gets(one, block)) for one in made]
            for _ in steps:
                await asyncio.to_thread(started.acquire)  # each while all before it block
            release.set()
            return [result.text for result in await asyncio.gather(*steps)]

    assert asyncio.run(main()) == ["done"] * 30


async def _calling_what_it_gets(python: Interpreter, function: Callable[[], None]) -> CodeResult:
    last: object = None
    python.set_tools([ToolSpec("give", "()", "")])
    async with aclosing(python.aexecute("give()()\n'done'")) as execution:
        async for last in execution:
            if isinstance(last, ToolRequest):
                python.reply(last, function)
    assert isinstance(last, CodeResult)
    return last


def test_context_variables_stay_between_steps() -> None:
    with interpreter("inprocess", additional_authorized_imports=["contextvars"]) as made:
        run(made, "import contextvars\nkept = contextvars.ContextVar('kept')\nkept.set(1)")
        assert value(made, "kept.get()") == 1


@pytest.mark.parametrize("code", ["1", "while True: pass"], ids=["ended", "interrupted"])
def test_what_is_profiled_goes_on_after_a_step(python: Interpreter, code: str) -> None:
    run(python, code)
    profile = cProfile.Profile()
    assert profile.runcall(sum, (number for number in range(10))) == 45


def test_print_is_captured(python: Interpreter, capsys: pytest.CaptureFixture[str]) -> None:
    with interpreter("inprocess", additional_authorized_imports=["sys"]) as made:
        code = "import sys\nprint('a', 1, sep='-')\nprint('b', file=sys.stderr)"
        assert run(made, code).logs == "a-1\nb\n"
    assert capsys.readouterr().out == ""


def test_output_has_an_end() -> None:
    with interpreter("inprocess", max_print_outputs_length=100) as made:
        logs = run(made, "for i in range(1000): print(i)").logs
        assert len(logs) < 200
        assert "cut out here" in logs


def test_python_code_is_stopped_and_keeps_its_state(python: Interpreter) -> None:
    result = run(python, "kept = 1\nprint('said')\nwhile True: pass")
    assert isinstance(result.error, SandboxTimeout)
    assert "was stopped" in str(result.error)
    assert result.logs == "said\n"
    assert value(python, "kept") == 1


def test_what_cannot_be_stopped_is_left_behind(python: Interpreter) -> None:
    release = threading.Event()
    python.set_variables({"wait": release.wait, "kept": 1})
    try:
        result = run(python, "lost = 1\nwait()")
        assert isinstance(result.error, SandboxTimeout)
        assert "goes on in the background" in str(result.error)
        assert "NameError" in error(python, "lost")
        assert value(python, "kept") == 1
    finally:
        release.set()


def test_its_thread_ends_with_it() -> None:
    before = set(threading.enumerate())
    python = create_interpreter("inprocess", additional_authorized_imports=["sqlite3"])
    value(python, "1")
    (thread,) = set(threading.enumerate()) - before
    gone = weakref.ref(python)
    del python
    gc.collect()
    assert gone() is None
    thread.join(10)
    assert not thread.is_alive()


def test_the_builtins_of_the_host_stay_as_they_are(python: Interpreter) -> None:
    value(python, "def len(x): return 'mine'\nprint = 5\nsum = 6")
    assert len("abc") == 3
    assert sum([1, 2]) == 3


@pytest.mark.parametrize("code", ["1", "sum(range(20_000))", "print(1)\nrun = [None]\nrun"])
def test_an_interrupt_ends_no_other_step_than_its_own(python: Interpreter, code: str) -> None:
    """It comes anywhere in a step, at its very end and after it."""
    barrier = threading.Barrier(2)

    def interrupt() -> None:
        for round_ in range(100):
            barrier.wait(20)
            for _ in range(round_ * 10):
                pass
            python.interrupt()
            barrier.wait(20)

    thread = threading.Thread(target=interrupt)
    thread.start()
    for _ in range(100):
        barrier.wait(20)
        result = run(python, code)
        assert result.error is None or "The step was interrupted" in str(result.error)
        barrier.wait(20)
        assert value(python, "'the next one'") == "the next one"
    thread.join()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_goes_on_with_the_interpreter(python: Interpreter) -> None:
    value(python, "kept = 1")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=lambda: answers.put(value(python, "kept + 1")))
    process.start()
    process.join(20)
    assert (process.exitcode, answers.get()) == (0, 2)
    assert value(python, "kept") == 1


def test_closing_ends_a_step_that_another_thread_drives() -> None:
    python = create_interpreter("inprocess")
    python.set_tools([ToolSpec("go_on", "()", "")])
    execution = python.execute("print('said')\ngo_on()\nwhile True: pass")
    assert isinstance(next(execution), Printed)
    request = next(execution)
    assert isinstance(request, ToolRequest)
    python.reply(request, None)
    python.close()
    with pytest.raises(StopIteration) as ended:
        next(execution)
    result = ended.value.value
    assert "The step was interrupted" in str(result.error)
    assert result.logs == "said\n"
