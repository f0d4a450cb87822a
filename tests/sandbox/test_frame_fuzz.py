"""Frames that were changed by chance, 220,000 of them: ordinary errors, and nothing left behind.

The seeds are fixed, so a failure comes again. Parts keep each test short.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import datetime
import decimal
import enum
import gc
import json
import os
import pathlib
import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from sanderling.errors import SandboxUnavailable, SandboxViolation
from sanderling.sandbox import ToolSpec, kernel
from sanderling.sandbox._session import Session
from support.processes import children, descriptors, resident

PARTS, EACH = 20, 11_000
MOST_GROWTH = 64 << 20  # bytes; a leak of a few hundred bytes a frame would be as much

Bytes: TypeAlias = bytes | bytearray


class Colour(enum.Enum):
    RED = 1


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
    yield object()
    yield kernel.SandboxValue("T", "<t>", "result_1")


def genuine() -> list[bytes]:
    """Frames as a kernel writes them."""
    made = []
    for value in values():
        encoded, blobs = kernel.encode(value, stay=kernel.stand_in)
        done = {"text": "t", "error": None, "threads": 0, "interrupted": False}
        made.append(kernel.pack("done", {"id": 1, "v": encoded, **done}, blobs))
        call = {"id": 1, "step": 1, "name": "add", "args": [encoded], "kwargs": {"b": encoded}}
        made.append(kernel.pack("call", {**call, "alone": True}, blobs))
    held = [{"$": "host", "id": "ff"}, {"$": "code", "n": 1}]
    made.append(kernel.pack("call", {**call, "args": held, "on": "ff", "alone": True}))
    fault = {"type": "E", "message": "m", "traceback": "t"}
    made.append(kernel.pack("done", {"id": 1, "v": None, **done, "error": fault}))
    made.append(kernel.pack("done", {"id": 1, "v": None, **done, "imported": ["numpy"]}))
    made.append(kernel.pack("out", {"id": 1, "text": "hello\n"}))
    made.append(kernel.pack("ready", {"layers": {"a": 1}, "versions": {"python": "3"}}))
    made.append(kernel.pack("failed", {"reason": "none"}))
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


def spoil_fields(chance: random.Random, frame: bytes) -> Bytes:
    """Changes what the text of the frame says, so that it still is one."""
    size = int.from_bytes(frame[:4], "little")
    fields = json.loads(frame[8 : 8 + size].decode("utf-8", "surrogatepass"))
    blobs = frame[8 + size :]
    for _ in range(chance.randint(1, 3)):
        holder: Any = fields
        key: Any = chance.choice(list(fields))
        while isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.8:
            holder = holder[key]
            key = (
                chance.choice(list(holder))
                if isinstance(holder, dict)
                else chance.randrange(len(holder))
            )
        match chance.randrange(4):
            case 0 if isinstance(holder, dict) and len(holder) > 1:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[chance.choice(["$", "v", "i", "k", "n", "s", "t", "rows", "id"])] = holder[
                    key
                ]
            case 2:
                holder[key] = [holder[key]]
            case _:
                holder[key] = copy.deepcopy(chance.choice(ODD))
        if not fields:
            break
    text = json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if chance.random() < 0.1:
        blobs = blobs[: len(blobs) // 2]
    return len(text).to_bytes(4, "little") + len(blobs).to_bytes(4, "little") + text + blobs


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


@pytest.mark.filterwarnings("ignore::Warning")  # of numpy and pandas, about odd but honest values
@pytest.mark.parametrize("part", range(PARTS))
def test_the_host_gets_ordinary_errors(part: int) -> None:
    frames = genuine()
    check(part, frames, host_reads, EACH)


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize(("part", "reads"), [(100, starting_host_reads), (101, kernel_reads)])
def test_so_do_a_host_that_waits_and_a_kernel(part: int, reads: Callable[[Bytes], None]) -> None:
    frames = orders() if reads is kernel_reads else genuine()
    check(part, frames, reads, EACH)


def check(part: int, frames: list[bytes], reads: Callable[[Bytes], None], count: int) -> None:
    for frame in frames:
        reads(frame)
    for changed in spoiled(part, frames, 500):  # what is loaded and cached on the way is no leak
        reads(changed)
    gc.collect()
    before, size = (children(os.getpid()), descriptors()), resident()
    for changed in spoiled(part, frames, count):
        reads(changed)
    gc.collect()
    assert (children(os.getpid()), descriptors()) == before
    assert resident() - size < MOST_GROWTH
