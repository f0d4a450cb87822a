"""Policies: what is done around effects, written once for both drivers.

A policy is a small loop of its own. It is given an effect and yields effects: that one, another in
its place, or none at all; what it returns is the reply. So limits, approvals, recording and retries
need no second form for asyncio, and the loop knows of none of them.

::

    def logged(effect, scope):
        started = yield Now()
        reply = yield effect
        print(scope.path, type(effect).__name__, (yield Now()) - started)
        return reply
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from sanderling.loop import Effect, Event

from ._drivers import adrive, drive

if TYPE_CHECKING:
    from sanderling.loop import RunState
    from sanderling.models import Model

    from ._drivers import AsyncHandle, AsyncWork, Handle, Work


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """Whose effects a policy sees.

    Attributes:
        run: What its loop knows of the run.
        model: The model that it asks.
        path: The names of the agents from the outermost one, as in `NestedEvent.path`.
    """

    run: RunState
    model: Model
    path: str


class Policy(Protocol):
    """What is done around effects: yields effects and events, returns the reply to the first."""

    def __call__(self, effect: Effect, scope: Scope, /) -> Generator[Effect | Event, Any, Any]:
        """Carries one effect out, by yielding it or otherwise."""


@dataclass(frozen=True, slots=True)
class CallHost(Effect):
    """Call a function of whoever runs the agent. The reply is what it returns, awaited if need be.

    Attributes:
        function: Takes nothing.
        blocks: Whether it may take long, such as by asking a person; under asyncio it is then
            called in a worker thread.
    """

    function: Callable[[], Any]
    blocks: bool = False


def under(policies: Sequence[Policy], scope: Scope, handle: Handle, effect: Effect) -> Work:
    """Carries one effect out as the policies let it be done; the first one is the outermost."""
    if not policies:
        return handle(effect)
    inner = partial(under, policies[1:], scope, handle)
    return drive(policies[0](effect, scope), inner)


def aunder(
    policies: Sequence[Policy], scope: Scope, handle: AsyncHandle, effect: Effect
) -> AsyncWork:
    """Does the same under asyncio."""
    if not policies:
        return handle(effect)
    inner = partial(aunder, policies[1:], scope, handle)
    return adrive(policies[0](effect, scope), inner)
