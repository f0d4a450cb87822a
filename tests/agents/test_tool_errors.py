"""Whatever a tool or a check raises, the model hears of it, or the caller of the run does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sanderling import (
    ActionStep,
    AgentGenerationError,
    CodeAgent,
    HostObject,
    LogLevel,
    ScriptedModel,
    Tool,
    ToolCallingAgent,
    tool,
)
from support.drivers import AsyncDriver, Driver, both_drivers
from support.failures import FAILURES, Leave, UnwritableError
from support.play import says

every_failure = pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
CATCHING = """
def caught(_=None):
    try: broken()
    except Exception as error: return f"{type(error).__name__}: {error}"
"""
ALONE, TOGETHER = "broken()", "parallel(lambda _: broken(), range(3))"


def raising(error: BaseException) -> Tool:
    @tool
    def broken() -> int:
        """Fails."""
        raise error

    return broken


def code_agent(tools: list[Tool], *codes: str, **kwargs: Any) -> CodeAgent:
    model = ScriptedModel([f"<code>\n{code}\n</code>" for code in codes])
    return CodeAgent(tools, model, verbosity_level=LogLevel.OFF, **kwargs)


def error_of(agent: CodeAgent) -> str:
    step = agent.memory.steps[1]
    assert isinstance(step, ActionStep)
    return str(step.error)


@both_drivers
@every_failure
@pytest.mark.parametrize("executor", ["local", "inprocess"])
def test_code_catches_what_a_tool_raises(
    driver: Driver, error: BaseException, executor: str
) -> None:
    action = f"{CATCHING}\nfinal_answer([caught(), *parallel(caught, range(3))])"
    with code_agent([raising(error)], action, executor_type=executor) as agent:
        told = driver.run(agent, "Go.")
    assert len(told) == 4
    assert all(type(error).__name__ in text for text in told)


@both_drivers
@every_failure
@pytest.mark.parametrize("calls", [1, 2])
def test_an_agent_that_calls_tools_goes_on(
    driver: Driver, error: BaseException, calls: int
) -> None:
    last = says(None, ("final_answer", {"answer": "done"}))
    model = ScriptedModel([says(None, *[("broken", {})] * calls), last])
    agent = ToolCallingAgent([raising(error)], model, verbosity_level=LogLevel.OFF)
    assert driver.run(agent, "Go.") == "done"
    told = [message.text for message in model.requests[1].messages]
    assert sum(text.count("The tool 'broken' raised ") for text in told) == calls


@pytest.mark.parametrize("code", [ALONE, TOGETHER])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), Leave()], ids=lambda e: type(e).__name__)
def test_what_is_no_error_reaches_the_caller_of_the_run(code: str, error: BaseException) -> None:
    with code_agent([raising(error)], code) as agent, pytest.raises(type(error)):
        agent.run("Go.")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Leave()], ids=lambda e: type(e).__name__)
def test_in_a_worker_thread_it_leaves_the_event_loop_alone(error: BaseException) -> None:
    action = f"{CATCHING}\nfinal_answer([caught(), *parallel(caught, range(3))])"
    with code_agent([raising(error)], action) as agent:
        told = AsyncDriver().run(agent, "Go.")
    assert len(told) == 4
    assert all(type(error).__name__ in text for text in told)


@tool
async def abort() -> None:
    """Awaits what was cancelled."""
    raise asyncio.CancelledError


@both_drivers
@pytest.mark.parametrize("code", ["abort()", "parallel(lambda _: abort(), range(3))"])
def test_a_tool_that_awaits_what_was_cancelled_has_failed(driver: Driver, code: str) -> None:
    with code_agent([abort], code, "final_answer('done')") as agent:
        assert driver.run(agent, "Go.") == "done"
        assert "The tool 'abort' raised CancelledError" in error_of(agent)


def test_calls_of_tools_end_when_their_run_is_cancelled() -> None:
    begun = asyncio.Event()

    @tool
    async def hold() -> None:
        """Holds."""
        begun.set()
        await asyncio.sleep(3_600)

    async def main() -> None:
        with code_agent([hold], "hold()") as agent:
            run = asyncio.create_task(agent.arun("Go."))
            await asyncio.wait_for(begun.wait(), 30)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

    asyncio.run(main())


@both_drivers
@pytest.mark.parametrize("error", [KeyError(10**5_000), UnwritableError()], ids=["long", "none"])
def test_an_error_of_a_model_that_has_no_text(driver: Driver, error: Exception) -> None:
    agent = CodeAgent([], ScriptedModel([error]), verbosity_level=LogLevel.OFF)
    with pytest.raises(
        AgentGenerationError, match=f"ScriptedModel failed with {type(error).__name__}"
    ):
        driver.run(agent, "Go.")


class Line:
    """A service that is gone."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def ask(self) -> None:
        raise self._error


@both_drivers
@every_failure
def test_code_catches_what_a_method_of_the_host_raises(
    driver: Driver, error: BaseException
) -> None:
    action = f"{CATCHING}\nfinal_answer([caught(), *parallel(caught, range(3))])"
    line = HostObject(Line(error), methods=["ask"])
    with code_agent([], action.replace("broken()", "line.ask()")) as agent:
        told = driver.run(agent, "Go.", additional_args={"line": line})
    assert len(told) == 4
    assert all(type(error).__name__ in text for text in told)


class Refuses:
    """A check without a name, and without a text."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __call__(self, answer: Any) -> bool:
        raise self._error

    def __repr__(self) -> str:
        raise LookupError("no name")


@both_drivers
@every_failure
@pytest.mark.parametrize("named", [True, False])
def test_a_check_that_raises_refuses_the_answer(
    driver: Driver, error: BaseException, named: bool
) -> None:
    def check(answer: Any) -> bool:
        raise error

    checks = [check if named else Refuses(error)]
    codes = ["final_answer(1)"] * 2
    with code_agent([], *codes, final_answer_checks=checks, max_steps=1) as agent:
        driver.run(agent, "Go.")
        told = error_of(agent)
    assert "The final answer was refused by the check " in told
    assert ("'check'" in told) is named
