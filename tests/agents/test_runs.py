"""What holds for runs of every agent."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from sanderling import (
    ActionStep,
    AgentError,
    AgentGenerationError,
    AgentInterruptedError,
    AgentMaxStepsError,
    AgentParsingError,
    CodeAgent,
    LogLevel,
    RunLimits,
    ScriptedModel,
    SystemPromptStep,
    TaskStep,
    ToolCallingAgent,
    tool,
)
from support.drivers import Driver, both_drivers
from support.play import says
from support.tools import add


def agent_for(*replies: Any, **kwargs: Any) -> ToolCallingAgent:
    kwargs = {"verbosity_level": LogLevel.OFF, **kwargs}
    return ToolCallingAgent(kwargs.pop("tools", [add]), ScriptedModel(replies), **kwargs)


def answer(value: Any) -> Any:
    return says(None, ("final_answer", {"answer": value}))


ADD = says("", ("add", {"a": 1, "b": 2}))


@both_drivers
def test_memory_is_there_before_the_first_run_and_grows_as_told(driver: Driver) -> None:
    agent = agent_for(ADD, answer(3))
    assert agent.memory.steps == []
    assert agent.memory.system_prompt.system_prompt == agent.system_prompt
    driver.run(agent, "Add.")
    assert [type(step) for step in agent.memory.steps] == [TaskStep, ActionStep, ActionStep]
    assert [getattr(step, "step_number", 0) for step in agent.memory.steps] == [0, 1, 2]


@both_drivers
def test_going_on_keeps_memory_and_renews_the_system_prompt(driver: Driver) -> None:
    agent = agent_for(answer(1), answer(2), answer(3))
    driver.run(agent, "One.", additional_args={"x": 1})
    agent.instructions = "Be brief."
    driver.run(agent, "Two.", reset=False)
    assert len(agent.memory.steps) == 4
    assert "Be brief." in agent.memory.system_prompt.system_prompt
    assert agent.state == {"x": 1}
    driver.run(agent, "Three.")
    assert len(agent.memory.steps) == 2
    assert agent.state == {}
    assert isinstance(agent.memory.system_prompt, SystemPromptStep)


@both_drivers
def test_the_limit_of_a_run_wins_and_zero_means_that_of_the_agent(driver: Driver) -> None:
    agent = agent_for(ADD, "forced", ADD, ADD, "forced", max_steps=2)
    assert driver.run(agent, "Go.", max_steps=1, return_full_result=True).state == "max_steps_error"
    driver.run(agent, "Go.", max_steps=0)
    steps = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    assert len(steps) == 3
    assert "Reached max steps (2)" in str(steps[-1].error)


@both_drivers
def test_a_model_that_cannot_be_asked_ends_the_run_or_the_step(driver: Driver) -> None:
    replies = (ADD, OSError("no network"), answer(3))
    with pytest.raises(AgentGenerationError, match="no network"):
        driver.run(agent_for(*replies), "Add.")
    agent = agent_for(*replies, on_generation_error="record")
    assert driver.run(agent, "Add.") == 3
    failed = agent.memory.steps[2]
    assert isinstance(failed, ActionStep)
    assert isinstance(failed.error, AgentGenerationError)
    with pytest.raises(ValueError, match="on_generation_error"):
        agent_for(on_generation_error="ignore")


@both_drivers
def test_a_model_that_cannot_be_asked_at_the_limit_is_what_the_answer_tells(driver: Driver) -> None:
    def limited(**kwargs: Any) -> ToolCallingAgent:
        return agent_for(ADD, OSError("no network"), max_steps=1, **kwargs)

    agent = limited(on_generation_error="record")
    result = driver.run(agent, "Add.", return_full_result=True)
    assert result.state == "max_steps_error"
    assert result.output.startswith("Reached max steps (1)")
    assert "no network" in result.output
    last = agent.memory.steps[-1]
    assert isinstance(last, ActionStep)
    assert str(last.error) == result.output
    assert last.is_final_answer
    with pytest.raises(AgentGenerationError, match="no network"):
        driver.run(limited(), "Add.")
    with pytest.raises(AgentMaxStepsError, match="no network"):
        driver.run(limited(on_generation_error="record", output_type=int), "Add.")


@both_drivers
def test_a_run_is_interrupted_and_keeps_what_was_done(driver: Driver) -> None:
    agents: list[ToolCallingAgent] = []

    @tool
    def stop() -> str:
        """Stops everything."""
        agents[0].interrupt()
        return "stopped"

    agents.append(agent_for(ADD, says("", ("stop", {})), answer(1), tools=[add, stop]))
    with pytest.raises(AgentInterruptedError) as caught:
        driver.run(agents[0], "Go.")
    assert caught.value.result.state == "interrupted"
    first = agents[0].memory.steps[1]
    assert isinstance(first, ActionStep)
    assert first.observations == "3"


@both_drivers
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"images": "page.png"}, "images is a list"),
        ({"images": b"bytes"}, "images is a list"),
        ({"additional_args": ["x"]}, "additional_args is a dict of values by name, not a list"),
        ({"max_steps": -1}, "max_steps must be a whole number, at least 1, not -1"),
        ({"limits": 5}, "limits must be a RunLimits"),
        ({"single_step": True, "limits": RunLimits(steps=1)}, "no limits"),
        ({"single_step": True, "return_full_result": True}, "no full result"),
    ],
)
def test_arguments_of_a_run_that_cannot_be_are_refused_and_leave_nothing(
    driver: Driver, wrong: dict[str, Any], told: str
) -> None:
    agent = agent_for(answer(1))
    with pytest.raises((TypeError, ValueError), match=told):
        driver.run(agent, "Look.", **wrong)
    assert agent.memory.steps == []


def test_a_run_that_is_refused_leaves_the_one_under_way_alone() -> None:
    agent = agent_for(ADD, answer(3))
    events = agent.run("Add.", stream=True)
    next(events)
    prompt, agent.instructions = agent.memory.system_prompt, "Be brief."
    for options in ({"additional_args": {"x": 1}}, {"single_step": True}):
        with pytest.raises(AgentError, match="under way"):
            agent.run("Next.", reset=False, **options)
    with pytest.raises(AgentError, match="under way"):
        agent.step(ActionStep())
    assert [step.task for step in agent.memory.steps if isinstance(step, TaskStep)] == ["Add."]
    assert agent.memory.system_prompt is prompt
    assert agent.state == {}
    agent.interrupt()  # still that of the run under way
    with pytest.raises(AgentInterruptedError):
        list(events)


@both_drivers
def test_a_result_tells_everything_as_data(driver: Driver) -> None:
    agent = agent_for(ADD, answer(3), return_full_result=True)
    result = driver.run(agent, "Add.")
    data = result.dict()
    assert (data["output"], data["state"]) == (3, "success")
    assert [step["type"] for step in data["steps"]] == ["TaskStep", "ActionStep", "ActionStep"]
    assert data["token_usage"]["total_tokens"] == result.token_usage.total_tokens > 0
    assert data["timing"]["duration"] == result.timing.duration >= 0


@both_drivers
def test_the_usage_is_none_where_no_reply_told_it(driver: Driver) -> None:
    def model(messages: list[Any]) -> str:
        return "<code>final_answer(3)</code>"

    agent = CodeAgent([], model, verbosity_level=LogLevel.OFF)
    result = driver.run(agent, "Go.", return_full_result=True)
    assert result.output == 3
    assert result.token_usage is None
    assert result.dict()["token_usage"] is None


def test_an_agent_ends_its_sandbox_where_its_with_block_ends() -> None:
    replies = [
        "<code>\nx = 1\nfinal_answer(x)\n</code>",
        "<code>\nfinal_answer('x' in dir())\n</code>",
    ]
    with CodeAgent([], ScriptedModel(replies), verbosity_level=LogLevel.OFF) as agent:
        assert agent.run("Go.") == 1
    assert agent.run("Go on.", reset=False) is False
    agent.cleanup()


def test_an_error_is_made_as_it_always_was() -> None:
    error = AgentParsingError("no code", object())
    assert (str(error), error.message) == ("no code", "no code")
    assert error.dict() == {"type": "AgentParsingError", "message": "no code"}


@both_drivers
def test_the_name_of_the_agent_is_in_the_first_event(driver: Driver) -> None:
    started = driver.events(agent_for(answer(1), name="boss"), "Go.")[0]
    assert (started.agent, started.task, started.model) == (
        "boss",
        "Go.",
        "ScriptedModel - scripted",
    )


@both_drivers
def test_a_long_observation_is_cut_and_says_so(driver: Driver) -> None:
    @tool
    def read() -> str:
        """Reads a book."""
        return "a" * 50_000

    agent = agent_for(says("", ("read", {})), answer(1), tools=[read])
    driver.run(agent, "Read.")
    step = agent.memory.steps[1]
    assert isinstance(step, ActionStep)
    assert step.action_output == "a" * 50_000
    assert len(step.observations or "") < 20_200
    assert "30000 characters" in (step.observations or "")


@both_drivers
def test_what_nobody_holds_of_a_run_is_freed_at_once(driver: Driver) -> None:
    agent = agent_for(ADD, answer(1), answer(2))
    driver.run(agent, "One.")
    memory = weakref.ref(agent.memory)
    gc.disable()  # it would free cycles as well, but late, and at a cost that grows with the runs
    try:
        driver.run(agent, "Two.")
        assert memory() is None
    finally:
        gc.enable()
