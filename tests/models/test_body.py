"""What a server sends is counted before a package makes objects of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.errors import AgentGenerationError
from sanderling.models._body import BodyBounds
from support.growth import assert_linear

MIB = 2**20


def refused(chunks: Iterator[bytes] | list[bytes], streamed: bool) -> str | None:
    """Returns the bound that the chunks pass, if there is one."""
    bounds = BodyBounds(streamed)
    try:
        for chunk in chunks:
            bounds.add(chunk)
    except AgentGenerationError as error:
        return "to be asked again" if error.retryable else str(error).split(": ")[1].split(".")[0]
    return None


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"x" * 16 * MIB, None),
        (b"x" * (16 * MIB + 1), "16,777,216 bytes"),
        (b"{}" * 50_000, None),
        (b"{}" * 50_001, "50,000 objects"),
        (b"[]" * 50_001, "50,000 objects"),
        (b"1," * 300_001, "300,000 items"),
        (b"\n" * 2_000_000, None),
    ],
)
def test_a_whole_answer_has_bounds(body: bytes, told: str | None) -> None:
    assert refused([body], streamed=False) == told
    assert refused([body[at : at + MIB] for at in range(0, len(body), MIB)], False) == told


@pytest.mark.parametrize(
    ("event", "count", "told"),
    [
        (b"data: {}\n\n", 100_000, None),
        (b"data: {}\r\n\r\n", 100_000, None),
        (b"data: " + b"x" * MIB + b"\n\n", 100, None),
        (b"data: " + b"x" * 17 * MIB + b"\n\n", 1, "16,777,216 bytes"),
        (b"data: " + b"{}" * 50_001 + b"\n\n", 1, "50,000 objects"),
        (b"data: x\n" * 2_000 + b"\n", 1, None),
        (b"data: x\n" * 2_002 + b"\n", 1, "2,000 lines"),
        (b"data: x\n", 2_001, "2,000 lines"),
        (b"data: " + b"x" * MIB + b"\n\n", 257, "268,435,456 bytes"),
        (b"data: " + b"{}" * 10_000 + b"\n\n", 401, "4,000,000 objects"),
        (b"\n\n", 2_000_001, "4,000,000 lines"),
    ],
)
def test_a_stream_has_bounds(event: bytes, count: int, told: str | None) -> None:
    many = max(1, 100_000 // len(event))
    chunks = (event * min(many, count - at) for at in range(0, count, many))
    assert refused(chunks, streamed=True) == told


@given(st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"]), st.lists(st.integers(1, 40), min_size=1))
def test_where_a_stream_is_cut_makes_no_difference(end: bytes, sizes: list[int]) -> None:
    line = end[: len(end) // 2]
    events = (b"data: x" + line) * 900 + line
    body, chunks, at = events * 3, [], 0
    for size in sizes * (len(body) // sum(sizes) + 1):
        chunks.append(body[at : at + size])
        at += size
    assert refused(chunks, streamed=True) is None
    assert refused([*chunks, (b"data: x" + line) * 2_001], streamed=True) == "2,000 lines"


@pytest.mark.parametrize("chunk", [b"\n", b"x", b"data: {}\n\n", b"\n\n" * 100, b"x" * 1_000])
def test_counting_takes_time_in_proportion(chunk: bytes) -> None:
    many = max(1, 2_000 // len(chunk))
    assert_linear(lambda size: refused((chunk for _ in range(size)), streamed=True), many)
