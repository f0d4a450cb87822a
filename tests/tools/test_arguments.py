from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.tools import tool


@tool
def trip(
    city: str, days: int = 3, budget: float | None = None, *, tags: list[str] | None
) -> dict[str, Any]:
    """Plans a trip.

    Args:
        city: Where to.
        days: How long.
        budget: In euros.
        tags: Any words.
    """
    return {"city": city, "days": days, "budget": budget, "tags": tags}


FULL = {"city": "Rome", "days": 2, "budget": 10, "tags": ["sea"]}


def test_takes_arguments_that_fit() -> None:
    assert trip.call(FULL) == FULL


def test_what_is_left_out_is_the_default_or_none() -> None:
    assert trip.call({"city": "Rome"}) == {"city": "Rome", "days": 3, "budget": None, "tags": None}


def test_null_stands_for_a_default_that_may_not_be_none() -> None:
    nothing = {"city": "Rome", "days": None, "budget": None, "tags": None}
    assert trip.call(nothing) == {**nothing, "days": 3}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {},
            ValueError,
            "The tool 'trip' needs a value for: 'city'. Its arguments are: city, days (optional)",
        ),
        (
            {"city": "Rome", "day": 1},
            ValueError,
            "has no argument 'day'. Did you mean 'days'? Its arguments are: city",
        ),
        ({"city": "Rome", 7: 1}, ValueError, "has no argument 7."),
        (
            {"city": None},
            TypeError,
            "'city' of the tool 'trip' must be a string, but it is null (None).",
        ),
        (
            {"city": "Rome", "days": "two"},
            TypeError,
            "'days' of the tool 'trip' must be an integer, but it is the string 'two'.",
        ),
        (
            {"city": "Rome", "days": True},
            TypeError,
            "must be an integer, but it is the boolean True.",
        ),
        ({"city": "Rome", "days": 1.5}, TypeError, "must be an integer, but it is the number 1.5."),
        (
            {"city": "Rome", "tags": '["sea"]'},
            TypeError,
            "must be a list, but it is the string '[\"sea\"]'. Pass the value itself",
        ),
        ({"city": "Rome", "tags": [1]}, TypeError, "'tags[0]' of the tool 'trip' must be a string"),
        (
            "Rome",
            TypeError,
            (
                "must be an object with the keys city, days (optional), budget (optional), "
                "tags (optional), but they are 'Rome'."
            ),
        ),
        (["Rome"], TypeError, "must be an object with the keys"),
    ],
)
def test_says_what_to_fix(arguments: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        trip.validate_arguments(arguments)


@pytest.mark.parametrize("text", ['{"city": "Rome", "days": 2}', ' {"city": "Rome", "days": 2}'])
def test_arguments_that_were_encoded_twice_are_decoded(text: str) -> None:
    assert trip.validate_arguments(text) == {"city": "Rome", "days": 2, "tags": None}


@pytest.mark.parametrize("text", ['{"city": "Rome", "da', "{city: Rome}", "{" * 100_000])
def test_broken_json_is_called_that(text: str) -> None:
    with pytest.raises(TypeError, match="are no complete JSON"):
        trip.validate_arguments(text)


def test_a_lone_value_is_the_only_argument() -> None:
    @tool
    def upper(text: str) -> str:
        """Shouts.

        Args:
            text: What.
        """
        return text.upper()

    @tool
    def ping() -> str:
        """Answers."""
        return "pong"

    assert upper.call("a") == "A"
    assert upper.call('{"text": "a"}') == "A"
    assert upper.call('{"a": 1}') == '{"A": 1}'
    assert upper.call("{a") == "{A"
    assert ping.call(None) == ping.call({}) == "pong"
    with pytest.raises(ValueError, match="Its arguments are: none"):
        ping.call({"x": 1})


@pytest.mark.parametrize(
    ("args", "kwargs", "bound"),
    [
        ((), {}, {}),
        (("Rome",), {}, {"city": "Rome"}),
        (("Rome", 2), {"tags": []}, {"city": "Rome", "days": 2, "tags": []}),
        (({"city": "Rome", "days": 1},), {}, {"city": "Rome", "days": 1}),
        ((), {"unknown": 1}, {"unknown": 1}),
    ],
)
def test_binds_by_name(
    args: tuple[Any, ...], kwargs: dict[str, Any], bound: dict[str, Any]
) -> None:
    assert trip.bind(args, kwargs) == bound


def test_binding_refuses_what_has_no_place() -> None:
    with pytest.raises(
        TypeError, match=r"takes 3 positional arguments \(city, days, budget\), but 4"
    ):
        trip.bind(("Rome", 2, 3.0, []), {})
    with pytest.raises(TypeError, match="two values for the argument 'city'"):
        trip.bind(("Rome",), {"city": "Bari"})


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*FULL, "town", ""]), _json) | _json)
def test_whatever_a_model_sends_is_taken_or_refused_with_words(arguments: object) -> None:
    try:
        checked = trip.validate_arguments(arguments)
    except (ValueError, TypeError) as error:
        refusal = str(error)
    else:
        assert set(checked) <= set(FULL)
        assert isinstance(checked["city"], str)
        assert checked == trip.validate_arguments(checked)
        return
    assert "'trip'" in refusal
    assert len(refusal) < 2_000


@given(
    st.fixed_dictionaries(
        {"city": st.text()},
        optional={
            "days": st.integers() | st.none(),
            "budget": st.floats(allow_nan=False) | st.integers() | st.none(),
            "tags": st.lists(st.text()) | st.none(),
        },
    )
)
def test_everything_the_schema_allows_is_taken(arguments: dict[str, object]) -> None:
    result = trip.call(arguments)
    assert isinstance(result, dict)
    for name, value in arguments.items():
        assert result[name] == (3 if name == "days" and value is None else value)
