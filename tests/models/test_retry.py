"""Asking again: when, how often, and how long to wait; no test waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.errors import AgentGenerationError
from sanderling.models import RetryPolicy
from sanderling.models._retry import Retries


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


class Server:
    """Fails with each of the given errors, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return "ok"

    async def awaited(self) -> str:
        return self()


def passing(retry_after: float | None = None) -> AgentGenerationError:
    return AgentGenerationError("Busy.", status=503, retryable=True, retry_after=retry_after)


def sync(retries: Retries, server: Server) -> str:
    return retries.call(server)


def awaited(retries: Retries, server: Server) -> str:
    return asyncio.run(retries.acall(server.awaited))


ways = pytest.mark.parametrize("way", [sync, awaited])
Way = Callable[[Retries, Server], str]


def retries(time: Time, chance: float = 0.0, **policy: Any) -> Retries:
    return Retries(RetryPolicy(**policy), lambda: time.now, time.sleep, time.asleep, lambda: chance)


@ways
def test_waits_double_up_to_the_longest(way: Way) -> None:
    time, server = Time(), Server(*(passing() for _ in range(5)))
    assert way(retries(time, attempts=6, first_wait=1, longest_wait=5), server) == "ok"
    assert time.waits == [1, 2, 4, 5, 5]


@given(chance=st.floats(0, 1), failures=st.integers(1, 8))
def test_jitter_leaves_out_up_to_a_half(chance: float, failures: int) -> None:
    time, server = Time(), Server(*(passing() for _ in range(failures)))
    retries(time, chance, attempts=9, first_wait=1, longest_wait=4).call(server)
    for number, wait in enumerate(time.waits):
        assert min(2**number, 4) / 2 <= wait <= min(2**number, 4)


@ways
def test_the_provider_says_how_long_to_wait(way: Way) -> None:
    time, server = Time(), Server(passing(7), passing(0), passing(90))
    way(retries(time, longest_wait=2, total=1_000), server)
    assert time.waits == [7, 0, 90]


@ways
def test_attempts_are_counted(way: Way) -> None:
    time, server = Time(), Server(*(passing() for _ in range(9)))
    with pytest.raises(AgentGenerationError, match=r"Busy\. It was asked 3 times in 3 s"):
        way(retries(time, attempts=3), server)
    assert server.asked == 3


def test_what_a_server_said_is_a_sentence_before_it_is_told_how_often() -> None:
    failures = (AgentGenerationError("It said: Provider error", retryable=True) for _ in range(2))
    with pytest.raises(AgentGenerationError, match=r"Provider error\. It was asked 2 times"):
        retries(Time(), attempts=2).call(Server(*failures))


@ways
def test_no_try_begins_after_the_total_time(way: Way) -> None:
    time, server = Time(), Server(*(passing(40) for _ in range(9)))
    with pytest.raises(AgentGenerationError, match="asked 3 times in 80 s"):
        way(retries(time, attempts=9, total=100), server)
    time, server = Time(), Server(passing(101))
    with pytest.raises(AgentGenerationError, match=r"^Busy\.$"):
        way(retries(time, total=100), server)
    assert time.waits == []


@ways
@pytest.mark.parametrize("error", [AgentGenerationError("no"), ValueError("no")])
def test_what_will_not_pass_is_not_repeated(way: Way, error: Exception) -> None:
    time, server = Time(), Server(error)
    with pytest.raises(type(error), match="no"):
        way(retries(time), server)
    assert (server.asked, time.waits) == (1, [])


@ways
def test_no_repeating(way: Way) -> None:
    time, server = Time(), Server(passing())
    with pytest.raises(AgentGenerationError, match=r"^Busy\.$"):
        way(retries(time, attempts=1), server)


@ways
def test_each_attempt_that_is_followed_by_another_is_told(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AgentGenerationError):
        way(retries(Time(), attempts=3), Server(*(passing() for _ in range(3))))
    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        (
            "sanderling.models",
            "WARNING",
            f"Attempt {number} of 3 failed, the next one is in {number}.0 s: Busy.",
        )
        for number in (1, 2)
    ]


def test_an_interrupt_while_waiting_comes_through() -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    waiting = Retries(RetryPolicy(), sleep=interrupted)
    with pytest.raises(KeyboardInterrupt):
        waiting.call(Server(passing()))


def test_what_a_policy_is_made_of() -> None:
    policy = RetryPolicy(attempts=2, total=5)
    assert RetryPolicy.of(policy) is policy
    assert RetryPolicy.of(policy.dict()) == policy
    assert RetryPolicy.of(True) == RetryPolicy()
    assert RetryPolicy.of(False).attempts == 1
    with pytest.raises(TypeError, match="RetryPolicy, not int"):
        RetryPolicy.of(3)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ValueError, match="1 or more"):
        RetryPolicy(attempts=0)
    with pytest.raises(ValueError, match="total"):
        RetryPolicy(total=-1)
