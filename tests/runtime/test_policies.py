"""Policies around effects: one source, the same under both drivers."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from sanderling import ActionStep, ChatMessage, LogLevel, ScriptedModel, ToolCallingAgent, tool
from sanderling.loop import CallTool, Effect, Generate, Now
from sanderling.runtime import CallHost, Scope
from support.drivers import Driver, both_drivers
from support.play import says


@tool
def double(number: int) -> int:
    """Doubles.

    Args:
        number: What.
    """
    return number * 2


def agent(
    *replies: ChatMessage | Exception, policies: list[Any], **kwargs: Any
) -> ToolCallingAgent:
    return ToolCallingAgent(
        [double],
        ScriptedModel(list(replies)),
        policies=policies,
        verbosity_level=LogLevel.OFF,
        **kwargs,
    )


ANSWER = says(None, ("final_answer", {"answer": "done"}))


@both_drivers
def test_policies_are_nested_and_see_calls_as_well_as_requests(driver: Driver) -> None:
    seen: list[str] = []

    def noting(name: str) -> Any:
        def policy(effect: Effect, scope: Scope) -> Generator[Any, Any, Any]:
            if not isinstance(effect, Generate | CallTool):
                return (yield effect)
            seen.append(f"{name} before {type(effect).__name__}")
            reply = yield effect
            seen.append(f"{name} after {type(effect).__name__} of {scope.path}")
            return reply

        return policy

    made = agent(ANSWER, policies=[noting("outer"), noting("inner")], name="me")
    assert driver.run(made, "Go.") == "done"
    calls = ["outer before {}", "inner before {}", "inner after {} of me", "outer after {} of me"]
    assert seen == [line.format(kind) for kind in ("Generate", "CallTool") for line in calls]


@both_drivers
def test_a_policy_may_repeat_replace_and_answer_for_itself(driver: Driver) -> None:
    def patient(effect: Effect, scope: Scope) -> Generator[Any, Any, Any]:
        if isinstance(effect, Generate):
            try:
                return (yield effect)
            except Exception:
                yield Now()
        elif isinstance(effect, CallTool) and effect.name == "double":
            return 40 + (yield CallTool(effect.id, "double", {"number": 1}))
        return (yield effect)

    made = agent(
        ConnectionError("once"),
        says(None, ("double", {"number": 8})),
        ANSWER,
        policies=[patient],
    )
    assert driver.run(made, "Go.") == "done"
    step = made.memory.steps[1]
    assert isinstance(step, ActionStep)
    assert step.action_output == 42


@both_drivers
def test_a_policy_may_consult_its_owner(driver: Driver) -> None:
    async def word() -> str:
        return "psst"

    def whispering(effect: Effect, scope: Scope) -> Generator[Any, Any, Any]:
        if isinstance(effect, Generate):
            said = yield CallHost(word)
            yield CallHost(lambda: asked.append(said), blocks=True)
        return (yield effect)

    asked: list[str] = []
    assert driver.run(agent(ANSWER, policies=[whispering]), "Go.") == "done"
    assert asked == ["psst"]


@both_drivers
def test_what_a_policy_raises_ends_the_run(driver: Driver) -> None:
    def broken(effect: Effect, scope: Scope) -> Generator[Any, Any, Any]:
        if isinstance(effect, Generate):
            raise LookupError("a bug of the policy")
        return (yield effect)

    with pytest.raises(LookupError, match="bug of the policy"):
        driver.run(agent(ANSWER, policies=[broken]), "Go.")
