"""A sandbox that is slow to start does so while the model writes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from sanderling import CodeAgent, LogLevel
from sanderling.errors import SandboxUnavailable
from sanderling.messages import ChatMessage, MessageRole
from sanderling.sandbox import InterpreterExecutor, PythonExecutor, create_interpreter
from sanderling.sandbox._remote import RemoteInterpreter
from support.drivers import Driver, both_drivers
from support.processes import lasting, sandboxes
from support.sandbox import arun, value


class Start:
    """Stands in the place of a backend's way to start."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self.begun = threading.Event()
        self.calls = 0
        self._start = start

    def __call__(self) -> Any:
        self.calls += 1
        self.begun.set()
        return self._start()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[RemoteInterpreter, Start]]:
    with closing(create_interpreter("local")) as python:
        assert isinstance(python, RemoteInterpreter)
        backend = python._resources.backend
        start = Start(backend.start)
        monkeypatch.setattr(backend, "start", start)
        monkeypatch.setattr(type(backend), "is_warm", False)
        yield python, start


def test_it_is_started_once(slow: tuple[RemoteInterpreter, Start]) -> None:
    python, start = slow
    python.start_soon()
    python.start_soon()
    assert start.begun.wait(10)
    assert value(python, "1 + 1") == 2
    python.start_soon()
    assert value(python, "2 + 2") == 4
    assert start.calls == 1


def test_under_asyncio(slow: tuple[RemoteInterpreter, Start]) -> None:
    python, start = slow

    async def main() -> object:
        python.start_soon()
        return (await arun(python, "1 + 1")).output

    assert asyncio.run(main()) == 2
    assert start.calls == 1


def test_closing_it_early_leaves_nothing(slow: tuple[RemoteInterpreter, Start]) -> None:
    python, start = slow
    before = sandboxes()
    python.start_soon()
    assert start.begun.wait(10)
    python.close()
    assert lasting(sandboxes() - before) == set()


def test_what_goes_wrong_is_told_by_the_first_step(
    slow: tuple[RemoteInterpreter, Start], monkeypatch: pytest.MonkeyPatch
) -> None:
    python, _ = slow

    def fail() -> None:
        raise SandboxUnavailable("the engine is down")

    monkeypatch.setattr(python._resources.backend, "start", fail)
    python.start_soon()
    with pytest.raises(SandboxUnavailable, match="The sandbox did not start: the engine is down"):
        value(python, "1")


@both_drivers
def test_an_agents_sandbox_starts_while_its_model_writes(
    driver: Driver, slow: tuple[RemoteInterpreter, Start]
) -> None:
    python, start = slow

    class Agent(CodeAgent):
        def create_python_executor(self) -> PythonExecutor:
            return InterpreterExecutor(python)

    def model(messages: list[ChatMessage], **options: object) -> ChatMessage:
        begun = start.begun.wait(10)
        return ChatMessage(MessageRole.ASSISTANT, f"<code>\nfinal_answer({begun})\n</code>")

    agent = Agent([], model, verbosity_level=LogLevel.OFF)
    assert driver.run(agent, "Go") is True
    assert start.calls == 1
