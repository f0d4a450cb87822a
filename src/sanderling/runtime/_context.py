"""What effects are carried out with, and the parts of doing so that need no I/O."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import threading
from collections.abc import Awaitable, Coroutine, Generator, Mapping, Sequence
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
    RunState,
)
from sanderling.messages import ChatMessage, plain_messages

from ._cancel import CancelScope
from ._limits import UsageLimiter
from ._policies import CallHost, Policy, Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from sanderling.loop import Event, Generate
    from sanderling.memory import AgentMemory
    from sanderling.messages import TokenUsage
    from sanderling.models import Model
    from sanderling.sandbox import Interpreter, ToolRequest
    from sanderling.tools import Tool

    from ._definition import RunningAgent, RunSettings
    from ._members import Member
    from ._run import Run

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(eq=False)
class RunContext:
    """What the effects of a run are carried out with.

    Attributes:
        run: The run.
        settings: What its agent gave it.
        state: What its loop knows of it.
        model: The model that it asks.
        path: The names of the agents from the outermost one to this one.
        policies: Around the effects of this run and of the runs beneath it; the first is outermost.
        own_policies: Around those of this run only, inside of the others.
        scope: Ends the run from outside.
        has_own_calls: Whether the agent's own `execute_tool_call` makes the calls of the model.
        call_id: Where this is the inside of such a call: its id.
        is_let_through: Whether the policies of this run have passed already what is done here.
        events: Where this is the inside of a method of the agent: what was done there by hand, and
            the run tells once the method has returned.
    """

    run: Run
    settings: RunSettings
    state: RunState
    model: Model
    path: str = ""
    policies: tuple[Policy, ...] = ()
    own_policies: tuple[Policy, ...] = ()
    scope: CancelScope = field(default_factory=CancelScope)
    has_own_calls: bool = False
    call_id: str | None = None
    is_let_through: bool = False
    events: list[Event] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _members: dict[str, Member] = field(default_factory=dict)  # that code calls now, by call id

    @property
    def tools(self) -> Mapping[str, Tool]:
        """What can be called, by name."""
        return self.settings.tools

    @property
    def all_policies(self) -> tuple[Policy, ...]:
        """All that hold for this run, the outermost first."""
        return () if self.is_let_through else (*self.policies, *self.own_policies)

    @property
    def policy_scope(self) -> Scope:
        """What policies are told of this run."""
        return Scope(self.state, self.model, self.path)

    def interpreter(self) -> Interpreter:
        """Returns the sandbox of the session, with the variables of this moment."""
        return self.run.session.interpreter()

    def nested(self, call_id: str | None = None) -> RunContext:
        """Returns the context of a method or callback of the agent, which may do things by hand.

        Args:
            call_id: The call that the method makes, if it does. The policies have passed it.
        """
        in_call = call_id is not None
        return dataclasses.replace(
            self,
            scope=CancelScope(self.scope),
            has_own_calls=self.has_own_calls and not in_call,
            call_id=call_id,
            is_let_through=in_call,
            events=[],
        )

    def call_method(self, method: Callable[[RunningAgent], Any]) -> Generator[Any, Any, Any]:
        """Calls a method of the agent within this context; tells what it did by hand there."""
        agent = self.run.agent_within(self)
        try:
            return (yield CallHost(partial(method, agent), blocks=True))
        finally:
            self.scope.close()

    def told(self) -> list[Event]:
        """Returns what was done by hand within this context, and not told yet."""
        events, self.events = self.events or [], []
        return events

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
        """Tells whether a child run met a limit that is also one of this run.

        A limit of the child alone is to this run like any other failure of a tool.
        """
        limiters = (policy for policy in self.policies if isinstance(policy, UsageLimiter))
        return any(limiter.has_raised(error) for limiter in limiters)

    def with_state(self, effect: CallTool) -> CallTool:
        """Returns the call, with arguments that name a variable of the run replaced by it."""
        state, arguments = self.state.state, effect.arguments
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
            return not self.settings.checks
        return isinstance(effect, Notify) and not len(self.settings.callbacks)

    def complaint(self, effect: CheckAnswer) -> Generator[Effect | Event, Any, str | None]:
        """Calls the checks; returns what the first failing one says of an answer."""
        nested = self.nested()
        agent = self.run.agent_within(nested)
        try:
            for check in self.settings.checks:
                name = getattr(check, "__name__", type(check).__name__)
                call = partial(call_check, check, effect.answer, self.state.memory, agent)
                try:
                    is_fine = yield CallHost(call)
                except (Exception, SystemExit) as error:
                    reason = sandbox.error_text(error) or type(error).__name__
                    return f"The final answer was refused by the check {name!r}: {reason}"
                yield from nested.told()
                if not is_fine:
                    return f"The final answer was refused by the check {name!r}. Give another one."
            return None
        finally:
            nested.scope.close()

    def run_callbacks(self, effect: Notify) -> Generator[Effect | Event, Any, None]:
        """Calls the callbacks for a step, one after the other."""
        nested = self.nested()
        agent = self.run.agent_within(nested)
        try:
            for call in self.settings.callbacks.calls(effect.step, agent):
                yield CallHost(call)
                yield from nested.told()
        finally:
            nested.scope.close()

    def event_of_child(self, event: Event, call: CallTool, path: str) -> NestedEvent:
        """Returns an event of a child run as this run tells it."""
        if isinstance(event, NestedEvent):
            return event.within(call.id)
        return NestedEvent(path, call.id, event)

    def warn_of_waiting(self, tool: str = "") -> None:
        """Says that the end of the run waits for a tool, or another function, that blocks."""
        if self.settings.warned is not None:
            what = f"the tool {tool!r}" if tool else "a callback or method of yours"
            self.settings.warned(
                f"The run ends when {what} returns: what blocks a thread cannot be broken off."
            )

    def spend(self, usage: TokenUsage) -> None:
        """Adds what a child run cost; from any thread."""
        with self._lock:
            self.state.usage += usage


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


def new_context(
    run: Run,
    settings: RunSettings,
    parent: RunContext | None,
    limiter: UsageLimiter | None,
    scope: CancelScope,
    max_steps: int | None,
) -> RunContext:
    """Returns the context of a run: here it inherits from the run that has started it.

    Args:
        run: The run.
        settings: What its agent gives it.
        parent: The context of the run that has started it.
        limiter: Holds the limits of the run itself.
        scope: Ends the run; it ends with the scope of the parent.
        max_steps: In the place of that of the agent.
    """
    session = run.session
    state = RunState(
        run.task,
        session.memory,
        max_steps or run.agent.max_steps,
        session.variables,
        settings.answer_type,
        settings.on_generation_error,
    )
    policies = (
        *(() if parent is None else parent.policies),
        *(() if limiter is None else (limiter,)),
        *settings.policies,
    )
    return RunContext(
        run=run,
        settings=settings,
        state=state,
        model=run.agent.model,
        path=run.path,
        policies=policies,
        own_policies=settings.own_policies,
        scope=scope,
        has_own_calls=settings.has_own_calls,
    )


def is_awaitable(value: object) -> bool:
    """Tells whether a function has returned something that is still to be awaited."""
    return hasattr(type(value), "__await__")


def as_coroutine(value: Any) -> Coroutine[Any, Any, Any]:
    """Returns what awaits a value: itself, if it is a coroutine."""
    return value if inspect.iscoroutine(value) else _awaited(value)


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def as_reply(model: Model, reply: object) -> ChatMessage:
    """Returns the reply of a model, if it is one.

    Raises:
        AgentGenerationError: The model returned no message, dict or text.
    """
    if isinstance(reply, ChatMessage):
        return reply
    from sanderling.models import as_message

    return as_message(reply, model.model_id or type(model).__name__)


def tool_failure(name: str, error: BaseException) -> AgentError:
    """Returns what the model is told of a tool that raised."""
    if isinstance(error, AgentExecutionError):
        return error
    return AgentToolExecutionError(f"The tool {name!r} raised {sandbox.described(error)}")
