"""What is raised out of a run leads to the user's code, without the way through the loop."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path
from typing import Any

import pytest

import sanderling
from sanderling import ActionStep, AgentGenerationError, LogLevel, ScriptedModel, ToolCallingAgent
from support.drivers import Driver, both_drivers
from support.play import says

PACKAGE = str(Path(sanderling.__file__).parent)


def broken(step: object) -> None:
    raise ZeroDivisionError("of the user's")


def agent_for(*replies: Any, **kwargs: Any) -> ToolCallingAgent:
    return ToolCallingAgent([], ScriptedModel(replies), verbosity_level=LogLevel.OFF, **kwargs)


def frames(error: BaseException) -> list[str]:
    """Returns the functions on the way, those of the package with a mark."""
    found = traceback.extract_tb(error.__traceback__)
    return [("> " if one.filename.startswith(PACKAGE) else "") + one.name for one in found]


@both_drivers
def test_an_error_of_a_callback_leads_from_the_run_to_the_callback(driver: Driver) -> None:
    agent = agent_for(says("x"), step_callbacks=[broken])
    with pytest.raises(ZeroDivisionError) as caught:
        driver.run(agent, "Go.")
    assert frames(caught.value)[-1] == "broken"
    own = [name for name in frames(caught.value) if name.startswith("> ")]
    assert own[0] == ("> run" if driver.name == "sync" else "> arun")
    assert len(own) <= 2


@both_drivers
def test_the_frames_of_a_model_stay(driver: Driver) -> None:
    with pytest.raises(AgentGenerationError) as caught:
        driver.run(agent_for(), "Go.")
    assert frames(caught.value)[-1] == "> _reply_to"
    assert len([name for name in frames(caught.value) if name.startswith("> ")]) <= 4


@pytest.mark.parametrize("how", ["step", "astep"])
def test_steps_by_hand_are_short_as_well(how: str) -> None:
    agent = agent_for()

    def take() -> None:
        if how == "step":
            agent.step(ActionStep(1))
        else:
            asyncio.run(agent.astep(ActionStep(1)))

    with pytest.raises(AgentGenerationError) as caught:
        take()
    assert len([name for name in frames(caught.value) if name.startswith("> ")]) <= 4


def test_all_frames_are_there_for_who_debugs_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDERLING_DEBUG", "1")
    with pytest.raises(ZeroDivisionError) as caught:
        agent_for(says("x"), step_callbacks=[broken]).run("Go.")
    assert "> drive" in frames(caught.value)
