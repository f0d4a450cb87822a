"""JSON of a schema from models that cannot be held to it."""

from __future__ import annotations

import pytest

from sanderling.errors import AgentGenerationError
from sanderling.messages import ChatMessage, MessageLike, MessageRole, TokenUsage
from sanderling.models._structured import schema_of, settle, told_and_checked
from support.doors import HELLO

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def asked_with(*texts: str) -> tuple[ChatMessage, list[int]]:
    replies, lengths = list(texts), []

    def answer(asked: list[object]) -> ChatMessage:
        lengths.append(len(asked))
        return ChatMessage(MessageRole.ASSISTANT, replies.pop(0), token_usage=TokenUsage(5, 1))

    return settle(told_and_checked(HELLO, SCHEMA), answer), lengths  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ['{"n": 1}', '\n {"n": 1} ', '```json\n{"n": 1}\n```'])
def test_what_fits_is_returned_bare(text: str) -> None:
    reply, lengths = asked_with(text)
    assert reply.text == '{"n": 1}'
    assert lengths == [2]


def test_what_does_not_fit_is_asked_for_again() -> None:
    reply, lengths = asked_with("I think it is 1", '{"n": "1"}', '{"n": 1}')
    assert reply.text == '{"n": 1}'
    assert reply.token_usage == TokenUsage(15, 3)
    assert lengths == [2, 4, 6]


def test_it_is_not_asked_for_for_ever() -> None:
    with pytest.raises(AgentGenerationError, match=r"3 times.*\$\.n"):
        asked_with(*['{"n": []}'] * 3)
    with pytest.raises(AgentGenerationError, match="not JSON"):
        asked_with(*["[" * 100_000] * 3)


def test_what_was_cut_off_is_named_as_such() -> None:
    def answer(asked: list[MessageLike]) -> ChatMessage:
        told.append(ChatMessage.of(asked[-1]).text)
        return ChatMessage(MessageRole.ASSISTANT, '{"n": ', finish_reason="length")

    told: list[str] = []
    with pytest.raises(AgentGenerationError, match=r"cut off at the model's output.*max_tok"):
        settle(told_and_checked(HELLO, SCHEMA), answer)
    assert "cut off" in told[1]


def test_formats() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    assert schema_of(form) == SCHEMA
    assert schema_of({"type": "json_object"}) == {"type": "object"}
    assert schema_of({"type": "text"}) is None
    assert schema_of(None) is None
