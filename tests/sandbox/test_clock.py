from __future__ import annotations

import pytest

from sanderling.sandbox._clock import LONGEST_WAIT, StepClock


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def test_a_step_is_interrupted_then_killed(time: Time) -> None:
    clock = StepClock(10, 0.5, time)
    time.now += 9.9
    assert clock.verdict() == "wait"
    assert clock.patience() == pytest.approx(0.1)
    time.now += 0.2
    assert clock.verdict() == "interrupt"
    clock.interrupted()
    assert clock.verdict() == "wait"
    time.now += 0.4
    clock.interrupted()
    assert clock.verdict() == "wait"
    time.now += 0.2
    assert clock.verdict() == "kill"
    assert clock.patience() == 0


def test_time_of_tools_does_not_count(time: Time) -> None:
    clock = StepClock(10, 0.5, time)
    time.now += 6
    clock.stand()
    clock.stand()
    time.now += 1_000
    assert clock.verdict() == "wait"
    assert clock.patience() == LONGEST_WAIT
    clock.run()
    clock.run()
    time.now += 3
    assert clock.left() == pytest.approx(1)
    time.now += 2
    assert clock.verdict() == "interrupt"


def test_an_interrupt_counts_even_while_a_tool_runs(time: Time) -> None:
    clock = StepClock(10, 0.5, time)
    clock.stand()
    clock.interrupted()
    time.now += 1
    assert clock.verdict() == "kill"


def test_a_step_may_have_no_limit(time: Time) -> None:
    clock = StepClock(None, 0.5, time)
    time.now += 10**9
    assert clock.verdict() == "wait"
    assert clock.patience() == LONGEST_WAIT
    clock.interrupted()
    time.now += 1
    assert clock.verdict() == "kill"
