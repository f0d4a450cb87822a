"""as_model: functions as models."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from sanderling.errors import AgentGenerationError
from sanderling.messages import ChatMessage, MessageRole
from sanderling.models import Model, ScriptedModel, as_model

HELLO = [ChatMessage(MessageRole.USER, "Hello")]


def test_a_model_is_itself() -> None:
    model = ScriptedModel(["x"])
    assert as_model(model) is model


@pytest.mark.parametrize(
    ("obj", "told"), [("gpt-5", "this is str"), (None, "NoneType"), (ScriptedModel, "an instance")]
)
def test_what_is_no_model(obj: object, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        as_model(obj)


CLIENT_MESSAGE = SimpleNamespace(
    content="hi",
    tool_calls=[SimpleNamespace(id="c", function=SimpleNamespace(name="f", arguments="{}"))],
)


@pytest.mark.parametrize(
    "reply",
    ["hi", ChatMessage(MessageRole.ASSISTANT, "hi"), {"content": "hi"}, CLIENT_MESSAGE],
    ids=["text", "message", "dict", "client"],
)
def test_what_a_function_may_return(reply: Any) -> None:
    async def later(messages: list[ChatMessage]) -> Any:
        await asyncio.sleep(0)
        return reply

    class Callable:
        async def __call__(self, messages: list[ChatMessage]) -> Any:
            return reply

    for function in (lambda messages: reply, later, lambda messages: later(messages), Callable()):
        model = as_model(function)
        for message in (model.generate(HELLO), asyncio.run(model.agenerate(HELLO))):
            assert message.role == MessageRole.ASSISTANT
            assert message.content == "hi"
            assert bool(message.tool_calls) == (reply is CLIENT_MESSAGE)


@pytest.mark.parametrize("reply", [None, 3, {"content": 5}, {"role": "wizard", "content": ""}])
def test_what_a_function_may_not_return(reply: Any) -> None:
    def odd(messages: list[ChatMessage]) -> Any:
        return reply

    with pytest.raises(AgentGenerationError, match="'odd'"):
        as_model(odd).generate(HELLO)


def test_a_function_gets_only_what_it_takes() -> None:
    got: list[dict[str, Any]] = []

    def plain(messages: list[ChatMessage]) -> str:
        assert messages[0]["content"] == "Hello"
        got.append({})
        return "x"

    def some(messages: list[ChatMessage], stop_sequences: Any = None, grammar: Any = None) -> str:
        got.append({"stop_sequences": stop_sequences, "grammar": grammar})
        return "x"

    def anything(messages: list[ChatMessage], **kwargs: Any) -> str:
        got.append(kwargs)
        return "x"

    given: dict[str, Any] = {"stop_sequences": ["END"], "grammar": "root", "seed": 3}
    for function in (plain, some, anything):
        as_model(function).generate([{"role": "user", "content": "Hello"}], **given)
    assert got == [{}, {"stop_sequences": ["END"], "grammar": "root"}, given]


def test_stop_sequences_that_it_does_not_take_are_cut_here() -> None:
    def plain(messages: list[ChatMessage]) -> str:
        return "keep END drop"

    def stopping(messages: list[ChatMessage], stop_sequences: list[str]) -> str:
        return "keep END too"

    assert as_model(plain).generate(HELLO, stop_sequences=["END"]).content == "keep "
    assert as_model(stopping).generate(HELLO, stop_sequences=["END"]).content == "keep END too"


def test_it_streams_and_is_called_like_any_model() -> None:
    model = as_model(lambda messages: "hi")
    assert isinstance(model, Model)
    assert [delta.content for delta in model.generate_stream(HELLO)] == ["hi"]
    assert model(HELLO).content == "hi"


def test_a_function_cannot_be_saved() -> None:
    with pytest.raises(TypeError, match="plain function"):
        as_model(print).to_dict()
