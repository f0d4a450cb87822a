"""Planning: before the first step, and then at an interval, the model makes a plan."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling.memory import ActionStep, PlanningStep
from sanderling.messages import ChatMessage, Timing

from ._effects import Effect, Generate, Notify, Now
from ._events import Event, PlanningStarted
from ._parsing import without_thinking

if TYPE_CHECKING:
    from ._state import RunState

END_OF_PLAN = "<end_plan>"


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What the messages that ask for a plan depend on, beside the run.

    Attributes:
        is_first: Whether nothing has been done yet.
        remaining_steps: How many steps the run may still take.
        facts: What was said when the facts were asked for; empty where they were not.
    """

    is_first: bool
    remaining_steps: int
    facts: str = ""


PlanMessages: TypeAlias = "Callable[[RunState, PlanRequest], list[ChatMessage]]"


@dataclass(frozen=True, slots=True)
class Planning:
    """Asks for plans.

    Attributes:
        interval: A plan comes before the first step and then after every so many steps.
        plan: Makes the messages that ask for the plan.
        facts: Makes the messages that ask, before that, for what is known and what is not;
            without it the plan comes in one request.
        stream: Whether the model's text comes out while it is written.

    Raises:
        ValueError: The interval is not at least 1.
    """

    interval: int
    plan: PlanMessages
    facts: PlanMessages | None = None
    stream: bool = False

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"planning_interval must be at least 1, not {self.interval}")

    def is_due(self, step_number: int) -> bool:
        """Tells whether a plan is made before the step of that number, counted from 1."""
        return (step_number - 1) % self.interval == 0

    def __call__(
        self, run: RunState, step_number: int
    ) -> Generator[Effect | Event, Any, PlanningStep]:
        """Makes a plan and puts it into memory, before the step of that number."""
        done = (ActionStep, PlanningStep)
        is_first = not any(isinstance(step, done) for step in run.memory.steps)
        request = PlanRequest(is_first, run.max_steps - step_number + 1)
        yield PlanningStarted(is_first, step_number)
        timing = Timing((yield Now()))
        step = PlanningStep(timing=timing)
        if self.facts is not None:
            step.facts = yield from self._ask(run, step, self.facts(run, request))
            request = PlanRequest(is_first, request.remaining_steps, step.facts)
        step.plan = yield from self._ask(run, step, self.plan(run, request))
        timing.end_time = yield Now()
        run.memory.steps.append(step)
        yield Notify(step)
        yield step
        return step

    def _ask(
        self, run: RunState, step: PlanningStep, messages: list[ChatMessage]
    ) -> Generator[Effect, Any, str]:
        reply: ChatMessage = yield Generate(messages, (END_OF_PLAN,), stream=self.stream)
        run.count(reply)
        step.model_input_messages = messages
        step.model_output_message = reply
        if reply.token_usage is not None:
            usage = step.token_usage
            step.token_usage = reply.token_usage if usage is None else usage + reply.token_usage
        return without_thinking(reply.text).partition(END_OF_PLAN)[0].strip()
