from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from sanderling._bridge import in_thread, wait_for

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


async def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_one_loop_serves_all_callers() -> None:
    with ThreadPoolExecutor(4) as pool:
        loops = set(pool.map(lambda _: wait_for(_loop()), range(20)))
    assert loops == {wait_for(_loop())}


def test_callers_do_not_wait_for_each_other() -> None:
    async def main() -> tuple[threading.Barrier, asyncio.Event]:
        return threading.Barrier(2), asyncio.Event()

    _, event = wait_for(main())

    async def first() -> str:
        await event.wait()
        return "first"

    async def second() -> str:
        event.set()
        return "second"

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait_for, first())
        assert wait_for(second()) == "second"
        assert waiting.result(10) == "first"


def test_each_call_has_the_context_of_its_caller() -> None:
    async def rename() -> str:
        before = NAME.get()
        NAME.set("changed inside")
        return before

    NAME.set("a")
    assert [wait_for(rename()), wait_for(rename()), NAME.get()] == ["a", "a", "a"]


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), LookupError("x"), GeneratorExit()]
)
def test_errors_come_back_and_the_loop_lives_on(error: BaseException) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        wait_for(fail())
    assert wait_for(_loop()).is_running()


def test_a_coroutine_that_would_wait_for_itself_is_told() -> None:
    async def nested() -> None:
        wait_for(_loop())

    with pytest.raises(RuntimeError, match=r"await tool\.acall"):
        wait_for(nested())


def test_stop_iteration_does_not_hang() -> None:
    async def main() -> None:
        await in_thread(lambda: next(iter([])))

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(asyncio.wait_for(main(), 10))


def test_an_interrupt_cancels_the_coroutine(run_python: Callable[[str], str]) -> None:
    out = run_python(
        """
import asyncio, os, signal
from sanderling._bridge import wait_for

gone = []
async def forever():
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.Event().wait()
    finally:
        gone.append("cancelled")

try:
    wait_for(forever())
except KeyboardInterrupt:
    async def look():
        while not gone:
            await asyncio.sleep(0)
        return gone
    print(wait_for(look()))
"""
    )
    assert out == "['cancelled']\n"


def test_a_forked_child_has_threads_of_its_own(run_python: Callable[[str], str]) -> None:
    out = run_python(
        """
import asyncio, os, warnings
from sanderling._bridge import in_thread, wait_for
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork with threads

async def answer(): return 42
async def ask(): return await in_thread(lambda: 43)

print(wait_for(answer()), asyncio.run(ask()), flush=True)
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
print(wait_for(answer()), asyncio.run(ask()), flush=True)
"""
    )
    assert out == "42 43\n" * 3
