"""The ReAct loop (Yao et al., 2022, arXiv:2210.03629): reason, act, observe, until an answer.

Generators without I/O. They yield `Effect`s, whose replies are sent back in, and events.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling.errors import AgentError, AgentGenerationError, AgentMaxStepsError
from sanderling.memory import ActionStep, FinalAnswerStep
from sanderling.messages import ChatMessage, Timing

from ._effects import CheckAnswer, Effect, Generate, Notify, Now
from ._events import ActionOutput, Event, StepStarted

if TYPE_CHECKING:
    from ._actions import Action
    from ._run import Run

Loop: TypeAlias = Generator[Effect | Event, Any, Any]
ForcedAnswer: TypeAlias = Callable[["Run"], list[ChatMessage]]


def react(run: Run, act: Action, forced_answer: ForcedAnswer) -> Loop:
    """Takes steps until one of them answers, or until they are used up.

    Args:
        run: The task and its memory, which grows by a step at a time.
        act: One kind of step: writes into an `ActionStep`, returns what the action came to.
        forced_answer: Makes the messages that ask for an answer when the steps are used up.

    Returns:
        The answer. The last event is a `FinalAnswerStep` that holds it.

    Raises:
        AgentGenerationError: The model could not be asked; the steps so far stay in memory.
    """
    for number in range(1, run.max_steps + 1):
        yield StepStarted(number)
        step = ActionStep(step_number=number, timing=Timing((yield Now())))
        output = None
        try:
            output = yield from _checked(act(run, step), step)
        except Exception as error:
            if not isinstance(error, AgentError) or isinstance(error, AgentGenerationError):
                if step.model_output is not None:
                    run.memory.steps.append(step)  # what was done must not be lost
                raise
            step.error = error
        yield from _finish(run, step)
        if output is not None and output.is_final_answer:
            break
    else:
        output = yield from _answer_at_the_limit(run, forced_answer)
    yield FinalAnswerStep(output.output)
    return output.output


def _checked(action: Generator[Effect | Event, Any, ActionOutput], step: ActionStep) -> Loop:
    """Lets a final answer out only when nothing is wrong with it."""
    output = yield from action
    if output.is_final_answer:
        complaint = yield CheckAnswer(output.output)
        if complaint is not None:
            step.is_final_answer = False
            raise AgentError(complaint)
    yield output
    return output


def _finish(run: Run, step: ActionStep) -> Loop:
    if step.timing is not None:
        step.timing.end_time = yield Now()
    run.memory.steps.append(step)
    yield Notify(step)
    yield step


def _answer_at_the_limit(run: Run, forced_answer: ForcedAnswer) -> Loop:
    run.status = "max_steps_error"
    step = ActionStep(step_number=run.max_steps + 1, timing=Timing((yield Now())))
    step.error = AgentMaxStepsError(f"Reached max steps ({run.max_steps}) without a final answer.")
    messages = forced_answer(run)
    reply: ChatMessage = yield Generate(messages)
    run.count(reply)
    step.model_input_messages = messages
    step.model_output_message = reply
    step.token_usage = reply.token_usage
    step.action_output = reply.text
    step.is_final_answer = True
    yield from _finish(run, step)
    return ActionOutput(reply.text, is_final_answer=True)
