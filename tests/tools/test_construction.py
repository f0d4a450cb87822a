from __future__ import annotations

from typing import Any

import pytest

from sanderling.tools import AUTHORIZED_TYPES, Tool


class Good(Tool):
    name = "good"
    description = "Does good."
    inputs = {"x": {"type": "string", "description": "The x."}}
    output_type = "string"

    def forward(self, x: str) -> str:
        return x


TEXT = {"type": "string", "description": "The x."}
OPTIONAL = {**TEXT, "nullable": True}


def made(**attributes: Any) -> Tool:
    tool = type("Made", (Good,), attributes)()
    assert isinstance(tool, Tool)
    return tool


@pytest.mark.parametrize("name", ["", "two words", "1st", "class", "a-b", "web.search"])
def test_a_name_must_be_an_identifier(name: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be the name of a tool.*Python identifier"):
        made(name=name)


@pytest.mark.parametrize("attribute", ["name", "description", "inputs", "output_type"])
def test_every_attribute_must_be_set_and_of_its_type(attribute: str) -> None:
    with pytest.raises(TypeError, match=f"Made has no '{attribute}'. Set it"):
        made(**{attribute: None})
    with pytest.raises(TypeError, match=f"'{attribute}' of Made must be of type .* of type bytes"):
        made(**{attribute: b""})


def test_an_attribute_that_nobody_ever_set_is_missed_too() -> None:
    class Bare(Tool):
        def forward(self) -> None: ...

    with pytest.raises(TypeError, match=r"Bare has no 'name'. Set it"):
        Bare()


@pytest.mark.parametrize(
    ("entry", "error", "message"),
    [
        ("string", TypeError, r"inputs\['x'\] must be a dict such as"),
        ({"type": "string"}, ValueError, r"inputs\['x'\] needs a 'description'"),
        ({"description": "The x."}, ValueError, r"inputs\['x'\] needs a 'type', one of \['string'"),
        ({**TEXT, "type": "text"}, ValueError, r"has the type 'text'; it must be one of"),
        ({**TEXT, "type": []}, ValueError, r"it must be one of"),
        ({**TEXT, "type": ["string", {}]}, ValueError, r"it must be one of"),
    ],
)
def test_every_input_must_be_described(entry: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        made(inputs={"x": entry})


@pytest.mark.parametrize("kind", [*AUTHORIZED_TYPES, ["string", "integer"]])
def test_authorized_types(kind: object) -> None:
    assert made(inputs={"x": {**TEXT, "type": kind}}).inputs["x"]["type"] == kind
    if isinstance(kind, str):
        assert made(output_type=kind).output_type == kind


def test_an_input_may_be_described_by_alternatives() -> None:
    entry = {"anyOf": [{"type": "array", "items": {}}, {"type": "null"}], "description": "The x."}
    assert made(inputs={"x": entry}).validate_arguments({"x": None}) == {"x": None}


def test_other_values_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Made.output_type is 'text'; it must be one of"):
        made(output_type="text")
    with pytest.raises(TypeError, match="'output_schema' of Made must be a dict"):
        made(output_schema=[])
    with pytest.raises(ValueError, match="has the key 'two words'"):
        made(inputs={"two words": TEXT})


def test_forward_must_be_written() -> None:
    class Lazy(Tool):
        name = "lazy"
        description = "Does nothing."
        inputs = {}
        output_type = "null"

    with pytest.raises(TypeError, match=r"Lazy has no forward. Write `def forward\(self"):
        Lazy()


def test_forward_must_take_what_inputs_describe() -> None:
    with pytest.raises(ValueError, match=r"forward takes \['y'\], inputs has \['x'\]"):
        made(forward=lambda self, y: y)
    with pytest.raises(ValueError, match=r"takes \*\*kwargs .*skip_forward_signature_validation"):
        made(forward=lambda self, **kwargs: kwargs)
    with pytest.raises(ValueError, match=r"takes x \(positional-only\)"):
        made(forward=lambda self, x, /: x)


def test_forward_may_take_whatever_comes_where_it_says_so() -> None:
    loose = made(
        forward=lambda self, **kwargs: kwargs,
        skip_forward_signature_validation=True,
        inputs={"b": OPTIONAL, "a": TEXT},
    )
    assert loose.call({"a": "1"}) == {"a": "1"}
    assert loose.call({"a": "1", "b": None}) == {"a": "1", "b": None}
    assert loose.bind(("1", "2"), {}) == {"a": "1", "b": "2"}
    assert loose.signature_text == "(a: str, b: str = None) -> str"
    with pytest.raises(TypeError, match="must be a string"):
        loose.call({"a": 1})


def test_nullable_and_defaults_must_agree() -> None:
    def default(self: Tool, x: str = "a") -> str:
        return x

    def optional(self: Tool, x: str | None) -> str:
        return str(x)

    def required(self: Tool, x: str) -> str:
        return x

    for forward in (default, optional):
        assert made(forward=forward, inputs={"x": OPTIONAL}).call({"x": "b"}) == "b"
        with pytest.raises(ValueError, match=r"add 'nullable': True to Made.inputs\['x'\]"):
            made(forward=forward)
    with pytest.raises(ValueError, match=r"says 'nullable': True, but forward requires a value"):
        made(forward=required, inputs={"x": OPTIONAL})


def test_is_checked_after_the_last_init() -> None:
    class Parent(Good):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class Child(Parent):
        def __init__(self) -> None:
            super().__init__("not a name")
            self.name = "a_name"

    assert Child().name == "a_name"
    with pytest.raises(ValueError, match="'not a name'"):
        Parent("not a name")


def test_a_hint_that_cannot_be_resolved_is_no_obstacle() -> None:
    class Hinted(Good):
        def forward(self, x: Elsewhere) -> str:  # type: ignore[name-defined]  # noqa: F821 - the point
            return str(x)

    assert Hinted().call({"x": "a"}) == "a"
