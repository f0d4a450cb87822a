from __future__ import annotations

import datetime
import enum
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NewType,
    Optional,
    Required,
    TypedDict,
    Union,
)

import PIL.Image
import pydantic
import pytest

from sanderling.tools._schema import (
    TypeHintParsingException,
    hints_of,
    inline_references,
    read_hint,
)

if TYPE_CHECKING:
    from sanderling.messages import JSONObject


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: float = 0.0


class Route(pydantic.BaseModel):
    title: str
    stops: list[Point]


class Movie(TypedDict):
    title: str
    year: int


class Plan(TypedDict, total=False):
    steps: Required[list[str]]
    then: Plan


class Node(pydantic.BaseModel):
    value: int
    children: list[Node] = []


class Opaque:
    pass


class Tensor:
    __module__ = "torch"


UserId = NewType("UserId", int)
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0.0}},
    "required": ["x"],
}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (list, {"type": "array"}),
        (tuple, {"type": "array"}),
        (dict, {"type": "object"}),
        (Any, {"type": "any"}),
        (object, {"type": "any"}),
        (None, {"type": "null"}),
        (PIL.Image.Image, {"type": "image"}),
        (Tensor, {"type": "audio"}),
        (Opaque, {"type": "object"}),
        (Callable[[int], int], {"type": "object"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list[list], {"type": "array", "items": {"type": "array", "items": {}}}),  # type: ignore[type-arg]  # bare
        (list[Any], {"type": "array", "items": {}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (dict[str, Any], {"type": "object"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, "b"], {"type": ["integer", "string"], "enum": [1, "b"]}),
        (int | str, {"type": ["integer", "string"]}),
        (Union[int, str], {"type": ["integer", "string"]}),  # noqa: UP007 - the older spelling is the point
        (
            list[int] | str,
            {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]},
        ),
        (list[int | None], {"type": "array", "items": {"type": ["integer", "null"]}}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (UserId, {"type": "integer"}),
        (Annotated[int, pydantic.Field(ge=1)], {"type": "integer", "minimum": 1}),
        (Annotated[Any, "whatever"], {"type": "any"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Point, POINT),
        (
            Movie,
            {
                "type": "object",
                "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
                "required": ["title", "year"],
            },
        ),
        (
            Route,
            {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "stops": {"type": "array", "items": POINT},
                },
                "required": ["title", "stops"],
            },
        ),
        (list[Point], {"type": "array", "items": POINT}),
        (
            Plan,
            {
                "type": "object",
                "properties": {
                    "steps": {"type": "array", "items": {"type": "string"}},
                    "then": {"type": "object"},
                },
                "required": ["steps"],
            },
        ),
    ],
)
def test_reads_a_type_hint(hint: object, schema: dict[str, object]) -> None:
    read = read_hint(hint)
    assert read.schema == schema
    assert not read.nullable


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Optional[int], {"type": "integer"}),  # noqa: UP045 - the older spelling is the point
        (int | None, {"type": "integer"}),
        (int | str | None, {"type": ["integer", "string"]}),
        (Literal["a", None], {"type": "string", "enum": ["a"]}),  # noqa: PYI061 - likewise
        (Point | None, POINT),
        (Any | None, {"type": "any"}),
    ],
)
def test_none_makes_a_hint_nullable(hint: object, schema: dict[str, object]) -> None:
    read = read_hint(hint)
    assert (read.schema, read.nullable) == (schema, True)


def test_a_type_that_contains_itself_is_cut_off_below_its_first_level() -> None:
    children = read_hint(Node).schema["properties"]
    assert children == {
        "value": {"type": "integer"},
        "children": {"type": "array", "items": {"type": "object"}, "default": []},
    }


def test_inlining_keeps_fields_that_are_called_like_keywords() -> None:
    schema: JSONObject = {
        "title": "Generated",
        "type": "object",
        "properties": {"title": {"$ref": "#/$defs/T"}, "$defs": {"type": "string"}},
        "$defs": {"T": {"title": "T", "type": "string"}},
        "default": {"title": "kept"},
    }
    assert inline_references(schema) == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "$defs": {"type": "string"}},
        "default": {"title": "kept"},
    }


def test_a_hint_that_cannot_be_resolved_says_where_to_define_it() -> None:
    def lost(x: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821 - the point of the test
        return str(x)

    with pytest.raises(TypeHintParsingException, match=r"lost .*'Nowhere' .*top of the module"):
        hints_of(lost)


def test_reading_json_types_does_not_import_pydantic(run_python: Callable[[str], str]) -> None:
    out = run_python(
        "import sys; from sanderling.tools._schema import read_hint\n"
        "read_hint(dict[str, list[int | None]]); print('pydantic' in sys.modules)"
    )
    assert (out, sys.modules.get("pydantic")) == ("False\n", pydantic)
