"""Stop sequences without the provider's help."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.messages import ChatMessage, ChatMessageStreamDelta, MessageRole
from sanderling.models import Model
from sanderling.models._stop import StopCutter, cut_at_stop, cut_stream

texts = st.text(alphabet="ab<>", max_size=20)


@given(pieces=st.lists(texts, max_size=8), stops=st.lists(texts.filter(bool), max_size=3))
def test_pieces_are_cut_like_the_whole(pieces: list[str], stops: list[str]) -> None:
    whole = "".join(pieces)
    expected = whole[: min([place for s in stops if (place := whole.find(s)) != -1] + [len(whole)])]
    cutter = StopCutter(stops)
    assert "".join(map(cutter.feed, pieces)) + cutter.rest() == expected
    message = ChatMessage(MessageRole.ASSISTANT, whole)
    assert cut_at_stop(message, stops).content == expected
    stream = cut_stream(map(ChatMessageStreamDelta, pieces), stops)
    assert "".join(delta.content or "" for delta in stream) == expected


def test_no_more_is_held_back_than_needed() -> None:
    cutter = StopCutter(["</code>"])
    assert [cutter.feed(piece) for piece in ("x < y", " a<", "b", "</co", "de>z", "w")] == [
        "x < y",
        " a",
        "<b",
        "",
        "",
        "",
    ]


@pytest.mark.parametrize("name", ["o3", "o3-2025-04-16", "openai/o4-mini", "gpt-5-mini", "grok-4"])
def test_models_that_refuse_stop(name: str) -> None:
    assert not Model(model_id=name).supports_stop_parameter


@pytest.mark.parametrize("name", ["o3-mini", "gpt-4.1", "gpt-50s", "llama-o3x", None, "grok-2"])
def test_models_that_take_stop(name: str | None) -> None:
    assert Model(model_id=name).supports_stop_parameter
