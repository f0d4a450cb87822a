"""The events of a run: their order, their being there in time, and closing early."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

import sanderling
from sanderling import (
    ActionStep,
    ChatMessageStreamDelta,
    CodeAgent,
    CodeOutputDelta,
    LogLevel,
    Model,
    ScriptedModel,
    ToolCallingAgent,
    event_to_dict,
    tool,
)
from sanderling.loop import Event
from support.drivers import Driver, both_drivers
from support.pages import check_example, examples, page
from support.play import says
from support.tools import add

PAGE = page("streaming.md")


def code(*lines: str) -> str:
    return "Go.\n<code>\n" + "\n".join(lines) + "\n</code>"


def code_agent(*replies: Any, tools: Sequence[Any] = (), **kwargs: Any) -> CodeAgent:
    return CodeAgent(list(tools), ScriptedModel(replies), verbosity_level=LogLevel.OFF, **kwargs)


@both_drivers
def test_every_kind_of_event_comes_in_its_place(driver: Driver) -> None:
    model = ScriptedModel(
        [
            says("1. Add."),
            says("I add.", ("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})),
            says("", ("nope", {})),
            says("3 and 7"),
        ]
    )
    agent = ToolCallingAgent(
        [add],
        model,
        stream_outputs=True,
        planning_interval=5,
        max_steps=2,
        verbosity_level=LogLevel.OFF,
    )
    events = driver.events(agent, "Go.")
    names = [type(event).__name__ for event in events]
    assert [name for name in names if name != "ChatMessageStreamDelta"] == [
        "RunStarted",
        *["PlanningStarted", "PlanningStep"],
        *["StepStarted", "ModelReply", "ToolCall", "ToolCall", "ToolOutput", "ToolOutput"],
        *["ActionOutput", "ActionStep"],
        *["StepStarted", "ModelReply", "ToolCall", "ToolOutput", "ActionStep"],
        *["ActionStep", "FinalAnswerStep"],
    ]
    assert [event.output for event in events if isinstance(event, sanderling.ToolOutput)] == [
        3,
        7,
        None,
    ]
    written = [json.dumps(event_to_dict(event)) for event in events]
    assert len(written) == len(events)


@both_drivers
def test_what_code_prints_is_there_while_it_runs(driver: Driver) -> None:
    seen = threading.Event()

    @tool
    def is_seen() -> bool:
        """Tells whether the consumer has got what was printed before."""
        return seen.is_set()

    agent = code_agent(code("print('first')", "final_answer(is_seen())"), tools=[is_seen])

    def note(event: Any) -> Any:
        if isinstance(event, CodeOutputDelta):
            seen.set()
        return event

    async def collect() -> list[Any]:
        return [note(event) async for event in agent.astream("Go.")]

    with agent:
        if driver.name == "sync":
            events = [note(event) for event in agent.run("Go.", stream=True)]
        else:
            events = asyncio.run(collect())
    assert events[-1].output is True


class Endless(Model):
    """Writes for ever; knows whether it was told to stop."""

    closed = False

    def generate_stream(self, *args: Any, **kwargs: Any) -> Generator[Any, None, None]:
        try:
            while True:
                yield ChatMessageStreamDelta(content="and ")
        finally:
            self.closed = True


def stop_at(driver: Driver, agent: Any, kind: type[Event]) -> None:
    """Reads the stream up to an event of a kind and closes it there."""
    if driver.name == "sync":
        stream = agent.run("Go.", stream=True)
        next(event for event in stream if isinstance(event, kind))
        stream.close()
        return

    async def main() -> None:
        stream = agent.astream("Go.")
        async for event in stream:
            if isinstance(event, kind):
                break
        await stream.aclose()

    asyncio.run(main())


@both_drivers
def test_closing_ends_the_reply_in_progress(driver: Driver) -> None:
    model = Endless()
    agent = ToolCallingAgent([], model, stream_outputs=True, verbosity_level=LogLevel.OFF)
    stop_at(driver, agent, ChatMessageStreamDelta)
    assert model.closed
    assert not any(isinstance(step, ActionStep) for step in agent.memory.steps)


@both_drivers
def test_closing_ends_the_code_in_progress_and_the_agent_goes_on(driver: Driver) -> None:
    endless = code("print('on and on', flush=True)", "while True: pass")
    agent = code_agent(endless, code("final_answer('new')"))
    with agent:
        stop_at(driver, agent, CodeOutputDelta)
        assert not any(isinstance(step, ActionStep) for step in agent.memory.steps)
        assert driver.run(agent, "Again.") == "new"


@both_drivers
def test_closing_before_the_first_event_leaves_nothing(driver: Driver) -> None:
    agent = code_agent(code("final_answer(1)"))
    if driver.name == "sync":
        agent.run("Go.", stream=True).close()
    else:
        asyncio.run(agent.astream("Go.").aclose())
    with agent:
        assert driver.run(agent, "Go.") == 1


def test_the_page_names_every_event() -> None:
    table = PAGE.partition("## A consumer")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*?) \|$", table, re.MULTILINE)
    assert {name for name, _ in rows} == {kind.__name__ for kind in Event.__args__}
    for name, holds in rows:
        fields = {*getattr(sanderling, name).__dataclass_fields__, "python_interpreter", "None"}
        assert set(re.findall(r"`(\w+)`", holds)) <= fields


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_page_run_and_print_what_it_says(number: int, tmp_path: Path) -> None:
    check_example(*examples("streaming.md")[number], tmp_path)
