from __future__ import annotations

import pytest

from sanderling.tools import FinalAnswerTool, ToolCollection


def double(number: int) -> int:
    """Doubles.

    Args:
        number: Which.
    """
    return number * 2


def test_holds_tools_and_makes_tools_of_functions() -> None:
    answer = FinalAnswerTool()
    collection = ToolCollection([answer, double])
    assert collection.tools[0] is answer
    assert [tool.name for tool in collection.tools] == ["final_answer", "double"]


def test_refuses_what_is_no_tool() -> None:
    with pytest.raises(TypeError, match="cannot become a tool"):
        ToolCollection([3])  # type: ignore[list-item]  # the mistake under test
