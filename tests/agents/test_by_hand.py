"""Agents driven by the user: a step, a call, a plan, an answer at a time."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from console.screen import Screen
from sanderling import (
    ActionStep,
    AgentError,
    AgentExecutionError,
    AgentGenerationError,
    AgentParsingError,
    AgentToolCallError,
    AgentToolExecutionError,
    ChatMessage,
    CodeAgent,
    LogLevel,
    MultiStepAgent,
    PlanningStep,
    ScriptedModel,
    TaskStep,
    TokenUsage,
    ToolCallingAgent,
    ToolOutput,
)
from sanderling.memory import ToolCall
from support.drivers import Driver, both_drivers
from support.play import says
from support.tools import add, greet

URL = "https://example.org/cat.png"


def code(*lines: str) -> str:
    return "Thinking.\n<code>\n" + "\n".join(lines) + "\n</code>"


def coder(*replies: Any, **kwargs: Any) -> CodeAgent:
    kwargs = {"verbosity_level": LogLevel.OFF, "executor_type": "inprocess", **kwargs}
    return CodeAgent([add, greet], ScriptedModel(replies), **kwargs)


def caller(*replies: Any, **kwargs: Any) -> ToolCallingAgent:
    kwargs = {"verbosity_level": LogLevel.OFF, **kwargs}
    return ToolCallingAgent([add, greet], ScriptedModel(replies), **kwargs)


def take(agent: MultiStepAgent, step: ActionStep, how: str) -> Any:
    return agent.step(step) if how == "sync" else asyncio.run(agent.astep(step))


both = pytest.mark.parametrize("how", ["sync", "async"])


@both
def test_a_loop_of_ones_own_without_a_run_before(how: str) -> None:
    agent = coder(code("x = add(a=20, b=1)"), "no code", code("final_answer(x * 2)"))
    agent.memory.steps.append(TaskStep(task="What is the answer?", task_images=[]))
    answer, number = None, 1
    while answer is None and number <= 10:
        memory_step = ActionStep(step_number=number, observations_images=[])
        answer = take(agent, memory_step, how)
        agent.memory.steps.append(memory_step)
        number += 1
    agent.cleanup()
    assert (answer, number) == (42, 4)
    _, first, second, third = agent.memory.steps
    assert isinstance(first, ActionStep)
    assert isinstance(second, ActionStep)
    assert isinstance(third, ActionStep)
    assert first.duration is not None
    assert isinstance(second.error, AgentParsingError)
    assert third.is_final_answer
    assert isinstance(agent.model, ScriptedModel)
    assert "holds no code" in agent.model.requests[2].messages[-1].text


@both
def test_an_answer_of_none_is_told_from_no_answer(how: str) -> None:
    agent = coder(code("x = 1"), code("final_answer(None)"))
    first, second = ActionStep(), ActionStep()
    assert take(agent, first, how) is None
    agent.memory.steps.append(first)
    assert take(agent, second, how) is None
    assert (first.is_final_answer, second.is_final_answer) == (False, True)
    assert (first.step_number, second.step_number) == (1, 2)


@both
def test_checks_hold_for_a_step_by_hand(how: str) -> None:
    agent = coder(code("final_answer(1)"), final_answer_checks=[lambda answer, memory, agent: 0])
    step = ActionStep()
    assert take(agent, step, how) is None
    assert type(step.error) is AgentError
    assert not step.is_final_answer


@both
def test_a_model_that_cannot_be_asked_raises_out_of_a_step(how: str) -> None:
    with pytest.raises(AgentGenerationError, match="no network"):
        take(caller(OSError("no network")), ActionStep(), how)


def test_a_step_by_hand_is_shown_like_any_other() -> None:
    screen = Screen()
    agent = coder(code("final_answer(7)"), logger=screen.logger)
    agent.step(ActionStep(step_number=4))
    for text in ("Step 4", "final_answer(7)", "Final answer: 7"):
        assert text in screen.text


def test_the_tokens_of_all_steps_so_far_are_told() -> None:
    screen = Screen()
    agent = caller(says("x"), says("x"), logger=screen.logger)
    for number in (1, 2):
        step = ActionStep(step_number=number)
        agent.step(step)
        agent.memory.steps.append(step)
    told = [line.partition("|")[2] for line in screen.lines if line.startswith("[Step")]
    assert told == [
        " Input tokens: 10 | Output tokens: 2]",
        " Input tokens: 20 | Output tokens: 4]",
    ]


def test_a_step_waits_for_the_run_under_way() -> None:
    agent = coder(code("final_answer(1)"))
    stream = agent.run("Go.", stream=True)
    next(stream)
    with pytest.raises(AgentError, match="under way"):
        agent.step(ActionStep())
    stream.close()


@pytest.mark.parametrize(
    "arguments",
    [("Go.", False, True, True), ("Go.", False, True, None, None, None, None, True)],
    ids=["4th positional", "last"],
)
def test_a_single_step(arguments: tuple[Any, ...]) -> None:
    agent = coder(code("x = 1"), code("final_answer(x)"))
    assert agent.run(*arguments) is None
    assert [type(step) for step in agent.memory.steps] == [TaskStep, ActionStep]
    assert agent.run("Go on.", reset=False, single_step=True) == 1
    assert isinstance(agent.model, ScriptedModel)
    assert agent.model.remaining == 0
    with pytest.raises(ValueError, match="no stream"):
        agent.run("Go.", stream=True, single_step=True)  # type: ignore[call-overload]  # that is the point


@both_drivers
def test_a_single_step_in_both_drivers(driver: Driver) -> None:
    agent = coder(code("x = 1"), code("final_answer(x)"))
    assert driver.run(agent, "Go.", single_step=True) is None
    assert driver.run(agent, "Go on.", reset=False, single_step=True) == 1
    assert [type(step) for step in agent.memory.steps] == [TaskStep, ActionStep] * 2


def test_images_stand_in_the_fourth_place_as_well() -> None:
    agent = coder(code("final_answer(1)"))
    agent.run("Look.", False, True, [URL])
    task = agent.memory.steps[0]
    assert isinstance(task, TaskStep)
    assert task.task_images == [URL]


def by_hand(how: str, agent: MultiStepAgent, method: str, *args: Any) -> Any:
    """Calls a method, or its twin for asyncio."""
    if how == "sync":
        return getattr(agent, method)(*args)
    return asyncio.run(getattr(agent, f"a{method}")(*args))


@both
@pytest.mark.parametrize("make", [coder, caller])
def test_a_tool_is_called_by_name(make: Any, how: str) -> None:
    agent: MultiStepAgent = make()
    call = partial(by_hand, how, agent, "execute_tool_call")
    assert call("add", {"a": 1, "b": 2}) == 3
    assert call("add", '{"a": 1, "b": 2}') == 3
    assert call("greet", "Ada") == "Hello, Ada!"
    assert call("greet", "7") == "Hello, 7!"
    agent.state.update(me="Grace", one=1)
    assert call("greet", {"name": "me"}) == "Hello, Grace!"
    assert call("greet", "me") == "Hello, Grace!"
    assert call("add", {"a": "one", "b": 2}) == 3


@both
def test_a_call_that_fails_says_what_the_tool_is(how: str) -> None:
    call = partial(by_hand, how, caller(), "execute_tool_call")
    with pytest.raises(AgentToolExecutionError, match=r"(?s)nobody is there.*Greets somebody"):
        call("greet", "Nobody")
    with pytest.raises(AgentToolCallError, match=r"(?s)'b'.*Adds two numbers"):
        call("add", {"a": 1})
    with pytest.raises(AgentExecutionError, match="no tool 'ad'"):
        call("ad", {"a": 1})


def test_a_managed_agent_is_called_by_name() -> None:
    child = caller(says(None, ("final_answer", {"answer": 7})), name="child", description="Counts.")
    assert "7" in caller(managed_agents=[child]).execute_tool_call("child", "How many?")


def test_the_action_is_what_follows_the_last_token() -> None:
    agent = caller()
    split = agent.extract_action("first Action: a\nthen Action: b ", "Action:")
    assert split == ("a\nthen", "b")
    assert agent.extract_action("why\nAction: go", "Action:") == ("why", "go")
    old = agent.extract_action(llm_output="why Action: go", split_token="Action:")
    assert old == ("why", "go")
    with pytest.raises(AgentParsingError, match="'Action:'"):
        agent.extract_action("nothing", "Action:")
    with pytest.raises(TypeError, match="a model_output and a split_token"):
        agent.extract_action("nothing")


@both
def test_a_plan_by_hand(how: str) -> None:
    agent = caller("1. think\n<end_plan>")
    agent.memory.steps.append(TaskStep("Go."))
    by_hand(how, agent, "planning_step", "Go.", True, 1)
    plan = agent.memory.steps[1]
    assert isinstance(plan, PlanningStep)
    assert plan.plan == "1. think"
    assert agent.monitor.get_total_token_counts() == plan.token_usage


@both
def test_an_answer_from_memory(how: str) -> None:
    agent = caller(says("42 it is"), OSError("no network"))
    agent.memory.steps = [TaskStep("Go."), ActionStep(observations="six times seven")]
    answer = by_hand(how, agent, "provide_final_answer", "What is it?", [URL])
    assert answer == "42 it is" == answer.content
    assert answer.token_usage is not None
    assert isinstance(agent.model, ScriptedModel)
    sent = agent.model.requests[0].messages
    assert any("six times seven" in message.text for message in sent)
    assert "What is it?" in sent[-1].text
    assert {"type": "image", "url": URL} in sent[-1].dict()["content"]  # type: ignore[operator]  # a list of parts
    failed = by_hand(how, agent, "provide_final_answer", "What is it?")
    assert "no network" in failed
    assert failed.token_usage is None


@both
@pytest.mark.parametrize(
    ("agent", "problem"),
    [
        (coder(says("")), "Your reply holds no code to run. It was empty.\n"),
        (caller(says("  ")), "Your reply calls no tool. It was empty.\n"),
        (
            coder(says(""), use_structured_outputs_internally=True),
            "Your reply is not the JSON object that is wanted. It was empty.\n",
        ),
    ],
)
def test_an_empty_reply_is_called_empty(agent: MultiStepAgent, problem: str, how: str) -> None:
    step = ActionStep(step_number=1)
    agent.model = ScriptedModel([says("")])
    take(agent, step, how)
    assert isinstance(step.error, AgentParsingError)
    assert str(step.error).startswith(problem)


@both
def test_an_answer_without_a_word_says_why(how: str) -> None:
    agent = caller(says("", finish_reason="length"))
    answer = by_hand(how, agent, "provide_final_answer", "What is it?")
    assert "cut off at the model's output limit" in answer
    assert "max_tokens" in answer
    assert answer.token_usage == TokenUsage(10, 2)


@both
def test_calls_of_a_message_are_processed(how: str) -> None:
    agent = caller()
    step = ActionStep(step_number=1)
    reply: ChatMessage = says("", ("add", {"a": 1, "b": 2}), ("greet", {"name": "Ada"}))
    if how == "sync":
        events: list[Any] = list(agent.process_tool_calls(reply, step))
    else:

        async def collected() -> list[Any]:
            return [event async for event in agent.aprocess_tool_calls(reply, step)]

        events = asyncio.run(collected())
    assert [event.name for event in events if isinstance(event, ToolCall)] == ["add", "greet"]
    assert [event.output for event in events if isinstance(event, ToolOutput)] == [
        3,
        "Hello, Ada!",
    ]
    assert step.action_output == [3, "Hello, Ada!"]
    assert list(agent.tools_and_managed_agents) == ["add", "greet", "final_answer"]
