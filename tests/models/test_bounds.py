"""No reply is longer than any model writes."""

from __future__ import annotations

from typing import Any

import pytest

from sanderling.errors import AgentGenerationError
from sanderling.messages import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
)
from sanderling.models._bounds import (
    MAX_BLOCKS,
    MAX_PIECES,
    MAX_TEXT,
    ReplyBounds,
    check_blocks,
)
from sanderling.models._tool_calls import MAX_CALLS

LONG = "x" * (MAX_TEXT // 2)


def call(text: object = "") -> ChatMessageToolCall:
    return ChatMessageToolCall(ChatMessageToolCallFunction(text, ""), "")


def piece(index: int, text: str = "") -> ChatMessageToolCallStreamDelta:
    return ChatMessageToolCallStreamDelta(index, function=ChatMessageToolCallFunction(text, ""))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"content": LONG, "reasoning": LONG}, None),
        ({"content": LONG, "reasoning": f"{LONG}x"}, "4,194,304 characters"),
        ({"content": LONG, "tool_calls": [call(LONG), call({"a": 1})]}, None),
        ({"content": LONG, "tool_calls": [call(LONG), call("x")]}, "4,194,304 characters"),
        ({"tool_calls": [call()] * MAX_CALLS}, None),
        ({"tool_calls": [call()] * (MAX_CALLS + 1)}, "1,000 tool calls"),
    ],
)
def test_a_whole_reply_has_bounds(fields: dict[str, Any], told: str | None) -> None:
    message = ChatMessage(MessageRole.ASSISTANT, **fields)
    if told is None:
        assert ReplyBounds().whole(message) is message
        return
    with pytest.raises(AgentGenerationError, match=f"more than {told}") as caught:
        ReplyBounds().whole(message)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        ([ChatMessageStreamDelta(LONG), ChatMessageStreamDelta(reasoning=LONG)], None),
        ([ChatMessageStreamDelta(LONG)] * 3, "4,194,304 characters"),
        ([ChatMessageStreamDelta(tool_calls=[piece(0, LONG)])] * 3, "4,194,304 characters"),
        ([ChatMessageStreamDelta(tool_calls=[piece(0), piece(1)])] * MAX_CALLS, None),
        (
            [ChatMessageStreamDelta(tool_calls=[piece(i)]) for i in range(MAX_CALLS + 1)],
            "1,000 tool calls",
        ),
        ([ChatMessageStreamDelta("x")] * (MAX_PIECES + 1), "500,000 pieces"),
    ],
)
def test_a_streamed_reply_has_bounds(
    pieces: list[ChatMessageStreamDelta], told: str | None
) -> None:
    bounds = ReplyBounds()
    if told is None:
        assert [bounds.add(each) for each in pieces] == pieces
        return
    with pytest.raises(AgentGenerationError, match=f"more than {told}"):
        [bounds.add(each) for each in pieces]


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_the_arguments_of_a_call_have_levels() -> None:
    shallow = ChatMessage(MessageRole.ASSISTANT, None, [call(nested(99))])
    assert ReplyBounds().whole(shallow) is shallow
    for depth in (100, 100_000):
        deep = ChatMessage(MessageRole.ASSISTANT, None, [call(nested(depth))])
        with pytest.raises(AgentGenerationError, match="more than 100 levels"):
            ReplyBounds().whole(deep)


def test_the_blocks_of_a_reply_have_bounds() -> None:
    check_blocks(MAX_BLOCKS)
    with pytest.raises(AgentGenerationError, match="10,000 blocks"):
        check_blocks(MAX_BLOCKS + 1)
