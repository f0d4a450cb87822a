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
        began = self.clock()
        attempt = 1
        while True:
            try:
                return work()
            except AgentGenerationError as error:
                wait = self._wait_after(error, attempt, began)
            self.sleep(wait)
            attempt += 1

    async def acall(self, work: Callable[[], Awaitable[T]]) -> T:
        """Does what `call` does, under asyncio."""
        began = self.clock()
        attempt = 1
        while True:
            try:
                return await work()
            except AgentGenerationError as error:
                wait = self._wait_after(error, attempt, began)
            await self.asleep(wait)
            attempt += 1

    def _wait_after(self, error: AgentGenerationError, attempt: int, began: float) -> float:
        """Warns of a failure, and returns the seconds to wait until the next attempt.

        Raises:
            AgentGenerationError: There is no next attempt.
        """
        if not error.retryable:
            raise error
        wait = self._wait(error, attempt)
        seconds = self.clock() - began
        if attempt >= self.policy.attempts or seconds + wait > self.policy.total:
            if attempt > 1:
                said = error.message.rstrip()
                stop = "" if said.endswith((".", "!", "?")) else "."
                error.message = f"{said}{stop} It was asked {attempt} times in {seconds:.0f} s."
                error.args = (error.message,)
            raise error
        warn(
            f"Attempt {attempt} of {self.policy.attempts} failed, "
            f"the next one is in {wait:.1f} s: {error}"
        )
        return wait

    def _wait(self, error: AgentGenerationError, attempt: int) -> float:
        if error.retry_after is not None:
            return error.retry_after
        doubled = self.policy.first_wait * 2.0 ** min(attempt - 1, 32)
        return min(doubled, self.policy.longest_wait) * (1 - self.chance() / 2)


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
