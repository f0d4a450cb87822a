from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.sandbox import HostObject
from sanderling.tools._check import Mismatch, compile_check, show

if TYPE_CHECKING:
    from sanderling.messages import JSONObject

_leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
_values = st.recursive(
    _leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
_kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
_names = st.sampled_from(["a", "b", "c"])


def _containers(inner: st.SearchStrategy[JSONObject]) -> st.SearchStrategy[JSONObject]:
    return (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(
            lambda first, items: {"type": "array", "prefixItems": first, "items": items},
            st.lists(inner, max_size=2),
            inner,
        )
        | st.builds(lambda members: {"anyOf": members}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(
            lambda properties, required, others: {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": others,
            },
            st.dictionaries(_names, inner, max_size=2),
            st.lists(_names, max_size=1),
            st.booleans() | inner,
        )
    )


_schemas: st.SearchStrategy[JSONObject] = st.recursive(
    st.builds(lambda kind: {"type": kind}, _kinds)
    | st.builds(lambda kinds: {"type": kinds}, st.lists(_kinds, min_size=1, max_size=3))
    | st.builds(lambda choices: {"enum": choices}, st.lists(_leaves, min_size=1, max_size=3))
    | st.just({}),
    _containers,
    max_leaves=5,
)


def fits(schema: Any, value: Any) -> bool:
    """Says what JSON Schema says, read from its specification rather than from our code."""
    if schema is True or schema is False:
        return bool(schema)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    kinds = {
        "string": isinstance(value, str),
        "integer": is_number and (isinstance(value, int) or value.is_integer()),
        "number": is_number,
        "boolean": isinstance(value, bool),
        "null": value is None,
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    wanted = schema.get("type", [])
    if wanted and not any(kinds[one] for one in ([wanted] if isinstance(wanted, str) else wanted)):
        return False
    if "enum" in schema and not any(
        choice == value and isinstance(choice, bool) == isinstance(value, bool)
        for choice in schema["enum"]
    ):
        return False
    if "anyOf" in schema and not any(fits(member, value) for member in schema["anyOf"]):
        return False
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        rest = value[len(first) :]
        return all(map(fits, first, value)) and all(fits(schema.get("items", {}), x) for x in rest)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return all(name in value for name in schema.get("required", [])) and all(
            fits(properties.get(name, schema.get("additionalProperties", True)), item)
            for name, item in value.items()
        )
    return True


@given(_schemas, _values)
def test_agrees_with_json_schema(schema: JSONObject, value: object) -> None:
    check = compile_check(schema)
    if fits(schema, value):
        checked = check(value)
        assert checked == value
        assert check(checked) == checked
    else:
        with pytest.raises(Mismatch):
            check(value)


@given(_schemas, _values)
def test_every_mismatch_says_what_to_fix(schema: JSONObject, value: object) -> None:
    try:
        compile_check(schema)(value)
    except Mismatch as mismatch:
        error, wanted = mismatch.error("x", "t"), TypeError if mismatch.of_kind else ValueError
    else:
        return
    assert isinstance(error, wanted)
    assert "must be" in str(error)
    assert len(str(error)) < 2_000


@pytest.mark.parametrize(
    ("kind", "given_value", "taken"),
    [
        ("integer", 3.0, 3),
        ("integer", np.int64(3), 3),
        ("number", np.float32(0.5), 0.5),
        ("number", 1, 1),
        ("boolean", np.bool_(True), True),
        ("string", np.str_("a"), "a"),
        ("array", (1, 2), (1, 2)),
    ],
)
def test_takes_what_means_the_same(kind: str, given_value: object, taken: object) -> None:
    checked = compile_check({"type": kind})(given_value)
    assert checked == taken
    assert not type(checked).__module__.startswith("numpy") or kind == "string"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", True),
        ("integer", 3.5),
        ("integer", float("inf")),
        ("integer", "3"),
        ("number", False),
        ("number", None),
        ("boolean", 1),
        ("string", 1),
        ("string", b"bytes"),
        ("array", "text"),
        ("array", np.array([1])),
        ("object", [1]),
        ("object", "{}"),
        ("object", None),
        ("null", 0),
        ("image", 3),
        ("audio", None),
    ],
)
def test_refuses_a_wrong_kind(kind: str, value: object) -> None:
    with pytest.raises(Mismatch) as caught:
        compile_check({"type": kind})(value)
    assert caught.value.of_kind


def test_an_object_may_be_any_live_object() -> None:
    live = np.array([1])
    assert compile_check({"type": "object"})(live) is live
    assert compile_check({"type": "image"})(live) is live


def test_points_at_the_place_inside() -> None:
    schema: JSONObject = {
        "type": "array",
        "items": {"type": "object", "properties": {"port": {"type": "integer"}}},
    }
    with pytest.raises(Mismatch) as caught:
        compile_check(schema)([{"port": 1}, {"port": "80"}])
    assert str(caught.value.error("servers", "start")) == (
        "The argument \"servers[1]['port']\" of the tool 'start' must be an integer, but it is the "
        "string '80'. Pass the value itself, not text that shows it."
    )


def test_of_several_alternatives_tells_the_one_that_came_closest() -> None:
    check = compile_check(
        {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}
    )
    with pytest.raises(Mismatch, match="an integer"):
        check([1, "2"])
    with pytest.raises(Mismatch, match=r"a list or null"):
        check("2")


def test_a_value_that_equals_everything_fits_no_choice() -> None:
    class Chameleon:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]  # as Python itself would have it

    with pytest.raises(Mismatch):
        compile_check({"enum": ["a"]})(Chameleon())


@pytest.mark.parametrize(
    "value",
    [10**6000, "x" * 10**6, [[[[[1]]]]] * 1000, {"a": "b" * 10**6}],
    ids=["number", "text", "list", "dict"],
)
def test_shows_any_value_shortly(value: object) -> None:
    assert len(show(value)) < 1000


def test_schemas_are_data() -> None:
    schema: JSONObject = {"type": "array", "items": {"type": "integer"}}
    before = json.dumps(schema)
    compile_check(schema)([1])
    assert json.dumps(schema) == before


class Client:
    def __repr__(self) -> str:
        return "sk-SECRET"


@pytest.mark.parametrize("value", [Client(), [1, Client()], {"a": {Client(): 1}}, {Client(): 1}])
def test_an_object_is_shown_by_its_class(value: object) -> None:
    assert "<Client object of the host>" in show(value)
    closed: JSONObject = {"type": "object", "additionalProperties": False}
    for schema in ({"type": "string"}, closed):
        with pytest.raises(Mismatch) as found:
            compile_check({"anyOf": [schema, {"type": "null"}]})(value)
        assert "SECRET" not in str(found.value.error("argument", "tool"))


def test_data_that_is_wrapped_to_stay_on_the_host_is_shown_by_its_class() -> None:
    settings = {"key": "sk-SECRET"}
    wrapped = HostObject(settings)
    assert show([wrapped.obj]) == "[<dict object of the host>]"


@pytest.mark.parametrize(
    "wrap", [lambda one: one, lambda one: [[one] * 6] * 6], ids=["one", "many"]
)
def test_shows_an_array_of_many_short_dimensions_at_once(wrap: Any) -> None:
    start = time.thread_time()
    text = show(wrap(np.zeros((2,) * 17)))
    assert time.thread_time() - start < 0.3
    assert "<ndarray that is too large to be shown>" in text
    assert show(np.zeros((3, 2))) == repr(np.zeros((3, 2)))
