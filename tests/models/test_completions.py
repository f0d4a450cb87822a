"""Chat completions are data from outside: whatever they hold, there is a reply or one error."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.errors import AgentGenerationError
from sanderling.messages import ChatMessage, ChatMessageStreamDelta, agglomerate_stream_deltas
from sanderling.models._completions import StreamReader, read_completion
from support.growth import assert_linear
from support.openai_server import chunk, usage

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "type", "name", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGE = {"role": "assistant", "content": "hi", "tool_calls": [CALL], "reasoning": "hm"}
COMPLETION: dict[str, Any] = {
    "choices": [{"message": MESSAGE, "finish_reason": "stop"}],
    "usage": usage(),
}
CHUNKS = [
    chunk({"content": "hi", "reasoning_content": "hm"}),
    chunk({"tool_calls": [{**CALL, "index": 0}]}),
    {**chunk({}, "stop"), "usage": usage()},
]


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the way to everything within a value."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [way, *(found for key, item in items for found in places(item, (*way, key)))]


def changed(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    if not way:
        return new
    value = copy.deepcopy(value)
    inner = value
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = new
    return value


@given(way=st.sampled_from(places(COMPLETION)), new=VALUES)
def test_any_change_of_a_completion(way: tuple[Any, ...], new: Any) -> None:
    try:
        reply = read_completion(changed(COMPLETION, way, new))
    except AgentGenerationError:
        return
    check(reply)


@given(way=st.sampled_from(places(CHUNKS)[1:]), new=VALUES)
def test_any_change_of_a_chunk(way: tuple[Any, ...], new: Any) -> None:
    reader = StreamReader()
    try:
        deltas = [reader.feed(each) for each in changed(CHUNKS, way, new)]
        deltas.append(reader.end())
        reply = agglomerate_stream_deltas([delta for delta in deltas if delta is not None])
    except AgentGenerationError:
        return
    check(reply)


def check(reply: ChatMessage) -> None:
    assert reply.content is None or isinstance(reply.content, str)
    assert reply.reasoning is None or isinstance(reply.reasoning, str)
    assert reply.finish_reason is None or isinstance(reply.finish_reason, str)
    for call in reply.tool_calls or ():
        assert isinstance(call.function.name, str)
        assert isinstance(call.id, str)
    if reply.token_usage is not None:
        assert reply.token_usage.total_tokens >= 0


def test_thinking_within_thinking_is_not_followed() -> None:
    nested: object = "deep"
    for _ in range(100_000):
        nested = [{"type": "thinking", "thinking": nested}]
    message = {"role": "assistant", "content": [{"type": "text", "text": "Hi"}, *nested]}  # type: ignore[misc]
    reply = read_completion({"choices": [{"message": message}]})
    assert (reply.text, reply.reasoning) == ("Hi", None)
    chunk = {"choices": [{"delta": message, "finish_reason": "stop"}]}
    assert StreamReader().feed(chunk) == ChatMessageStreamDelta("Hi", finish_reason="stop")


def tool_calls(count: int, index: int | None) -> list[dict[str, object]]:
    place = {} if index is None else {"index": index}
    return [{**place, "id": "a", "function": {"name": "f", "arguments": "{}"}}] * count


@pytest.mark.parametrize("index", [0, None])
def test_calls_take_time_in_proportion(index: int | None) -> None:
    def whole(count: int) -> None:
        read_completion({"choices": [{"message": {"tool_calls": tool_calls(count, index)}}]})

    def streamed(count: int) -> None:
        reader = StreamReader()
        for call in tool_calls(count, index):
            reader.feed({"choices": [{"delta": {"tool_calls": [call]}}]})

    assert_linear(whole, 2_000)
    assert_linear(streamed, 2_000)
