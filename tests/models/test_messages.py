"""Our messages as those of chat completions."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ImagePart,
    MessageRole,
    TextPart,
)
from sanderling.models._messages import to_chat_messages

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
USER, ASSISTANT, SYSTEM = MessageRole.USER, MessageRole.ASSISTANT, MessageRole.SYSTEM
CALL, RESPONSE = MessageRole.TOOL_CALL, MessageRole.TOOL_RESPONSE


def test_roles_are_mapped_and_neighbours_joined() -> None:
    messages: list[Any] = [
        ChatMessage(SYSTEM, "s"),
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        ChatMessage(USER, "two"),
        ChatMessage(ASSISTANT, "a"),
        ChatMessage(CALL, "c"),
        ChatMessage(RESPONSE, "r"),
    ]
    assert to_chat_messages(messages) == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "one\ntwo"},
        {"role": "assistant", "content": "a\nc"},
        {"role": "user", "content": "r"},
    ]


def test_custom_conversions_replace_the_usual_ones() -> None:
    messages = [ChatMessage(SYSTEM, "s"), ChatMessage(RESPONSE, "r")]
    assert to_chat_messages(messages, {SYSTEM: "developer"}) == [
        {"role": "developer", "content": "s"},
        {"role": "tool-response", "content": "r"},
    ]
    assert to_chat_messages(messages, {"system": "user", "tool-response": USER}) == [
        {"role": "user", "content": "s\nr"}
    ]


def test_what_cannot_be_encoded_is_written_as_escapes() -> None:
    function = ChatMessageToolCallFunction(name="f", arguments={"name": "\udc80", "é": "\ud83d"})
    messages = [
        ChatMessage(USER, "a\udc80"),
        ChatMessage(ASSISTANT, [TextPart("é\ud83d")]),
        ChatMessage(ASSISTANT, tool_calls=[ChatMessageToolCall(id="1", function=function)]),
    ]
    entries = to_chat_messages(messages)
    json.dumps(entries, ensure_ascii=False).encode()
    assert [entry["content"] for entry in entries] == ["a\\udc80", "é\\ud83d", None]
    (call,) = entries[2]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"name": "\udc80", "é": "\ud83d"}


def test_images_are_kept_in_their_place() -> None:
    web = "https://example.com/a.png"
    messages = [
        ChatMessage(USER, "before"),
        ChatMessage(USER, [TextPart("look"), ImagePart(PNG), ImagePart(web)]),
        ChatMessage(RESPONSE, "after"),
    ]
    (entry,) = to_chat_messages(messages)
    text, data, address, after = entry["content"]
    assert text == {"type": "text", "text": "before\nlook"}
    assert data["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert address == {"type": "image_url", "image_url": {"url": web}}
    assert after == {"type": "text", "text": "after"}


def test_an_image_is_never_dropped_silently() -> None:
    with pytest.raises(ValueError, match="text only"):
        to_chat_messages([ChatMessage(USER, [ImagePart(PNG)])], flatten_as_text=True)


def test_native_tool_calls_go_native() -> None:
    calls = [ChatMessageToolCall(ChatMessageToolCallFunction({"city": "Zürich"}, "w"), "1")]
    messages = [
        ChatMessage(ASSISTANT, None, calls),
        ChatMessage(RESPONSE, "sunny", tool_call_id="1"),
        ChatMessage(RESPONSE, "late", tool_call_id="2"),
        ChatMessage(USER, "thanks"),
    ]
    function = {"name": "w", "arguments": '{"city": "Zürich"}'}
    assert to_chat_messages(messages) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "sunny", "tool_call_id": "1"},
        {"role": "tool", "content": "late", "tool_call_id": "2"},
        {"role": "user", "content": "thanks"},
    ]


def test_roles_that_were_chosen_hold_for_native_calls() -> None:
    call = {"id": "1", "function": {"name": "weather", "arguments": {"city": "Rome"}}}
    native = [
        ChatMessage(USER, "go"),
        ChatMessage(ASSISTANT, None, [call]),  # type: ignore[list-item]  # dicts are accepted
        ChatMessage(RESPONSE, "sunny", tool_call_id="1"),
    ]
    chosen = {"tool-call": "assistant", "tool-response": "user"}
    _, assistant, result = to_chat_messages(native, chosen)
    assert assistant["role"] == "assistant"
    assert assistant["content"].startswith("Calling tools:")
    assert "tool_calls" not in assistant
    assert result == {"role": "user", "content": "Call id: 1\nObservation:\nsunny"}
    *_, result = to_chat_messages(native, {"tool-response": "tool"})
    assert result == {"role": "tool", "content": "sunny", "tool_call_id": "1"}
    *_, result = to_chat_messages(native, {"system": "user"})
    assert result["role"] == "tool"


def test_the_messages_themselves_stay_as_they_are() -> None:
    parts = [TextPart("a"), TextPart("b")]
    message = ChatMessage(USER, list(parts))
    to_chat_messages([message, message])
    assert message.content == parts


def test_a_long_history_is_cheap() -> None:
    history = [
        ChatMessage((ASSISTANT, RESPONSE)[n % 2], [TextPart(f"step {n} " * 50)])
        for n in range(2_000)
    ]
    start = time.perf_counter()
    to_chat_messages(history)
    assert time.perf_counter() - start < 1
