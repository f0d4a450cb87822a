from __future__ import annotations

from typing import Any

import pytest

from sanderling.memory import ActionStep, CallbackRegistry, MemoryStep, TaskStep

STEP = ActionStep(step_number=1)


def test_a_callback_gets_what_it_declares() -> None:
    seen: list[Any] = []
    registry = CallbackRegistry(
        [
            lambda step: seen.append(("one", step)),
            lambda memory_step, agent: seen.append(("positional", memory_step, agent)),
            lambda step_log, agent=None: seen.append(("old name", step_log, agent)),
            lambda step, **rest: seen.append(("many", step, rest)),
        ]
    )
    registry.append(lambda any_name, other: seen.append(("two", any_name, other)))
    registry.callback(STEP, agent="the agent")
    assert seen == [
        ("one", STEP),
        ("positional", STEP, "the agent"),
        ("old name", STEP, "the agent"),
        ("many", STEP, {"agent": "the agent"}),
        ("two", STEP, "the agent"),
    ]


def test_callbacks_go_by_the_class_of_the_step() -> None:
    seen: list[str] = []
    registry = CallbackRegistry(
        {
            ActionStep: lambda step: seen.append("action"),
            MemoryStep: [lambda step: seen.append("any"), lambda step: seen.append("any again")],
        }
    )
    registry.callback(memory_step=TaskStep("x"))
    assert seen == ["any", "any again"]
    registry.callback(STEP, agent=None)
    assert seen == ["any", "any again", "action", "any", "any again"]
    assert len(registry) == len(list(registry)) == 3


def test_what_is_no_callback_or_no_step_is_refused() -> None:
    with pytest.raises(TypeError, match="callable"):
        CallbackRegistry([7])  # type: ignore[list-item]  # that is the point
    with pytest.raises(TypeError, match="step class"):
        CallbackRegistry().register(int, print)  # type: ignore[arg-type]  # that is the point
