"""Values: variables in, results out."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from sanderling.sandbox import SandboxValue

if TYPE_CHECKING:
    from support.places import Driven, Place

ZONE = datetime.timezone(datetime.timedelta(hours=2))
VALUES = [
    *(None, True, False, 0, -1, 2**53, -(2**53), 10**40, 0.1, -0.0, 1e300, math.inf, -math.inf),
    *("", "text", "é ☂ \U0001f426 \x00", "\ud800 alone", b"", b"\x00\xff", bytearray(b"xy")),
    *(2 + 3j, complex("nan+infj")),
    *([], [1, [2, [3]]], {}, {"a": {"b": [None]}}, (), (1,), [(1, [2]), {3}]),
    *(set(), {"a"}, {1, 2.5}, frozenset({(1, 2)}), {1: "int", (2, 3): "tuple", None: 0, "s": 1}),
    *({"$": "bytes", "i": 0}, {"$": 1, 2: 3}, [{"$": "no such"}]),
    datetime.datetime(2026, 2, 3, 4, 5, 6, 789),  # noqa: DTZ001 - without a zone, too
    datetime.datetime(2026, 10, 25, 2, 30, tzinfo=ZONE, fold=1),
    *(datetime.date(1999, 12, 31), datetime.time(23, 59, 1), datetime.timedelta(-1, 5, 7)),
    *(Decimal("1.50"), Decimal("NaN"), UUID(int=5), Path("some/where")),
    list(range(1000)),
    [[[[[[[[["deep"]]]]]]]]],
]


def same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and repr(left) == repr(right)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:40])
def test_a_value_goes_in_and_comes_out(python: Driven, value: object) -> None:
    python.interpreter.set_variables({"sent": value})
    assert same(python.value("sent"), value)
    assert python.value("type(sent).__name__").removeprefix("Posix") in type(value).__name__
    assert python.value("repr(sent)") == repr(value)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("2 ** 100", 2**100),
        ("float('inf')", math.inf),
        ("1e400 - 1e400 != 0", True),
        ("'\\udc80'", "\udc80"),
        ("{(1, 'a'): {1.5}}", {(1, "a"): {1.5}}),
        ("range(3)", range(3)),
        ("{'a': 1}.keys()", {"a": 1}.keys()),
        ("__import__('collections').deque([1])", [1]),
        ("__import__('collections').Counter('aab')", {"a": 2, "b": 1}),
        ("__import__('collections').OrderedDict(z=1, a=2)", {"z": 1, "a": 2}),
        ("memoryview(b'abc')", b"abc"),
    ],
)
def test_what_code_makes_comes_out(python: Driven, code: str, value: Any) -> None:
    got = python.value(code)
    assert got == value or list(got) == list(value)


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Point:
    x: int
    colour: Colour


def test_dataclasses_and_enums_cross_as_their_fields(python: Driven) -> None:
    python.interpreter.set_variables({"point": Point(1, Colour.RED)})
    got = python.value("point")
    assert (got.x, got.colour.name, got.colour.value) == (1, "RED", 1)
    assert python.value("point.x, point.colour.name") == (1, "RED")
    made = python.value(
        "import dataclasses, enum\n"
        "class Size(enum.Enum):\n    BIG = 2\n"
        "@dataclasses.dataclass\nclass Box:\n    size: Size\n    items: list\n"
        "Box(Size.BIG, [(1, 2)])"
    )
    assert (made.size.name, made.items) == ("BIG", [(1, 2)])


def test_variables_are_set_again_and_kept(python: Driven) -> None:
    python.interpreter.set_variables({"a": 1, "b": [1]})
    python.value("b.append(2)")
    python.interpreter.set_variables({"a": 5})
    assert python.value("a, b") == (5, [1, 2])


def test_arrays_cross(place: Place, python: Driven) -> None:
    if not place.libraries:
        pytest.skip("NumPy is not there")
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(12, dtype="f4").reshape(3, 4)
    python.interpreter.set_variables({"sent": array, "scalar": numpy.float64(1.5)})
    got = python.value("import numpy\nsent.T * 2")
    assert got.dtype == array.dtype
    assert (got == array.T * 2).all()
    assert python.value("numpy.array(['a', 'bc'])").tolist() == ["a", "bc"]
    assert python.value("numpy.int64(3), scalar + 1") == (3, 2.5)
    days = python.value("numpy.array(['2026-01-02'], dtype='datetime64[D]')")
    assert days[0] == numpy.datetime64("2026-01-02")


def test_images_cross(place: Place, python: Driven) -> None:
    if not place.libraries:
        pytest.skip("Pillow is not there")
    images = pytest.importorskip("PIL.Image")
    image = images.new("RGBA", (5, 3), (1, 2, 3, 4))
    python.interpreter.set_variables({"sent": image})
    got = python.value("sent.rotate(90, expand=True)")
    assert (got.size, got.mode, got.getpixel((0, 0))) == ((3, 5), "RGBA", (1, 2, 3, 4))
    code = "from PIL import Image\nImage.linear_gradient('L')"
    assert python.value(code).tobytes() == images.linear_gradient("L").tobytes()


# Values that stay


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (
            "class T:\n    def __repr__(self): return '<a thing>'\n[T()]",
            ("T", "<a thing>"),
        ),
        ("x = []\nx.append(x)\nx", ("list", "[[...]]")),
        ("class B:\n    def __repr__(self): 1 / 0\nB()", None),
        ("bytes(100 << 20)", None),
        ("iter([])", None),
    ],
)
def test_what_cannot_leave_is_shown(
    walled: Place, python: Driven, code: str, shown: tuple[str, str] | None
) -> None:
    result = python.run(code)
    assert result.error is None
    stays = result.output[0] if isinstance(result.output, list) else result.output
    assert isinstance(stays, SandboxValue)
    assert shown in (None, (stays.type, stays.repr))
    assert python.value("1") == 1
