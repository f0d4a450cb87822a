"""Models that users write: how they are called, and what they may return."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sanderling import CodeAgent, ToolCallingAgent
from sanderling.errors import AgentGenerationError
from sanderling.messages import ChatMessage, ChatMessageToolCall, MessageRole
from sanderling.models import Model

ANSWER = "<code>final_answer(5)</code>"
CALL = {"id": "c", "function": {"name": "final_answer", "arguments": {"answer": 5}}}


def test_generate_is_called_with_the_messages_as_first_positional_argument() -> None:
    class Own(Model):
        def generate(self, conversation: Any, /, **kwargs: Any) -> Any:  # type: ignore[override]
            return ChatMessage(MessageRole.ASSISTANT, ANSWER)

    assert CodeAgent([], Own()).run("x") == 5


@pytest.mark.parametrize(
    "reply",
    [
        ANSWER,
        {"content": ANSWER},
        SimpleNamespace(role="assistant", content=ANSWER, tool_calls=None),
    ],
    ids=["text", "dict", "message of a package"],
)
def test_generate_may_return_other_forms_of_a_message(reply: Any) -> None:
    class Own(Model):
        def generate(self, messages: Any, **kwargs: Any) -> Any:  # type: ignore[override]
            return reply

    assert CodeAgent([], Own()).run("x") == 5


def test_a_reply_that_is_no_message_is_refused() -> None:
    class Own(Model):
        def generate(self, messages: Any, **kwargs: Any) -> Any:  # type: ignore[override]
            return 5

    with pytest.raises(AgentGenerationError, match="must return a ChatMessage, a dict or a text"):
        CodeAgent([], Own()).run("x")


@pytest.mark.parametrize(
    "call",
    [
        CALL,
        {"function": CALL["function"]},
        SimpleNamespace(id="c", function=SimpleNamespace(**CALL["function"])),  # type: ignore[arg-type]
    ],
    ids=["dict", "dict without id", "call of a package"],
)
def test_tool_calls_may_be_dicts_and_objects(call: Any) -> None:
    class Own(Model):
        def generate(self, messages: Any, **kwargs: Any) -> ChatMessage:  # type: ignore[override]
            return ChatMessage(MessageRole.ASSISTANT, None, [call])

    assert ToolCallingAgent([], Own()).run("x") == 5


def test_a_tool_call_of_another_form_is_refused() -> None:
    with pytest.raises(TypeError, match="a tool call is a ChatMessageToolCall or"):
        ChatMessage(MessageRole.ASSISTANT, None, [5])  # type: ignore[list-item]
    call = ChatMessageToolCall.from_dict(CALL)
    assert ChatMessage(MessageRole.ASSISTANT, None, [call]).tool_calls == [call]


def test_an_object_with_generate_is_a_model() -> None:
    class Own:
        model_id = "own"

        def generate(self, messages: list[ChatMessage], stop_sequences: Any = None) -> str:
            return ANSWER

    agent = CodeAgent([], Own())  # type: ignore[arg-type]
    assert agent.run("x") == 5
    assert agent.model.model_id == "own"


def test_a_model_with_a_call_method_only_is_a_model() -> None:
    class Old(Model):
        def __call__(self, messages: Any, stop_sequences: Any = None, grammar: Any = None) -> Any:
            return ChatMessage(MessageRole.ASSISTANT, ANSWER)

    assert CodeAgent([], Old()).run("x") == 5
    assert CodeAgent([], Old(), stream_outputs=True).run("x") == 5
