"""The main job for real: the embedded model writes Python, the sandbox runs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sanderling import CodeAgent, LlamaCppModel, LogLevel


@pytest.fixture(scope="module")
def agent() -> Iterator[CodeAgent]:
    with CodeAgent(tools=[], model=LlamaCppModel(), verbosity_level=LogLevel.OFF) as made:
        yield made


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("What is 25 times 31?", 775),
        ("What is 2 to the power 3.7384?", 2**3.7384),
        ("What is the square root of 1764?", 42),
        ("What is 1000 divided by 8?", 125),
        ("What is 17 plus 26?", 43),
        ("What is 144 minus 99?", 45),
    ],
)
def test_a_sum_is_put_into_python_and_answered(agent: CodeAgent, task: str, answer: float) -> None:
    assert agent.run(task) == pytest.approx(answer)
