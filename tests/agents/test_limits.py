"""Limits of runs: held before the next thing is done, over the whole tree, under both drivers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sanderling import (
    ActionStep,
    AgentLimitError,
    ChatMessage,
    CodeAgent,
    LogLevel,
    MessageRole,
    MultiStepAgent,
    Price,
    RunLimits,
    RunResult,
    ScriptedModel,
    TokenUsage,
    ToolCallingAgent,
    tool,
)
from sanderling.loop import CodeOutputDelta, Event, NestedEvent, ToolOutput
from support.drivers import Driver, both_drivers
from support.play import says

MILLION = 1_000_000


@tool
def look(where: str) -> str:
    """Looks.

    Args:
        where: There.
    """
    return "nothing"


def endless(usage: TokenUsage | None = None) -> ScriptedModel:
    """Looks again and again."""

    def reply(messages: list[ChatMessage]) -> ChatMessage:
        return says(None, ("look", {"where": "here"}), token_usage=usage or TokenUsage(10, 2))

    return ScriptedModel(reply, model_id="m")


def seeker(model: ScriptedModel, **kwargs: Any) -> ToolCallingAgent:
    return ToolCallingAgent([look], model, verbosity_level=LogLevel.OFF, **kwargs)


@both_drivers
@pytest.mark.parametrize(
    ("limits", "requests", "steps", "told"),
    [
        (RunLimits(steps=3), 3, 3, "3 steps"),
        (RunLimits(tokens=30), 3, 3, "30 tokens"),
        (RunLimits(tool_calls=2), 3, 3, "2 tool calls"),
        (RunLimits(cost=24, prices={"m": Price(MILLION, MILLION)}), 2, 2, "24 cost"),
        (RunLimits(steps=0), 0, 0, "0 steps"),
        (RunLimits(cost=1, prices={"other": Price(1, 1)}), 0, 0, "no price for the model 'm'"),
    ],
    ids=["steps", "tokens", "tool calls", "cost", "nothing at all", "no price"],
)
def test_what_would_go_beyond_a_limit_is_not_done(
    driver: Driver, limits: RunLimits, requests: int, steps: int, told: str
) -> None:
    model = endless()
    agent = seeker(model)
    with pytest.raises(AgentLimitError, match=told) as caught:
        driver.run(agent, "Seek.", limits=limits)
    assert len(model.requests) == requests
    done = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    assert len(done) == steps
    result = caught.value.result
    assert isinstance(result, RunResult)
    assert (result.state, result.output) == ("limit_error", None)
    assert result.token_usage is not None
    assert result.token_usage.total_tokens == 12 * requests
    assert len(result.steps) == steps + 1


@both_drivers
def test_a_limit_of_tool_calls_holds_for_calls_made_by_code(driver: Driver) -> None:
    text = "<code>\nfor n in range(9):\n    print(n, look('x'))\n</code>"
    agent = CodeAgent(
        [look], ScriptedModel([text]), limits=RunLimits(tool_calls=4), verbosity_level=LogLevel.OFF
    )
    with agent, pytest.raises(AgentLimitError, match="4 tool calls"):
        driver.run(agent, "Go.")
    last = agent.memory.steps[-1]
    assert isinstance(last, ActionStep)
    assert isinstance(last.error, AgentLimitError)


@both_drivers
def test_a_limit_of_time_breaks_off_what_is_in_progress(driver: Driver) -> None:
    @tool
    async def wait() -> None:
        """Waits for ever."""
        await asyncio.Event().wait()

    agent = ToolCallingAgent(
        [wait],
        ScriptedModel([says(None, ("wait", {}))]),
        limits=RunLimits(seconds=0.1),
        verbosity_level=LogLevel.OFF,
    )
    with pytest.raises(AgentLimitError, match=r"0\.1 seconds"):
        driver.run(agent, "Go.")
    assert len(agent.memory.steps) == 2


@both_drivers
def test_a_limit_holds_for_the_whole_tree_and_is_never_exceeded(driver: Driver) -> None:
    model = endless()
    child = seeker(model, name="child", description="d")
    calls = says(None, *[("child", {"task": f"{n}"}) for n in range(8)])
    manager = ToolCallingAgent(
        [], ScriptedModel([calls]), managed_agents=[child], verbosity_level=LogLevel.OFF
    )
    with pytest.raises(AgentLimitError, match="20 steps"):
        driver.run(manager, "Go.", limits=RunLimits(steps=20))
    assert len(model.requests) == 19  # and one of the manager


def events_until_the_end(driver: Driver, agent: MultiStepAgent, limits: RunLimits) -> list[Event]:
    """Returns the events of a run that ends at a limit, those of its managed agents unpacked."""
    seen: list[Event] = []

    def watch() -> None:
        for event in agent.run("Go.", stream=True, limits=limits):
            seen.append(event)  # noqa: PERF402 - what came before the error counts

    async def awatch() -> None:
        async for event in agent.astream("Go.", limits=limits):
            seen.append(event)  # noqa: PERF401 - as above

    with pytest.raises(AgentLimitError) as caught:
        asyncio.run(awatch()) if driver.name == "async" else watch()
    assert caught.value.result.state == "limit_error"
    return [event.event if isinstance(event, NestedEvent) else event for event in seen]


@both_drivers
@pytest.mark.parametrize("limits", [RunLimits(steps=3), RunLimits(tool_calls=2)], ids=str)
def test_a_limit_reached_by_a_managed_agent_is_no_failure_of_a_tool(
    driver: Driver, limits: RunLimits
) -> None:
    # The managed agent has limits of its own as well, which are not reached.
    child = seeker(endless(), name="child", description="d", limits=RunLimits(steps=9))
    asking = ScriptedModel([says(None, ("child", {"task": "Seek."}))])
    manager = ToolCallingAgent([], asking, managed_agents=[child], verbosity_level=LogLevel.OFF)
    events = events_until_the_end(driver, manager, limits)
    told = [event.observation for event in events if isinstance(event, ToolOutput)]
    assert set(told) == {"nothing"}
    assert not any(isinstance(event, ActionStep) and event.error for event in events)
    assert len(asking.requests) == 1
    step = manager.memory.steps[-1]
    assert isinstance(step, ActionStep)
    assert isinstance(step.error, AgentLimitError)


@both_drivers
def test_code_hears_nothing_of_a_limit_that_a_managed_agent_reached(driver: Driver) -> None:
    child = seeker(endless(), name="child", description="d")
    code = "<code>\ntry:\n    child('Seek.')\nexcept Exception as e:\n    print('told', e)\n</code>"
    manager = CodeAgent(
        [], ScriptedModel([code]), managed_agents=[child], verbosity_level=LogLevel.OFF
    )
    with manager:
        events = events_until_the_end(driver, manager, RunLimits(steps=3))
    assert not any(isinstance(event, CodeOutputDelta) for event in events)


@both_drivers
def test_the_limit_of_a_managed_agent_ends_that_agent_alone(driver: Driver) -> None:
    child = seeker(endless(), name="child", description="d", limits=RunLimits(steps=2))
    manager = ToolCallingAgent(
        [],
        ScriptedModel(
            [says(None, ("child", {"task": "Seek."})), says(None, ("final_answer", {"answer": 1}))]
        ),
        managed_agents=[child],
        verbosity_level=LogLevel.OFF,
    )
    assert driver.run(manager, "Go.") == 1
    step = manager.memory.steps[1]
    assert isinstance(step, ActionStep)
    assert "2 steps" in str(step.error)


@both_drivers
def test_a_model_that_tells_no_usage_cannot_be_limited_by_tokens(driver: Driver) -> None:
    def reply(messages: list[ChatMessage]) -> ChatMessage:
        return ChatMessage(MessageRole.ASSISTANT, "x")

    agent = ToolCallingAgent([], reply, verbosity_level=LogLevel.OFF)
    with pytest.raises(AgentLimitError, match="how many tokens"):
        driver.run(agent, "Go.", limits=RunLimits(tokens=100))


def test_prices_are_per_million_and_know_the_cache() -> None:
    usage = TokenUsage(2 * MILLION, MILLION, cached_tokens=MILLION)
    assert Price(3, 15).of(usage) == 2 * 3 + 15
    assert Price(3, 15, cached=0.3).of(usage) == pytest.approx(3 + 0.3 + 15)


def test_no_reply_costs_less_than_nothing() -> None:
    usage = TokenUsage(input_tokens=10, output_tokens=1, cached_tokens=1 << 53)
    assert Price(3, 15, cached=0.3).of(usage) > 0


@pytest.mark.parametrize("bad", [{"steps": -1}, {"seconds": float("nan")}, {"cost": 1.0}])
def test_limits_that_mean_nothing_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="limit"):
        RunLimits(**bad)


def by_hand(agent: MultiStepAgent, how: str) -> ActionStep:
    step = ActionStep()
    if how == "sync":
        agent.step(step)
    else:
        asyncio.run(agent.astep(step))
    agent.memory.steps.append(step)
    return step


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (RunLimits(steps=2), "2 steps"),
        (RunLimits(tokens=24), "24 tokens"),
        (RunLimits(tool_calls=2), "2 tool calls"),
        (RunLimits(cost=24, prices={"m": Price(MILLION, MILLION)}), "24 cost"),
    ],
    ids=["steps", "tokens", "tool calls", "cost"],
)
def test_limits_hold_from_step_to_step_by_hand(how: str, limits: RunLimits, told: str) -> None:
    agent = seeker(endless(), limits=limits)
    for _ in range(2):
        assert by_hand(agent, how).error is None
    for _ in range(2):
        with pytest.raises(AgentLimitError, match=told):
            by_hand(agent, how)
    agent.limits = None
    assert by_hand(agent, how).error is None
    agent.limits = limits
    with pytest.raises(AgentLimitError, match=told):
        agent.run("Seek.", reset=False)
    assert by_hand(agent, how).error is None


def test_a_single_step_is_limited_as_well() -> None:
    agent = seeker(endless(), limits=RunLimits(steps=1))
    agent.run("Seek.", single_step=True)
    with pytest.raises(AgentLimitError, match="1 steps"):
        agent.run("Seek on.", reset=False, single_step=True)
    agent.run("Seek.", single_step=True)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_limit_of_time_breaks_off_a_step_by_hand(how: str) -> None:
    code = "<code>\nwhile True:\n    pass\n</code>"
    limits = RunLimits(seconds=0.5)
    model = ScriptedModel([code])
    with (
        CodeAgent([], model, limits=limits, verbosity_level=LogLevel.OFF) as agent,
        pytest.raises(AgentLimitError, match=r"0\.5 seconds"),
    ):
        by_hand(agent, how)
