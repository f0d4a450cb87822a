"""Methods that a class of the user's defines anew, and that its runs then go by."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling import sandbox
from sanderling.errors import AgentExecutionError, AgentStoppedError, AgentToolExecutionError
from sanderling.loop import ActionOutput, CallTool, Effect
from sanderling.runtime import Consult, Control, Services

if TYPE_CHECKING:
    from sanderling.loop import Action, Event, Run
    from sanderling.memory import ActionStep
    from sanderling.runtime import Policy, Scope

    from ._base import MultiStepAgent
    from ._conversation import Conversation

    Loop: TypeAlias = Generator[Effect | Event, Any, Any]
    Agent: TypeAlias = Callable[[], MultiStepAgent]


@dataclass(frozen=True, slots=True)
class Lent:
    """What a run lends to a method of the user's, which may itself do things by hand.

    Attributes:
        conversation: That of the run.
        services: Those of the run.
        call_id: The call that the method makes, if it does.
        told: The events of what is done by hand; the run tells them as its own.
    """

    conversation: Conversation
    services: Services
    call_id: str | None = None
    told: list[Event] = field(default_factory=list)


_LENT: ContextVar[Lent | None] = ContextVar("sanderling_lent", default=None)


def lent_in(conversation: Conversation) -> Lent | None:
    """Returns what the run in a conversation has lent to the method that asks, if it is one."""
    lent = _LENT.get()
    return lent if lent is not None and lent.conversation is conversation else None


def by_step(agent: Agent, conversation: Conversation, services: Services) -> Action:
    """Returns the action that is ``agent.step``.

    Args:
        agent: Returns the agent, with the memory of the run.
        conversation: That of the run.
        services: Those of the run.
    """

    def act(run: Run, step: ActionStep) -> Generator[Effect | Event, Any, ActionOutput]:
        before = run.usage
        lent = Lent(conversation, _beneath(services, Services))
        value = yield from _called(lent, lambda: agent().step(step))
        if run.usage == before and step.token_usage is not None:
            run.usage += step.token_usage  # the method has asked the model by itself
        if inspect.isgenerator(value):
            raise TypeError(f"{type(agent()).__name__}.step returns None or the answer: no yield")
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


def by_execute_tool_call(services: Services, agent: Agent, conversation: Conversation) -> Services:
    """Returns services whose calls of tools are made by ``agent.execute_tool_call``.

    Args:
        services: Those of the run.
        agent: Returns the agent, with the memory of the run.
        conversation: That of the run.
    """
    policy = _CallsByMethod(services, agent, conversation)
    return dataclasses.replace(services, own_policies=(*services.own_policies, policy))


def without_methods(services: Services) -> Services:
    """Returns services that make calls of tools themselves."""
    kept = tuple(one for one in services.own_policies if not isinstance(one, _CallsByMethod))
    return dataclasses.replace(services, own_policies=kept)


class _CallsByMethod:
    def __init__(self, services: Services, agent: Agent, conversation: Conversation) -> None:
        self._services = services
        self._agent = agent
        self._conversation = conversation

    def __call__(self, effect: Effect, scope: Scope, /) -> Loop:
        if not isinstance(effect, CallTool):
            return (yield effect)
        name, arguments = effect.name, effect.arguments
        lent = Lent(self._conversation, _beneath(self._services, _LetThrough), effect.id)
        call = self._agent().execute_tool_call
        try:
            return (yield from _called(lent, lambda: call(name, arguments)))
        except (AgentExecutionError, AgentStoppedError):
            raise
        except (Exception, SystemExit) as error:
            raise AgentToolExecutionError(
                f"The tool {name!r} raised {sandbox.described(error)}"
            ) from error


class _LetThrough(Services):
    """Services within a call that the policies of the run have let through already.

    They hold for the runs of managed agents all the same.
    """

    @property
    def all_policies(self) -> tuple[Policy, ...]:
        return ()


def _beneath(services: Services, kind: type[Services]) -> Services:
    """Returns services for what a method does, which ends with the run."""
    same = {one.name: getattr(services, one.name) for one in fields(services)}
    return kind(**{**same, "control": Control(services.control)})


def _called(lent: Lent, method: Callable[[], Any]) -> Loop:
    def call() -> Any:
        token = _LENT.set(lent)
        try:
            value = method()
        finally:
            _LENT.reset(token)
        return _awaited(lent, value) if inspect.isawaitable(value) else value

    try:
        value = yield Consult(call, blocks=True)
    except Exception:
        yield from lent.told
        raise
    finally:
        lent.services.control.release()
    yield from lent.told
    return value


async def beside_the_loop(method: Callable[[], Any]) -> Any:
    """Calls a method in a worker thread, and awaits what it returns if it is async."""
    from sanderling._bridge import in_thread

    value = await in_thread(method)
    return await value if inspect.isawaitable(value) else value


async def _awaited(lent: Lent, value: Awaitable[Any]) -> Any:
    token = _LENT.set(lent)
    try:
        return await value
    finally:
        _LENT.reset(token)
