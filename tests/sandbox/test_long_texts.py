"""Data that takes long to write is named; all other is written."""

from __future__ import annotations

import dataclasses
import datetime
import time
from typing import Any

import numpy
import pandas  # type: ignore[import-untyped]  # it has no types
import pydantic
import pytest

from sanderling.sandbox import Record, text_of


@dataclasses.dataclass
class Box:
    inside: object


class Model(pydantic.BaseModel):
    inside: Any


ARRAY = numpy.zeros((6,) * 9, dtype="i1")
FIELDS = numpy.zeros(500, dtype=[(f"f{n}", "f8") for n in range(4_000)])


@pytest.mark.parametrize(
    "value",
    [
        ARRAY,
        FIELDS,
        FIELDS.reshape(5, 100)[0],
        [ARRAY],
        {"a": (ARRAY,)},
        Record("R", {"inside": ARRAY}),
        Box([ARRAY]),
        Model(inside=ARRAY),
        numpy.array([ARRAY, None], dtype=object)[:1],
        pandas.DataFrame({"a": [1, ARRAY]}),
        pandas.Series([ARRAY], index=["a"], name="x"),
        [pandas.DataFrame({"a": [1]})] * 10_000,
        [numpy.arange(2)] * 200_000,
        [0] * 3_000_000,
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("write", [str, repr])
def test_what_takes_long_to_write_is_named(value: object, write: Any) -> None:
    start = time.thread_time()
    text = text_of(value, write)
    assert time.thread_time() - start < 5
    assert text == f"<{type(value).__name__} that is too large to be shown>"


LOOP: list[object] = [1]
LOOP.append(LOOP)


@pytest.mark.parametrize(
    "value",
    [
        5,
        "text" * 100_000,
        LOOP,
        list(range(300_000)),
        {"a": [{1, 2}, (3,), frozenset({4})]},
        Record("R", {"x": 1}),
        Box(1),
        Box,
        Model(inside=2),
        numpy.arange(10_000_000),
        numpy.zeros((2, 3, 4)),
        numpy.float32(1),
        FIELDS[:2],
        FIELDS[0],
        numpy.array([None, "a", [1]], dtype=object),
        pandas.DataFrame(numpy.zeros((100_000, 100))),
        pandas.DataFrame(),
        pandas.Series(["a"] * 200, dtype="category"),
        pandas.MultiIndex.from_product([range(300), ["a", "b"]]),
        pandas.to_datetime(["2026-01-01"]),
        [datetime.date(2026, 1, 1)] * 1_000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_all_else_is_written(value: object) -> None:
    assert text_of(value) == str(value)
    assert text_of(value, repr) == repr(value)
