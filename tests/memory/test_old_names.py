"""Steps can be made and read as in smolagents 1.4 and as in 1.26."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sanderling.memory import ActionStep, PlanningStep, TaskStep
from sanderling.messages import ChatMessage, MessageRole, Timing

SENT = [ChatMessage(MessageRole.USER, "hello")]


def test_every_field_is_optional() -> None:
    step = ActionStep()
    assert all(getattr(step, field.name) in (None, False) for field in dataclasses.fields(step))
    assert step.to_messages() == []
    assert ActionStep(step_number=3, observations_images=[]).step_number == 3
    assert TaskStep(task="t", task_images=[]).to_messages()[0].text == "New task:\nt"
    assert PlanningStep(plan="first a, then b").facts is None


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [("llm_output", "said", "model_output"), ("agent_memory", SENT, "model_input_messages")],
)
def test_an_old_name_is_the_new_one(old: str, value: Any, new: str) -> None:
    step = ActionStep(**{old: value})
    assert getattr(step, new) is value
    assert getattr(step, old) is value
    setattr(step, old, None)
    assert getattr(step, new) is None
    assert old not in step.dict()


def test_an_edit_under_an_old_name_is_seen_by_the_model() -> None:
    step = ActionStep(model_output="before")
    assert step.messages()[0].text == "before"
    step.llm_output = "after"
    assert step.messages()[0].text == "after"


def test_times_by_themselves_are_the_timing() -> None:
    step = ActionStep(start_time=10.0)
    assert step.timing == Timing(10.0)
    assert (step.start_time, step.end_time, step.duration) == (10.0, None, None)
    step.end_time = 12.5
    assert step.timing == Timing(10.0, 12.5)
    step.duration = 4.0
    assert step.timing == Timing(10.0, 14.0)
    assert ActionStep(start_time=1.0, end_time=3.0, duration=2.0).timing == Timing(1.0, 3.0)
    assert ActionStep(duration=2.0).duration == 2.0
    assert ActionStep(end_time=2.0).end_time == 2.0
    assert ActionStep().end_time is None
    late = ActionStep(end_time=2.0)
    late.start_time = 1.0
    assert late.duration == 1.0


def test_a_copy_keeps_everything() -> None:
    step = ActionStep(step_number=1, llm_output="said", start_time=1.0, end_time=2.0)
    copied = dataclasses.replace(step, step_number=2)
    assert (copied.model_output, copied.timing) == ("said", Timing(1.0, 2.0))


def test_a_plan_is_said_and_the_model_told_to_go_on() -> None:
    plan = PlanningStep(
        SENT, ChatMessage(MessageRole.ASSISTANT, "p"), " 1. look ", Timing(1.0, 2.0)
    )
    assert [(m.role.value, m.text) for m in plan.to_messages()] == [
        ("assistant", "[PLAN]:\n1. look"),
        ("user", "Now go on and carry out this plan."),
    ]
    assert plan.to_messages(summary_mode=True) == []
    assert plan.duration == 1.0


def test_facts_are_said_before_the_plan_and_in_a_summary() -> None:
    old: list[Any] = ["1. look", "it is late"]
    plan = PlanningStep(*old)
    assert (plan.plan, plan.facts) == ("1. look", "it is late")
    assert plan.model_input_messages is None
    assert plan.duration is None
    assert plan.to_messages()[0].text == "[FACTS LIST]:\nit is late\n\n[PLAN]:\n1. look"
    (facts,) = plan.to_messages(summary_mode=True)
    assert facts.text == "[FACTS LIST]:\nit is late"
