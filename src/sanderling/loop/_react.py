"""The ReAct loop (Yao et al., 2022, arXiv:2210.03629): reason, act, observe, until an answer.

Generators without I/O. They yield `Effect`s, whose replies are sent back in, and events.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling.errors import (
    AgentError,
    AgentGenerationError,
    AgentMaxStepsError,
)
from sanderling.memory import ActionStep, FinalAnswerStep
from sanderling.messages import ChatMessage, Timing
from sanderling.tools.agent_types import handle_agent_output_types

from ._actions import answer_in
from ._effects import CheckAnswer, Effect, Generate, Notify, Now
from ._events import ActionOutput, Event, StepStarted

if TYPE_CHECKING:
    from ._actions import Action
    from ._planning import Planning
    from ._state import RunState

Loop: TypeAlias = Generator[Effect | Event, Any, Any]
ForcedAnswer: TypeAlias = Callable[["RunState"], list[ChatMessage]]


def react(
    run: RunState, act: Action, forced_answer: ForcedAnswer, planning: Planning | None = None
) -> Loop:
    """Takes steps until one of them answers, or until they are used up.

    Args:
        run: The task and its memory, which grows by a step at a time.
        act: One kind of step: writes into an `ActionStep`, returns what the action came to.
        forced_answer: Makes the messages that ask for an answer when the steps are used up.
        planning: Makes plans on the way.

    Returns:
        The answer: of the type that was asked for, or else as `handle_agent_output_types` gives it.
        The last event is a `FinalAnswerStep` that holds it; callbacks are told of that, too.

    Raises:
        AgentGenerationError: The model could not be asked; the steps so far stay in memory.
        AgentStoppedError: The run was ended from outside; they stay there, too.
        AgentMaxStepsError: The steps are used up, and the answer that was asked for then is not of
            the type that it has to be.
    """
    for number in range(1, run.max_steps + 1):
        if planning is not None and planning.is_due(number):
            yield from planning(run, number)
        yield StepStarted(number)
        step = ActionStep(step_number=number, timing=Timing((yield Now())))
        output = None
        try:
            output = yield from checked(run, act(run, step), step)
        except Exception as error:
            if isinstance(error, AgentError):
                step.error = error
            if run.is_ended_by(error):
                if step.model_output is not None or isinstance(error, AgentGenerationError):
                    if step.timing is not None:
                        step.timing.end_time = yield Now()
                    run.memory.steps.append(step)  # what was done must not be lost
                raise
        yield from _finish(run, step)
        if output is not None and output.is_final_answer:
            break
    else:
        output = yield from _answer_at_the_limit(run, forced_answer)
    answer = output.output
    if run.answer_type is None:
        answer = handle_agent_output_types(answer)
    final = FinalAnswerStep(answer)
    yield Notify(final)
    yield final
    return final.output


def checked(
    run: RunState, action: Generator[Effect | Event, Any, ActionOutput], step: ActionStep
) -> Loop:
    """Lets a final answer out only when nothing is wrong with it."""
    output = yield from action
    if output.is_final_answer:
        try:
            if run.answer_type is not None:
                step.action_output = run.answer_type.read(output.output)
                output = ActionOutput(step.action_output, is_final_answer=True)
            complaint = yield CheckAnswer(output.output)
            if complaint is not None:
                raise AgentError(complaint)
        except AgentError:
            step.is_final_answer = False
            raise
    yield output
    return output


def _finish(run: RunState, step: ActionStep) -> Loop:
    if step.timing is not None:
        step.timing.end_time = yield Now()
    run.memory.steps.append(step)
    yield Notify(step)
    yield step


def _answer_at_the_limit(run: RunState, forced_answer: ForcedAnswer) -> Loop:
    run.status = "max_steps_error"
    step = ActionStep(step_number=run.max_steps + 1, timing=Timing((yield Now())))
    step.error = AgentMaxStepsError(f"Reached max steps ({run.max_steps}) without a final answer.")
    step.model_input_messages = forced_answer(run)
    refused: AgentError | None = None
    try:
        reply: ChatMessage = yield Generate(step.model_input_messages)
        run.count(reply)
        step.model_output_message = reply
        step.token_usage = reply.token_usage
        step.action_output = answer_in(reply)
        if run.answer_type is not None:
            step.action_output = run.answer_type.read_text(step.action_output)
    except AgentError as error:
        if run.is_ended_by(error):
            raise
        told = AgentMaxStepsError(f"{step.error} {error}")
        if run.answer_type is None:
            step.action_output = str(told)
        else:
            refused = told
        step.error = told
    step.is_final_answer = refused is None
    yield from _finish(run, step)
    if refused is not None:
        raise refused
    return ActionOutput(step.action_output, is_final_answer=True)
