"""An attempt only counts as held where a wall refused it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sanderling.sandbox import Attempt, Checkup, Wall, check_up, try_executors
from sanderling.sandbox._checkup import try_to_fill, try_to_run_on
from support.processes import sandboxes
from support.sandbox import interpreter

WALL = Wall("wall", in_force=True, required=True, detail="")
HELD = Attempt("attempt", held=True, detail="")


def test_all_attempts_get_through_where_there_are_no_walls(
    run_python: Callable[[str], str], tmp_path: Path
) -> None:
    # In a process of its own, which has no thread but that of the code when it forks.
    printed = run_python(
        f"import os; os.chdir({str(tmp_path)!r})\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "from sanderling.sandbox import create_interpreter\n"
        "from sanderling.sandbox._checkup import try_walls\n"
        "python = create_interpreter('inprocess', additional_authorized_imports=['*'])\n"
        "attempts = try_walls(python)\n"
        "python.close()\n"
        "print(len(attempts), *{(each.held, each.detail) for each in attempts})"
    )
    assert printed.split(maxsplit=1) == ["12", "(False, 'reached')\n"]


def test_code_that_is_not_stopped_in_time_is_found_out() -> None:
    with interpreter(timeout_seconds=None) as python:
        python.open()
        (pid,) = sandboxes()
        threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()
        attempt = try_to_run_on(python)
    assert not attempt.held
    assert "SIGKILL" in attempt.detail


def test_a_disk_that_can_be_filled_is_found_out() -> None:
    with interpreter(workdir_bytes=4 << 20) as python:
        assert try_to_fill(python).held
    with interpreter(workdir_bytes=1 << 30) as python:
        attempt = try_to_fill(python)
    assert not attempt.held
    assert "ended" in attempt.detail


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = dict(os.environ)
    check_up()
    assert dict(os.environ) == before
    assert list(tmp_path.iterdir()) == []


def test_a_provider_whose_package_is_missing_names_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    providers = ("e2b", "modal", "blaxel")
    for package in providers:
        monkeypatch.setitem(sys.modules, package, None)  # how Python says: not there
    found = {each.name: each for each in try_executors()}
    for name in providers:
        assert not found[name].works
        assert f"pip install 'sanderling[{name}]'" in found[name].detail


@pytest.mark.parametrize(
    ("checkup", "sound"),
    [
        (Checkup((WALL,), (HELD,)), True),
        (Checkup((WALL,), (HELD, Attempt("other", held=False, detail="reached"))), False),
        (Checkup((WALL, Wall("other", False, True, "gone")), (HELD,)), False),
        (Checkup((WALL, Wall("other", False, False, "gone")), (HELD,)), True),
        (Checkup((WALL,), (HELD,), refusal="no sandbox opens"), False),
    ],
)
def test_what_makes_it_sound(checkup: Checkup, sound: bool) -> None:
    assert checkup.sound is sound
