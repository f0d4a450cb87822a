"""Asks before code is run and tools are called."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from sanderling import sandbox
from sanderling.errors import AgentExecutionError, AgentStoppedError, AgentToolCallError
from sanderling.loop import CallTool, Effect, Event, ExecuteCode

from ._policies import CallHost

if TYPE_CHECKING:
    from sanderling.sandbox import CodeResult

    from ._policies import Scope

_FINAL_ANSWER = "final_answer"


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What an agent wants to do.

    Attributes:
        kind: ``"tool"`` for a call of a tool or of a managed agent, ``"code"`` for code.
        name: The tool; ``"python_interpreter"`` for code.
        arguments: By parameter name, as they arrived here from the model or the sandbox; for code
            the code.
        agent: Who wants it: names from the outermost agent on, such as ``"manager/web_agent"``.
        task: What that agent works on.
        id: Names the call within the run; empty for code.
    """

    kind: Literal["tool", "code"]
    name: str
    arguments: Any
    agent: str
    task: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Allow:
    """Do it. A policy may return True instead."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not do it. A policy may return False instead.

    Attributes:
        reason: The model reads it.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Do it otherwise.

    Attributes:
        arguments: In the place of those that were asked for; for code the code.
    """

    arguments: Any


Decision: TypeAlias = Allow | Deny | Edit | bool


class ApprovalPolicy(Protocol):
    """Decides what an agent may do."""

    def __call__(self, request: ApprovalRequest, /) -> Decision | Awaitable[Decision]:
        """Returns a decision; may be async."""


class Approval:
    """The policy that asks before each piece of code and each call of a tool.

    The sandbox waits meanwhile, and its clock stands still. What cannot be decided is not done:
    a policy that raises, or returns no decision, ends the run.

    Args:
        approve: Takes an `ApprovalRequest` and returns a decision; may be async. Under asyncio one
            that is not is called in a worker thread. Calls that are made at once are asked for at
            once.
    """

    def __init__(self, approve: ApprovalPolicy) -> None:
        self._approve = approve

    def __call__(self, effect: Effect, scope: Scope) -> Generator[Effect | Event, Any, Any]:
        """Carries an effect out as far as it is allowed. See `Policy`."""
        match effect:
            case ExecuteCode():
                return (yield from self._code(effect, scope))
            case CallTool() if effect.name != _FINAL_ANSWER:
                return (yield from self._call(effect, scope))
        return (yield effect)

    def _code(self, effect: ExecuteCode, scope: Scope) -> Generator[Effect | Event, Any, Any]:
        request = ApprovalRequest(
            "code", "python_interpreter", effect.code, scope.path, scope.run.task
        )
        match (yield from self._decision(request)):
            case Deny(reason):
                raise AgentExecutionError(f"This code was not run: {_refused(reason)}")
            case Edit(code) if code != effect.code:
                result: CodeResult = yield dataclasses.replace(effect, code=code)
                note = f"(The code was changed before it was run. This was run:\n{code}\n)\n"
                return dataclasses.replace(result, logs=note + result.logs)
        return (yield effect)

    def _call(self, effect: CallTool, scope: Scope) -> Generator[Effect | Event, Any, Any]:
        request = ApprovalRequest(
            "tool", effect.name, effect.arguments, scope.path, scope.run.task, effect.id
        )
        match (yield from self._decision(request)):
            case Deny(reason):
                raise AgentToolCallError(f"{effect.name!r} was not called: {_refused(reason)}")
            case Edit(arguments):
                return (yield dataclasses.replace(effect, arguments=arguments))
        return (yield effect)

    def _decision(self, request: ApprovalRequest) -> Generator[Effect | Event, Any, Decision]:
        try:
            decision = yield CallHost(partial(self._approve, request), blocks=True)
        except AgentStoppedError:
            raise
        except (Exception, SystemExit) as error:
            raise AgentStoppedError(
                f"The approval policy raised {sandbox.described(error)}. "
                f"{request.name!r} was not carried out."
            ) from error
        if isinstance(decision, bool):
            return Allow() if decision else Deny()
        if not isinstance(decision, Allow | Deny | Edit):
            raise AgentStoppedError(
                "The approval policy must return Allow(), Deny(reason) or Edit(arguments), or a "
                f"bool, not {decision!r:.100}. {request.name!r} was not carried out."
            )
        return decision


def _refused(reason: str) -> str:
    return f"it was refused: {reason}" if reason else "it was refused. Do not try it again."
