"""Frames that were changed by chance: ordinary errors, bounded costs, and nothing left behind.

``SANDERLING_FUZZ`` is the number of changed frames, 200,000 in CI. The seeds are fixed, so a
failure comes again. Parts keep each test short.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import gc
import io
import ipaddress
import json
import os
import pathlib
import random
import re
import sys
import time
import tracemalloc
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import pytest

from sanderling.errors import SandboxUnavailable, SandboxViolation
from sanderling.sandbox import ToolSpec, kernel
from sanderling.sandbox._outcome import Finished
from sanderling.sandbox._session import Session
from support.processes import children, descriptors, resident

CHANGES = int(os.environ.get("SANDERLING_FUZZ", "20000"))
PARTS = 20
ONE_LARGE_IN = 2_000
# Many times what any frame here takes; what is not in proportion to the bytes takes more.
MOST_SECONDS, MOST_SECONDS_PER_BYTE = 1.5, 1e-6  # of the processor
MOST_BYTES, MOST_BYTES_PER_BYTE = 48 << 20, 100
MOST_GROWTH = 64 << 20  # bytes; a leak of a few hundred bytes a frame would be as much

Bytes: TypeAlias = bytes | bytearray
DONE = {"id": 1, "v": None, "text": "t", "error": None, "threads": 0, "interrupted": False}
CALL = {"id": 1, "step": 1, "name": "add", "args": [], "kwargs": {}, "alone": True}
FINAL = {**CALL, "name": "final_answer", "text": "t"}


class Colour(enum.Enum):
    RED = 1


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Pair(NamedTuple):
    left: object
    right: object


@dataclasses.dataclass
class Point:
    x: int = 1
    y: object = None


def values() -> Iterator[object]:
    """One value of each kind that crosses."""
    import numpy
    import pandas  # type: ignore[import-untyped,unused-ignore]  # it has no types
    from PIL import Image

    moment = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
    yield {"plain": [1, 2.5, None, True, "text \ud800 é"], "deep": [[[[]]]]}
    yield [2**80, float("nan"), 1 + 2j, b"bytes", bytearray(b"more")]
    yield {1: (2, 3), (4, 5): {6}, None: frozenset({7})}
    yield [moment, moment.date(), moment.timetz(), datetime.timedelta(1, 2, 3)]
    yield [decimal.Decimal("1.5"), uuid.UUID(int=5), pathlib.PurePosixPath("a/b")]
    yield [Point(1, Point()), Colour.RED]
    yield [numpy.arange(6).reshape(2, 3), numpy.float32(1.5), numpy.array(["a", "bc"])]
    yield numpy.array(["2026-11-20"], dtype="datetime64[D]")
    yield pandas.DataFrame({"a": [1, 2], "b": ["x", None]}, index=["r", "s"])
    yield pandas.Series([1.5, 2.5], name="s")
    yield pandas.DataFrame(
        {
            "category": pandas.Categorical(["a", None]),
            "zone": pandas.to_datetime(["2026-01-01T00:00+01:00", None]),
            "gaps": pandas.array([1, None], dtype="Int64"),
            "text": pandas.array(["a", None], dtype="string"),
        },
        index=pandas.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", None]),
    )
    yield [numpy.array([(1, "a")], dtype="i4,U2"), numpy.array([1, "a"], dtype=object)]
    yield Image.new("RGB", (3, 2))
    yield [collections.Counter("aab"), collections.OrderedDict(a=1), collections.deque([1], 3)]
    yield [collections.defaultdict(list, {1: [2]}), range(5), slice(1, None), re.compile("a+")]
    yield [Pair(1, [2]), {Pair(3, 4): 5}, types.SimpleNamespace(a=1, b=[2])]
    yield [io.BytesIO(b"data"), io.StringIO("text"), KeyError("a"), OSError(2, "b")]
    yield [fractions.Fraction(1, 3), ipaddress.ip_address("10.0.0.1"), Access.READ | Access.WRITE]
    yield pandas.DataFrame({"a": ["é", "", None], "b": ["x", float("nan"), "y"]}, dtype=object)
    yield object()
    yield kernel.SandboxValue("T", "<t>", "result_1")


def large_values(count: int) -> Iterator[object]:
    """Values of many items each."""
    import numpy
    import pandas

    numbers = numpy.arange(count)
    names = [f"name {number}" for number in range(count)]
    table = pandas.DataFrame({"a": numbers, "b": names, "c": numbers / 3})
    yield [{"id": number, "name": name} for number, name in enumerate(names)]
    yield {number: {number} for number in range(count)}
    yield dict.fromkeys(enumerate(names))
    yield set(range(count))
    yield [frozenset({number, name}) for number, name in enumerate(names)]
    yield [decimal.Decimal(number) / 7 for number in range(count)]
    yield [datetime.date.fromordinal(1 + number) for number in range(count)]
    yield [pathlib.PurePosixPath(name) for name in names]
    yield [Point(number) for number in range(count)]
    yield [bytes([number % 256]) for number in range(count)]
    yield table
    yield table.set_index(["a", "b"])
    yield table.astype({"a": "category", "b": "category", "c": "Float64"})
    yield [table[:2]] * (count // 20)
    yield pandas.DataFrame(numpy.zeros((2, count // 10)))
    yield table.astype({"b": "string"})
    yield pandas.DataFrame({"a": [None, *names], "b": ["", *names]}, dtype=object)
    yield [numbers[:1]] * count
    yield [Pair(number, name) for number, name in enumerate(names)]
    yield [collections.deque([number]) for number in range(count)]
    yield [collections.Counter({name: 1}) for name in names]
    yield [collections.OrderedDict({name: 1}) for name in names]
    yield collections.OrderedDict.fromkeys(range(count))
    yield [types.SimpleNamespace(name=name) for name in names]
    yield [KeyError(name) for name in names]
    yield [OSError(2, name) for name in names]
    yield [io.BytesIO(b"") for _ in names]
    yield [io.StringIO(name) for name in names]
    yield [re.compile(f"a{number % 100}") for number in range(count)]
    yield [range(number) for number in range(count)]
    yield [fractions.Fraction(number + 1, 7) for number in range(count)]
    yield [ipaddress.ip_address(number) for number in range(count)]
    yield [ipaddress.ip_network((number << 64, 64)) for number in range(count)]
    yield numpy.zeros(3, dtype=[(name, "i4") for name in names])
    yield numpy.array([*names, 1], dtype=object)


def hostile(count: int) -> Iterator[tuple[object, list[kernel.Blob]]]:
    """What was made to cost more than its bytes: JSON data, and blobs."""
    import numpy

    number = 16 ** (10 * count) + 1
    equal = [{"$": "decimal", "v": str(hash(number))}, {"$": "int", "v": hex(number)}]
    same = [{"$": "int", "v": hex(place * sys.hash_info.modulus)} for place in range(count)]
    sets = [{"$": "frozenset", "v": same[:place]} for place in range(1, 40)]
    high = numpy.random.default_rng(0).permutation(numpy.arange(1, count + 1) * 2)
    shift = high >> 1
    colliding = ((high << 32) | ((shift ^ (shift << 11) ^ (shift << 22)) & 0xFFFFFFFF)).tobytes()
    one = {"$": "ndarray", "t": "|i1", "s": [1], "i": 0, "scalar": False}
    many = {"$": "ndarray", "t": "<i8", "s": [count], "i": 1, "scalar": False}
    for kind in ("set", "frozenset"):
        for members in (equal, same, sets):
            yield {"$": kind, "v": members}, []
    yield {"$": "dict", "k": equal, "v": equal}, []
    yield {"$": "dict", "k": same, "v": same}, []
    labels = {"$": "categories", "c": one, "v": many, "ordered": False}
    yield {"$": "series", "name": None, "n": None, "v": labels}, [b"\0", colliding]
    yield {"$": "index", "names": ["a"], "v": [many], "codes": [one]}, [b"\0", colliding]
    yield [{"$": "bytes", "i": 0}] * (count // 8), [bytes(count)]
    yield [{"$": "objects", "s": [0], "v": []}] * (count // 8), []
    index = {"$": "index", "names": [None], "v": [[1]]}
    table = {"$": "table", "k": index, "n": index, "v": [["a"]], "rows": 1}
    yield [table] * (count // 8), []
    yield [{"$": "path", "v": "a/" * count}], []
    for kind in ("counter", "ordered"):
        yield {"$": kind, "k": equal, "v": equal}, []
        yield {"$": kind, "k": same, "v": same}, []
    for place in range(2):
        names = [{"$": "namedtuple", "type": f"P{n}", "k": ["a"], "v": [1]} for n in range(count)]
        yield names[: 900 if place else count], []
    fields = [f"a{n}" for n in range(500)]
    yield [{"$": "namedtuple", "type": "P", "k": fields, "v": fields}] * (count // 200), []
    yield [{"$": "deque", "v": [], "most": None}] * (count // 2), []
    yield [{"$": "pattern", "v": "[\x00-\uffff]" * 9, "flags": 2}] * (count // 4), []
    yield [{"$": "range", "v": [0, {"$": "int", "v": "f" * count}, 1]}], []
    numbers = [{"$": "int", "v": digit * 3_998} for digit in "12"]
    yield [{"$": "fraction", "v": numbers}] * (count // 400), []
    yield [{"$": "range", "v": [0, *numbers]}] * (count // 400), []
    short = {"$": "ndarray", "t": "|u1", "s": [count], "i": 1, "scalar": False}
    texts = {"$": "texts", "t": "object", "i": 0, "sizes": short, "gaps": None}
    yield {"$": "series", "name": None, "n": None, "v": texts}, [b"", bytes(count)]
    yield {"$": "series", "name": None, "n": None, "v": texts}, [b"ab" * count, b"\2" * count]
    marks = {**short, "i": 2}
    marked = {**texts, "gaps": marks}
    blobs: list[kernel.Blob] = [b"", bytes(count), b"\1" * count]
    yield {"$": "series", "name": None, "n": None, "v": marked}, blobs
    yield ['"\\', '\\"' * count], []


def genuine() -> list[bytes]:
    """Frames as a kernel writes them."""
    made = []
    for encoded, blobs in [*map(encoded_value, values()), *hostile(20)]:
        made.append(kernel.pack("done", {**DONE, "v": encoded}, blobs))
        made.append(kernel.pack("call", {**CALL, "args": [encoded]}, blobs))
        made.append(kernel.pack("call", {**FINAL, "kwargs": {"b": encoded}}, blobs))
    held = [{"$": "host", "id": "ff"}, {"$": "code", "n": 1}]
    made.append(kernel.pack("call", {**CALL, "args": held, "on": "ff"}))
    fault = {"type": "E", "message": "m", "traceback": "t"}
    made.append(kernel.pack("done", {**DONE, "error": fault}))
    made.append(kernel.pack("done", {**DONE, "imported": ["numpy"]}))
    made.append(kernel.pack("out", {"id": 1, "text": "hello\n"}))
    made.append(kernel.pack("ready", {"layers": {"a": 1}, "versions": {"python": "3"}}))
    made.append(kernel.pack("failed", {"reason": "none"}))
    return [b"".join(parts) for parts in made]


def encoded_value(value: object) -> tuple[object, list[kernel.Blob]]:
    return kernel.encode(value, stay=kernel.stand_in)


def large(count: int) -> list[bytes]:
    """Frames of some hundred thousand bytes."""
    honest = map(encoded_value, large_values(count))
    made = [
        kernel.pack("done", {**DONE, "v": encoded}, blobs)
        for encoded, blobs in [*honest, *hostile(16 * count)]
    ]
    marks = b"," * (kernel.MAX_MARKS + 1) + b'\\"' * (10 * count)
    made.append([len(marks).to_bytes(4, "little") + bytes(4) + marks])
    return [b"".join(parts) for parts in made]


def orders() -> list[bytes]:
    """Frames as a host writes them: replies and variables."""
    made = []
    for value in list(values())[:-1]:
        with contextlib.suppress(kernel.CodecError):
            encoded, blobs = kernel.encode(value)
            made.append(kernel.pack("ret", {"id": 1, "v": encoded}, blobs))
            made.append(kernel.pack("set", {"v": {"$": "dict", "k": ["a"], "v": [encoded]}}, blobs))
    return [b"".join(parts) for parts in made]


# Changes


def spoil_bytes(chance: random.Random, frame: bytes) -> Bytes:
    """Changes, removes, inserts or doubles bytes anywhere, the header included."""
    changed = bytearray(frame)
    for _ in range(chance.randint(1, 5)):
        place = chance.randrange(len(changed))
        match chance.randrange(5):
            case 0:
                changed[place] = chance.randrange(256)
            case 1:
                changed[place] ^= 1 << chance.randrange(8)
            case 2 if len(changed) > 16:
                del changed[place : place + chance.randint(1, 8)]
            case 3:
                changed[place:place] = chance.randbytes(chance.randint(1, 8))
            case _:
                changed[place:place] = changed[place : place + chance.randint(1, 16)]
    return changed


ODD: list[object] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**400, 1e308, "", "x", "$", "\x00", "\ud800"),
    *([], {}, [[]], {"$": "ndarray"}, {"$": "none"}, {"$": 5}, "<f8", "|O8", [0], [2**40], [-1]),
    *("RGB", "P", 1 << 40, [1, 2, 3], {"v": 1}, "not hex", "inf", "2026-99-99", ["a", "a"]),
]


def opened(frame: bytes) -> tuple[dict[str, Any], bytes]:
    """Returns the fields of a frame, and its blobs."""
    size = int.from_bytes(frame[:4], "little")
    return json.loads(frame[8 : 8 + size].decode("utf-8", "surrogatepass")), frame[8 + size :]


def closed(fields: dict[str, Any], blobs: bytes) -> bytes:
    text = json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return len(text).to_bytes(4, "little") + len(blobs).to_bytes(4, "little") + text + blobs


def somewhere(chance: random.Random, fields: dict[str, Any]) -> tuple[Any, Any]:
    """Returns a list or dict within a frame, and the place of an item in it."""
    holder: Any = fields
    key: Any = chance.choice(list(fields))
    while isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.8:
        holder = holder[key]
        key = (
            chance.choice(list(holder))
            if isinstance(holder, dict)
            else chance.randrange(len(holder))
        )
    return holder, key


def spoil_fields(chance: random.Random, frame: bytes) -> Bytes:
    """Changes what the text of the frame says, so that it still is one."""
    fields, blobs = opened(frame)
    for _ in range(chance.randint(1, 3)):
        holder, key = somewhere(chance, fields)
        match chance.randrange(6):
            case 0 if isinstance(holder, dict) and len(holder) > 1:
                del holder[key]
            case 1 if isinstance(holder, dict):
                names = ["$", "v", "i", "k", "n", "s", "t", "rows", "id", "codes", "names"]
                holder[chance.choice(names)] = holder[key]
            case 2:
                holder[key] = [holder[key]]
            case 3 if isinstance(holder, list) and len(holder) < 50:
                holder *= chance.randint(2, 20)
            case 4:
                other, place = somewhere(chance, fields)
                holder[key] = copy.deepcopy(other[place])
            case _:
                holder[key] = copy.deepcopy(chance.choice(ODD))
        if not fields:
            break
    if chance.random() < 0.1:
        blobs = blobs[: len(blobs) // 2]
    return closed(fields, blobs)


def spoiled(part: int, frames: list[bytes], count: int) -> Iterator[Bytes]:
    chance = random.Random(part)
    for number in range(count):
        spoil = spoil_bytes if number % 2 else spoil_fields
        yield spoil(chance, chance.choice(frames))


# What they do


TOOLS = [ToolSpec("add", "(a, b)", ""), ToolSpec("final_answer", "(a)", "", final=True)]
READY = b"".join(kernel.pack("ready", {"layers": {}, "versions": {}}))


def host_reads(frame: Bytes) -> None:
    made = Session()
    made.feed(READY)
    made.tools(TOOLS)
    made.execute(1, "1")
    with contextlib.suppress(SandboxViolation, SandboxUnavailable):
        made.feed(bytes(frame))


def starting_host_reads(frame: Bytes) -> None:
    with contextlib.suppress(SandboxViolation, SandboxUnavailable):
        Session().feed(bytes(frame))


def kernel_reads(frame: Bytes) -> None:
    with contextlib.suppress(kernel.FrameError, kernel.CodecError):
        for message in kernel.FrameReader().feed(bytes(frame)):
            message.value("v")


def test_honest_frames_are_read() -> None:
    for value in [*values(), *large_values(1_000)]:
        encoded, blobs = encoded_value(value)
        made = Session()
        made.feed(READY)
        made.execute(1, "1")
        (event,) = made.feed(b"".join(kernel.pack("done", {**DONE, "v": encoded}, blobs)))
        assert isinstance(event, Finished)


@pytest.mark.filterwarnings("ignore::Warning")  # of numpy and pandas, about odd but honest values
@pytest.mark.parametrize("part", range(PARTS))
def test_the_host_gets_ordinary_errors(part: int) -> None:
    check(part, genuine(), host_reads, CHANGES // PARTS)


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize(("part", "reads"), [(100, starting_host_reads), (101, kernel_reads)])
def test_so_do_a_host_that_waits_and_a_kernel(part: int, reads: Callable[[Bytes], None]) -> None:
    frames = orders() if reads is kernel_reads else genuine()
    check(part, frames, reads, CHANGES // PARTS)


def check(part: int, frames: list[bytes], reads: Callable[[Bytes], None], count: int) -> None:
    for frame in frames:
        reads(frame)
    for changed in spoiled(part, frames, 500):  # what is loaded and cached on the way is no leak
        reads(changed)
    gc.collect()
    before, size = (children(os.getpid()), descriptors()), resident()
    for changed in spoiled(part, frames, count):
        assert_bounded_time(reads, changed)
    gc.collect()
    assert (children(os.getpid()), descriptors()) == before
    assert resident() - size < MOST_GROWTH


def assert_bounded_time(reads: Callable[[Bytes], None], frame: Bytes) -> None:
    start = time.thread_time()
    reads(frame)
    spent = time.thread_time() - start
    assert spent < MOST_SECONDS + MOST_SECONDS_PER_BYTE * len(frame), bytes(frame[:2_000])


@pytest.fixture(scope="module")
def large_frames() -> list[bytes]:
    return large(5_000)


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("part", range(200, 200 + PARTS))
def test_large_frames_cost_in_proportion(part: int, large_frames: list[bytes]) -> None:
    chance = random.Random(part)
    # Each comes as it is in one of the parts.
    for frame in large_frames[part - 200 :: PARTS]:
        assert_bounded_cost(frame)
    for _ in range(CHANGES // ONE_LARGE_IN // PARTS):
        frame = chance.choice(large_frames)
        with contextlib.suppress(ValueError):  # what is no JSON
            assert_bounded_cost(spoil_fields(chance, frame))


def assert_bounded_cost(frame: Bytes) -> None:
    assert_bounded_time(host_reads, frame)
    tracemalloc.start()
    try:
        host_reads(frame)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < MOST_BYTES + MOST_BYTES_PER_BYTE * len(frame), bytes(frame[:2_000])
