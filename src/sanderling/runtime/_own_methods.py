"""Subclasses that define `step` or `execute_tool_call`: their runs go by these methods.

Each is called on the agent as the run has it (`Definition.within`): its memory and state are those
of the run, and what it does by hand (``super().step``, `execute_tool_call`, …) is done in the run.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling import sandbox
from sanderling.errors import AgentExecutionError, AgentStoppedError, AgentToolExecutionError
from sanderling.loop import ActionOutput, CallTool, Effect

if TYPE_CHECKING:
    from sanderling.loop import Action, Event, RunState
    from sanderling.memory import ActionStep

    from ._context import RunContext

    Loop: TypeAlias = Generator[Effect | Event, Any, Any]


def own_step(context: RunContext) -> Action:
    """Returns the action that calls the agent's own `step`."""

    def act(run: RunState, step: ActionStep) -> Generator[Effect | Event, Any, ActionOutput]:
        before = run.usage
        value = yield from _called(context.nested(), lambda agent: agent.step(step))
        if run.usage == before and step.token_usage is not None:
            run.usage += step.token_usage  # the method has asked the model by itself
        if inspect.isgenerator(value):
            name = type(context.run.agent).__name__
            raise TypeError(f"{name}.step returns None or the answer: no yield")
        if isinstance(value, ActionOutput):
            step.action_output, step.is_final_answer = value.output, value.is_final_answer
        elif value is not None:
            step.action_output, step.is_final_answer = value, True
        elif step.error is not None:
            raise step.error  # that of `super().step`: what was done came to nothing
        elif step.action_output is not None:
            step.is_final_answer = False  # it turned down the answer of `super().step`
        return ActionOutput(step.action_output, step.is_final_answer)

    return act


def own_call(context: RunContext, call: CallTool) -> Loop:
    """Makes a call of the model by the agent's own `execute_tool_call`."""
    nested = context.nested(call.id)
    try:
        return (
            yield from _called(
                nested, lambda agent: agent.execute_tool_call(call.name, call.arguments)
            )
        )
    except (AgentExecutionError, AgentStoppedError):
        raise
    except (Exception, SystemExit) as error:
        raise AgentToolExecutionError(
            f"The tool {call.name!r} raised {sandbox.described(error)}"
        ) from error


def _called(nested: RunContext, method: Any) -> Loop:
    try:
        value = yield from nested.call_method(method)
    except Exception:
        yield from nested.told()
        raise
    yield from nested.told()
    return value
