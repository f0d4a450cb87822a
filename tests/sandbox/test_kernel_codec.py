"""What crosses between host and sandbox, and what does not."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import io
import ipaddress
import math
import pathlib
import re
import sys
import time
import types
import uuid
from typing import Any, cast

import numpy
import pandas  # type: ignore[import-untyped]  # it has no types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hypothesis_numpy
from hypothesis.extra import pandas as hypothesis_pandas
from PIL import Image

from sanderling._show import visible
from sanderling.sandbox import CodecError, Record, SandboxValue, kernel

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.times()
    | st.timedeltas()
)
keys = scalars | st.tuples(st.text(), st.integers())
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(keys, inner)
        | st.sets(keys)
        | st.frozensets(keys)
        | st.tuples(inner, inner)
        | st.binary().map(bytearray)
    ),
    max_leaves=20,
)


def cross(value: object, *, stay: bool = False) -> Any:
    """Sends a value through a frame, as bytes."""
    encoded, blobs = kernel.encode(value, stay=kernel.stand_in if stay else None)
    data = b"".join(kernel.pack("test", {"v": encoded}, blobs))
    (frame,) = kernel.FrameReader().feed(data)
    return frame.value("v")


def same(left: object, right: object) -> bool:
    """Equality that also holds for NaN, and tells types and signs of zero apart."""
    return type(left) is type(right) and ordered(left) == ordered(right)


def ordered(value: object) -> str:
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}{sorted(map(ordered, value))}"
    if isinstance(value, dict):
        return f"dict{[(ordered(key), ordered(item)) for key, item in value.items()]}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}{[ordered(item) for item in value]}"
    return repr(value)


@settings(deadline=None, max_examples=300)
@given(values)
def test_plain_data_comes_back_as_it_was(value: object) -> None:
    assert same(cross(value), value)


@pytest.mark.parametrize(
    "value",
    [
        2**53,
        -(2**53),
        10**4000,
        [2**70, 1],
        {"big": [2**64]},
        math.inf,
        -math.inf,
        math.nan,
        -0.0,
        complex(-0.0, math.nan),
        "\ud83d\ude00",
        "\x00\u2028",
        {"$": "int", "v": "ff"},
        {"a": {"$": 1}},
        {1: "a", None: "b", (1, 2): {"c"}},
        (),
        set(),
        b"",
        bytearray(b"\x00\xff"),
        datetime.datetime(2024, 10, 27, 2, 30, fold=1),  # noqa: DTZ001 - the naive kind is meant
        datetime.time(2, 30, fold=1, tzinfo=datetime.UTC),
        decimal.Decimal("-0E+10"),
        decimal.Decimal("sNaN"),
        uuid.UUID(int=5),
        pathlib.Path("/a/b"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_at_the_edges_come_back(value: object) -> None:
    assert same(cross(value), value)


class Color(enum.Enum):
    RED = 1


class Name(enum.StrEnum):
    ADA = "ada"


@dataclasses.dataclass
class Point:
    x: int
    y: object


class Pair(collections.namedtuple("Pair", "left right")):  # noqa: PYI024 - the untyped one is meant
    __slots__ = ()


class Odd(tuple[int]):
    """Says that it has fields, and has none."""

    __slots__ = ()
    _fields = ("a", "class")


@pytest.mark.parametrize(
    "value",
    [
        collections.Counter("aab"),
        collections.Counter({(1, 2): -3, "a": 2.5}),
        collections.OrderedDict([(2, "b"), (1, "a")]),
        collections.defaultdict(list, a=[1]),
        collections.defaultdict(None, {1: 2}),
        collections.deque([1, [2]], maxlen=5),
        collections.deque(),
        range(3),
        range(5, -(2**70), -2),
        slice(1, None, -1),
        slice("a", "b"),
        types.SimpleNamespace(a=1, b=types.SimpleNamespace(c=[2])),
        fractions.Fraction(-1, 3),
        ipaddress.ip_address("10.0.0.1"),
        ipaddress.ip_address("fe80::1%eth0"),
        ipaddress.ip_network("10.0.0.0/8"),
        ipaddress.ip_interface("::1/64"),
        {range(3): 1, fractions.Fraction(1, 2): 2},
    ],
    ids=lambda value: type(value).__name__,
)
def test_kinds_of_the_standard_library_come_back(value: Any) -> None:
    back = cross(value)
    assert (type(back), back, repr(back)) == (type(value), value, repr(value))
    if isinstance(value, collections.defaultdict):
        assert back.default_factory is value.default_factory


def test_named_tuples_come_back_with_their_names() -> None:
    back, other = cross([Pair(1, [Pair("é", None)]), Pair(3, 4)])
    assert (back, back.left, back.right[0].left) == ((1, [("é", None)]), 1, "é")
    assert (repr(other), other._asdict()) == ("Pair(left=3, right=4)", {"left": 3, "right": 4})
    assert type(back) is type(other) is not Pair
    assert cross({Pair(1, 2): 3}) == {(1, 2): 3}


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no", 5),
        KeyError("a"),
        OSError(2, "not there"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "why"),
        ExceptionGroup("many", [ValueError(1), TypeError()]),
        UserWarning("w"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_exceptions_of_python_come_back(error: Exception) -> None:
    back = cross([error])[0]
    assert (type(back), str(back), repr(back)) == (type(error), str(error), repr(error))


def test_streams_come_back_with_their_place() -> None:
    data, text = io.BytesIO(b"abcd"), io.StringIO("a\r\nb\nc")
    data.seek(2)
    text.readline()
    back = cross({"a": [data, text]})["a"]
    assert [back[0].read(), back[0].getvalue()] == [b"cd", b"abcd"]
    assert [back[1].read(), back[1].getvalue()] == ["b\nc", "a\r\nb\nc"]
    data.seek(1 << 60)
    assert cross(data).tell() == 4


def test_a_pattern_is_read_as_its_text() -> None:
    back = cross(re.compile("a+", re.IGNORECASE))
    assert back == Record("Pattern", {"pattern": "a+", "flags": int(re.IGNORECASE | re.UNICODE)})
    assert re.compile(back.pattern, back.flags).fullmatch("AA")


TEXTS = ["a", "", "é日\U0001f600", "x" * 300, "y" * 70_000]


@pytest.mark.parametrize(
    "cells", [TEXTS, [*TEXTS, None], ["a", math.nan, None], TEXTS[:1], []], ids=len
)
@pytest.mark.parametrize("dtype", ["object", "string", "category"])
def test_columns_of_texts_come_back(cells: list[Any], dtype: str) -> None:
    column = pandas.Series(cells, dtype=dtype)
    back = cross(column)
    pandas.testing.assert_series_equal(back, column)
    assert [*map(type, back.tolist())] == [*map(type, column.tolist())]
    index = pandas.Index(cells, dtype=dtype)
    pandas.testing.assert_index_equal(cross(index), index)


def test_texts_with_halves_of_characters_come_back() -> None:
    assert cross(pandas.Series(["\ud800", "b\udc00"], dtype=object)).tolist() == [
        "\ud800",
        "b\udc00",
    ]


def test_a_column_of_texts_in_a_memory_of_before_is_read() -> None:
    series = {"$": "series", "name": None, "n": None}
    column = {"$": "texts", "t": "string", "v": ["a", None]}
    assert decode({**series, "v": column}).tolist() == ["a", pandas.NA]


def test_instances_cross_as_a_name_and_fields() -> None:
    point = cross(Point(1, [Color.RED]))
    assert point == Record("Point", {"x": 1, "y": [Record("Color", {"name": "RED", "value": 1})]})
    assert (point.x, point.y[0].value) == (1, 1)
    assert repr(cross(Color.RED)) == "Color(name='RED', value=1)"
    assert cross({Color.RED: 1}) == {Record("Color", {"name": "RED", "value": 1}): 1}
    assert cross(Name.ADA).value == "ada"
    assert cross(point) == point
    with pytest.raises(AttributeError, match="'z' is no field"):
        _ = point.z


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        (collections.defaultdict(lambda: [0], a=[1]), {"a": [1]}),
        (collections.Counter({"a": cast("int", decimal.Decimal(1))}), {"a": decimal.Decimal(1)}),
        ({"a": 1}.keys(), ["a"]),
        (Odd([1]), (1,)),
        (time.gmtime(0), (1970, 1, 1, 0, 0, 0, 3, 1, 0)),
        (memoryview(b"abc")[1:], b"bc"),
        (numpy.float32(1.5), 1.5),
        (numpy.int64(3), 3),
        (numpy.bool_(True), True),
        (numpy.str_("a"), "a"),
        (numpy.longdouble(1.5), 1.5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_relatives_of_plain_types_cross_as_those(value: object, becomes: object) -> None:
    assert same(cross(value), becomes)


@pytest.mark.parametrize(
    "array",
    [
        numpy.arange(6).reshape(2, 3).T,
        numpy.zeros((0, 3)),
        numpy.array(5),
        numpy.array(["a", "bcd"]),
        numpy.array([b"a", b"bcd"]),
        numpy.array([True, False]),
        numpy.array([1 + 2j]),
        numpy.array(["2020-01-01", "NaT"], dtype="datetime64[ns]"),
        numpy.arange(10, dtype=">i4")[::-3],
        numpy.array([1.5, 2.5], dtype="f2"),
        numpy.array([[1, "a"], [None, (2, 3)]], dtype=object),
        numpy.array([(1, "ab", [1.0, 2.0])], dtype=[("n", "i1"), ("s", "U3"), ("v", "f8", (2,))]),
        numpy.array([numpy.timedelta64(3, "D")]),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_come_back(array: numpy.ndarray[Any, Any]) -> None:
    back = cross([array])[0]
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    numpy.testing.assert_array_equal(back, array)
    assert back.flags.writeable


def test_a_date_of_numpy_comes_back() -> None:
    assert cross(numpy.datetime64("2020-01-01")) == numpy.datetime64("2020-01-01")


@pytest.mark.parametrize("mode", [*kernel._PIXEL_BITS])
def test_images_come_back(mode: str) -> None:
    size = 13, 7
    if mode in ("La", "RGBa", "LAB", "I;16"):  # to which there is no way from grey
        image = Image.frombytes(mode, size, bytes(range(13)) * 7 * (kernel._PIXEL_BITS[mode] // 8))
    else:
        image = Image.radial_gradient("L").resize(size).convert("RGB").convert("L").convert(mode)
    back = cross(image)
    assert (back.mode, back.size, back.tobytes()) == (image.mode, image.size, image.tobytes())


def test_an_image_with_a_palette_comes_as_colours() -> None:
    assert cross(Image.new("P", (3, 2))).mode == "RGB"


def test_tables_come_back() -> None:
    table = pandas.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [1.5, None, 2.5],
            "s": ["a", None, "c"],
            "t": pandas.to_datetime(["2020-01-01", None, "2020-01-03"]),
            5: [True, False, True],
        }
    )
    pandas.testing.assert_frame_equal(cross(table), table)
    by_name = table.set_index("n")
    pandas.testing.assert_frame_equal(cross(by_name), by_name)
    pandas.testing.assert_series_equal(cross(table["x"]), table["x"])
    assert cross(pandas.DataFrame()).empty
    pandas.testing.assert_frame_equal(cross(table.iloc[1:]), table.iloc[1:])
    two_levels = table.set_index(["n", "s"])
    pandas.testing.assert_frame_equal(cross(two_levels), two_levels)
    wide = table[["n", "x"]]
    wide.columns = pandas.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["first", None])
    pandas.testing.assert_frame_equal(cross(wide), wide)
    named = table.rename_axis(index="row", columns="column")
    pandas.testing.assert_frame_equal(cross(named), named)
    pandas.testing.assert_index_equal(cross(two_levels.index), two_levels.index)
    with pytest.raises(CodecError, match="dtype period"):
        cross(pandas.Series(pandas.period_range("2020-01", periods=2, freq="M")))


COLUMNS = [
    pandas.Series(["a", None, "b"], dtype="category"),
    pandas.Series(pandas.Categorical([2, 1, 2], categories=[3, 2, 1], ordered=True)),
    pandas.Series(pandas.date_range("2026-03-29", periods=3, freq="h", tz="Europe/Berlin")),
    pandas.Series(pandas.to_datetime(["2026-01-01T00:00+05:30", None])),
    pandas.Series([1, None, 2**62], dtype="Int64"),
    pandas.Series([1, None], dtype="UInt8"),
    pandas.Series([1.5, None], dtype="Float32"),
    pandas.Series([True, None], dtype="boolean"),
    pandas.Series(["a", None], dtype="string"),
    pandas.Series(["a", None], dtype="str"),
    pandas.Series(["a", None, 1, [2]], dtype=object),
    pandas.Series([1, 2], dtype=object),
    pandas.Series(["a", "b"], dtype=object),
    pandas.Series([1 + 2j]),
    pandas.Series(pandas.to_timedelta([1, None], unit="s")),
    pandas.Series([], dtype="f4"),
    pandas.Series([1], index=pandas.CategoricalIndex(["a"], name="i"), name=("x", 1)),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.dtype))
def test_columns_keep_their_kind(column: Any) -> None:
    pandas.testing.assert_series_equal(cross(column), column)
    table = column.to_frame("name")
    pandas.testing.assert_frame_equal(cross(table), table)


dtypes = hypothesis_numpy.scalar_dtypes().filter(lambda dtype: dtype.itemsize > 0)
arrays = hypothesis_numpy.arrays(
    dtypes | hypothesis_numpy.array_dtypes(dtypes, max_size=3), hypothesis_numpy.array_shapes()
)
tables = hypothesis_pandas.data_frames(
    [
        hypothesis_pandas.column("n", dtype="int64"),
        hypothesis_pandas.column("x", dtype="float32"),
        hypothesis_pandas.column("s", elements=st.text()),
        hypothesis_pandas.column("t", dtype="datetime64[ns]"),
        hypothesis_pandas.column("b", dtype=bool),
    ]
)


@settings(deadline=None, max_examples=100)
@given(arrays)
def test_any_array_comes_back(array: numpy.ndarray[Any, Any]) -> None:
    back = cross(array)
    packed = kernel._packed(numpy, array.dtype)
    assert (back.dtype.descr, back.shape) == (packed.descr, array.shape)
    assert back.tobytes() == array.astype(packed).tobytes()


@settings(deadline=None, max_examples=30)
@given(tables)
def test_any_table_comes_back(table: Any) -> None:
    pandas.testing.assert_frame_equal(cross(table), table)


class Thing:
    def __repr__(self) -> str:
        return "<a thing>"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def cyclic() -> object:
    inner: list[object] = [1, 2, datetime.date(2020, 1, 1)]
    inner.append(inner)
    return {"loop": inner}


def exploding() -> object:
    value: list[object] = [1j]
    for _ in range(60):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Thing(), r"a .*Thing cannot cross"),
        ([1, {"a": (1, Thing())}], r"Thing cannot cross.*\(at \[1\].a\[1\]\)"),
        ({(1, 2): Thing()}, r"\(at \[\(1, 2\)\]\)"),
        (Point(1, Thing()), r"\(at y\)"),
        ({Thing(): 1}, r"Thing cannot cross"),
        (lambda: 1, r"a function cannot cross"),
        (math, r"a module cannot cross"),
        (numpy.array([object()]), r"a object cannot cross"),
        (numpy.zeros(2, dtype="V3"), r"dtype"),
        (range(1 << 20_000), r"too many digits"),
        (types.SimpleNamespace(__array_interface__={}), r"SimpleNamespace cannot cross"),
        (numpy.ma.array([1], mask=[True]), r"masked array"),
        (cyclic(), r"containing itself"),
        (exploding(), r"more than 2,000,000 items"),
        (Image.new("1", (1 << 14, 1 << 13)), r"pixels"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_what_cannot_cross_is_named_with_its_place(value: object, told: str) -> None:
    with pytest.raises(CodecError, match=told):
        cross(value)


def test_what_cannot_cross_is_shown_where_that_is_asked_for() -> None:
    assert cross([1, Thing()], stay=True) == [1, SandboxValue(f"{__name__}.Thing", "<a thing>")]
    shown = cross(Broken(), stay=True)
    assert "whose repr() raised RuntimeError" in repr(shown)
    assert cross(cross(Thing(), stay=True)) == cross(Thing(), stay=True)


HOSTILE = "\x1b]0;owned\x07\nuser\u202enimda\u3164\ufe0f"
ESCAPED = r"\x1b]0;owned\x07\nuser\u202enimda\u3164\ufe0f"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (SandboxValue("str", "'report.txt'"), "<str object: 'report.txt'>"),
        (
            SandboxValue("T", "<naïve 日本>", "x"),
            "<T object, kept in the sandbox as 'x': <naïve 日本>>",
        ),
        (SandboxValue(HOSTILE, HOSTILE), f"<{ESCAPED} object: {ESCAPED}>"),
        (Record(HOSTILE, {HOSTILE: HOSTILE}), f"{ESCAPED}({ESCAPED}='{ESCAPED}')"),
    ],
)
def test_what_came_out_shows_itself_in_one_line_of_plain_text(value: object, shown: str) -> None:
    assert repr(value) == str(value) == shown


def test_what_came_out_shows_no_character_that_the_console_would_not() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    shown = repr(SandboxValue("T", every))
    assert shown == visible(shown)


def test_too_large_a_frame_is_refused_before_it_is_sent() -> None:
    with pytest.raises(CodecError, match="too large"):
        cross("x" * (kernel.MAX_JSON + 1))
    with pytest.raises(CodecError, match="too large"):
        kernel.pack("test", {}, [memoryview(bytearray(kernel.MAX_BLOBS + 1))])


def decode(encoded: object, *blobs: bytes) -> Any:
    (frame,) = kernel.FrameReader().feed(b"".join(kernel.pack("test", {"v": encoded}, blobs)))
    return frame.value("v")


@pytest.mark.parametrize(
    ("encoded", "blobs"),
    [
        ({"$": "pickle", "v": "x"}, []),
        ({"$": ["int"]}, []),
        ({"$": "int", "v": "xyz"}, []),
        ({"$": "int"}, []),
        ({"$": "float", "v": [1]}, []),
        ({"$": "bytes", "i": 0}, []),
        ({"$": "bytes", "i": -1}, [b"x"]),
        ({"$": "bytes", "i": True}, [b"x", b"y"]),
        ({"$": "set", "v": [[1]]}, []),
        ({"$": "set", "v": [n * (2**61 - 1) for n in range(1000)]}, []),
        ({"$": "dict", "k": [1, 2], "v": [1]}, []),
        ({"$": "record", "type": 1, "k": [], "v": []}, []),
        ({"$": "datetime", "v": "soon", "fold": 0}, []),
        ({"$": "ndarray", "t": "|O8", "s": [1], "i": 0, "scalar": False}, [b"12345678"]),
        ({"$": "ndarray", "t": "i4, i4", "s": [1], "i": 0, "scalar": False}, [b"12345678"]),
        ({"$": "ndarray", "t": "<i8", "s": [2], "i": 0, "scalar": False}, [b"12345678"]),
        ({"$": "ndarray", "t": "<i8", "s": [-1], "i": 0, "scalar": False}, [b"12345678"]),
        ({"$": "ndarray", "t": "<U0", "s": [10**12], "i": 0, "scalar": False}, [b""]),
        ({"$": "ndarray", "t": "<i8", "s": [10**30, 0], "i": 0, "scalar": False}, [b""]),
        ({"$": "image", "mode": "RGB", "s": [1, 1], "i": 0}, [b"12"]),
        ({"$": "image", "mode": "P", "s": [1, 1], "i": 0}, [b"1"]),
        ({"$": "image", "mode": "L", "s": [10**9, 10**9], "i": 0}, [b"1"]),
        ({"$": "table", "k": ["a"], "names": [None], "n": None, "v": [[1]], "rows": 2}, []),
        ({"$": "table", "k": [], "names": [None], "n": None, "v": [], "rows": 10**12}, []),
        ({"$": "table", "k": [], "names": [], "n": None, "v": [], "rows": 0}, []),
        ({"$": "host", "id": "x"}, []),
        ({"$": "code", "n": 1}, []),
        ({"$": "kept", "type": 1, "repr": "", "name": None}, []),
        ({"$": "defaultdict", "of": "eval", "k": [], "v": []}, []),
        ({"$": "defaultdict", "of": ["list"], "k": [], "v": []}, []),
        ({"$": "counter", "k": [1], "v": []}, []),
        ({"$": "deque", "v": [], "most": -1}, []),
        ({"$": "deque", "v": [], "most": 10**30}, []),
        ({"$": "namedtuple", "type": "P", "k": ["a b"], "v": [1]}, []),
        ({"$": "namedtuple", "type": "P", "k": ["_a"], "v": [1]}, []),
        ({"$": "namedtuple", "type": "P", "k": ["class"], "v": [1]}, []),
        ({"$": "namedtuple", "type": "P", "k": ["a", "a"], "v": [1, 2]}, []),
        ({"$": "namedtuple", "type": "P", "k": ["ﬁ", "fi"], "v": [1, 2]}, []),
        ({"$": "namedtuple", "type": "P(0)", "k": ["a"], "v": [1]}, []),
        ({"$": "namedtuple", "type": "P", "k": ["a"], "v": []}, []),
        ({"$": "namedtuple", "type": "P", "k": [f"a{n}" for n in range(501)], "v": [1] * 501}, []),
        ({"$": "namespace", "k": [1], "v": [1]}, []),
        ({"$": "range", "v": [1, 2.5, 3]}, []),
        ({"$": "range", "v": [1, 2, 0]}, []),
        ({"$": "slice", "v": [[1], None, None]}, []),
        ({"$": "pattern", "v": "a", "flags": "I"}, []),
        ({"$": "bytesio", "i": 0, "at": -1}, [b"x"]),
        ({"$": "stringio", "v": [1], "at": 0}, []),
        ({"$": "fraction", "v": [1, 0]}, []),
        ({"$": "fraction", "v": ["1", "2"]}, []),
        ({"$": "namespace", "k": ["__array_interface__"], "v": [{"shape": [1]}]}, []),
        ({"$": "namespace", "k": ["_\uff3fa"], "v": [1]}, []),
        ({"$": "namespace", "k": ["a\x1b"], "v": [1]}, []),
        ({"$": "namespace", "k": ["a" * 201], "v": [1]}, []),
        ({"$": "namedtuple", "type": "P", "k": ["a" * 201], "v": [1]}, []),
        ({"$": "namedtuple", "type": "P", "k": ["\uff43lass"], "v": [1]}, []),
        ({"$": "counter", "k": [1], "v": ["a"]}, []),
        ({"$": "ip", "type": "os", "v": "system"}, []),
        ({"$": "ip", "type": "IPv4Address", "v": "fe80::1"}, []),
        ({"$": "exception", "type": ["ValueError"], "v": []}, []),
        ({"$": "objects", "s": [2], "v": [1]}, []),
        ({"$": "index", "names": [], "v": [], "several": True}, []),
        ({"$": "index", "names": [1], "v": [1, 2], "several": True}, []),
        ({"$": "categories", "c": [5], "v": ["a"], "ordered": False}, []),
        ({"$": "zoned", "v": [], "zone": "../../etc/passwd"}, []),
        ({"$": "zoned", "v": [], "zone": None}, []),
        ({"$": "zoned", "v": [], "zone": 10**30}, []),
        ({"$": "texts", "t": "object", "v": []}, []),
        ({"$": "masked", "t": "Int64()", "v": [1], "mask": [True]}, []),
        ({"$": "masked", "t": "Int64", "v": [1], "mask": []}, []),
        ({"$": "ndarray", "t": [["a", "O", []]], "s": [1], "i": 0, "scalar": False}, [b"1"]),
        ({"$": "ndarray", "t": [["a", "<i4", [10**9, 10**9]]], "s": [1], "i": 0}, [b"1"]),
        ({"$": "ndarray", "t": [["a", "<i4"]], "s": [1], "i": 0, "scalar": False}, [b"1234"]),
    ],
    ids=str,
)
def test_forged_values_are_refused(encoded: object, blobs: list[bytes]) -> None:
    with pytest.raises(CodecError):
        decode(encoded, *blobs)


@pytest.mark.parametrize("open_", ["[", '{"a":', '{"$":"tuple","v":['])
def test_nesting_has_an_end(open_: str) -> None:
    depth = 150
    close = {"[": "]", '{"a":': "}"}.get(open_, "]}")
    text = f'{{"t":"x","b":[],"v":{open_ * depth}1{close * depth}}}'.encode()
    (frame,) = kernel.FrameReader().feed(len(text).to_bytes(4, "little") + bytes(4) + text)
    with pytest.raises(CodecError, match="nested"):
        frame.value("v")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"t":1,"b":[]}',
        b'{"t":"x","b":[-1]}',
        b'{"t":"x","b":[1]}',
        b'{"t":"x","b":[true]}',
        b'{"t":"x","b":{}}',
        b'{"t":"x","b":[],"v":NaN}',
        b'{"t":"x","b":[]',
        b"\xff\xff",
        b"[" * 200_000,
        b'{"t":"x","b":[],"v":' + b"9" * 5000 + b"}",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_what_is_no_frame_is_refused(text: bytes) -> None:
    data = len(text).to_bytes(4, "little") + bytes(4) + text
    with pytest.raises(kernel.FrameError):
        list(kernel.FrameReader().feed(data))


@pytest.mark.parametrize(("text", "blobs"), [(kernel.MAX_JSON + 1, 0), (1, kernel.MAX_BLOBS + 1)])
def test_a_frame_that_announces_too_much_is_refused_at_once(text: int, blobs: int) -> None:
    reader = kernel.FrameReader()
    with pytest.raises(kernel.FrameError, match="bytes"):
        list(reader.feed(text.to_bytes(4, "little") + blobs.to_bytes(4, "little")))


@settings(deadline=None)
@given(st.lists(values, max_size=4), st.data())
def test_frames_may_come_in_any_pieces(sent: list[object], data: st.DataObject) -> None:
    stream = b""
    for value in sent:
        encoded, blobs = kernel.encode(value)
        stream += b"".join(kernel.pack("test", {"v": encoded}, blobs))
    reader, got = kernel.FrameReader(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        got += [frame.value("v") for frame in reader.feed(stream[:size])]
        stream = stream[size:]
    assert all(map(same, got, sent))
    assert len(got) == len(sent)
