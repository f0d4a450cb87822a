from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, assert_type

import pydantic
import pytest

from sanderling.tools import (
    DocstringParsingException,
    FinalAnswerTool,
    Tool,
    TypeHintParsingException,
    as_tool,
    get_json_schema,
    get_tool_json_schema,
    tool,
    validate_tool_arguments,
)

CAPITALS = {"France": "Paris"}


@dataclass
class Stop:
    city: str
    nights: int = 1


@tool
def capital(country: str, shout: bool = False, note: str | None = None) -> str:
    """Names the capital of a country.

    Args:
        country: The country, in English,
            as on a map.
        shout: Whether to shout.
        note: Added in brackets.

    Returns:
        The capital.
    """
    text = CAPITALS[country] + (f" ({note})" if note else "")
    return text.upper() if shout else text


@tool
async def double(number: float) -> float:
    """Doubles a number.

    Args:
        number: Any number.
    """
    await asyncio.sleep(0)
    return number * 2


@tool
def ping() -> str:
    """Answers."""
    return "pong"


def test_describes_the_function() -> None:
    assert isinstance(capital, Tool)
    assert (capital.name, capital.output_type) == ("capital", "string")
    assert capital.description == "Names the capital of a country."
    assert capital.inputs == {
        "country": {"type": "string", "description": "The country, in English, as on a map."},
        "shout": {"type": "boolean", "description": "Whether to shout.", "nullable": True},
        "note": {"type": "string", "description": "Added in brackets.", "nullable": True},
    }


def test_stays_the_function_it_was() -> None:
    assert capital("France") == "Paris"
    assert capital("France", shout=True) == "PARIS"
    assert (
        str(inspect.signature(capital))
        == "(country: 'str', shout: 'bool' = False, note: 'str | None' = None) -> 'str'"
    )
    assert (capital.__name__, capital.__doc__) == ("capital", inspect.unwrap(capital).__doc__)
    with pytest.raises(TypeError, match="country"):
        capital()  # type: ignore[call-arg]  # the mistake under test


def test_keeps_its_static_type() -> None:
    assert_type(capital("France"), str)
    assert_type(ping(), str)

    async def main() -> None:
        assert_type(await double(2), float)
        assert await double(2) == 4

    asyncio.run(main())


def test_a_method_of_an_object_is_a_tool() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = 0

        def add(self, amount: int) -> int:
            """Adds.

            Args:
                amount: How much.
            """
            self.total += amount
            return self.total

    counter = Counter()
    add = tool(counter.add)
    assert [add.call({"amount": 2}), add(3), counter.total] == [2, 5, 5]
    assert list(add.inputs) == ["amount"]


def test_a_closure_keeps_what_it_closes_over() -> None:
    seen: list[str] = []

    @tool
    def remember(word: str) -> None:
        """Remembers a word.

        Args:
            word: Which.
        """
        seen.append(word)

    assert remember.call({"word": "sand"}) is None
    assert seen == ["sand"]
    assert remember.output_type == "null"


def _twice(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) * 2

    return wrapper


def _quietly(function: Callable[..., Awaitable[str]]) -> Callable[..., Awaitable[str]]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Awaitable[str]:
        return function(*args, **kwargs)

    return wrapper


def test_other_decorators_may_be_beneath() -> None:
    @tool
    @_twice
    def echo(text: str) -> str:
        """Echoes.

        Args:
            text: What.
        """
        return text

    assert echo.call({"text": "ab"}) == "abab"


def test_a_decorator_may_hide_that_the_function_is_async() -> None:
    @tool
    @_quietly
    async def echo(text: str) -> str:
        """Echoes.

        Args:
            text: What.
        """
        await asyncio.sleep(0)
        return text

    assert echo.call({"text": "ab"}) == "ab"
    assert asyncio.run(echo.acall({"text": "ab"})) == "ab"


def test_choices_become_an_enum() -> None:
    @tool
    def paint(color: str, size: Literal[1, 2], tags: list[str] | None = None) -> str:
        """Paints.

        Args:
            color: Which color (choices: ["red", "blue"])
            size: How big.
            tags: Any.
        """
        return f"{color} {size} {tags}"

    assert paint.inputs["color"] == {
        "type": "string",
        "description": "Which color",
        "enum": ["red", "blue"],
    }
    properties = _properties(paint)
    assert properties["size"] == {"type": "integer", "enum": [1, 2], "description": "How big."}
    with pytest.raises(ValueError, match=r"one of \['red', 'blue'\], but it is the string 'green'"):
        paint.call({"color": "green", "size": 1})


def test_richer_types_are_described_and_converted() -> None:
    class Hotel(pydantic.BaseModel):
        name: str
        stars: int = pydantic.Field(ge=1, le=5)

    def book(stops: list[Stop], hotel: Any, budget: Any) -> Stop:
        """Books.

        Args:
            stops: Where.
            hotel: The hotel.
            budget: In euros.
        """
        assert isinstance(hotel, Hotel)
        return stops[-1]

    book.__annotations__ |= {"hotel": Hotel, "budget": dict[str, float]}
    booking = tool(book)
    properties = _properties(booking)
    assert properties["stops"]["items"]["properties"] == {
        "city": {"type": "string"},
        "nights": {"type": "integer", "default": 1},
    }
    assert properties["stops"]["items"]["required"] == ["city"]
    assert properties["hotel"]["properties"]["stars"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 5,
    }
    assert properties["budget"]["additionalProperties"] == {"type": "number"}
    assert booking.output_schema is not None
    good: dict[str, Any] = {
        "stops": [{"city": "Rome"}, {"city": "Bari", "nights": 3}],
        "hotel": {"name": "Sea", "stars": 3},
        "budget": {"food": 10},
    }
    assert booking.call(good) == Stop("Bari", 3)
    assert booking.call({**good, "stops": [Stop("Rome")]}) == Stop("Rome")
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"stops": [{"nights": 2}]}, r"stops\[0\].* must be an object with 'city'"),
        ({"hotel": {"name": "Sea", "stars": 9}}, r"hotel\['stars'\].*less than or equal to 5"),
        ({"budget": {"food": "10"}}, r"budget\['food'\].* must be a number"),
    ]
    for wrong, message in wrongs:
        with pytest.raises((ValueError, TypeError), match=message):
            booking.call({**good, **wrong})


def test_a_constrained_number_is_still_a_number() -> None:
    @tool
    def wait(minutes: pydantic.NonNegativeInt) -> int:
        """Waits.

        Args:
            minutes: How long.
        """
        return minutes

    assert wait.call({"minutes": 3}) == 3
    with pytest.raises(TypeError, match="must be an integer"):
        wait.call({"minutes": "3"})
    with pytest.raises(TypeError, match="must be an integer"):
        wait.call({"minutes": True})
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        wait.call({"minutes": -1})


def test_choices_hold_for_richer_types_too() -> None:
    @tool
    def paint(color: Annotated[str, pydantic.Field(min_length=1)]) -> str:
        """Paints.

        Args:
            color: Which color (choices: ["red", "blue"])
        """
        return color

    assert paint.call({"color": "red"}) == "red"
    with pytest.raises(ValueError, match="must be one of"):
        paint.call({"color": "green"})


def _undocumented(x: int) -> int:
    return x


def _unhinted(x) -> int:  # type: ignore[no-untyped-def]  # the mistake under test
    """Does.

    Args:
        x: The x.
    """
    return int(x)


def _no_return(x: int):  # type: ignore[no-untyped-def]  # the mistake under test
    """Does.

    Args:
        x: The x.
    """
    return x


def _undescribed(x: int) -> int:
    """Does."""
    return x


def _only_arguments(x: int) -> int:
    """
    Args:
        x: The x.
    """
    return x


def _variadic(*words: str) -> str:
    """Does.

    Args:
        words: Any.
    """
    return " ".join(words)


def _by_position(x: int, /) -> int:
    """Does.

    Args:
        x: The x.
    """
    return x


def _bad_choices(x: str) -> str:
    """Does.

    Args:
        x: The x (choices: [red, blue])
    """
    return x


def _lost(x: Elsewhere) -> str:  # type: ignore[name-defined]  # noqa: F821 - the mistake under test
    """Does.

    Args:
        x: The x.
    """
    return str(x)


class _Room:
    def enter(self, x: int) -> int:
        """Enters.

        Args:
            x: The x.
        """
        return x


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (_undocumented, DocstringParsingException, "_undocumented has no docstring.*Write one"),
        (_unhinted, TypeHintParsingException, "'x' of _unhinted has no type hint. Write `x: str`"),
        (
            _no_return,
            TypeHintParsingException,
            "_no_return has no return type hint. Write `-> str`",
        ),
        (
            _undescribed,
            DocstringParsingException,
            "no description of the argument 'x'. Add a line `x:",
        ),
        (_only_arguments, DocstringParsingException, "what the tool does"),
        (_variadic, TypeHintParsingException, r"takes \*words.*Name them"),
        (_by_position, TypeHintParsingException, "by position only.*Remove the '/'"),
        (_bad_choices, DocstringParsingException, r'\(choices: \["a", "b"\]\)'),
        (_lost, TypeHintParsingException, "'Elsewhere'.*top of the module"),
        (_Room.enter, TypeHintParsingException, r"tool\(instance.method\)"),
        (lambda x: x, TypeError, "lambda.*Write it as a `def`"),
        (len, TypeError, "builtin_function_or_method cannot become a tool.*write `def"),
        (functools.partial(_undocumented, 1), TypeError, "partial cannot become a tool"),
        (FinalAnswerTool, TypeError, r"is a class.*FinalAnswerTool\(\.\.\.\)"),
        ("text", TypeError, "str cannot become a tool"),
    ],
)
def test_says_what_to_write(
    function: Callable[..., Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        tool(function)
    with pytest.raises(error, match=f"(?s){message}"):
        as_tool(function)


def test_the_errors_are_of_the_usual_kinds() -> None:
    assert issubclass(DocstringParsingException, ValueError)
    assert issubclass(TypeHintParsingException, TypeError)


def test_as_tool_takes_tools_and_functions() -> None:
    def shout(text: str) -> str:
        """Shouts.

        Args:
            text: What.
        """
        return text.upper()

    assert as_tool(capital) is capital
    made = as_tool(shout)
    assert (made.name, made.call({"text": "a"})) == ("shout", "A")


def test_json_schema_of_a_function() -> None:
    def area(width: float, height: float | None = None) -> list[float]:
        """Computes areas.

        Args:
            width: In metres.
            height: In metres; a square if left out.

        Returns:
            All areas.
        """
        return [width * (height or width)]

    assert get_json_schema(area) == {
        "type": "function",
        "function": {
            "name": "area",
            "description": "Computes areas.",
            "parameters": {
                "type": "object",
                "properties": {
                    "width": {"type": "number", "description": "In metres."},
                    "height": {
                        "type": "number",
                        "description": "In metres; a square if left out.",
                        "nullable": True,
                    },
                },
                "required": ["width"],
            },
            "return": {
                "type": "array",
                "items": {"type": "number"},
                "description": "All areas.",
            },
        },
    }


def test_json_schema_of_a_tool() -> None:
    entry = get_tool_json_schema(capital)
    assert json.loads(json.dumps(entry)) == {
        "type": "function",
        "function": {
            "name": "capital",
            "description": "Names the capital of a country.",
            "parameters": {
                "type": "object",
                "properties": {
                    "country": {
                        "type": "string",
                        "description": "The country, in English, as on a map.",
                    },
                    "shout": {
                        "type": "boolean",
                        "description": "Whether to shout.",
                        "default": False,
                    },
                    "note": {"type": "string", "description": "Added in brackets."},
                },
                "required": ["country"],
            },
        },
    }


def test_validate_tool_arguments() -> None:
    validate_tool_arguments(capital, {"country": "France"})
    with pytest.raises(TypeError):
        validate_tool_arguments(capital, {"country": 1})


def test_a_tool_can_be_copied() -> None:
    assert capital.call({"country": "France"}) == "Paris"
    assert copy.deepcopy(capital).call({"country": "France"}) == "Paris"
    assert copy.copy(capital)("France") == "Paris"


def test_shows_itself() -> None:
    assert (
        repr(capital)
        == "<tool capital(country: str, shout: bool = False, note: str | None = None) -> str>"
    )


def _properties(described: Tool) -> dict[str, dict[str, Any]]:
    schema: Any = described.to_json_schema()
    found: dict[str, dict[str, Any]] = schema["function"]["parameters"]["properties"]
    return found
