"""Thoughts in the text of a reply, however it is cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.messages import ChatMessageStreamDelta, agglomerate_stream_deltas
from sanderling.models._thinking import opens_thinking, split_thinking
from support.growth import assert_linear


def split(pieces: Sequence[str], opened: bool = False) -> tuple[str, str | None]:
    deltas = [ChatMessageStreamDelta(piece) for piece in pieces]
    deltas.append(ChatMessageStreamDelta(finish_reason="stop"))
    reply = agglomerate_stream_deltas(split_thinking(deltas, opened))
    assert reply.finish_reason == "stop"
    return reply.text, reply.reasoning


CASES = [
    ("Hello <think>no</think>", False, ("Hello <think>no</think>", None)),
    ("<think>a\nb</think>\n\nHello \n", False, ("Hello \n", "a\nb")),
    ("\n<think>\n\n</think>\n\nHi", False, ("Hi", "\n\n")),
    ("a < b</think>Hi </think>", True, ("Hi </think>", "a < b")),
    ("never an end </thin", True, ("", "never an end </thin")),
    ("<thin", False, ("<thin", None)),
    ("  <b>", False, ("  <b>", None)),
    ("", False, ("", None)),
]


@pytest.mark.parametrize(("text", "opened", "told"), CASES)
def test_thoughts_are_kept_apart(text: str, opened: bool, told: tuple[str, str | None]) -> None:
    assert split([text], opened) == told
    assert split(list(text), opened) == told


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "th", "ink>", "</", "a", " ", "\n"])),
    st.booleans(),
)
def test_the_pieces_do_not_matter(pieces: list[str], opened: bool) -> None:
    assert split(pieces, opened) == split(["".join(pieces)], opened)


def test_a_prompt_may_open_the_thinking() -> None:
    assert opens_thinking("<|im_start|>assistant\n<think>\n")
    assert not opens_thinking("<|im_start|>assistant\n<think>\n\n</think>\n\n")


@pytest.mark.parametrize(("before", "opened"), [("", False), ("<think>", False), ("", True)])
@pytest.mark.parametrize("piece", [" ", "x", "<", "</think"])
def test_reading_takes_time_in_proportion_to_the_reply(
    piece: str, before: str, opened: bool
) -> None:
    assert_linear(lambda size: split([before, *[piece] * size], opened), 30_000)
