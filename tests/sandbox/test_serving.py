"""Functions that code in a sandbox calls: each call is answered, whatever the function does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from sanderling.errors import InterpreterError
from sanderling.sandbox import LocalPythonExecutor
from sanderling.sandbox._serving import ServingInterpreter
from support.failures import FAILURES, Leave
from support.places import Driven
from support.sandbox import interpreter

ALONE, TOGETHER = "broken()", "parallel(lambda _: broken(), range(3))"
CATCHING = """
def caught(_=None):
    try: broken()
    except Exception as error: return f"{type(error).__name__}: {error}"
"""


@pytest.fixture(params=["local", "inprocess"])
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


def raising(error: BaseException) -> Callable[[], None]:
    def broken() -> None:
        raise error

    return broken


@pytest.fixture(params=["sync", "async"])
def serving(kind: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., Driven]]:
    with interpreter(kind, timeout_seconds=60) as python:
        yield lambda **functions: Driven(
            ServingInterpreter(python, functions, members=True),
            request.param,
        )


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_the_code_catches_what_a_function_raises(
    serving: Callable[..., Driven], error: BaseException
) -> None:
    python = serving(broken=raising(error))
    told = python.value(f"{CATCHING}\n[caught(), *parallel(caught, range(3))]")
    assert [type(error).__name__ in each for each in told] == [True] * 4


@pytest.mark.parametrize("code", [ALONE, TOGETHER])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), Leave()], ids=lambda e: type(e).__name__)
def test_what_is_no_error_ends_the_step_and_reaches_the_caller(
    code: str, error: BaseException
) -> None:
    functions = {"broken": raising(error), "fine": lambda: 1}
    with LocalPythonExecutor(additional_functions=functions) as python:
        with pytest.raises(type(error)):
            python(code)
        assert python("fine()").output == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Leave()], ids=lambda e: type(e).__name__)
def test_in_a_worker_thread_it_is_an_error_of_the_call(error: BaseException) -> None:
    with interpreter(timeout_seconds=60) as python:
        driven = Driven(
            ServingInterpreter(python, {"broken": raising(error)}, members=True), "async"
        )
        told = driven.value(f"{CATCHING}\n[caught(), *parallel(caught, range(3))]")
    assert [type(error).__name__ in each for each in told] == [True] * 4


def test_an_interrupt_of_the_caller_answers_the_calls_under_way() -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def hold(_: int) -> None:
        begun.release()
        go_on.wait(20)

    def stop() -> None:
        for _ in range(2):
            begun.acquire(timeout=20)
        go_on.set()
        raise KeyboardInterrupt

    with LocalPythonExecutor(additional_functions={"hold": hold, "stop": stop}) as python:
        with pytest.raises(KeyboardInterrupt):
            python("calls = [hold._start(n) for n in range(2)]\nstop()")
        assert python("1 + 1").output == 2


async def _cancelled() -> None:
    raise asyncio.CancelledError


def test_a_coroutine_that_was_cancelled_is_an_error_of_the_call() -> None:
    with (
        LocalPythonExecutor(additional_functions={"broken": _cancelled}) as python,
        pytest.raises(InterpreterError, match="CancelledError"),
    ):
        python(TOGETHER)
