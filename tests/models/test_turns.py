"""Conversations of the providers that have a form of their own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    JSONObject,
    JSONValue,
    MessageLike,
    MessageRole,
)
from sanderling.models._anthropic_messages import AnthropicWriter
from sanderling.models._turns import Conversation, conversation

WRITER = AnthropicWriter("anthropic", "m")
THOUGHT: JSONObject = {"type": "thinking", "thinking": "Hmm.", "signature": "s"}
CALL: JSONObject = {
    "type": "tool_use",
    "id": "call_1",
    "name": "weather",
    "input": {"city": "Bern"},
}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def talk(*messages: MessageLike, **kwargs: Any) -> Conversation:
    return conversation(messages, WRITER, **kwargs)


def said(*texts: str) -> list[JSONObject]:
    return [{"type": "text", "text": text} for text in texts]


def reply(text: str, *calls: ChatMessageToolCall, model: str = "m") -> ChatMessage:
    content: list[JSONValue] = [THOUGHT, *said("Let me look."), CALL]
    native: JSONObject = {"provider": "anthropic", "model": model, "content": content}
    return ChatMessage(MessageRole.ASSISTANT, text, list(calls) or None, native=native)


def call(name: str = "weather", arguments: Any = None, identity: str = "call_1") -> Any:
    return ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), identity)


def test_the_system_prompt_and_turns_that_alternate() -> None:
    made = talk(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One"},
        {"role": "tool-response", "content": "Two"},
        {"role": "user", "content": " "},
        {"role": "tool-call", "content": "Three"},
        {"role": "assistant", "content": "Four"},
        {"role": "system", "content": "Be long."},
    )
    assert made.system == said("Be brief.")
    assert [(turn.role, turn.blocks) for turn in made.turns] == [
        ("user", said("One", "Two")),
        ("assistant", said("Three", "Four")),
        ("user", said("Be long.")),
    ]


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": " "}]])
def test_a_conversation_that_says_nothing_is_refused(messages: list[MessageLike]) -> None:
    with pytest.raises(ValueError, match="nothing to answer"):
        talk(*messages)


def test_roles_are_converted_as_asked() -> None:
    roles = {MessageRole.SYSTEM: MessageRole.USER, MessageRole.TOOL_CALL: MessageRole.USER}
    messages = [{"role": "system", "content": "a"}, {"role": "tool-call", "content": "b"}]
    made = talk(*messages, role_conversions=roles)
    assert (made.system, [turn.blocks for turn in made.turns]) == ([], [said("a", "b")])


def test_a_prompt_alone_is_said_by_the_user() -> None:
    made = talk({"role": "system", "content": "Hello"})
    assert (made.system, made.turns[0].role, made.turns[0].blocks) == ([], "user", said("Hello"))


def test_native_calls_and_their_results() -> None:
    made = talk(
        ChatMessage(MessageRole.ASSISTANT, None, [call(arguments='{"city": "Bern"}')]),
        ChatMessage(MessageRole.TOOL_RESPONSE, "rain", tool_call_id="call_1"),
        ChatMessage(MessageRole.USER, "So?"),
    )
    assert made.turns[0].blocks == [CALL]
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": said("rain")}
    assert made.turns[1].blocks == [result, *said("So?")]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (None, {}),
        ("", {}),
        ('{"city": "Be', {"arguments": '{"city": "Be'}),
        ("[1]", {"arguments": [1]}),
        (7, {"arguments": 7}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_arguments_are_always_an_object(arguments: object, sent: object) -> None:
    made = talk(ChatMessage(MessageRole.ASSISTANT, None, [call(arguments=arguments)]))
    assert made.turns[0].blocks[0]["input"] == sent


def test_what_cannot_be_encoded_is_written_as_escapes() -> None:
    broken: JSONObject = {"c\udc80ty": ["B\ud83drn", {"é": 1}]}
    sent = {"c\\udc80ty": ["B\\ud83drn", {"é": 1}]}
    anew = talk(ChatMessage(MessageRole.ASSISTANT, None, [call("w\ud83d", broken)]))
    native: JSONObject = {
        "provider": "anthropic",
        "model": "m",
        "content": [THOUGHT, {**CALL, "input": broken}],
    }
    back = talk(ChatMessage(MessageRole.ASSISTANT, None, [call(arguments=broken)], native=native))
    assert (anew.turns[0].blocks[0]["name"], anew.turns[0].blocks[0]["input"]) == ("w\\ud83d", sent)
    assert back.turns[0].blocks == [THOUGHT, {**CALL, "input": sent}]


@given(st.text())
def test_a_call_and_its_result_keep_one_name_that_is_allowed(identity: str) -> None:
    made = talk(
        ChatMessage(MessageRole.ASSISTANT, None, [call(identity=identity)]),
        ChatMessage(MessageRole.TOOL_RESPONSE, "rain", tool_call_id=identity),
    )
    name = made.turns[0].blocks[0]["id"]
    assert made.turns[1].blocks[0]["tool_use_id"] == name
    assert 0 < len(name) <= 64
    assert all(char.isascii() and (char.isalnum() or char in "_-") for char in name)


def test_a_reply_goes_back_as_it_was() -> None:
    blocks = talk(reply("Let me look. ", call(identity="call_1_"))).turns[0].blocks
    assert blocks == [THOUGHT, *said("Let me look."), {**CALL, "id": "call_1_"}]


def test_the_history_counts_for_text_and_calls() -> None:
    assert talk(reply("I look.")).turns[0].blocks == [THOUGHT, *said("I look.")]
    blocks = talk(reply("", call("search", {"q": 1}))).turns[0].blocks
    searched = {"type": "tool_use", "id": "call_1", "name": "search", "input": {"q": 1}}
    assert blocks == [THOUGHT, searched]


def test_another_model_does_not_get_it() -> None:
    assert talk(reply("I look.", model="other")).turns[0].blocks == said("I look.")


@pytest.mark.parametrize("native", [{}, {"content": 1}, {"provider": "anthropic", "model": "m"}])
def test_a_native_form_that_is_none(native: Any) -> None:
    message = ChatMessage(MessageRole.ASSISTANT, "Hello", native=native)
    assert talk(message).turns[0].blocks == said("Hello")


def test_images_where_they_are_not_taken() -> None:
    parts: list[Any] = [{"type": "image", "image": PNG}]
    with pytest.raises(ValueError, match="takes text only"):
        talk({"role": "user", "content": parts}, text_only=True)
