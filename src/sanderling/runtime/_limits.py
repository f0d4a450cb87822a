"""Limits of a run and of all runs beneath it, held before something is done and not after."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sanderling.errors import AgentLimitError
from sanderling.loop import CallTool, Effect, Event, Generate, Notify
from sanderling.memory import ActionStep

if TYPE_CHECKING:
    from sanderling.loop import RunState
    from sanderling.messages import TokenUsage

    from ._cancel import CancelScope
    from ._policies import Scope

_FINAL_ANSWER = "final_answer"


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in money per million tokens.

    Attributes:
        input: For tokens of the request.
        output: For tokens of the reply.
        cached: For tokens of the request that the provider had cached; `input` where it is None.
    """

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: TokenUsage) -> float:
        """Returns what a usage costs."""
        cached = self.input if self.cached is None else self.cached
        fresh = max(0, usage.input_tokens - usage.cached_tokens)
        total = fresh * self.input + usage.cached_tokens * cached
        return (total + usage.output_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How much a run may use, the runs of its managed agents included.

    What would go beyond a limit is not done: the run raises `AgentLimitError`, and what it had done
    stays in memory. The size of a reply is not known before it is there: `tokens` and `cost` are
    checked before each request, so that the last one allowed may go beyond them.

    Attributes:
        steps: Steps; unlike at ``max_steps``, no answer is forced.
        seconds: Wall time; what is in progress is then broken off.
        tokens: Tokens in and out.
        tool_calls: Calls of tools and managed agents, ``final_answer`` not counted.
        cost: Money, in the currency of `prices`.
        prices: By model id; every model that is asked must be in it where `cost` is given.

    Raises:
        ValueError: A limit is negative, or `cost` comes without `prices`.
    """

    steps: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    cost: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("steps", "seconds", "tokens", "tool_calls", "cost"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"a limit cannot be negative: {name}={value!r}")
        if self.cost is not None and not self.prices:
            raise ValueError(
                "a limit of cost needs prices: RunLimits(cost=1.0, "
                "prices={'the model id': Price(input=2.5, output=10.0)}), per million tokens"
            )


def as_limits(limits: object) -> RunLimits | None:
    """Returns limits, if they are some.

    Raises:
        TypeError: They are none.
    """
    if limits is not None and not isinstance(limits, RunLimits):
        raise TypeError(f"limits must be a RunLimits, not a {type(limits).__name__}")
    return limits


class UsageLimiter:
    """The policy that holds limits: counts what one tree of runs uses.

    Args:
        limits: How much that may be.
    """

    def __init__(self, limits: RunLimits) -> None:
        self.limits = limits
        self._lock = threading.Lock()
        self._steps = self._calls = self._tokens = 0
        self._cost = 0.0
        self._in_step: WeakSet[RunState] = WeakSet()
        self._refusals: set[AgentLimitError] = set()

    def has_raised(self, error: Exception) -> bool:
        """Tells whether an error says that one of these limits is reached, and not another's."""
        return error in self._refusals

    def __call__(self, effect: Effect, scope: Scope) -> Generator[Effect | Event, Any, Any]:
        """Lets an effect through that stays within the limits. See `Policy`."""
        match effect:
            case Generate():
                with self._lock:
                    self._admit_request(scope)
                reply = yield effect
                with self._lock:
                    self._count(reply.token_usage, scope)
                return reply
            case CallTool() if effect.name != _FINAL_ANSWER:
                with self._lock:
                    self._admit("tool calls", self._calls, self.limits.tool_calls)
                    self._calls += 1
            case Notify(step=ActionStep()):
                self._in_step.discard(scope.run)
        return (yield effect)

    def _admit_request(self, scope: Scope) -> None:
        limits = self.limits
        self._admit("tokens", self._tokens, limits.tokens)
        if limits.cost is not None:
            self._price(scope)
            self._admit("cost", self._cost, limits.cost)
        if scope.run not in self._in_step:
            self._admit("steps", self._steps, limits.steps)
            self._steps += 1
            self._in_step.add(scope.run)

    def _count(self, usage: TokenUsage | None, scope: Scope) -> None:
        limits = self.limits
        if usage is not None:
            self._tokens += usage.total_tokens
            if limits.cost is not None:
                self._cost += self._price(scope).of(usage)
        elif limits.tokens is not None or limits.cost is not None:
            raise self._refusal(
                f"The model {scope.model.model_id!r} does not tell how many tokens its replies "
                "take, so a limit of tokens or cost cannot be held. Limit steps or seconds instead."
            )

    def _price(self, scope: Scope) -> Price:
        name = scope.model.model_id or ""
        if name not in self.limits.prices:
            raise self._refusal(
                f"There is a limit of cost, and no price for the model {name!r}: "
                f"add RunLimits(prices={{{name!r}: Price(input=…, output=…)}})."
            )
        return self.limits.prices[name]

    def _admit(self, what: str, used: float, allowed: float | None) -> None:
        if allowed is not None and used >= allowed:
            raise self._refusal(
                f"The run has used {used:g} of the {allowed:g} {what} that it may use, so it was "
                "ended."
            )

    def _refusal(self, message: str) -> AgentLimitError:
        error = AgentLimitError(message)
        self._refusals.add(error)
        return error


@contextmanager
def time_limit(scope: CancelScope, seconds: float | None) -> Iterator[None]:
    """Stops a run with an `AgentLimitError` when it takes longer than so many seconds."""
    if seconds is None:
        yield
        return
    error = AgentLimitError(f"The run has used the {seconds:g} seconds that it may use.")
    timer = threading.Timer(seconds, scope.cancel, [error])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
