"""Ending runs from outside: `interrupt`, and the cancelling of a task."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from console.screen import Screen
from sanderling import (
    ActionStep,
    AgentInterruptedError,
    ChatMessage,
    ChatMessageStreamDelta,
    CodeAgent,
    CodeOutputDelta,
    LogLevel,
    MultiStepAgent,
    NestedEvent,
    RunResult,
    ScriptedModel,
    ToolCallingAgent,
    tool,
)
from support.drivers import AsyncDriver, Driver, both_drivers
from support.play import says
from support.stuck import PATIENCE, Busy, Endless, Stuck, StuckClient


def code(*lines: str) -> str:
    return "Thinking.\n<code>\n" + "\n".join(lines) + "\n</code>"


def in_this_thread(call: Callable[[], Any]) -> Any:
    return call()


def in_another_thread(call: Callable[[], Any]) -> Any:
    """Calls in a thread that no signal reaches; hands the exception on."""
    caught: list[BaseException] = []
    said: list[Any] = []

    def run() -> None:
        try:
            said.append(call())
        except BaseException as error:  # raised again below
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    if caught:
        raise caught[0]
    return said[0]


everywhere = pytest.mark.parametrize("where", [in_this_thread, in_another_thread])
Where = Callable[[Callable[[], Any]], Any]


def interrupted(agent: MultiStepAgent, busy: Busy, driver: Driver, where: Where) -> RunResult:
    """Runs until the interrupt; returns what the error says was done."""
    start = time.monotonic()
    with busy.interrupting(agent), pytest.raises(AgentInterruptedError) as caught:
        where(lambda: driver.run(agent, "Go."))
    assert time.monotonic() - start < PATIENCE
    result = caught.value.result
    assert isinstance(result, RunResult)
    assert result.state == "interrupted"
    assert result.output is None
    return result


@everywhere
@both_drivers
@pytest.mark.parametrize("kind", [Stuck, StuckClient])
def test_a_model_call_is_broken_off(driver: Driver, where: Where, kind: type[Stuck]) -> None:
    busy = Busy()
    model = kind(busy, code("x = 1", "x"))
    agent = CodeAgent([], model, executor_type="inprocess", verbosity_level=LogLevel.OFF)
    with agent:
        result = interrupted(agent, busy, driver, where)
    assert [step["type"] for step in result.steps] == ["TaskStep", "ActionStep"]
    assert isinstance(model, Stuck)
    if isinstance(model, StuckClient):
        assert model.ended.wait(PATIENCE)


@everywhere
@both_drivers
def test_a_stream_is_broken_off(driver: Driver, where: Where) -> None:
    busy = Busy()
    agent = CodeAgent([], Endless(busy), stream_outputs=True, verbosity_level=LogLevel.OFF)
    interrupted(agent, busy, driver, where)


@everywhere
@both_drivers
@pytest.mark.parametrize("executor", ["local", "inprocess"])
def test_code_is_broken_off(driver: Driver, where: Where, executor: str) -> None:
    busy = Busy()

    @tool
    def ready() -> None:
        """Tells that the code runs."""
        busy.begun.set()

    replies = [code("x = 5"), code("ready()", "while True: pass"), code("final_answer(x)")]
    agent = CodeAgent(
        [ready],
        ScriptedModel(replies),
        executor_type=executor,
        executor_kwargs={"timeout_seconds": None},
        verbosity_level=LogLevel.OFF,
    )
    with agent:
        interrupted(agent, busy, driver, where)
        last = agent.memory.steps[-1]
        assert isinstance(last, ActionStep)
        assert isinstance(last.error, AgentInterruptedError)
        assert "while True" in (last.code_action or "")
        assert driver.run(agent, "Go on.", reset=False) == 5  # the variables are still there


@everywhere
@both_drivers
@pytest.mark.parametrize("calls", [1, 3])
def test_a_tool_is_broken_off(driver: Driver, where: Where, calls: int) -> None:
    busy = Busy()
    ended = threading.Event()

    @tool
    async def hang() -> None:
        """Waits."""
        busy.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    model = ScriptedModel([says(None, *[("hang", {})] * calls)])
    agent = ToolCallingAgent([hang], model, verbosity_level=LogLevel.OFF)
    interrupted(agent, busy, driver, where)
    assert calls > 1 or ended.wait(PATIENCE)


@both_drivers
def test_a_tool_called_from_code_is_broken_off(driver: Driver) -> None:
    busy = Busy()

    @tool
    async def hang() -> None:
        """Waits."""
        busy.begun.set()
        await asyncio.Event().wait()

    agent = CodeAgent([hang], ScriptedModel([code("hang()")]), verbosity_level=LogLevel.OFF)
    with agent:
        interrupted(agent, busy, driver, in_this_thread)


@everywhere
def test_a_blocking_tool_ends_the_run_when_it_returns_and_says_so(where: Where) -> None:
    busy = Busy()
    screen = Screen()

    @tool
    def block() -> str:
        """Blocks until the run has been interrupted."""
        busy.begun.set()
        deadline = time.monotonic() + PATIENCE
        while "returns" not in screen.text and time.monotonic() < deadline:
            time.sleep(0.01)
        return "done"

    model = ScriptedModel([says(None, ("block", {}))])
    agent = ToolCallingAgent([block], model, logger=screen.logger)
    interrupted(agent, busy, Driver(), where)
    assert "The run ends when the tool 'block' returns" in screen.text


@everywhere
@both_drivers
def test_the_runs_of_managed_agents_end_with_their_managers(driver: Driver, where: Where) -> None:
    busy = Busy()

    @tool
    async def hang() -> None:
        """Waits."""
        busy.begun.set()
        await asyncio.Event().wait()

    def reply(messages: list[ChatMessage]) -> ChatMessage:
        return says(None, ("hang", {}))

    child = ToolCallingAgent(
        [hang], ScriptedModel(reply), name="child", description="d", verbosity_level=LogLevel.OFF
    )
    for calls in (1, 2):
        busy.begun.clear()
        model = ScriptedModel([says(None, *[("child", {"task": "Go."})] * calls)])
        manager = ToolCallingAgent([], model, managed_agents=[child], verbosity_level=LogLevel.OFF)
        interrupted(manager, busy, driver, where)


@both_drivers
def test_an_interrupt_between_the_events_of_a_stream_counts(driver: Driver) -> None:
    agent = CodeAgent(
        [],
        ScriptedModel([code("x = 1"), code("x = 2")]),
        executor_type="inprocess",
        verbosity_level=LogLevel.OFF,
    )
    seen = []

    def note(event: Any) -> None:
        seen.append(event)
        if isinstance(event, ActionStep):
            agent.interrupt()

    async def awatch() -> None:
        async for event in agent.astream("Go."):
            note(event)

    def watch() -> None:
        for event in agent.run("Go.", stream=True):
            note(event)

    with agent, pytest.raises(AgentInterruptedError):
        asyncio.run(awatch()) if isinstance(driver, AsyncDriver) else watch()
    assert sum(isinstance(event, ActionStep) for event in seen) == 1


@both_drivers
def test_what_a_tool_returns_after_it_has_interrupted_its_run_does_not_count(
    driver: Driver,
) -> None:
    @tool
    async def halt() -> str:
        """Ends the run."""
        agent.interrupt()
        return "halted"

    agent = ToolCallingAgent(
        [halt], ScriptedModel([says(None, ("halt", {}))]), verbosity_level=LogLevel.OFF
    )
    with pytest.raises(AgentInterruptedError):
        driver.run(agent, "Go.")
    step = agent.memory.steps[-1]
    assert isinstance(step, ActionStep)
    assert isinstance(step.error, AgentInterruptedError)
    assert step.observations is None


def test_the_task_of_an_interrupted_run_goes_on() -> None:
    busy = Busy()
    agent = ToolCallingAgent([], StuckClient(busy), verbosity_level=LogLevel.OFF)

    async def main() -> int:
        with pytest.raises(AgentInterruptedError):
            await agent.arun("Go.")
        await asyncio.sleep(0)
        task = asyncio.current_task()
        return -1 if task is None else task.cancelling()

    with busy.interrupting(agent):
        assert asyncio.run(main()) == 0


@both_drivers
def test_a_callback_may_interrupt_its_own_run(driver: Driver) -> None:
    after = []

    def stop(step: ActionStep, agent: CodeAgent) -> None:
        agent.interrupt()
        after.append(step.step_number)  # callbacks are not broken off

    agent = CodeAgent(
        [],
        ScriptedModel([code("x = 1"), code("x = 2")]),
        executor_type="inprocess",
        step_callbacks=[stop],
        verbosity_level=LogLevel.OFF,
    )
    with agent, pytest.raises(AgentInterruptedError):
        driver.run(agent, "Go.")
    assert after == [1]


@both_drivers
def test_an_interrupt_without_a_run_changes_nothing(driver: Driver) -> None:
    agent = CodeAgent(
        [],
        ScriptedModel([code("final_answer(1)")] * 2),
        executor_type="inprocess",
        verbosity_level=LogLevel.OFF,
    )
    with agent:
        agent.interrupt()
        assert driver.run(agent, "Go.") == 1
        agent.interrupt()
        assert driver.run(agent, "Go.", reset=False) == 1


def test_a_sync_run_works_inside_a_running_loop() -> None:
    @tool
    async def soon() -> str:
        """Waits a little."""
        await asyncio.sleep(0)
        return "soon"

    agent = CodeAgent(
        [soon],
        ScriptedModel([code("print('hi')", "final_answer(soon())")]),
        verbosity_level=LogLevel.OFF,
    )

    async def notebook() -> tuple[Any, list[Any]]:
        events: list[Any] = list(agent.run("Go.", stream=True))
        return events[-1].output, events

    with agent:
        output, events = asyncio.run(notebook())
    assert output == "soon"
    assert any(isinstance(event, CodeOutputDelta) for event in events)


@both_drivers
def test_async_callbacks_and_checks_are_awaited(driver: Driver) -> None:
    order: list[Any] = []

    async def note(step: ActionStep) -> None:
        await asyncio.sleep(0)
        order.append(step.step_number)

    async def even(answer: Any, memory: Any, agent: Any) -> bool:
        await asyncio.sleep(0)
        order.append(answer)
        return bool(answer % 2 == 0)

    agent = CodeAgent(
        [],
        ScriptedModel([code("final_answer(3)"), code("final_answer(4)")]),
        executor_type="inprocess",
        step_callbacks=[note],
        final_answer_checks=[even],
        verbosity_level=LogLevel.OFF,
    )
    with agent:
        assert driver.run(agent, "Go.") == 4
    assert order == [3, 1, 4, 2]


def test_cancelling_the_task_cancels_the_model_call() -> None:
    busy = Busy()
    model = StuckClient(busy)
    agent = ToolCallingAgent([], model, verbosity_level=LogLevel.OFF)

    async def main() -> None:
        task = asyncio.create_task(agent.arun("Go."))
        await asyncio.to_thread(busy.begun.wait, PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert model.ended.is_set()


def test_cancelling_the_task_ends_the_code() -> None:
    agent = CodeAgent(
        [],
        ScriptedModel([code("x = 1", "print('on')", "while True: pass"), code("final_answer(x)")]),
        executor_kwargs={"timeout_seconds": None},
        verbosity_level=LogLevel.OFF,
    )

    async def main() -> Any:
        begun = asyncio.Event()

        async def watch() -> None:
            async for event in agent.astream("Go."):
                if isinstance(event, CodeOutputDelta):
                    begun.set()

        task = asyncio.create_task(watch())
        await asyncio.wait_for(begun.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await agent.arun("Go on.", reset=False)

    with agent:
        assert asyncio.run(main()) == 1


def test_time_outs_of_the_caller_are_the_callers() -> None:
    model = StuckClient(Busy())
    agent = ToolCallingAgent([], model, verbosity_level=LogLevel.OFF)

    async def main() -> None:
        async with asyncio.timeout(0.05):
            await agent.arun("Go.")

    with pytest.raises(TimeoutError):
        asyncio.run(main())


def test_a_thread_bound_connection_works_in_a_thread_of_its_own() -> None:
    def work() -> Any:
        database = sqlite3.connect(":memory:")

        @tool
        def query(sql: str) -> int:
            """Asks.

            Args:
                sql: What.
            """
            return int(database.execute(sql).fetchone()[0])

        model = ScriptedModel([code("final_answer(query('select 42'))")])
        with CodeAgent([query], model, verbosity_level=LogLevel.OFF) as agent:
            try:
                return agent.run("Go.")
            finally:
                database.close()

    assert in_another_thread(work) == 42


def test_events_within_managed_agents_stop_too() -> None:
    child = CodeAgent(
        [],
        Endless(Busy()),
        name="child",
        description="d",
        stream_outputs=True,
        verbosity_level=LogLevel.OFF,
    )
    model = ScriptedModel([says(None, ("child", {"task": "Go."}))])
    manager = ToolCallingAgent([], model, managed_agents=[child], verbosity_level=LogLevel.OFF)
    deltas = []

    def watch() -> None:
        for event in manager.run("Go.", stream=True):
            if isinstance(event, NestedEvent) and isinstance(event.event, ChatMessageStreamDelta):
                deltas.append(event)
                manager.interrupt()

    with pytest.raises(AgentInterruptedError):
        watch()
    assert len(deltas) == 1


@pytest.mark.parametrize("kind", [Stuck, StuckClient])
def test_ctrl_c_ends_the_wait_for_a_model_and_leaves_all_clean(kind: type[Stuck]) -> None:
    busy = Busy()
    agent = ToolCallingAgent([], kind(busy), verbosity_level=LogLevel.OFF)
    run = agent.start("Go.")

    def press() -> None:
        if busy.begun.wait(PATIENCE):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    thread = threading.Thread(target=press)
    thread.start()
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run.result()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < PATIENCE
    busy.over.set()
    thread.join()
    assert run.status == "interrupted"
    assert signal.getsignal(signal.SIGURG) in (signal.SIG_DFL, signal.SIG_IGN, None)
    agent.model = ScriptedModel([says(None, ("final_answer", {"answer": 7}))])
    assert agent.run("Go on.", reset=False) == 7
