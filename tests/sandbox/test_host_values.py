"""What comes out of a sandbox as an instance of a class of the host, and what reading it costs."""

from __future__ import annotations

import dataclasses
import decimal
import enum
import sys
import time
import typing
from typing import Any

import pydantic
import pytest

from sanderling.sandbox import Record, kernel
from sanderling.sandbox._host_values import HostValues, Incoming

QUICK = 6.0  # seconds of the processor


class Colour(enum.Enum):
    RED = 1
    EXACT = decimal.Decimal(2)


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


@dataclasses.dataclass
class Item:
    x: int
    y: typing.Any = None


@dataclasses.dataclass
class Copying:
    items: Any

    def __post_init__(self) -> None:
        self.items = type(self.items)(self.items)


class Order(pydantic.BaseModel):
    number: int
    tags: set[int] = set()


def reader(kind: type) -> tuple[Any, int]:
    """Returns what reads a record of a class, as the host does, and the number of the class."""
    values = HostValues()
    incoming = Incoming(values)
    return incoming, values.key_of(kind)


def read(kind: type, *fields: tuple[list[str], list[object]]) -> list[Any]:
    incoming, key = reader(kind)
    records = [
        {"$": "record", "type": "T", "k": names, "v": items, "class": key}
        for names, items in fields
    ]
    (frame,) = kernel.FrameReader().feed(b"".join(kernel.pack("x", {"v": records})))
    made: list[Any] = frame.value("v", incoming)
    return made


def member(name: object, value: object) -> tuple[list[str], list[object]]:
    return ["name", "value"], [name, value]


def test_annotations_are_resolved_once_for_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    resolve = typing.get_type_hints

    def get_type_hints(kind: Any) -> dict[str, Any]:
        asked.append(kind)
        return resolve(kind)

    monkeypatch.setattr(typing, "get_type_hints", get_type_hints)
    items: list[list[object]] = [[number, None] for number in range(100)]
    made = read(Item, *[(["x", "y"], item) for item in items])
    assert made == [Item(number) for number in range(100)]
    assert asked == [Item]


HUGE = {"$": "int", "v": hex((1 << 2_000_000) + 1)}


@pytest.mark.parametrize("name", [HUGE, [1] * 1_000_000, {"a": HUGE}, None, "GREEN"], ids=type)
def test_the_name_of_a_member_is_a_text(name: object) -> None:
    start = time.thread_time()
    (made,) = read(Colour, member(name, 1))
    assert time.thread_time() - start < QUICK
    assert isinstance(made, Record)


def test_the_value_of_a_member_is_compared_with_its_like_alone() -> None:
    start = time.thread_time()
    made = read(Colour, member("EXACT", HUGE), member("EXACT", {"$": "decimal", "v": "2"}))
    assert time.thread_time() - start < QUICK
    assert isinstance(made[0], Record)
    assert made[1] is Colour.EXACT


def test_flags_that_are_combined_come_back() -> None:
    made = read(Access, member("READ|WRITE", 3), member(None, 0), member("READ", 1))
    assert made == [Access.READ | Access.WRITE, Access(0), Access.READ]
    odd: list[object] = [8, -1, True, 1.0, "1", HUGE]
    assert all(isinstance(one, Record) for one in read(Access, *[member(None, v) for v in odd]))


def test_combinations_of_flags_that_python_keeps_are_bounded() -> None:
    names = {f"F{place}": 1 << place for place in range(14)}
    kind = enum.Flag("Many", names)  # type: ignore[misc]  # made by its call
    made = read(kind, *[member(None, value) for value in range(1 << 14)])
    assert 500 < sum(isinstance(one, kind) for one in made) < 2_000


def test_fields_are_compared_with_their_like_alone() -> None:
    pair: list[object] = [HUGE, {"$": "decimal", "v": "1"}]
    fields: list[object] = [pair, {"$": "tuple", "v": [pair]}, {"a": pair}, [[{"a": [1.5]}]]]
    start = time.thread_time()
    made = read(Copying, *[(["items"], [one]) for one in fields])
    assert time.thread_time() - start < QUICK
    assert all(isinstance(one, Copying) for one in made)
    assert isinstance(read(Item, (["x", "y"], [1, {"$": "set", "v": [1]}]))[0], Item)


def test_a_copy_of_a_field_that_is_dear_to_compare_is_a_record() -> None:
    numbers: list[object] = [{"$": "int", "v": hex(n * sys.hash_info.modulus)} for n in (1, 2)]
    (mixed,) = read(Copying, (["items"], [{"$": "set", "v": [*numbers, "text"]}]))
    (plain,) = read(Copying, (["items"], [{"$": "set", "v": numbers}]))
    assert isinstance(mixed, Record)
    assert isinstance(plain, Copying)


def test_a_model_converts_nothing() -> None:
    """Numbers in a list may have been chosen so that they collide in a set."""
    same: list[object] = [{"$": "int", "v": hex(n * sys.hash_info.modulus)} for n in range(50_000)]
    start = time.thread_time()
    (made,) = read(Order, (["number", "tags"], [1, same]))
    assert time.thread_time() - start < QUICK
    assert isinstance(made, Record)
    assert read(Order, (["number", "tags"], [1, {"$": "set", "v": [2]}])) == [
        Order(number=1, tags={2})
    ]
