"""Models that users write: how they are called, and what they may return."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from PIL import Image

from sanderling import CodeAgent, ToolCallingAgent, tool
from sanderling.errors import AgentGenerationError
from sanderling.messages import ChatMessage, ChatMessageToolCall, MessageRole
from sanderling.models import FallbackModel, Model, ScriptedModel
from sanderling.testing import RecordingModel, ReplayModel

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
    assert CodeAgent([], Own(), stream_outputs=True).run("x") == 5
    assert CodeAgent([], FallbackModel([Own()])).run("x") == 5


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


def test_a_reply_may_be_a_dict_with_calls_that_are_dicts() -> None:
    def model(messages: Any) -> Any:
        return {"content": None, "tool_calls": [{"function": CALL["function"]}]}

    assert ToolCallingAgent([], model).run("x") == 5


def test_a_mock_with_generate_is_a_model() -> None:
    model = MagicMock()
    model.generate.return_value = ChatMessage(MessageRole.ASSISTANT, ANSWER)
    assert CodeAgent([], model).run("x") == 5
    assert isinstance(model.generate.call_args.args[0], list)
    with pytest.raises(AgentGenerationError, match="content is a MagicMock"):
        CodeAgent([], MagicMock()).run("x")


@tool
def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: The number.
    """
    return 2 * number


DOUBLING = {"id": "d", "function": {"name": "double", "arguments": {"number": 4}}}


class Listening(Model):
    """Calls a tool, then answers; keeps what it was sent, and changes it as it likes."""

    def __init__(self) -> None:
        super().__init__(model_id="listening")
        self.heard: list[list[dict[str, Any]]] = []

    def generate(self, messages: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        self.heard.append([json.loads(json.dumps(message.dict())) for message in messages])
        for message in messages:
            for part in message.content:
                part["text"] += " (changed)"
        call = DOUBLING if len(self.heard) == 1 else CALL
        return {"content": "I call.", "tool_calls": [call]}


def test_calls_and_results_are_texts_for_a_model_that_says_nothing_else() -> None:
    model = Listening()
    assert ToolCallingAgent([double], model).run("x") == 5
    assert [message["role"] for message in model.heard[1]] == [
        "system",
        "user",
        "assistant",
        "tool-call",
        "tool-response",
    ]
    for message in model.heard[1]:
        assert message.keys() == {"role", "content"}
    *_, reply, call, result = ("".join(p["text"] for p in m["content"]) for m in model.heard[1])
    assert reply == "I call."
    assert call.startswith("Calling tools:\n[{'id': 'd'")
    assert result == "Call id: d\nObservation:\n8"
    assert "(changed)" not in str(model.heard[1])


def test_the_memory_as_messages_is_what_the_model_takes() -> None:
    agent = ToolCallingAgent([double], Listening())
    agent.run("x")
    roles = [message.role.value for message in agent.write_memory_to_messages()]
    assert roles[:5] == ["system", "user", "assistant", "tool-call", "tool-response"]
    assert all(not message.tool_calls for message in agent.write_memory_to_messages())


def test_a_model_that_says_so_gets_tool_messages() -> None:
    class Native(Model):
        takes_tool_messages = True
        heard: list[Any] = []

        def generate(self, messages: Any, **kwargs: Any) -> Any:  # type: ignore[override]
            self.heard = list(messages)
            call = DOUBLING if len(messages) == 2 else CALL
            return ChatMessage(MessageRole.ASSISTANT, None, [call])  # type: ignore[list-item]

    model = Native()
    assert ToolCallingAgent([double], model).run("x") == 5
    assert model.heard[2].tool_calls[0].id == "d"
    assert model.heard[3].tool_call_id == "d"


def test_a_fallback_shows_each_model_what_it_takes() -> None:
    listening = Listening()
    broken = ScriptedModel([AgentGenerationError("down"), AgentGenerationError("down")])
    assert ToolCallingAgent([double], FallbackModel([broken, listening])).run("x") == 5
    assert [message["role"] for message in listening.heard[1]][-2:] == [
        "tool-call",
        "tool-response",
    ]
    assert broken.requests[1].messages[-1].tool_call_id == "d"


def test_a_recording_of_such_a_model_replays(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    recording = RecordingModel(Listening(), file)
    assert ToolCallingAgent([double], recording).run("x") == 5
    assert ToolCallingAgent([double], ReplayModel(file)).run("x") == 5


def test_parts_of_content_are_dicts() -> None:
    heard: list[Any] = []

    def model(messages: Any) -> str:
        heard.extend(messages)
        return ANSWER

    image = Image.new("L", (2, 3))
    assert CodeAgent([], model).run("x", images=[image]) == 5
    for message in heard:
        assert all(isinstance(part, dict) for part in message.content)
        assert json.loads(json.dumps(message.content)) == message.content
    text, picture = heard[1].content
    assert text == {"type": "text", "text": text.text}
    assert picture["image"] is image
    assert picture["url"] == picture.url
    assert {**picture} == dict(picture) == {"type": "image", "url": picture.url}


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
