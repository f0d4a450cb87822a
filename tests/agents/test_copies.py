"""Copies of agents, in this process and for others: equal, with conversations of their own."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from sanderling import AgentLogger, CodeAgent, LogLevel, ScriptedModel, ToolCallingAgent, tool
from support.play import says
from support.tools import add, greet


@tool
def half(number: float) -> float:
    """Halves a number.

    Args:
        number: What to halve.
    """
    return number / 2


def agent_for(**kwargs: Any) -> CodeAgent:
    helper = ToolCallingAgent(
        [greet], ScriptedModel([says("x")]), name="helper", description="Helps."
    )
    replies = ["<code>\nkept = half(14)\n</code>", "<code>\nfinal_answer([int(kept)])\n</code>"]
    kwargs = {"verbosity_level": LogLevel.OFF, "output_type": list[int], **kwargs}
    return CodeAgent(
        [half, add],
        ScriptedModel(replies * 2),
        executor_type="inprocess",
        managed_agents=[helper],
        **kwargs,
    )


def pickled(agent: CodeAgent) -> Any:
    return pickle.loads(pickle.dumps(agent))


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, pickled])
def test_a_copy_of_an_agent_that_has_run_begins_anew(
    copied: Callable[[CodeAgent], CodeAgent],
) -> None:
    with agent_for() as agent:
        assert agent.run("Halve.") == [7]
        with copied(agent) as twin:
            assert twin.memory.steps == []
            assert twin.state == {}
            assert repr(twin) == repr(agent)
            assert twin.run("Halve.") == [7]
            assert twin.memory is not agent.memory
        assert len(agent.memory.steps) == 3


def test_copies_print_to_the_same_place_and_choose_how_much() -> None:
    file = io.StringIO()
    agent = agent_for(logger=AgentLogger(LogLevel.ERROR, Console(file=file)))
    twin = copy.deepcopy(agent)
    twin.logger.level = LogLevel.INFO
    twin.run("Halve.")
    assert "New run" in file.getvalue()
    assert agent.logger.level == LogLevel.ERROR
    assert pickled(agent).logger.level == LogLevel.ERROR


def test_a_pickled_tool_is_what_it_was_made() -> None:
    renamed = copy.copy(half)
    renamed.name = "halve"
    loaded = pickle.loads(pickle.dumps(renamed))
    assert (loaded.name, loaded(3.0)) == ("halve", 1.5)
    assert half.name == "half"


def test_a_tool_within_a_function_says_why_it_cannot_be_pickled() -> None:
    @tool
    def local(number: float) -> float:
        """Returns a number.

        Args:
            number: Which.
        """
        return number

    assert copy.deepcopy(local)(2.0) == 2.0
    with pytest.raises(TypeError, match="the tool 'local' cannot be pickled: its function has to"):
        pickle.dumps(CodeAgent([local], ScriptedModel([])))
