"""Sessions side by side: each with a memory, variables and a sandbox of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sanderling import AgentError, CodeAgent, LogLevel, ScriptedModel


def code(text: str) -> str:
    return f"<code>\n{text}\n</code>"


def agent_of(*replies: str, **kwargs: Any) -> CodeAgent:
    kwargs = {"executor_type": "inprocess", "verbosity_level": LogLevel.OFF, **kwargs}
    return CodeAgent([], ScriptedModel([code(reply) for reply in replies]), **kwargs)


GO_ON = "final_answer(x)"


@pytest.mark.parametrize("place", ["inprocess", "local"])
def test_sessions_know_nothing_of_each_other(place: str) -> None:
    replies = "x = 1; final_answer(x)", "x = 2; final_answer(x)", GO_ON, GO_ON
    agent = agent_of(*replies, executor_type=place)
    with agent.session() as one, agent.session() as other:
        assert one.run("One.") == 1
        assert other.run("Two.") == 2
        assert one.run("And now?") == 1
        assert other.run("And now?") == 2
        assert len(one.memory.steps) == len(other.memory.steps) == 4
        assert "One." in str(one.memory.steps[0])
    assert agent.memory.steps == []


def test_sessions_are_used_under_asyncio() -> None:
    agent = agent_of("x = 1; final_answer(x)", GO_ON)

    async def main() -> list[Any]:
        async with agent.session() as chat:
            return [await chat.arun("One."), await chat.arun("And now?")]

    assert asyncio.run(main()) == [1, 1]


def test_the_agents_own_session_stays_its_own() -> None:
    agent = agent_of("x = 1; final_answer(x)", "x = 5; final_answer(x)", GO_ON)
    with agent, agent.session() as chat:
        assert agent.run("One.") == 1
        assert chat.run("Two.") == 5
        assert agent.run("And now?", reset=False) == 1
        assert chat.run_in_progress is None


def test_one_run_at_a_time_in_a_session() -> None:
    agent = agent_of("x = 1", GO_ON)
    with agent.session() as chat:
        run = chat.start("One.")
        run.step()
        with pytest.raises(AgentError, match="under way"):
            chat.start("Two.")
        assert chat.run_in_progress is run
        assert run.result().output == 1


def test_two_runs_that_were_started_in_a_session_begin_one_after_the_other() -> None:
    agent = agent_of("x = 1; final_answer(x)", GO_ON)
    with agent.session() as chat:
        first, second = chat.start("One."), chat.start("Two.")
        first_step = first.step()
        assert first_step is not None
        with pytest.raises(AgentError, match="under way") as caught:
            second.result()
        assert caught.value.run is second
        assert first.result().output == 1
        assert second.result().output == 1


def test_a_session_begins_with_the_variables_of_the_agent_and_takes_its_own() -> None:
    agent = agent_of("final_answer(a + b)")
    agent.state["a"] = 1
    with agent.session() as chat:
        assert chat.variables == {"a": 1}
        assert chat.run("Add.", variables={"b": 2}) == 3
        assert chat.variables == {"a": 1, "b": 2}


def test_a_session_renews_its_system_prompt() -> None:
    agent = agent_of("final_answer(1)", "final_answer(2)")
    with agent.session() as chat:
        chat.run("One.")
        agent.instructions = "Be brief."
        chat.run("Two.")
    assert isinstance(agent.model, ScriptedModel)
    assert "Be brief." in agent.model.requests[1].messages[0].text


def test_a_session_that_is_closed_starts_a_new_sandbox() -> None:
    agent = agent_of("x = 1; final_answer(x)", "final_answer('x' in globals())")
    with agent.session() as chat:
        chat.run("One.")
        chat.close()
        assert chat.run("Still there?") is False
