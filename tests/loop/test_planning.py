from __future__ import annotations

from typing import Any

import pytest

from sanderling.loop import (
    Generate,
    Notify,
    Planning,
    PlanRequest,
    RunState,
    ToolAction,
    react,
)
from sanderling.memory import ActionStep, AgentMemory, FinalAnswerStep, PlanningStep, TaskStep
from sanderling.messages import ChatMessage, MessageRole, TokenUsage
from support.play import Player, says


def a_run(max_steps: int = 5) -> RunState:
    memory = AgentMemory("system")
    memory.steps.append(TaskStep("task"))
    return RunState("task", memory, max_steps)


def asks(about: str) -> Any:
    def messages(run: RunState, request: PlanRequest) -> list[ChatMessage]:
        text = f"{about} {request.is_first} {request.remaining_steps} {request.facts}"
        return [ChatMessage(MessageRole.USER, text)]

    return messages


def play(player: Player, run: RunState, planning: Planning) -> Any:
    loop = react(run, ToolAction(("look", "final_answer")), lambda run: [], planning)
    return player.play(loop)


LOOK = says("", ("look", {}))
ANSWER = says(None, ("final_answer", {"answer": 3}))


def test_plans_come_first_and_at_the_interval() -> None:
    player = Player(
        [says("plan 1"), LOOK, LOOK, says("plan 2 <end_plan> more"), ANSWER],
        call=lambda call: 3,
    )
    run = a_run()
    assert play(player, run, Planning(2, asks("plan"))) == 3
    kinds = [type(step).__name__ for step in run.memory.steps]
    assert kinds == [
        "TaskStep",
        "PlanningStep",
        "ActionStep",
        "ActionStep",
        "PlanningStep",
        "ActionStep",
    ]
    first, second = (step for step in run.memory.steps if isinstance(step, PlanningStep))
    assert (first.plan, second.plan) == ("plan 1", "plan 2")
    assert first.token_usage == TokenUsage(10, 2)
    assert first.timing is not None
    assert first.duration == 1.0
    asked = [effect for effect in player.effects if isinstance(effect, Generate)]
    assert [asked[0].messages[0].text, asked[3].messages[0].text] == [
        "plan True 5 ",
        "plan False 3 ",
    ]
    assert asked[0].stop_sequences == ("<end_plan>",)
    assert run.usage == TokenUsage(50, 10)


def test_a_plan_is_told_as_events_and_to_callbacks_before_its_step() -> None:
    player = Player([says("plan"), ANSWER], call=lambda call: 3)
    play(player, a_run(), Planning(5, asks("plan")))
    assert player.names[:3] == ["PlanningStarted", "PlanningStep", "StepStarted"]
    assert (player.events[0].is_first, player.events[0].step_number) == (True, 1)
    notified = [effect.step for effect in player.effects if isinstance(effect, Notify)]
    assert [type(step) for step in notified] == [PlanningStep, ActionStep, FinalAnswerStep]


def test_facts_are_asked_for_first_where_the_prompts_do_so() -> None:
    player = Player([says("it rains"), says("take a coat"), ANSWER], call=lambda call: 3)
    run = a_run()
    play(player, run, Planning(9, asks("plan"), asks("facts")))
    asked = [effect for effect in player.effects if isinstance(effect, Generate)]
    assert [one.messages[0].text for one in asked[:2]] == [
        "facts True 5 ",
        "plan True 5 it rains",
    ]
    (step,) = (step for step in run.memory.steps if isinstance(step, PlanningStep))
    assert (step.facts, step.plan) == ("it rains", "take a coat")
    assert step.token_usage == TokenUsage(20, 4)


def test_the_next_step_reads_the_plan_after_what_it_read_before() -> None:
    player = Player([says("p1"), LOOK, says("p2"), ANSWER], call=lambda call: 3)
    play(player, a_run(), Planning(1, asks("plan")))
    steps = [effect.messages[:] for effect in player.effects if isinstance(effect, Generate)][1::2]
    assert steps[1][: len(steps[0])] == steps[0]
    assert "[PLAN]:\np1" in steps[0][-2].text
    assert [message.role for message in steps[1][-2:]] == [MessageRole.ASSISTANT, MessageRole.USER]


def test_thinking_is_no_part_of_a_plan() -> None:
    player = Player([says("<think>hm</think>\n1. go"), ANSWER], call=lambda call: 3)
    run = a_run()
    play(player, run, Planning(5, asks("plan")))
    assert next(s.plan for s in run.memory.steps if isinstance(s, PlanningStep)) == "1. go"


def test_an_interval_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="planning_interval"):
        Planning(0, asks("plan"))
