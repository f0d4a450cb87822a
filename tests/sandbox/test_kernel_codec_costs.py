"""What reading a frame may cost: time and memory in proportion to its bytes, whatever it holds.

Time is that of the processor, and what is refused or quick here took a hundred times as long when
it was neither.
"""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import itertools
import json
import pathlib
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pandas  # type: ignore[import-untyped]  # it has no types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sanderling.memory import AgentMemory
from sanderling.sandbox import CodecError, Record, kernel

QUICK = 6.0  # seconds


@contextlib.contextmanager
def quickly() -> Iterator[None]:
    start = time.thread_time()
    yield
    assert time.thread_time() - start < QUICK


def frame(text: bytes, blobs: bytes = b"") -> bytes:
    return len(text).to_bytes(4, "little") + len(blobs).to_bytes(4, "little") + text + blobs


def read(encoded: object, *blobs: bytes) -> Any:
    text = json.dumps({"t": "x", "b": [len(blob) for blob in blobs], "v": encoded}).encode()
    (read,) = kernel.FrameReader().feed(frame(text, b"".join(blobs)))
    return read.value("v")


def cross(value: object) -> Any:
    encoded, blobs = kernel.encode(value)
    (read,) = kernel.FrameReader().feed(b"".join(kernel.pack("x", {"v": encoded}, blobs)))
    return read.value("v")


# Frames


@pytest.mark.parametrize("odd", [b'\\"', b"\\", b'"\\', b'"\\\\', b'\\\\"', b'""'])
def test_marks_are_counted_in_one_pass(odd: bytes) -> None:
    with quickly(), pytest.raises(kernel.FrameError):
        list(kernel.FrameReader().feed(frame(b"," * (kernel.MAX_MARKS + 1) + odd * 100_000)))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text(alphabet='"\\,[{x')))
def test_marks_within_long_texts_do_not_count(texts: list[str]) -> None:
    marks = "," * (kernel.MAX_MARKS + 1)
    assert cross([*texts, marks, *texts]) == [*texts, marks, *texts]


@pytest.mark.parametrize("item", ["[]", "{}", '""', "1", '"\\\\"', '"\\""'])
def test_texts_that_are_large_to_hold_are_refused(item: str) -> None:
    text = f'{{"t":"x","b":[],"v":[{",".join([item] * (kernel.MAX_MARKS + 1))}]}}'
    with quickly(), pytest.raises(kernel.FrameError, match="more items"):
        list(kernel.FrameReader().feed(frame(text.encode())))


def test_a_header_alone_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        reader = kernel.FrameReader()
        assert not list(reader.feed(b"\x00\x00\x00\x02\x00\x00\x00\x10"))
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


def test_a_large_frame_comes_back_whole() -> None:
    data = numpy.random.default_rng(0).bytes((20 << 20) + 7)
    assert cross([data[:5], data, "text"]) == [data[:5], data, "text"]


def test_long_numbers_are_refused_where_a_program_has_lifted_the_limit() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with quickly(), pytest.raises(kernel.FrameError):
            list(
                kernel.FrameReader().feed(frame(b'{"t":"x","b":[],"v":' + b"9" * 1_000_000 + b"}"))
            )
        assert read([10**4_000, 1]) == [10**4_000, 1]
    finally:
        sys.set_int_max_str_digits(before)


# Sets and dicts


def big(hex_digits: int) -> int:
    return (1 << 4 * hex_digits) + 12_345


def described(value: decimal.Decimal | int) -> dict[str, object]:
    if isinstance(value, int):
        return {"$": "int", "v": hex(value)}
    return {"$": "decimal", "v": str(value)}


def tuples(item: object) -> dict[str, object]:
    return {"$": "tuple", "v": [item]}


@pytest.mark.parametrize("wrap", [lambda item: item, tuples], ids=["plain", "in tuples"])
def test_huge_numbers_of_one_hash_are_not_compared(wrap: Callable[[object], object]) -> None:
    number = big(400_000)
    members = [wrap(described(decimal.Decimal(hash(number)))), wrap(described(number))]
    for encoded in (
        {"$": "set", "v": members},
        {"$": "frozenset", "v": members},
        {"$": "dict", "k": members, "v": [1, 2]},
        {"$": "index", "names": members, "v": [[1], [1]]},
    ):
        with quickly(), pytest.raises(CodecError):
            read(encoded)


@pytest.mark.parametrize(
    "members",
    [
        {decimal.Decimal(1), 2, 10**3_000, decimal.Decimal(10) ** 3_500},
        set(itertools.product([-1, -2], repeat=6)),
        {frozenset({(-1, 0), (0, 0)}), frozenset({(-2, 0), (0, 0)})},
        {2**61 - 1 + 5, 5, 5.5, True},
        {(decimal.Decimal(-1), 1, "a" * 5_000), (decimal.Decimal(-2), 1, "a" * 5_000)},
        {(*[0] * 200, -1), (*[0] * 200, -2)},
    ],
    ids=["numbers", "grid", "edges", "modulus", "decimals", "vectors"],
)
def test_members_that_share_a_hash_by_chance_come_back(members: set[object]) -> None:
    assert cross(members) == members
    assert cross(dict.fromkeys(members, 1)) == dict.fromkeys(members, 1)


class Alike:
    """All of one hash, or all of one text."""

    def __repr__(self) -> str:
        return "Alike"


@dataclasses.dataclass(eq=False)
class Node:
    x: int = 0


@pytest.mark.parametrize(
    "members",
    [
        set(itertools.product([-1, -2], repeat=7)),
        {number * sys.hash_info.modulus for number in range(65)},
        {Alike() for _ in range(200)},
        {Node() for _ in range(65)},
        {(Node(), 1) for _ in range(65)},
    ],
    ids=["grid", "modulus", "texts", "records", "in tuples"],
)
def test_members_that_a_host_would_refuse_are_not_sent(members: set[object]) -> None:
    for value in (members, frozenset(members), dict.fromkeys(members, 1)):
        with pytest.raises(CodecError, match="with the same hash: send a list"):
            kernel.encode(value, stay=kernel.stand_in)
    encoded, blobs = kernel.encode(list(members), stay=kernel.stand_in)
    assert len(read(encoded, *map(bytes, blobs))) == len(members)


def walks(bits: int) -> list[int]:
    """Integers with different hashes, most of which a dict tries in nearly all of its places.

    A dict of ``2**bits`` places looks for a free one at ``5 * place + 1``, once it has used up the
    bits of the hash. So half of these lie one behind the other on that way, and the others begin
    where those do.
    """
    size, mask = 1 << bits, (1 << bits) - 1
    way = list(itertools.accumulate(range(size // 2), lambda i, _: (5 * i + 1) & mask, initial=1))
    rank = numpy.full(size, size)
    rank[way] = numpy.arange(len(way))
    chance, late = numpy.random.default_rng(0), numpy.empty(0, dtype="i8")
    while len(late) < size // 7:
        numbers = chance.integers(size, size << 8, 1_000_000)
        place, left, taken = numbers & mask, numbers.copy(), rank[numbers & mask] < size
        while left.any():
            left >>= 5
            place = (5 * place + left + 1) & mask
            taken &= rank[place] < size
        late = numpy.unique([*late, *numbers[taken & (rank[place] < size // 16)]])
    return [*way, *map(int, late)]


@pytest.fixture(scope="module")
def walking() -> list[int]:
    return walks(18)


def test_keys_that_make_a_dict_search_are_refused(walking: list[int]) -> None:
    with quickly(), pytest.raises(CodecError, match="made to collide"):
        read({"$": "dict", "k": walking, "v": walking})


@pytest.mark.parametrize("kind", ["set", "frozenset"])
def test_members_that_make_a_set_search_are_refused_or_quick(kind: str, walking: list[int]) -> None:
    with quickly(), contextlib.suppress(CodecError):
        read({"$": kind, "v": walking})


def dear_pairs(count: int) -> Iterator[object]:
    """Decimals and floats of one hash, each pair of another one; each comparison takes 50 µs."""
    modulus = sys.hash_info.modulus
    for place in range(count):
        small = 5e-324 * (2 * place + 1)
        yield small
        yield {"$": "decimal", "v": str(hash(small) + (modulus if place % 2 else 0))}


@pytest.mark.parametrize("kind", ["set", "frozenset"])
def test_decimals_are_compared_with_few_other_numbers(kind: str) -> None:
    with quickly(), pytest.raises(CodecError, match="more than"):
        read({"$": kind, "v": [*dear_pairs(200_000)]})
    assert len(read({"$": kind, "v": [*dear_pairs(100)]})) == 200


def colliding_sets(depth: int, number: itertools.count[int]) -> dict[str, object]:
    """A set of 40 sets of 40 numbers, and so on, in which all of a level have one hash."""
    if not depth:
        return described(next(number) * sys.hash_info.modulus)
    return {"$": "frozenset", "v": [colliding_sets(depth - 1, number) for _ in range(40)]}


def test_sets_of_sets_of_one_hash_are_not_compared() -> None:
    with quickly(), pytest.raises(CodecError):
        read({"$": "set", "v": [colliding_sets(2, itertools.count(1)) for _ in range(40)]})


@pytest.mark.parametrize(
    "members", [range(300_000), range(0, 300_000 << 20, 1 << 20), map(float, range(100_000))]
)
def test_large_sets_and_dicts_come_back(members: Iterator[object]) -> None:
    made = set(members)
    assert cross(made) == made
    assert cross(frozenset(made)) == made
    assert list(cross(dict.fromkeys(made))) == list(made)


# Blobs


def test_a_blob_is_used_once() -> None:
    once = {"$": "bytes", "i": 0}
    with pytest.raises(CodecError, match="no such blob"):
        read([once, once], b"x" * 1_000)


# Tables, and what else libraries have


def array(place: int, dtype: str, *shape: int) -> dict[str, object]:
    return {"$": "ndarray", "t": dtype, "s": list(shape), "i": place, "scalar": False}


def labels(*items: object) -> dict[str, object]:
    return {"$": "index", "names": [None], "v": [list(items)]}


def series(column: object) -> dict[str, object]:
    return {"$": "series", "name": None, "n": None, "v": column}


def same_hash(count: int) -> numpy.ndarray[Any, Any]:
    """Numbers that pandas looks for in one place all, in an order by chance."""
    high = numpy.arange(1, count + 1) * 2
    shift = high >> 1
    low = (shift ^ (shift << 11) ^ (shift << 22)) & 0xFFFFFFFF
    return numpy.random.default_rng(0).permutation((high << 32) | low)


def test_an_index_of_several_levels_is_made_without_hashes() -> None:
    count = 80_000
    numbers, codes = same_hash(count), numpy.arange(count)
    with quickly():
        index = read(
            {
                "$": "index",
                "names": ["a", "b"],
                "v": [array(0, "<i8", count), ["x"]],
                "codes": [array(1, "<i8", count), array(2, "|i1", count)],
            },
            numbers.tobytes(),
            codes.tobytes(),
            bytes(count),
        )
    assert index[5] == (numbers[5], "x")


@pytest.mark.parametrize("codes", [[0, 2], [-2, 0], [0]], ids=str)
def test_an_index_of_labels_that_are_not_there_is_refused(codes: list[int]) -> None:
    encoded = {
        "$": "index",
        "names": [None, None],
        "v": [["a", "b"], ["c"]],
        "codes": [array(0, "|i1", len(codes)), array(1, "|i1", 2)],
    }
    with pytest.raises(CodecError):
        read(encoded, numpy.array(codes, dtype="i1").tobytes(), bytes(2))


def categories(labels: object, codes: int = 0) -> dict[str, object]:
    return series({"$": "categories", "c": array(codes, "|i1", 1), "v": labels, "ordered": False})


def test_categories_that_collide_are_refused() -> None:
    numbers = same_hash(80_000)
    with quickly(), pytest.raises(CodecError, match="in no order"):
        read(categories(array(1, "<i8", len(numbers))), b"\0", numbers.tobytes())


def test_categories_that_are_dear_to_compare_are_refused() -> None:
    number = big(400_000)
    items = [described(decimal.Decimal(hash(number))), described(number)]
    with quickly(), pytest.raises(CodecError, match="too large to be compared"):
        read(categories({"$": "objects", "s": [2], "v": items}), b"\0")


@pytest.mark.parametrize(
    "labels",
    [
        numpy.arange(200_000),
        numpy.arange(9_000)[::-1],
        pandas.DatetimeIndex(["2026-03-29", "2026-03-28"], tz="Europe/Berlin"),
        [f"label {n}" for n in range(50_000, 0, -1)],
        pandas.array([f"label {n}" for n in range(50_000, 0, -1)], dtype="string"),
        pandas.array(range(20_000), dtype="Int64"),
        numpy.array([1, "a", 2.5, decimal.Decimal(1) / 3, (1, 2)], dtype=object),
        [False, True],
        [1j, 2j],
    ],
    ids=str,
)
def test_honest_categories_come_back(labels: Any) -> None:
    column = pandas.Series(pandas.Categorical.from_codes([1, 0, -1], labels))
    pandas.testing.assert_series_equal(cross(column), column)


def test_categories_that_a_host_would_refuse_are_not_sent() -> None:
    numbers = numpy.random.default_rng(0).permutation(20_000)
    column = pandas.Series(pandas.Categorical.from_codes([0], numbers))
    with pytest.raises(CodecError, match="10,000 categories in no order: send a list"):
        kernel.encode(column)


def tables(count: int) -> list[object]:
    table = {"$": "table", "k": labels(1), "n": labels(1), "v": [[1]], "rows": 1}
    return [table] * count


@pytest.mark.parametrize(
    "encoded",
    [
        tables(20_000),
        [labels(1)] * 20_000,
        [{**labels(), "codes": [array(place, "|i1", 0)]} for place in range(20_000)],
        [series([1])] * 20_000,
        [{"$": "objects", "s": [0], "v": []}] * 20_000,
        {"$": "table", "k": labels(), "n": None, "v": [["a"]] * 20_000, "rows": 1},
        {"$": "index", "names": [*range(20_000)], "v": [[1]] * 20_000, "codes": []},
        {"$": "ndarray", "t": [["a", "|i1", []]] * 100_001, "s": [], "i": 0, "scalar": False},
        {"$": "ndarray", "t": [["a", [["b", "|i1", []]] * 999, []]] * 200, "s": [], "i": 0},
    ],
    ids=["tables", "indexes", "several", "series", "objects", "columns", "levels", "fields", "in"],
)
def test_more_values_of_libraries_than_can_cross_are_refused(encoded: object) -> None:
    with quickly(), pytest.raises(CodecError, match="more than 10,000 tables"):
        read(encoded, *[b""] * 20_000)


def test_more_images_than_can_cross_are_refused() -> None:
    images = [{"$": "image", "mode": "L", "s": [1, 1], "i": place} for place in range(50_000)]
    with quickly(), pytest.raises(CodecError, match="images"):
        read(images, *[b"x"] * 50_000)


FRAME = pandas.DataFrame({"a": [1], "b": ["x"]})


@pytest.mark.parametrize(
    "value",
    [
        [FRAME] * 5_000,
        [FRAME.index] * 11_000,
        [FRAME["b"]] * 6_000,
        [numpy.array([None])] * 11_000,
        numpy.zeros(1, dtype=[(f"f{n}", "i1") for n in range(100_001)]),
        [Image.new("L", (1, 1))] * 11_000,
    ],
    ids=["tables", "indexes", "series", "objects", "fields", "images"],
)
def test_what_a_host_would_refuse_is_not_sent(value: object) -> None:
    with pytest.raises(CodecError, match="more than 10,000 tables"):
        kernel.encode(value)


def test_many_small_ones_come_back() -> None:
    assert len(cross([FRAME] * 1_000)) == 1_000
    assert len(cross(list(numpy.zeros((20_000, 2))))) == 20_000
    wide = pandas.DataFrame(numpy.zeros((2, 12_000)))
    pandas.testing.assert_frame_equal(cross(wide), wide)
    fields = numpy.zeros(3, dtype=[(f"f{n}", "f8") for n in range(4_000)])
    numpy.testing.assert_array_equal(cross(fields), fields)


@pytest.mark.parametrize(
    "column",
    [
        array(0, "|S1", 4),
        array(0, "<U1", 1),
        array(0, "|i1", 2, 2),
        {**array(0, "", 4), "t": [["a", "|i1", []]]},
        {"$": "texts", "t": "str", "v": [10, {"$": "objects", "s": [1], "v": [1]}]},
        {"$": "masked", "t": "Int64", "v": array(0, "|i1", 4), "mask": array(1, "|b1", 4)},
        {"$": "masked", "t": "Int8", "v": array(0, "|i1", 4), "mask": array(1, "|i1", 4)},
        {"$": "zoned", "v": array(0, "<i4", 1), "zone": "UTC"},
        {"$": "zoned", "v": array(0, "<M8[s]", 0), "zone": "a/" * 100_000},
        {"$": "set", "v": [1, 2, 3, 4]},
        {"$": "host", "id": "x"},
        series([1, 2, 3, 4]),
    ],
    ids=str,
)
def test_only_what_pandas_writes_is_a_column(column: object) -> None:
    table = {"$": "table", "k": labels("a"), "n": None, "v": [column], "rows": 4}
    blobs = [b"abcd", b"\0\1\0\1"]
    for encoded in (series(column), table, {"$": "index", "names": [None], "v": [column]}):
        with pytest.raises(CodecError):
            read(encoded, *blobs)


def test_large_columns_of_texts_come_back() -> None:
    texts = [f"text {number}" for number in range(1_000_000)]
    table = pandas.DataFrame({"a": texts, "b": [None, *texts[1:]], "c": texts}, dtype=object)
    with quickly():
        back = cross(table)
    assert back["c"].tolist() == texts
    assert back["b"].isna().sum() == 1


def test_more_texts_in_columns_than_can_cross_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    column = pandas.Series(["a"] * 1_000, dtype=object)
    monkeypatch.setattr(kernel, "MAX_TEXTS", 2_500)
    assert len(cross([column, column])) == 2
    encoded = [kernel.encode(column) for _ in range(3)]
    for number, (written, _) in enumerate(encoded):
        written["v"]["i"], written["v"]["sizes"]["i"] = 2 * number, 2 * number + 1  # type: ignore[index]  # a series
    blobs = [bytes(blob) for _, some in encoded for blob in some]
    with pytest.raises(CodecError, match="more than 2,500 texts in columns"):
        read([written for written, _ in encoded], *blobs)
    with pytest.raises(CodecError, match="more than 2,500 texts in columns"):
        kernel.encode([column] * 3)


@pytest.mark.parametrize(
    ("sizes", "gaps"),
    [([1, 1, 1], None), ([5], None), ([2, 2], [0]), ([2, 2], [3, 0]), ([2**32 - 1, 5], None)],
    ids=str,
)
def test_blocks_of_another_size_than_their_texts_are_refused(
    sizes: list[int], gaps: list[int] | None
) -> None:
    blobs = [b"abcd", numpy.array(sizes, dtype="<u4").tobytes(), bytes(gaps or [])]
    column = {"$": "texts", "t": "object", "i": 0, "sizes": array(1, "<u4", len(sizes))}
    marks = None if gaps is None else array(2, "|u1", len(gaps))
    with pytest.raises(CodecError):
        read(series({**column, "gaps": marks}), *blobs)
    with pytest.raises(CodecError):
        read(series({**column, "sizes": array(1, "<i4", len(sizes)), "gaps": None}), *blobs)


@pytest.mark.parametrize(
    "encoded",
    [
        {"$": "fraction", "v": [described(big(1_000_000)), described(big(500_000))]},
        {"$": "range", "v": [0, described(big(2_000_000)), described(big(1_000_000))]},
        {"$": "counter", "k": [1, 2], "v": [described(big(1_000_000)), {"$": "decimal", "v": "1"}]},
        [{"$": "namedtuple", "type": f"P{n}", "k": ["a"], "v": [1]} for n in range(20_000)],
        {"$": "ordered", "k": [n * sys.hash_info.modulus for n in range(1_000)], "v": [1] * 1_000},
        {"$": "counter", "k": [n * sys.hash_info.modulus for n in range(1_000)], "v": [1] * 1_000},
    ],
    ids=["fraction", "range", "counts", "kinds", "ordered", "counter"],
)
def test_what_would_be_dear_to_make_is_refused(encoded: object) -> None:
    with quickly(), pytest.raises(CodecError):
        read(encoded)


def test_no_pattern_is_compiled() -> None:
    hostile = [{"$": "pattern", "v": "[\x00-\uffff]" * 1_000, "flags": 2}] * 1_000
    with quickly():
        assert isinstance(read(hostile)[0], Record)


USED: list[str] = []


class Object:
    """An object of the host that notes which of its methods are called."""

    def _called(self, *_: object) -> Any:
        USED.append("called")
        raise TypeError

    __len__ = __iter__ = __getitem__ = __index__ = __float__ = __array__ = __hash__ = _called


class Held(kernel.Extension):
    readers = {"host": lambda decoder, value, depth: Object()}


HELD = {"$": "host", "id": "x"}


@pytest.mark.parametrize(
    "encoded",
    [
        series(HELD),
        {**series([1]), "n": HELD},
        {"$": "table", "k": HELD, "n": None, "v": [[1]], "rows": 1},
        {"$": "table", "k": labels("a"), "n": None, "v": [HELD], "rows": 1},
        {"$": "index", "names": [None], "v": [HELD]},
        {"$": "index", "names": [None], "v": [[1]], "codes": [HELD]},
        series({"$": "categories", "c": HELD, "v": [1], "ordered": False}),
        series({"$": "zoned", "v": HELD, "zone": "UTC"}),
        series({"$": "texts", "t": "str", "v": [HELD]}),
        {"$": "timedelta", "v": [HELD, 0, 0]},
        {"$": "complex", "v": [HELD, "1"]},
        {"$": "image", "mode": "L", "s": [HELD, 1], "i": 0},
    ],
    ids=str,
)
def test_objects_of_the_host_are_no_parts_of_other_values(encoded: object) -> None:
    (read,) = kernel.FrameReader().feed(b"".join(kernel.pack("x", {"v": encoded}, [b"x"])))
    USED.clear()
    with pytest.raises(CodecError):
        read.value("v", Held())
    assert not USED


# The rest


def test_long_paths_are_refused_on_both_sides() -> None:
    with pytest.raises(CodecError, match="4,096 characters: send its str"):
        kernel.encode(pathlib.Path("a/" * 3_000))
    with pytest.raises(CodecError):
        read({"$": "path", "v": "a/" * 3_000})


def test_images_without_pixels_have_few_rows() -> None:
    with pytest.raises(CodecError):
        read({"$": "image", "mode": "L", "s": [0, 60_000_000], "i": 0}, b"")
    assert cross(Image.new("L", (0, 7))).size == (0, 7)


def test_a_saved_memory_is_read_within_the_same_bounds() -> None:
    number = big(400_000)
    members = [described(decimal.Decimal(hash(number))), described(number)]
    data = {"$": "value", "data": {"$": "set", "v": members}, "blobs": []}
    step = {"type": "FinalAnswerStep", "output": data}
    saved = {"version": 1, "system_prompt": "", "steps": [step]}
    with quickly(), pytest.raises(ValueError, match="too large to be compared"):
        AgentMemory.from_dict(saved)
