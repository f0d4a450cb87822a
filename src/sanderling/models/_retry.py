"""Asking again after a failure that may pass."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
)
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sanderling._warn import warn
from sanderling.errors import AgentGenerationError

from ._arguments import check_at_least

if TYPE_CHECKING:
    import tenacity

    from sanderling.messages import ChatMessageStreamDelta, JSONObject

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and for how long, a request is repeated.

    Repeated is what may pass: status 429, 408 and 5xx, a connection that broke, a time-out; and a
    stream only as long as nothing of it was handed out. Where the provider says how long to wait
    (``Retry-After``), that is how long; otherwise the wait doubles from try to try, and a random
    half of it is left out, so that many clients do not come back at once. Each repeating is logged
    as a warning of the logger ``sanderling.models``, and told by the agent that waits.

    Attributes:
        attempts: How often at most, the first time included.
        first_wait: Seconds before the second try.
        longest_wait: Seconds between two tries at most; a provider may ask for more.
        total: Seconds from the first try after which no other one begins.
    """

    attempts: int = 5
    first_wait: float = 1.0
    longest_wait: float = 60.0
    total: float = 180.0

    def __post_init__(self) -> None:
        check_at_least("attempts, the first one included,", self.attempts, 1)
        for name in ("first_wait", "longest_wait", "total"):
            check_at_least(name, getattr(self, name), 0, whole=False)

    def dict(self) -> JSONObject:
        """Returns the JSON form."""
        return asdict(self)

    @classmethod
    def of(cls, given: bool | RetryPolicy | Mapping[str, Any]) -> RetryPolicy:
        """Accepts a policy, its JSON form, `True` for the usual one, `False` for no repeating.

        Raises:
            TypeError: It is none of these.
        """
        if isinstance(given, RetryPolicy):
            return given
        if isinstance(given, bool):
            return cls() if given else cls(attempts=1)
        if isinstance(given, Mapping):
            return cls(**given)
        raise TypeError(f"retry is True, False or a RetryPolicy, not {type(given).__name__}")


@dataclass(frozen=True, slots=True)
class Retries:
    """Carries a policy out.

    Attributes:
        policy: What to do.
        clock: Tells seconds; only differences count.
        sleep: Waits, in blocking code.
        asleep: Waits, under asyncio.
        chance: Returns a random number from 0 to 1.
    """

    policy: RetryPolicy
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    asleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random

    def call(self, work: Callable[[], T]) -> T:
        """Returns what `work` returns, as soon as it does not fail for a passing reason.

        Raises:
            AgentGenerationError: The last failure.
        """
        if self.policy.attempts == 1:
            return work()
        import tenacity

        return tenacity.Retrying(sleep=self.sleep, **self._rules())(work)

    async def acall(self, work: Callable[[], Awaitable[T]]) -> T:
        """Does what `call` does, under asyncio."""
        if self.policy.attempts == 1:
            return await work()
        import tenacity

        async def attempt() -> T:  # the library looks whether it is given a coroutine function
            return await work()

        return await tenacity.AsyncRetrying(sleep=self.asleep, **self._rules())(attempt)

    def _rules(self) -> dict[str, Any]:
        import tenacity

        began = self.clock()

        def is_over(state: tenacity.RetryCallState) -> bool:
            ends = self.clock() - began + state.upcoming_sleep
            return state.attempt_number >= self.policy.attempts or ends > self.policy.total

        def give_up(state: tenacity.RetryCallState) -> Any:
            error = _error(state)
            if state.attempt_number > 1:
                seconds = self.clock() - began
                error.message += f" It was asked {state.attempt_number} times in {seconds:.0f} s."
                error.args = (error.message,)
            raise error

        return {
            "retry": tenacity.retry_if_exception(_is_passing),
            "wait": self._wait,
            "stop": is_over,
            "before_sleep": self._tell,
            "retry_error_callback": give_up,
        }

    def _wait(self, state: tenacity.RetryCallState) -> float:
        asked_for = _error(state).retry_after
        if asked_for is not None:
            return asked_for
        doubled = self.policy.first_wait * 2.0 ** min(state.attempt_number - 1, 32)
        return min(doubled, self.policy.longest_wait) * (1 - self.chance() / 2)

    def _tell(self, state: tenacity.RetryCallState) -> None:
        warn(
            f"Attempt {state.attempt_number} of {self.policy.attempts} failed, "
            f"the next one is in {state.upcoming_sleep:.1f} s: {_error(state)}"
        )


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, AgentGenerationError) and error.retryable


def _error(state: tenacity.RetryCallState) -> AgentGenerationError:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, AgentGenerationError):
        raise TypeError(f"{error!r} is not to be repeated") from error
    return error


def begun(
    deltas: Generator[ChatMessageStreamDelta, None, None],
) -> tuple[list[ChatMessageStreamDelta], Generator[ChatMessageStreamDelta, None, None]]:
    """Waits for the first delta: until it is there, the request may be repeated."""
    first = next(deltas, None)
    return [] if first is None else [first], deltas


async def abegun(
    deltas: AsyncGenerator[ChatMessageStreamDelta, None],
) -> tuple[list[ChatMessageStreamDelta], AsyncGenerator[ChatMessageStreamDelta, None]]:
    """Does what `begun` does, under asyncio."""
    first = await anext(deltas, None)
    return [] if first is None else [first], deltas


async def achain(
    first: list[ChatMessageStreamDelta], rest: AsyncIterator[ChatMessageStreamDelta]
) -> AsyncGenerator[ChatMessageStreamDelta, None]:
    """Yields the first deltas, then the rest."""
    for delta in first:
        yield delta
    async for delta in rest:
        yield delta
