"""When the copy from before a step is made, and what is said where it is an older one."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from sanderling.sandbox import create_interpreter
from sanderling.sandbox._checkpoint import LATEST, PAUSE, SAVED, SHARE, Pace
from sanderling.sandbox._remote import RemoteInterpreter
from support.processes import fork_servers, sandboxes, watch
from support.sandbox import error, value

END = "import os; os._exit(1)"


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def test_copies_take_up_a_share_of_the_time() -> None:
    clock = Clock()
    pace = Pace(clock)
    waited, steps = 0.0, 10_000
    for _ in range(steps):
        clock.time += 0.001
        if pace.allows():
            clock.time += 0.004
            pace.spent(0.004)
            waited += 0.004
    assert SHARE * 0.9 < (waited - SAVED) / (clock.time - 100) < SHARE * 1.1


def test_what_was_saved_up_is_enough_for_a_while_and_comes_back() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(3):
        for _ in range(20):
            assert pace.allows()
            pace.spent(0.9 * SAVED / 20)
        pace.spent(100)
        clock.time += 0.9 * LATEST
        assert not pace.allows()
        clock.time += 0.1 * LATEST + SAVED / SHARE * 1.1


def test_where_a_model_thinks_between_steps_each_has_a_copy_whatever_it_costs() -> None:
    clock = Clock()
    pace = Pace(clock)
    for pause in (PAUSE, 0.9 * PAUSE) * 5:
        clock.time += 0.1
        pace.step_ends()
        clock.time += pause
        pace.step_begins()
        assert pace.allows() == (pause >= PAUSE)
        pace.spent(100)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteInterpreter]:
    """An interpreter that may wait for one copy."""
    monkeypatch.setattr("sanderling.sandbox._checkpoint.SAVED", 1e-9)
    monkeypatch.setattr("sanderling.sandbox._checkpoint.SHARE", 0.0)
    with started() as python:
        yield python


@contextlib.contextmanager
def started() -> Iterator[RemoteInterpreter]:
    python = create_interpreter("local", additional_authorized_imports=["os"])
    assert isinstance(python, RemoteInterpreter)
    try:
        python.open()
        if python.layers["snapshots"] is not True:
            pytest.skip("a process here is supervised by somebody else")
        yield python
    finally:
        python.close()


def test_an_older_copy_is_told_from_the_one_of_before(slow: RemoteInterpreter) -> None:
    for number in range(6):
        value(slow, f"x = {number}")
    told = error(slow, END)
    assert "variables are what they were before the last 6 steps, this one included" in told
    assert value(slow, "x") == 0
    # A kernel that was restored has no copy: it gets one.
    value(slow, "x = 7")
    told = error(slow, END)
    assert "before the last 3 steps" in told
    assert value(slow, "x") == 0


@pytest.mark.parametrize(("fault", "behind"), [(0.0, "this step"), (1.0, "the last 5 steps")])
def test_what_a_copy_costs_the_step_after_it_counts(
    monkeypatch: pytest.MonkeyPatch, fault: float, behind: str
) -> None:
    monkeypatch.setattr("sanderling.sandbox._checkpoint.SAVED", 20.0)
    monkeypatch.setattr("sanderling.sandbox._checkpoint.SHARE", 0.0)
    monkeypatch.setattr("sanderling.sandbox._checkpoint._FAULT", fault)
    with started() as python:
        for _ in range(5):
            value(python, "x = [bytes(100) for _ in range(10_000)]")
        assert f"before {behind}" in error(python, END)


def test_variables_that_were_sent_are_always_kept(slow: RemoteInterpreter) -> None:
    for number in range(6):
        slow.set_variables({"x": number})
        value(slow, "x += 1")
    slow.set_variables({"x": 10})
    assert "before this step" in error(slow, f"x = 11; {END}")
    assert value(slow, "x") == 10


def test_a_copy_that_has_ended_is_put_in_the_place_of_nothing(slow: RemoteInterpreter) -> None:
    value(slow, "x = 1")  # copied after it; after the next one, time is not there for another copy
    value(slow, "x = 2")
    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(watch(pid)) for pid in fork_servers() | sandboxes()]
        for pid in fork_servers():
            os.kill(pid, signal.SIGKILL)
        assert all(end(10) for end in ends)
    assert "all variables of earlier steps are gone" in error(slow, "x")
    assert value(slow, "3") == 3
