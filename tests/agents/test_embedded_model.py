"""The main job for real: the embedded model writes Python, the sandbox runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from sanderling import ActionStep, CodeAgent, LlamaCppModel, LogLevel, ToolCallingAgent, tool


@pytest.fixture(scope="module")
def agent() -> Iterator[CodeAgent]:
    with CodeAgent(tools=[], model=LlamaCppModel(), verbosity_level=LogLevel.OFF) as made:
        yield made


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("What is 25 times 31?", 775),
        ("What is 2 to the power 3.7384?", 2**3.7384),
        ("Could you calculate 2 to the power of 3.7384?", 2**3.7384),
        ("Could you give me the result of 2 to the power of 3.7384?", 2**3.7384),
        ("What is the square root of 1764?", 42),
        ("What is 1000 divided by 8?", 125),
        ("What is 17 plus 26?", 43),
        ("What is 144 minus 99?", 45),
    ],
)
def test_a_sum_is_put_into_python_and_answered(agent: CodeAgent, task: str, answer: float) -> None:
    assert agent.run(task) == pytest.approx(answer)


def test_the_sums_are_not_in_the_prompt(agent: CodeAgent) -> None:
    for number in ("25", "31", "775", "3.7384", "1764", "1000", "125", "26", "144", "99"):
        assert not re.search(rf"\b{re.escape(number)}\b", agent.system_prompt), number


@tool
def price(product: str) -> float:
    """Looks up what a product costs, in euros.

    Args:
        product: Its name.
    """
    return {"tea": 4.5, "coffee": 3.25}[product]


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("How much dearer is tea than coffee?", 1.25),
        ("How much do tea and coffee cost together?", 7.75),
        ("What is the price of tea?", 4.5),
        ("What is 25 times 31?", 775),
    ],
)
def test_a_tool_is_called_where_the_task_needs_it(task: str, answer: float) -> None:
    with CodeAgent([price], LlamaCppModel(), verbosity_level=LogLevel.OFF) as agent:
        assert agent.run(task) == pytest.approx(answer)


@tool
def book(city: str, nights: int, rooms: list[str], breakfast: bool, extras: Any = None) -> str:
    """Books a hotel.

    Args:
        city: Where.
        nights: How many.
        rooms: Their names.
        breakfast: Whether to serve it.
        extras: Whatever else.
    """
    return f"{city}, {nights} nights"


def test_a_tool_is_called_with_arguments_of_each_type() -> None:
    helper = ToolCallingAgent(
        [], LlamaCppModel(), name="helper", description="Searches.", verbosity_level=LogLevel.OFF
    )
    with CodeAgent(
        [book], LlamaCppModel(), managed_agents=[helper], verbosity_level=LogLevel.OFF
    ) as agent:
        agent.run("Book a hotel in Rome.", max_steps=1)
        step = next(step for step in agent.memory.steps if isinstance(step, ActionStep))
    assert step.code_action is not None
    assert re.search(r'book\("\w[^"]*", -?\d+[\d.]*, \[.*\], (True|False)\)', step.code_action)


def test_an_agent_that_calls_tools_runs_on_it() -> None:
    with ToolCallingAgent([], LlamaCppModel(), verbosity_level=LogLevel.OFF) as agent:
        assert (
            agent.run("What is the capital of France?", return_full_result=True).state == "success"
        )
