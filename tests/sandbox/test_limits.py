"""What steps may use up in all: short ones and bursts count like long ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sanderling.errors import SandboxLimitExceeded
from sanderling.sandbox._limits import Limits, StepWatch, Usage
from support.sandbox import interpreter, run, value

if TYPE_CHECKING:
    from sanderling.sandbox import Interpreter

MIB = 1 << 20
ANY: dict[str, Any] = {"additional_authorized_imports": ["*"]}


class Machine:
    """A process to be watched, and a clock."""

    def __init__(self, **limits: Any) -> None:
        self.time = 100.0
        self.looks = 0
        self.cost = 0.0001
        self.usage = Usage(cpu_seconds=0.0, threads=1, workdir_bytes=0, workdir_files=0)
        cpu_seconds = limits.pop("cpu_seconds", None)
        self.watch = StepWatch(self.look, Limits(**limits), cpu_seconds, lambda: self.time)

    def look(self) -> Usage:
        self.looks += 1
        self.time += self.cost
        return self.usage

    def does(self, seconds: float = 0.0, **usage: Any) -> None:
        self.time += seconds
        self.usage = replace(self.usage, **usage)


def told(watch: StepWatch, *, ended: bool = False) -> str:
    excess = watch.excess(ended=ended)
    return "" if excess is None else excess.did


def test_empty_steps_are_looked_at_a_fiftieth_of_the_time() -> None:
    machine = Machine(workdir_bytes=4 * MIB)
    begun = machine.time
    for _ in range(1_000):
        machine.watch.start_step()
        machine.does(0.0003)
        assert told(machine.watch, ended=True) == ""
    assert machine.looks > 10
    assert machine.looks * 0.0001 < (machine.time - begun) / 45


def test_a_folder_that_takes_long_to_look_at_is_looked_at_a_tenth_of_the_time() -> None:
    machine = Machine(workdir_bytes=4 * MIB)
    machine.cost = 0.3
    begun = machine.time
    for _ in range(1_000):
        machine.watch.start_step()
        machine.does(0.02)
        assert told(machine.watch, ended=True) == ""
    assert machine.looks * 0.3 < (machine.time - begun) / 9
    assert machine.looks * 0.3 > (machine.time - begun) / 13


@pytest.mark.parametrize(
    ("limits", "uses"),
    [
        ({"workdir_bytes": 4 * MIB}, {"workdir_bytes": 5 * MIB}),
        ({"workdir_files": 100}, {"workdir_files": 101}),
        ({"max_threads": 16}, {"threads": 1_000}),
        ({"cpu_seconds": 0.01}, {"cpu_seconds": 0.02}),
    ],
)
def test_what_a_short_step_used_up_is_told_when_it_ends(
    limits: dict[str, Any], uses: dict[str, Any]
) -> None:
    machine = Machine(**limits)
    machine.watch.start_step()
    machine.does(0.02, **uses)
    assert told(machine.watch, ended=True)


def test_what_the_shortest_steps_used_up_is_told_by_the_next_one() -> None:
    machine = Machine(workdir_bytes=4 * MIB, max_threads=16)
    machine.watch.start_step()
    machine.does(0.001, workdir_bytes=5 * MIB, threads=1_000)
    assert told(machine.watch, ended=True) == ""
    machine.does(0.2)
    machine.watch.start_step()
    assert "1,000 threads" in told(machine.watch)
    machine.does(threads=1)
    assert told(machine.watch) == ""  # it adds nothing
    assert "4 MiB" in told(machine.watch, ended=True)


def test_in_a_full_folder_a_step_may_remove_files_but_not_add_any() -> None:
    machine = Machine(workdir_bytes=4 * MIB)
    machine.watch.start_step()
    machine.does(0.02, workdir_bytes=9 * MIB)
    assert "filled the work folder past its 4 MiB" in told(machine.watch, ended=True)
    machine.watch.start_step()
    machine.does(0.02, workdir_bytes=8 * MIB)
    assert told(machine.watch) == ""
    assert "left more" in told(machine.watch, ended=True)
    machine.watch.start_step()
    machine.does(0.02, workdir_bytes=10 * MIB)
    assert "filled the work folder past its 4 MiB" in told(machine.watch)
    machine.watch.start_step()
    machine.does(0.001, workdir_bytes=1 * MIB)
    assert told(machine.watch, ended=True) == ""


def test_far_past_its_limit_a_folder_ends_the_interpreter() -> None:
    machine = Machine(workdir_bytes=4 * MIB, workdir_files=100)
    for many in ({"workdir_bytes": 500 * MIB}, {"workdir_files": 20_000}):
        machine.does(1, workdir_bytes=0, workdir_files=0)
        assert machine.watch.start_step() == ""
        machine.does(1, **many)
        excess = machine.watch.excess()
        assert excess is not None
        assert excess.final
        assert "no more code" in machine.watch.start_step()
        machine.does(1, workdir_bytes=0, workdir_files=0)
        assert machine.watch.start_step() == ""


def tell(python: Interpreter, code: str) -> str:
    """Runs a step; returns the limit that it met, if it met one."""
    error = run(python, code).error
    assert error is None or isinstance(error, SandboxLimitExceeded), error
    return "" if error is None else str(error)


def test_bytes_of_short_steps_add_up() -> None:
    write = "open(f'f{n}', 'wb').write(bytes(1 << 20)); n += 1"
    with interpreter(workdir_bytes=4 * MIB, **ANY) as python:
        value(python, "import os, glob; n = 0")
        met = [tell(python, write) for _ in range(100)]
        assert "4 MiB" in "".join(met)
        assert "4 MiB" in tell(python, "1")
        assert value(python, "[os.remove(file) for file in glob.glob('f*')]; 1") == 1
        assert tell(python, write) == ""


def test_files_of_short_steps_add_up() -> None:
    with interpreter(workdir_files=100, **ANY) as python:
        value(python, "n = 0")
        code = "for n in range(n, n + 30): open(f'f{n}', 'w').close()"
        assert "100 files" in "".join(tell(python, code) for _ in range(30))
        met_too = tell(python, "raise ValueError('what the code raised')")
        assert "100 files" in met_too
        assert "what the code raised" in met_too


def test_space_cannot_be_reserved() -> None:
    code = (
        "import ctypes, os; c = ctypes.CDLL(None, use_errno=True)\n"
        "file = os.open('large', os.O_CREAT | os.O_RDWR)\n"
        "c.fallocate(file, 0, ctypes.c_long(0), ctypes.c_long(200 << 20))\n"
        "os.stat('large').st_blocks * 512"
    )
    with interpreter(workdir_bytes=4 * MIB, **ANY) as python:
        assert value(python, code) == 0
        assert "4 MiB" in tell(python, "os.posix_fallocate(file, 0, 200 << 20)")


def test_threads_of_a_short_step_end_the_interpreter() -> None:
    code = (
        "import _thread, time\nfor _ in range(1_000): _thread.start_new_thread(time.sleep, (60,))"
    )
    with interpreter(max_threads=16, **ANY) as python:
        value(python, "kept = 1")
        met = tell(python, code) + tell(python, "1")
        assert "threads; it may have 16 and was killed" in met
        assert value(python, "kept") == 1


def test_code_that_goes_on_filling_the_folder_is_killed_and_runs_no_more() -> None:
    code = """
n = 0
while True:
    try:
        while True: open(f'f{n}', 'wb').write(bytes(8 << 20)); n += 1
    except BaseException: pass
"""
    with interpreter(workdir_bytes=4 * MIB, timeout_seconds=20, **ANY) as python:
        met = next(met for _ in range(20) if "no more code" in (met := tell(python, code)))
        assert "4 MiB" in met
        assert [tell(python, "1") for _ in range(3)] == [met] * 3
