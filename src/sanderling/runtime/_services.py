"""What effects are carried out with, and the parts of doing so that need no I/O."""

from __future__ import annotations

import difflib
import inspect
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sanderling import sandbox
from sanderling._show import text_of
from sanderling.errors import (
    AgentError,
    AgentExecutionError,
    AgentGenerationError,
    AgentStoppedError,
    AgentToolCallError,
    AgentToolExecutionError,
)
from sanderling.loop import (
    CallTool,
    CheckAnswer,
    Effect,
    NestedEvent,
    Notify,
    Outcome,
    ReplyBrokenOff,
)
from sanderling.memory import CallbackRegistry
from sanderling.messages import ChatMessage, plain_messages

from ._control import Control
from ._limits import Meter
from ._policies import Consult, Policy, Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from sanderling.loop import Event, Generate, Run
    from sanderling.memory import AgentMemory
    from sanderling.messages import TokenUsage
    from sanderling.models import Model
    from sanderling.sandbox import Interpreter, ToolRequest
    from sanderling.tools import Tool

    from ._members import Member

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(eq=False)
class Services:
    """Everything a run may use.

    Attributes:
        run: The run that is served.
        model: Who is asked.
        tools: What can be called, by name.
        interpreter: Makes the sandbox of this run, when the first code action needs it.
        callbacks: Who is told of finished steps.
        checks: Called with an answer, and the memory and ``agent=`` where they take them; a false
            value or an exception sends the answer back to the model.
        agent: Returns what callbacks and checks get to see as the agent.
        path: The names of the agents from the outermost one to this one.
        policies: Around the effects of this run and of the runs beneath it; the first is outermost.
        own_policies: Around those of this run only, inside of the others.
        control: Ends the run from outside.
        warned: Told, line by line, of what the model warns of while it is waited for.
    """

    run: Run
    model: Model
    tools: Mapping[str, Tool]
    interpreter: Callable[[], Interpreter]
    callbacks: CallbackRegistry = field(default_factory=CallbackRegistry)
    checks: Sequence[Callable[..., Any]] = ()
    agent: Callable[[], object] = lambda: None
    path: str = ""
    policies: tuple[Policy, ...] = ()
    own_policies: tuple[Policy, ...] = ()
    control: Control = field(default_factory=Control)
    warned: Callable[[str], object] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _members: dict[str, Member] = field(default_factory=dict)  # that code calls now, by call id

    @property
    def all_policies(self) -> tuple[Policy, ...]:
        """All that hold for this run, the outermost first."""
        return (*self.policies, *self.own_policies)

    @property
    def scope(self) -> Scope:
        """What policies are told of this run."""
        return Scope(self.run, self.model, self.path)

    def request(self, effect: Generate) -> tuple[Sequence[ChatMessage], dict[str, Any]]:
        """Returns the messages of a model call, and its keyword arguments."""
        options: dict[str, Any] = dict(effect.options)
        if effect.stop_sequences:
            options["stop_sequences"] = list(effect.stop_sequences)
        if effect.tools:
            options["tools_to_call_from"] = [self.tools[name] for name in effect.tools]
        messages = effect.messages[:]
        if not self.model.takes_tool_messages:
            messages = plain_messages(messages)
        return messages, options

    def generation_error(self, error: Exception) -> AgentError:
        """Returns what the caller of the run is told when the model could not be asked."""
        if isinstance(error, AgentError):
            return error
        return AgentGenerationError(
            f"{type(self.model).__name__} failed with {type(error).__name__}: {text_of(error)}"
        )

    def asked_again(self, error: AgentGenerationError, attempts: int) -> ReplyBrokenOff:
        """Returns the event for a streamed reply that broke off and is asked for again.

        Args:
            error: Why it broke off.
            attempts: How often it was asked for so far.

        Raises:
            AgentGenerationError: It is not asked for again.
        """
        if not error.retryable or attempts >= self.model.stream_attempts:
            raise error
        return ReplyBrokenOff(str(error))

    def find(self, effect: CallTool) -> tuple[Tool | Member, dict[str, Any]]:
        """Returns the tool of a call, or the member of a `HostObject`, and its checked arguments.

        Raises:
            AgentToolCallError: There is no such tool, or the arguments do not fit it.
        """
        member = self._members.get(effect.id)
        if member is None or member.name != effect.name:
            return self._find_tool(effect)
        try:
            return member, member.validate_arguments(effect.arguments)
        except (ValueError, TypeError) as error:
            raise _misfit(member, error) from error

    def _find_tool(self, effect: CallTool) -> tuple[Tool, dict[str, Any]]:
        tool = self.tools.get(effect.name)
        if tool is None:
            close = difflib.get_close_matches(effect.name, self.tools, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise AgentToolCallError(
                f"There is no tool {effect.name!r}.{hint} The tools are: {', '.join(self.tools)}."
            )
        try:
            if effect.in_code:
                return tool, tool.take_arguments(effect.arguments)
            return tool, tool.validate_arguments(effect.arguments)
        except (ValueError, TypeError) as error:
            raise _misfit(tool, error) from error

    def is_ended_by(self, error: Exception) -> bool:
        """Tells whether an errand met a limit that is also one of this run.

        A limit of the errand alone is to this run like any other failure of a tool.
        """
        meters = (policy for policy in self.policies if isinstance(policy, Meter))
        return any(meter.has_raised(error) for meter in meters)

    def with_state(self, effect: CallTool) -> CallTool:
        """Returns the call, with arguments that name a variable of the run replaced by it."""
        state, arguments = self.run.state, effect.arguments
        if not state or not isinstance(arguments, Mapping):
            return effect
        replaced = {
            key: state[value] if isinstance(value, str) and value in state else value
            for key, value in arguments.items()
        }
        return CallTool(effect.id, effect.name, replaced)

    def bound(self, request: ToolRequest) -> CallTool:
        """Returns the call that code asks for, with its arguments by parameter name.

        Raises:
            AgentToolCallError: There is no such tool, or the arguments cannot be bound to it.
        """
        tool: Tool | Member | None
        if request.method is None:
            tool = self.tools.get(request.name)
            if tool is None:
                raise AgentToolCallError(f"There is no tool {request.name!r}.")
        else:
            from ._members import Member  # few runs have objects whose members are called

            tool = self._members[request.id] = Member(request.name, request.method)
        try:
            arguments = tool.bind(request.args, request.kwargs)
            in_code = request.method is None
            return CallTool(request.id, request.name, arguments, in_code=in_code)
        except TypeError as error:
            raise _misfit(tool, error) from error

    def attempt(self, call: CallTool) -> Generator[Effect, Any, Outcome]:
        """Makes one of several calls: its error is an outcome, unless it ends the run."""
        try:
            return Outcome((yield call))
        except AgentStoppedError:
            raise
        except Exception as error:
            return Outcome(error=error)

    def answer(
        self, interpreter: Interpreter, request: ToolRequest
    ) -> Generator[Effect, Any, None]:
        """Makes a call that code asks for, and gives the code what came of it."""
        try:
            value = yield self.bound(request)
        except AgentStoppedError as error:
            interpreter.fail(request, str(error))
            if not request.alone:
                interpreter.interrupt()  # whoever drives the code does not wait for this call
            raise
        except Exception as error:
            interpreter.fail(request, *sandbox.failure(error))
        except BaseException as error:  # such as KeyboardInterrupt, which the caller handles
            interpreter.fail(request, *sandbox.failure(error))
            if not request.alone:
                interpreter.interrupt()
            raise
        else:
            interpreter.reply(request, value)
        finally:
            self._members.pop(request.id, None)

    def is_settled(self, effect: Effect) -> bool:
        """Whether an effect asks for nobody: there are no checks, or no callbacks."""
        if isinstance(effect, CheckAnswer):
            return not self.checks
        return isinstance(effect, Notify) and not len(self.callbacks)

    def complaint(self, effect: CheckAnswer) -> Generator[Effect, Any, str | None]:
        """Asks the checks; returns what the first failing one says of an answer."""
        for check in self.checks:
            name = getattr(check, "__name__", type(check).__name__)
            called = partial(call_check, check, effect.answer, self.run.memory, self.agent())
            try:
                if (yield Consult(called)):
                    continue
            except (Exception, SystemExit) as error:
                told = sandbox.error_text(error) or type(error).__name__
                return f"The final answer was refused by the check {name!r}: {told}"
            return f"The final answer was refused by the check {name!r}. Give another one."
        return None

    def told(self, effect: Notify) -> Generator[Effect, Any, None]:
        """Tells the callbacks of a step, one after the other."""
        for call in self.callbacks.calls(effect.step, self.agent()):
            yield Consult(call)

    def nested(self, event: Event, call: CallTool, path: str) -> NestedEvent:
        """Returns an event of an errand as this run tells it."""
        if isinstance(event, NestedEvent):
            return event.within(call.id)
        return NestedEvent(path, call.id, event)

    def spend(self, usage: TokenUsage) -> None:
        """Adds what an errand cost; from any thread."""
        with self._lock:
            self.run.usage += usage


def call_check(
    check: Callable[..., Any], answer: object, memory: AgentMemory, agent: object
) -> Any:
    """Calls a final-answer check, with the memory and ``agent=`` where it takes them.

    Returns:
        What the check returns; false means that the answer is refused.

    Raises:
        RuntimeError: The check raised GeneratorExit, which would end the run.
        Exception: It raised this.
    """
    try:
        parameters = inspect.signature(check).parameters.values()
    except ValueError:  # some callables written in C tell no signature
        return check(answer)
    names = {parameter.name for parameter in parameters}
    kinds = [parameter.kind for parameter in parameters if parameter.name != "agent"]
    positional = [kind for kind in kinds if kind in _POSITIONAL]
    takes_memory = len(positional) > 1 or inspect.Parameter.VAR_POSITIONAL in kinds
    takes_agent = "agent" in names or inspect.Parameter.VAR_KEYWORD in kinds
    arguments = (answer, memory) if takes_memory else (answer,)
    try:
        return check(*arguments, agent=agent) if takes_agent else check(*arguments)
    except GeneratorExit as error:
        raise RuntimeError("it raised GeneratorExit") from error


def _misfit(tool: Tool | Member, error: Exception) -> AgentToolCallError:
    return AgentToolCallError(
        f"The call of {tool.name!r} does not fit it: {sandbox.error_text(error)}"
    )


def as_reply(model: Model, reply: object) -> ChatMessage:
    """Returns the reply of a model, if it is one.

    Raises:
        AgentGenerationError: The model returned no message, dict or text.
    """
    if isinstance(reply, ChatMessage):
        return reply
    from sanderling.models import as_message

    return as_message(reply, model.model_id or type(model).__name__)


def invoked(tool: Tool | Member, arguments: Mapping[str, Any]) -> object:
    """Calls a tool.

    Raises:
        AgentToolExecutionError: It raised SystemExit or GeneratorExit, which would end more than
            the call.
        Exception: It raised this.
    """
    try:
        return tool.invoke(arguments)
    except (SystemExit, GeneratorExit) as error:
        raise tool_failure(tool.name, error) from error


def tool_failure(name: str, error: BaseException) -> AgentError:
    """Returns what the model is told of a tool that raised."""
    if isinstance(error, AgentExecutionError):
        return error
    return AgentToolExecutionError(f"The tool {name!r} raised {sandbox.described(error)}")
