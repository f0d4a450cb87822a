"""Calls of one reply are told apart, however many they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sanderling.messages import ChatMessageToolCall, ChatMessageToolCallFunction
from sanderling.models._streamed_calls import StreamedCalls, with_distinct_ids
from support.growth import assert_linear


def calls(*ids: str) -> list[ChatMessageToolCall]:
    return [ChatMessageToolCall(ChatMessageToolCallFunction({}, "f"), each) for each in ids]


def test_calls_of_one_id_are_numbered() -> None:
    apart = with_distinct_ids(calls("a", "a", "a_2", "", "a", ""))
    assert [call.id for call in apart] == ["a", "a_2", "a_2_2", "", "a_3", ""]


@given(st.lists(st.sampled_from(["a", "a_2", "a_2_2", "a_3", "b", ""])))
def test_no_two_calls_have_one_id(ids: list[str]) -> None:
    apart = [call.id for call in with_distinct_ids(calls(*ids))]
    named = [each for each in apart if each]
    assert len(set(named)) == len(named) == len(list(filter(None, ids)))
    streamed = StreamedCalls()
    begun = [streamed.begin(place, each, "f") for place, each in enumerate(ids)]
    assert [(one.tool_calls or [])[0].id or "" for one in begun] == apart
    assert bool(streamed) == bool(ids)


def test_many_calls_of_one_id_take_time_in_proportion() -> None:
    assert_linear(lambda size: with_distinct_ids(calls(*["a"] * size)), 4_000)
