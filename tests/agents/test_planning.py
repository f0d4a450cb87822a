"""Planning with scripted models, from the prompts to what the terminal shows, in both drivers."""

from __future__ import annotations

import io
import itertools
from typing import Any

import pytest
from rich.console import Console

from sanderling import (
    ActionStep,
    AgentLogger,
    ChatMessage,
    ChatMessageStreamDelta,
    CodeAgent,
    LogLevel,
    MultiStepAgent,
    PlanningStep,
    ScriptedModel,
    ToolCallingAgent,
)
from support.drivers import Driver, both_drivers
from support.play import says
from support.tools import add

LOOK = says("", ("add", {"a": 1, "b": 2}))
ANSWER = says(None, ("final_answer", {"answer": 3}))


def agent_for(*replies: Any, **kwargs: Any) -> ToolCallingAgent:
    kwargs.setdefault("verbosity_level", LogLevel.OFF)
    return ToolCallingAgent([add], ScriptedModel(replies), **kwargs)


def requests(agent: ToolCallingAgent) -> list[tuple[ChatMessage, ...]]:
    assert isinstance(agent.model, ScriptedModel)
    return [request.messages for request in agent.model.requests]


@both_drivers
def test_plans_are_asked_for_made_and_followed(driver: Driver) -> None:
    seen: list[Any] = []
    agent = agent_for(
        says("1. Add."),
        LOOK,
        says("1. Answer."),
        ANSWER,
        planning_interval=1,
        max_steps=7,
        step_callbacks={PlanningStep: seen.append},
    )
    result = driver.run(agent, "How much?", images=["https://x.org/a.png"], return_full_result=True)
    assert result.output == 3
    assert result.token_usage.input_tokens == 40
    plans = [step for step in agent.memory.steps if isinstance(step, PlanningStep)]
    assert seen == plans
    assert [plan.plan for plan in plans] == ["1. Add.", "1. Answer."]
    first, step, update, last = requests(agent)
    assert "How much?" in first[0].text
    assert "add: Adds two numbers." in first[0].text
    assert first[0].parts[1].dict()["url"] == "https://x.org/a.png"
    assert [message.role.value for message in update] == [
        "system",
        "user",
        "tool-call",
        "tool-response",
        "user",
    ]
    assert "At most 6 turns are left" in update[-1].text
    assert not any("1. Add." in message.text for message in update)
    assert not any(message.tool_calls for message in update)
    assert last[: len(step)] == step
    assert "1. Answer." in last[-2].text


@both_drivers
def test_a_plan_is_streamed_before_its_step(driver: Driver) -> None:
    agent = agent_for(says("1. Answer at once."), ANSWER, planning_interval=3, stream_outputs=True)
    events = driver.events(agent, "Go.")
    names = [type(event).__name__ for event in events]
    start, end = names.index("PlanningStarted"), names.index("PlanningStep")
    assert names.index("StepStarted") == end + 1
    deltas = events[start + 1 : end]
    assert all(isinstance(delta, ChatMessageStreamDelta) for delta in deltas)
    assert "".join(delta.content or "" for delta in deltas) == "1. Answer at once."


@both_drivers
def test_templates_of_the_older_form_ask_for_facts_first(driver: Driver) -> None:
    agent = agent_for(
        says("It is a sum."), says("Add."), LOOK, says("It is 3."), says("Answer."), ANSWER,
        planning_interval=1,
    )  # fmt: skip
    templates = agent.prompt_templates
    templates["planning"] = {
        "initial_facts": "Facts? {{ task }}",
        "initial_plan": "Plan? {{ answer_facts }}",
        "update_facts_pre_messages": "So far:",
        "update_facts_post_messages": "Facts now?",
        "update_plan_pre_messages": "So far: {{ task }}",
        "update_plan_post_messages": "Plan now? {{ facts_update }} {{ remaining_steps }}",
    }
    agent.prompt_templates = templates
    assert driver.run(agent, "1+2") == 3
    asked = [request[-1].text for request in requests(agent)]
    assert asked[:2] == ["Facts? 1+2", "Plan? It is a sum."]
    assert asked[3:5] == ["Facts now?", "Plan now? It is 3. 19"]
    plans = [step for step in agent.memory.steps if isinstance(step, PlanningStep)]
    assert [(plan.facts, plan.plan) for plan in plans] == [
        ("It is a sum.", "Add."),
        ("It is 3.", "Answer."),
    ]


@both_drivers
def test_a_run_that_goes_on_updates_the_plan(driver: Driver) -> None:
    agent = agent_for(says("First."), ANSWER, says("Second."), ANSWER, planning_interval=5)
    driver.run(agent, "One.")
    driver.run(agent, "Two.", reset=False)
    assert "Two." in requests(agent)[2][0].text
    assert len(requests(agent)[2]) > 2


@both_drivers
@pytest.mark.parametrize("interval", [None, 7])
@pytest.mark.parametrize("kind", [ToolCallingAgent, CodeAgent])
def test_over_fifty_steps_each_request_begins_with_the_one_before(
    driver: Driver, interval: int | None, kind: type[MultiStepAgent]
) -> None:
    def reply(messages: list[ChatMessage]) -> Any:
        if messages[-1].text.endswith("<end_plan>"):
            return says("Go on.")
        done = sum("Observation" in m.text or bool(m.tool_call_id) for m in messages[1:])
        if kind is CodeAgent:
            return says(f"<code>\n{'add(1, 2)' if done < 49 else 'final_answer(3)'}\n</code>")
        return LOOK if done < 49 else ANSWER

    model = ScriptedModel(reply)
    agent = kind(
        [add], model, max_steps=50, planning_interval=interval, verbosity_level=LogLevel.OFF
    )
    with agent:
        assert driver.run(agent, "Count.") == 3
    sent = [
        [message.model_dump_json() for message in request.messages]
        for request in model.requests
        if not request.messages[-1].text.endswith("<end_plan>")
    ]
    assert len(sent) == 50
    for before, after in itertools.pairwise(sent):
        assert after[: len(before)] == before


def test_a_callback_that_edits_history_changes_those_steps_alone() -> None:
    def forget(step: ActionStep, agent: ToolCallingAgent) -> None:
        for old in agent.memory.steps[:-1]:
            if isinstance(old, ActionStep):
                old.observations = "(forgotten)"

    agent = agent_for(LOOK, LOOK, ANSWER, step_callbacks=[forget])
    agent.run("Go.")
    last = requests(agent)[2]
    assert [message.text for message in last if message.tool_call_id] == ["(forgotten)", "3"]


@pytest.mark.parametrize("stream", [False, True])
def test_the_terminal_shows_plans(stream: bool) -> None:
    screen = io.StringIO()
    logger = AgentLogger(console=Console(file=screen, width=80))
    agent = agent_for(
        says("1. Add [b].\n```\nx\n```"), LOOK, says("1. Answer."), ANSWER,
        planning_interval=1, stream_outputs=stream, logger=logger,
    )  # fmt: skip
    agent.run("Go.")
    lines = [line.strip("━ ") for line in screen.getvalue().splitlines()]
    place = lines.index("Initial plan")
    assert lines[place + 1 : place + 5] == ["1. Add [b].", "```", "x", "```"]
    place = lines.index("Updated plan")
    assert lines[place + 1] == "1. Answer."
    assert any("Input tokens: 40" in line for line in lines)


@both_drivers
def test_an_agent_that_writes_code_plans_as_well(driver: Driver) -> None:
    code = "Go.\n<code>\nfinal_answer(add(1, 2))\n</code>"
    model = ScriptedModel(["1. Add.", code])
    with CodeAgent([add], model, planning_interval=2, verbosity_level=LogLevel.OFF) as agent:
        assert driver.run(agent, "Go.") == 3
    assert "def add(a: int, b: int) -> int:" in model.requests[0].messages[0].text
