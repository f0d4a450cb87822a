"""What code passes to tools, beside what JSON has."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it has no types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from sanderling.sandbox import Record
from sanderling.tools import Tool, tool


class Point(BaseModel):
    x: int


@dataclass
class Size:
    width: int


@tool
def take(
    whole: int = 0,
    number: float = 0.0,
    flag: bool = False,
    text: str = "",
    items: list[Any] = [],  # noqa: B006 - nobody changes it
    words: list[str] = [],  # noqa: B006 - as above
    pair: tuple[int, int] = (0, 0),
    fields: dict[str, Any] = {},  # noqa: B006 - as above
    either: int | str = 0,
    choice: Literal["a", "b"] = "a",
    positive: Annotated[int, Field(gt=0)] = 1,
    point: Point | None = None,
    points: list[Point] = [],  # noqa: B006 - as above
    size: Size | None = None,
) -> None:
    """Takes anything.

    Args:
        whole: One.
        number: One.
        flag: One.
        text: One.
        items: Some.
        words: Some.
        pair: Two.
        fields: Some.
        either: One.
        choice: One.
        positive: One.
        point: One.
        points: Some.
        size: One.
    """


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("whole", "5", 5),
        ("whole", " -5 ", -5),
        ("whole", "5.0", 5),
        ("whole", Decimal(7), 7),
        ("whole", np.int64(4), 4),
        ("number", "3.5", 3.5),
        ("number", "1e3", 1000.0),
        ("number", Decimal("0.1"), 0.1),
        ("number", np.float32(0.5), 0.5),
        ("flag", "True", True),
        ("flag", np.bool_(False), False),
        ("items", (1, "a"), [1, "a"]),
        ("items", {1}, [1]),
        ("items", frozenset([1]), [1]),
        ("items", range(3), [0, 1, 2]),
        ("items", deque([1]), [1]),
        ("items", np.arange(3), [0, 1, 2]),
        ("items", np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
        ("items", pd.Series([1, 2]), [1, 2]),
        ("items", pd.Index(["a"]), ["a"]),
        ("items", '[1, "a"]', [1, "a"]),
        ("words", ("a", 1), ["a", 1]),
        ("pair", (1, 2), (1, 2)),
        ("fields", '{"a": 1}', {"a": 1}),
        ("either", "5", "5"),
        ("either", Decimal(5), 5),
        ("positive", "5", 5),
        ("point", {"x": 1}, Point(x=1)),
        ("point", '{"x": 1}', Point(x=1)),
        ("point", Record("Point", {"x": 1}), Point(x=1)),
        ("points", ({"x": 1}, Record("Point", {"x": 2})), [Point(x=1), Point(x=2)]),
        ("size", {"width": 1}, Size(1)),
        ("size", Record("Size", {"width": 1}), Size(1)),
    ],
)
def test_what_converts_without_loss_is_converted(name: str, value: object, taken: object) -> None:
    found = take.take_arguments({name: value})[name]
    assert (type(found), found) == (type(taken), taken)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", 5),
        ("text", ["a"]),
        ("text", Path("a")),
        ("whole", "five"),
        ("whole", "5.5"),
        ("whole", "9" * 500),
        ("whole", True),
        ("whole", Decimal("1e100000")),
        ("number", "nan"),
        ("number", "1e999"),
        ("number", Decimal("0.1234567890123456789")),
        ("flag", "maybe"),
        ("items", "a"),
        ("items", "[1"),
        ("items", "[" * 100_000),
        ("items", 5),
        ("fields", [1]),
        ("fields", "{'a': 1}"),
    ],
)
def test_what_does_not_is_for_the_tool_to_judge(name: str, value: object) -> None:
    assert take.take_arguments({name: value})[name] is value


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"choice": "c"}, "must be one of"),
        ({"choice": 5}, "must be a string"),
        ({"positive": "-5"}, "greater than 0"),
        ({"positive": []}, "must be an integer"),
        ({"point": 5}, "must be what its type asks for"),
        ({"point": {"y": 1}}, "must be an object with 'x'"),
        ({"word": 5}, "has no argument 'word'. Did you mean 'words'?"),
    ],
)
def test_what_a_hint_or_a_choice_promises_holds(arguments: dict[str, object], told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        take.take_arguments(arguments)


def test_a_missing_argument_is_missed() -> None:
    @tool
    def need(text: str) -> str:
        """Needs a text.

        Args:
            text: It.
        """
        return text

    with pytest.raises(ValueError, match="needs a value for: 'text'"):
        need.take_arguments({})
    with pytest.raises(TypeError, match="null"):
        need.take_arguments({"text": None})


@pytest.mark.parametrize("value", ["5", Decimal(5), {1}, np.arange(3), "[1]"])
@pytest.mark.parametrize("name", ["whole", "items"])
def test_calls_by_json_stay_strict(name: str, value: object) -> None:
    with pytest.raises(TypeError, match="must be"):
        take.validate_arguments({name: value})


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.decimals(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(
    name=st.sampled_from(["whole", "number", "flag", "text", "items", "words", "fields"]),
    value=_anything,
)
def test_whatever_fits_by_json_is_taken_alike(name: str, value: object) -> None:
    try:
        expected = take.validate_arguments({name: value})
    except (TypeError, ValueError):
        take.take_arguments({name: value})
        return
    wanted, found = expected[name], take.take_arguments({name: value})[name]
    assert repr(found) == repr(list(wanted) if isinstance(wanted, tuple) else wanted)


class Adapted(Tool):
    """As adapters of MCP make them."""

    name = "adapted"
    description = "Is elsewhere."
    inputs = {
        "query": {"type": "string", "description": "One."},
        "limit": {
            "type": "string",
            "anyOf": [{"type": "integer"}, {"type": "null"}],
            "default": None,
            "description": "One.",
        },
        "page": {"type": "integer", "default": 2, "description": "One."},
        "lang": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "One."},
    }
    output_type = "any"
    skip_forward_signature_validation = True

    def forward(self, **kwargs: Any) -> Any:
        return kwargs


@pytest.mark.parametrize("in_code", [True, False])
@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"query": "a"}, {"query": "a"}),
        ({"query": "a", "limit": 3}, {"query": "a", "limit": 3}),
        ({"query": "a", "limit": None, "lang": None}, {"query": "a", "limit": None, "lang": None}),
        ({"query": "a", "page": None}, {"query": "a", "page": 2}),
    ],
)
def test_an_argument_with_a_default_or_null_is_optional(
    given: dict[str, object], taken: dict[str, object], in_code: bool
) -> None:
    made = Adapted()
    check = made.take_arguments if in_code else made.validate_arguments
    assert check(given) == taken
    schema: Any = made.to_json_schema()
    parameters = schema["function"]["parameters"]
    assert parameters["required"] == ["query"]
    assert "type" not in parameters["properties"]["limit"]
    assert "limit: Any = None, page: int = 2, lang: Any = None" in made.signature_text


def test_a_forward_in_whose_place_a_wrapper_is() -> None:
    calls = []

    @tool
    def add(a: int, b: int = 2) -> int:
        """Adds.

        Args:
            a: One.
            b: Another.
        """
        return a + b

    class Double(Tool):
        name = "double"
        description = "Doubles."
        inputs = {"n": {"type": "integer", "description": "What."}}
        output_type = "integer"

        def forward(self, n: int) -> int:
            return 2 * n

    double = Double()
    for made in (add, double):
        original = made.forward

        def counted(*args: Any, original: Any = original, **kwargs: Any) -> Any:
            calls.append(kwargs)
            return original(*args, **kwargs)

        made.forward = lambda *args, counted=counted, **kwargs: counted(*args, **kwargs)  # type: ignore[method-assign]  # as users do it
    assert add.call({"a": 1}) == 3
    assert double.call({"n": 4}) == 8
    assert calls == [{"a": 1}, {"n": 4}]
    assert add.signature_text == "(a: int, b: int = 2) -> int"
