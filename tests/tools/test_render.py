from __future__ import annotations

import ast
import enum
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.tools import Tool, tool
from sanderling.tools._render import type_text


class Color(enum.Enum):
    RED = "red"


class Movie(TypedDict):
    title: str


class Report(Tool):
    name = "report"
    description = "Reports."
    inputs = {"text": {"type": "string", "description": "The text."}}
    output_type = "object"
    output_schema = {"type": "object", "properties": {"id": {"type": "integer"}}}

    def forward(self, text: str) -> Any:
        return {}


def test_a_stub_for_code() -> None:
    @tool
    def weather(city: str, days: int = 3, *, units: Literal["C", "F"] = "C") -> list[str]:
        """Tells the weather.

        From the nearest station.

        Args:
            city: The city,
                and its country.
            days: How many days.
            units: Which degrees.

        Returns:
            One line per day.
        """
        return [city]

    assert (
        weather.to_code_prompt()
        == '''def weather(city: str, days: int = 3, *, units: Literal['C', 'F'] = 'C') -> list[str]:
    """Tells the weather.

    From the nearest station.

    Args:
        city: The city, and its country.
        days: How many days.
        units: Which degrees.

    Returns:
        One line per day.
    """'''
    )


def test_a_stub_shows_the_schema_of_the_result() -> None:
    stub = Report().to_code_prompt()
    assert json.dumps(Report.output_schema) in stub
    assert "Returns:" in stub


def test_a_stub_of_a_tool_without_hints_uses_the_declared_types() -> None:
    class Untyped(Tool):
        name = "report"
        description = "Reports."
        inputs = {"text": {"type": "string", "description": "The text."}}
        output_type = "object"

        def forward(self, text):  # type: ignore[no-untyped-def]  # as older tools are
            return {}

    assert Untyped().to_code_prompt().startswith("def report(text: str) -> dict:")


def test_a_default_without_a_literal_form_is_left_open() -> None:
    class Odd(Report):
        inputs = {"text": {"type": "any", "description": "The text.", "nullable": True}}

        def forward(self, text: Any = Color.RED) -> dict[str, Any]:
            return {}

    assert Odd().signature_text == "(text: Any = ...) -> dict[str, Any]"


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "int"),
        (None, "None"),
        (Any, "Any"),
        (Movie, "Movie"),
        (Optional[Movie], "Movie | None"),  # noqa: UP045 - the older spelling
        (dict[str, list[Movie]], "dict[str, list[Movie]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Literal["www.example.com", 1], "Literal['www.example.com', 1]"),
        (Literal[Color.RED], "Literal[...]"),
        (Annotated[int, "seconds"], "int"),
        (Callable[[int], str], "Callable[[int], str]"),
        ("Elsewhere", "Any"),
    ],
)
def test_type_hints_are_written_without_modules(hint: object, text: str) -> None:
    assert type_text(hint) == text


def test_text_for_a_list_of_tools() -> None:
    assert Report().to_tool_calling_prompt() == (
        "report: Reports.\n"
        '    inputs: {"text": {"type": "string", "description": "The text."}}\n'
        "    output: object"
    )


@given(st.text(), st.text(), st.text())
def test_whatever_a_tool_says_of_itself_its_stub_is_python(
    description: str, argument: str, result: str
) -> None:
    class Typed(Report):
        pass

    Typed.description = description
    Typed.inputs = {"text": {"type": "string", "description": argument}}
    Typed.output_description = result
    tree = ast.parse(Typed().to_code_prompt() + "\n    ...")
    assert len(tree.body) == 1
    assert isinstance(tree.body[0], ast.FunctionDef)
    assert len(tree.body[0].body) == 2
