"""What effects are carried out with, and the parts of doing so that need no I/O."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sanderling.errors import (
    AgentError,
    AgentGenerationError,
    AgentToolCallError,
    AgentToolExecutionError,
)
from sanderling.messages import ChatMessage

from ._callbacks import CallbackRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

    from sanderling.loop import CallTool, CheckAnswer, Generate, Run
    from sanderling.models import Model
    from sanderling.sandbox import Interpreter, ToolRequest
    from sanderling.tools import Tool


@dataclass
class Services:
    """Everything a run may use.

    Attributes:
        run: The run that is served.
        model: Who is asked.
        tools: What can be called, by name.
        interpreter: Makes the sandbox of this run, when the first code action needs it.
        callbacks: Who is told of finished steps.
        checks: Called with an answer, the memory and ``agent=``; a false value or an exception
            sends the answer back to the model.
        agent: Returns what callbacks and checks get to see as the agent.
    """

    run: Run
    model: Model
    tools: Mapping[str, Tool]
    interpreter: Callable[[], Interpreter]
    callbacks: CallbackRegistry = field(default_factory=CallbackRegistry)
    checks: Sequence[Callable[..., Any]] = ()
    agent: Callable[[], object] = lambda: None

    def request(self, effect: Generate) -> dict[str, Any]:
        """Returns the keyword arguments of the model call."""
        request: dict[str, Any] = {"messages": effect.messages[:], **effect.options}
        if effect.stop_sequences:
            request["stop_sequences"] = list(effect.stop_sequences)
        if effect.tools:
            request["tools_to_call_from"] = [self.tools[name] for name in effect.tools]
        return request

    def generation_error(self, error: Exception) -> AgentError:
        """Returns what the caller of the run is told when the model could not be asked."""
        if isinstance(error, AgentError):
            return error
        return AgentGenerationError(
            f"{type(self.model).__name__} failed with {type(error).__name__}: {error}"
        )

    def find(self, effect: CallTool) -> tuple[Tool, dict[str, Any]]:
        """Returns the tool of a call and its checked arguments.

        Raises:
            AgentToolCallError: There is no such tool, or the arguments do not fit it.
        """
        tool = self.tools.get(effect.name)
        if tool is None:
            close = difflib.get_close_matches(effect.name, self.tools, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise AgentToolCallError(
                f"There is no tool {effect.name!r}.{hint} The tools are: {', '.join(self.tools)}."
            )
        try:
            return tool, tool.validate_arguments(effect.arguments)
        except (ValueError, TypeError) as error:
            raise AgentToolCallError(
                f"The call of {tool.name!r} does not fit it: {error}"
            ) from error

    def with_state(self, effect: CallTool) -> CallTool:
        """Returns the call, with arguments that name a variable of the run replaced by it."""
        state, arguments = self.run.state, effect.arguments
        if not state or not isinstance(arguments, Mapping):
            return effect
        replaced = {
            key: state[value] if isinstance(value, str) and value in state else value
            for key, value in arguments.items()
        }
        return type(effect)(effect.id, effect.name, replaced)

    def bound(self, request: ToolRequest) -> dict[str, Any]:
        """Returns the arguments of a call made by code, by parameter name.

        Raises:
            AgentToolCallError: There is no such tool, or the arguments cannot be bound to it.
        """
        tool = self.tools.get(request.name)
        if tool is None:
            raise AgentToolCallError(f"There is no tool {request.name!r}.")
        try:
            return tool.bind(request.args, request.kwargs)
        except TypeError as error:
            raise AgentToolCallError(
                f"The call of {tool.name!r} does not fit it: {error}"
            ) from error

    def complaint(self, effect: CheckAnswer) -> str | None:
        """Returns what the first failing check says of an answer."""
        for check in self.checks:
            name = getattr(check, "__name__", repr(check))
            try:
                if check(effect.answer, self.run.memory, agent=self.agent()):
                    continue
            except Exception as error:
                return f"The final answer was refused by the check {name!r}: {error}"
            return f"The final answer was refused by the check {name!r}. Give another one."
        return None


def _misfit(tool: Tool, error: Exception) -> AgentToolCallError:
    return AgentToolCallError(f"The call of {tool.name!r} does not fit it: {error}")


def as_reply(model: Model, reply: object) -> ChatMessage:
    """Returns the reply of a model, if it is one.

    Raises:
        AgentGenerationError: The model returned something else than a `ChatMessage`.
    """
    if not isinstance(reply, ChatMessage):
        raise AgentGenerationError(
            f"{type(model).__name__}.generate must return a ChatMessage, "
            f"not {type(reply).__name__}: {reply!r:.200}"
        )
    return reply


def tool_failure(name: str, error: Exception) -> AgentError:
    """Returns what the model is told of a tool that raised."""
    if isinstance(error, AgentError):
        return error
    return AgentToolExecutionError(f"The tool {name!r} raised {type(error).__name__}: {error}")
