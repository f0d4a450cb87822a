from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from sanderling.tools import FinalAnswerTool, Tool


@pytest.mark.parametrize("answer", [42, "text", None, [1], {"a": 1}, object()])
def test_gives_the_answer_back(answer: object) -> None:
    tool = FinalAnswerTool()
    assert isinstance(tool, Tool)
    assert tool(answer=answer) is answer
    assert tool.call({"answer": answer}) is answer


def test_any_answer_is_allowed_by_its_schema() -> None:
    schema: Any = FinalAnswerTool().to_json_schema()
    assert schema["function"]["name"] == "final_answer"
    assert "type" not in schema["function"]["parameters"]["properties"]["answer"]
    assert schema["function"]["parameters"]["required"] == ["answer"]


def test_can_be_subclassed() -> None:
    class Rounded(FinalAnswerTool):
        description = "Gives a number."

        def __init__(self, digits: int) -> None:
            super().__init__()
            self.digits = digits

        def forward(self, answer: float) -> float:
            return round(answer, self.digits)

    assert Rounded(1).call({"answer": 3.14159}) == 3.1
    with pytest.raises(TypeError, match="must be a number"):
        Rounded(1).call({"answer": "three"})


def test_only_what_a_subclass_does_with_the_answer_is_done_in_a_thread() -> None:
    class Threaded(FinalAnswerTool):
        def forward(self, answer: object) -> object:
            return [answer, threading.current_thread()]

    async def main() -> list[Any]:
        waited: list[bool] = []
        asyncio.get_running_loop().call_soon(waited.append, True)
        assert await FinalAnswerTool().acall({"answer": 1}) == 1
        assert not waited
        return await Threaded().acall({"answer": 2})  # type: ignore[return-value]

    answer, thread = asyncio.run(main())
    assert answer == 2
    assert thread is not threading.current_thread()


def test_can_take_more_than_the_answer() -> None:
    class Sourced(FinalAnswerTool):
        inputs = {
            **FinalAnswerTool.inputs,
            "source": {"type": "string", "description": "Where it is from.", "nullable": True},
        }

        def forward(self, answer: Any, source: str = "memory") -> Any:
            return answer, source

    assert Sourced().call({"answer": 1}) == (1, "memory")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({"answer": {"name": "Bern"}}, {"name": "Bern"}),
        ({"name": "Bern", "people": 1}, {"name": "Bern", "people": 1}),
        ({"answer": "Bern", "confidence": "high"}, "Bern"),
        ("Bern", "Bern"),
    ],
)
def test_what_an_answer_consists_of_is_the_answer(arguments: object, answer: object) -> None:
    assert FinalAnswerTool().validate_arguments(arguments) == {"answer": answer}


def test_an_answer_that_lacks_the_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="answer"):
        FinalAnswerTool().validate_arguments({})
    with pytest.raises(ValueError, match="more"):
        FinalAnswerTool({"type": "object"}).validate_arguments({"answer": 1, "more": 2})
