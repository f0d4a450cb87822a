"""What is prepared before a run is there in the run; what cannot be there is refused at once."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sanderling import CodeAgent, LogLevel, MultiStepAgent, ScriptedModel, ToolCallingAgent, tool
from support.drivers import Driver, both_drivers
from support.play import says
from support.tools import add

if TYPE_CHECKING:
    from collections.abc import Callable


def code(text: str) -> str:
    return f"<code>\n{text}\n</code>"


def agent_of(*codes: str, **kwargs: Any) -> CodeAgent:
    model = ScriptedModel(list(map(code, codes)))
    settings = {"executor_type": "inprocess", "verbosity_level": LogLevel.OFF, **kwargs}
    return CodeAgent(settings.pop("tools", [add]), model, **settings)


ANSWER = "final_answer(globals().get('k'))"


def prepared_by_item(agent: CodeAgent) -> None:
    agent.state["k"] = 5


def prepared_by_dict(agent: CodeAgent) -> None:
    agent.state = {"k": 5}


def prepared_by_variables(agent: CodeAgent) -> None:
    agent.python_executor.send_variables({"k": 5})


def prepared_by_code(agent: CodeAgent) -> None:
    agent.python_executor("k = add(2, 3)")


@both_drivers
@pytest.mark.parametrize("executor_type", ["local", "inprocess"])
@pytest.mark.parametrize(
    "prepare", [prepared_by_item, prepared_by_dict, prepared_by_variables, prepared_by_code]
)
def test_what_is_prepared_is_there_in_the_first_run(
    driver: Driver, prepare: Callable[[CodeAgent], None], executor_type: str
) -> None:
    with agent_of(ANSWER, executor_type=executor_type) as agent:
        prepare(agent)
        assert driver.run(agent, "Go.") == 5
        assert agent.python_executor("k").output == 5


def test_a_prepared_executor_is_that_of_the_first_run_and_no_other() -> None:
    with agent_of(ANSWER, ANSWER) as agent:
        executor = agent.python_executor
        executor("k = 5")
        assert agent.run("Go.") == 5
        assert agent.python_executor is executor
        assert agent.run("Go.") is None
        assert agent.python_executor is not executor


def test_what_is_refused_leaves_the_preparation_alone() -> None:
    with agent_of(ANSWER) as agent:
        agent.python_executor("k = 5")
        with pytest.raises(ValueError, match="cannot be the name of a variable"):
            agent.run("Go.", additional_args={"a b": 1})
        assert agent.run("Go.") == 5


def test_the_memory_of_a_first_run_is_new_all_the_same() -> None:
    with agent_of(ANSWER, ANSWER) as agent:
        agent.run("First.")
        steps = agent.memory.steps
        again = agent_of(ANSWER)
        again.memory.steps = list(steps)
        again.python_executor("k = 5")
        assert again.run("Second.") == 5
        assert [step.task for step in again.memory.steps if hasattr(step, "task")] == ["Second."]


@both_drivers
def test_the_users_variables_are_there_in_every_run(driver: Driver) -> None:
    with agent_of(*[ANSWER] * 6) as agent:
        agent.state["k"] = 5
        assert [driver.run(agent, "Go.") for _ in range(2)] == [5, 5]
        agent.state["k"] = 6
        assert driver.run(agent, "Go.") == 6
        assert driver.run(agent, "Go.", additional_args={"k": 7}) == 7
        assert driver.run(agent, "Go.") == 6
        del agent.state["k"]
        assert driver.run(agent, "Go.") is None


def test_what_came_with_a_task_is_forgotten() -> None:
    with agent_of(ANSWER, ANSWER, ANSWER) as agent:
        assert agent.run("Go.", additional_args={"k": 7}) == 7
        assert agent.run("Go.", reset=False) == 7
        assert agent.run("Go.") is None
        assert agent.state == {}


def test_runs_at_once_share_no_preparation_but_the_state() -> None:
    async def both(agent: CodeAgent) -> tuple[Any, Any]:
        return await asyncio.gather(agent.arun("One."), agent.arun("Two."))

    action = "final_answer((globals().get('k'), globals().get('made')))"
    with agent_of(action, action) as agent:
        agent.state["k"] = 5
        agent.python_executor("made = True")
        assert sorted(asyncio.run(both(agent)), key=str) == [(5, None), (5, True)]


def test_a_managed_agent_has_its_users_variables() -> None:
    helper = agent_of("final_answer(k)", name="helper", description="Helps.")
    helper.state["k"] = 5
    with agent_of("final_answer('5' in str(helper('Go.')))", managed_agents=[helper]) as manager:
        assert manager.run("Go.") is True


def test_a_variable_of_the_state_is_named_in_a_call() -> None:
    @tool
    def double(number: int) -> int:
        """Doubles.

        Args:
            number: What.
        """
        return 2 * number

    calls = [
        says(None, ("double", {"number": "k"})),
        says(None, ("final_answer", {"answer": "ok"})),
    ]
    agent = ToolCallingAgent([double], ScriptedModel(calls), verbosity_level=LogLevel.OFF)
    agent.state["k"] = 4
    assert agent.run("Go.") == "ok"
    assert "8" in str(agent.memory.steps[1].observations)  # type: ignore[attr-defined]  # it acts


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a b", "such as 'a_b'"),
        ("class", "such as 'class_'"),
        ("1st", "such as '_1st'"),
        ("", "such as 'value'"),
        (1, "such as '_1'"),
        ("final_answer", "is the name of a tool"),
        ("add", "such as 'add_value'"),
        ("helper", "is the name of a tool"),
        ("__builtins__", "is the name of Python's own"),
    ],
)
@pytest.mark.parametrize("single_step", [False, True])
def test_impossible_names_of_variables_are_refused_at_once(
    name: Any, told: str, single_step: bool
) -> None:
    helper = agent_of(ANSWER, name="helper", description="Helps.")
    agent = agent_of(ANSWER, managed_agents=[helper])
    with pytest.raises(ValueError, match=re.escape(told)):
        agent.run("Go.", additional_args={name: 1}, single_step=single_step)
    assert agent.memory.steps == []


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("make", [agent_of, lambda: ToolCallingAgent([], ScriptedModel([]))])
def test_an_image_that_is_not_there_is_told_at_once(
    make: Callable[[], MultiStepAgent], kind: type, tmp_path: Path
) -> None:
    there = tmp_path / "there.png"
    there.write_bytes(b"\x89PNG\r\n\x1a\n")
    missing = str(tmp_path / "none.png")
    images = [kind(there), "https://example.org/a.png", b"\x89PNG\r\n\x1a\n", kind(missing)]
    agent = make()
    with pytest.raises(FileNotFoundError, match=r"images\[3\] is not there") as caught:
        agent.run("Go.", images=images)
    assert caught.value.filename == missing
    assert agent.memory.steps == []
