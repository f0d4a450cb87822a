"""Which place it becomes, and that it never becomes one without walls."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from sanderling import CodeAgent, ScriptedModel
from sanderling.console import AgentLogger
from sanderling.errors import SandboxUnavailable
from sanderling.sandbox import InterpreterExecutor, create_interpreter
from sanderling.sandbox.backends import _auto
from sanderling.sandbox.backends._docker import DockerBackend
from sanderling.sandbox.backends._local import LocalBackend
from sanderling.sandbox.lockdown import Layer, probe
from support.docker_engine import IMAGE, Engine
from support.sandbox import interpreter, value
from support.wasm import require_wasm

NOWHERE = "unix:///nowhere.sock"


@pytest.fixture(autouse=True)
def undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is decided, and docker leads nowhere."""
    monkeypatch.setattr(_auto, "_choice", _auto._Choice())
    monkeypatch.setenv("DOCKER_HOST", NOWHERE)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)


@pytest.fixture
def no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that is older, or not Linux."""
    missing = Layer("landlock", False, True, "not in this kernel", "Use Linux 5.13 or newer")
    monkeypatch.setattr(_auto, "probe", lambda: (missing,))


@pytest.fixture
def no_wasm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sysconfig.get_path", lambda name: "/nowhere")


def test_a_locked_process_comes_first() -> None:
    with interpreter("auto") as python:
        assert "auto" in repr(python)
        assert value(python, "1 + 1") == 2
        assert python.layers["executor"] == "local"
        assert "seccomp" in python.layers
        assert "local" in repr(python)


def test_a_container_comes_second(
    no_landlock: None, docker_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_engine.host)
    monkeypatch.setitem(_auto.PLACES, "docker", lambda **given: docker_backend(given))
    with interpreter("auto", memory_bytes=512 << 20) as python:
        assert value(python, "1 + 1") == 2
        assert python.layers["executor"] == "docker"


def docker_backend(given: dict[str, Any]) -> DockerBackend:
    return DockerBackend(image=IMAGE, **given)


def test_webassembly_comes_third(no_landlock: None) -> None:
    require_wasm()
    with interpreter("auto") as python:
        assert value(python, "1 + 1") == 2
        assert python.layers["executor"] == "wasm"


def test_all_of_a_process_are_of_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    with interpreter("auto") as first:
        first.open()
    monkeypatch.setattr(_auto, "probe", lambda: pytest.fail("decided twice"))
    with interpreter("auto") as second:
        assert value(second, "1") == 1
        assert second.layers["executor"] == "local"


def test_threads_decide_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def count() -> tuple[Layer, ...]:
        asked.append(1)
        return probe()

    monkeypatch.setattr(_auto, "probe", count)
    made = [create_interpreter("auto") for _ in range(4)]
    threads = [threading.Thread(target=python.open) for python in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {python.layers["executor"] for python in made} == {"local"}
    assert asked == [1]
    for python in made:
        python.close()


def test_where_nothing_works_each_fix_is_told(no_landlock: None, no_wasm: None) -> None:
    with interpreter("auto") as python:
        with pytest.raises(SandboxUnavailable) as caught:
            python.open()
        with pytest.raises(SandboxUnavailable, match="no place with walls for code"):
            InterpreterExecutor(python).check()
    told = str(caught.value)
    for part in (
        "no place with walls for code on this machine",
        "local: landlock: not in this kernel. Use Linux 5.13 or newer",
        "docker: ",
        "`docker version`",
        "wasm: there is no program 'deno'",
        "pip install deno",
        'Or executor_type="inprocess", which has no walls',
    ):
        assert part in told
    assert ".." not in told
    assert _auto._choice.place is None  # and may be tried again, once it is mended


def test_a_limit_that_only_some_places_keep_passes_over_the_others(
    no_landlock: None, no_wasm: None
) -> None:
    with (
        interpreter("auto", workdir_bytes=1 << 20) as python,
        pytest.raises(SandboxUnavailable, match=r'"wasm" cannot keep workdir_bytes: its files'),
    ):
        python.open()


def test_a_limit_that_the_chosen_place_cannot_keep_is_told(no_landlock: None) -> None:
    _auto._choice.place = "wasm"
    with (
        interpreter("auto", workdir_bytes=1 << 20) as python,
        pytest.raises(SandboxUnavailable, match=r"runs code in 'wasm'.*cannot keep workdir_bytes"),
    ):
        python.open()


@pytest.mark.parametrize("setting", [{"image": "x"}, {"extra_read": ("/usr",)}, {"nonsense": 1}])
def test_what_belongs_to_one_place_is_set_by_its_name(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r'"auto" takes limits .*Name the place'):
        create_interpreter("auto", **setting)


def test_what_no_place_keeps_is_refused() -> None:
    with pytest.raises(ValueError, match="max_processes"):
        create_interpreter("auto", max_processes=3)


def test_it_is_cheap_before_the_first_step(run_python: Callable[[str], str]) -> None:
    code = (
        "import subprocess, sys\n"
        "subprocess.Popen = None\n"
        "from sanderling.sandbox import create_interpreter\n"
        "create_interpreter('auto').close(); print('nothing was started')"
    )
    assert run_python(code) == "nothing was started\n"


@pytest.mark.parametrize("driver", ["sync", "async"])
def test_on_other_systems_a_line_says_what_was_taken(
    monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    def stand_in(**settings: Any) -> LocalBackend:
        class Container(LocalBackend):
            name = "docker"

            def start(self) -> Any:
                monkeypatch.setattr(sys, "platform", "linux")
                link = super().start()
                monkeypatch.setattr(sys, "platform", "darwin")
                return link

        return Container(**settings)

    monkeypatch.setitem(_auto.PLACES, "docker", stand_in)
    monkeypatch.setattr(sys, "platform", "darwin")
    shown = io.StringIO()
    logger = AgentLogger(console=Console(file=shown, width=200))
    model = ScriptedModel(["<code>final_answer(42)</code>"])
    with CodeAgent([], model, executor_type="auto", logger=logger) as agent:
        answer = agent.run("Go.") if driver == "sync" else asyncio.run(agent.arun("Go."))
    assert answer == 42
    assert 'Code runs in executor_type="docker": "local" takes Linux.' in shown.getvalue()
