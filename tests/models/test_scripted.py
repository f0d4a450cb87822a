"""ScriptedModel."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sanderling.errors import AgentGenerationError
from sanderling.messages import ChatMessage, MessageRole, TokenUsage, agglomerate_stream_deltas
from sanderling.models import ScriptedModel

HELLO = [ChatMessage(MessageRole.USER, "Hello big world")]


def test_replies_come_in_order_and_requests_are_kept() -> None:
    message = ChatMessage(MessageRole.ASSISTANT, "two", finish_reason="length")
    model = ScriptedModel(["one", message, {"content": "three"}])
    replies = [model.generate(HELLO, temperature=n) for n in range(3)]
    assert [reply.content for reply in replies] == ["one", "two", "three"]
    assert replies[1].finish_reason == "length"
    assert [request.options["temperature"] for request in model.requests] == [0, 1, 2]
    assert model.requests[0].messages == tuple(HELLO)
    assert model.remaining == 0


def test_a_used_up_script_says_so() -> None:
    model = ScriptedModel([])
    with pytest.raises(AgentGenerationError, match=r"used up: it has 0 replies.*Hello big world"):
        model.generate(HELLO)


def test_exceptions_are_raised() -> None:
    model = ScriptedModel([OSError("gone"), "back"])
    with pytest.raises(OSError, match="gone"):
        model.generate(HELLO)
    assert model.generate(HELLO).content == "back"


def test_a_stream_comes_word_by_word_and_loses_nothing() -> None:
    text = "  one two\n\n  three \n"
    deltas = list(ScriptedModel([text]).generate_stream(HELLO))
    assert [delta.content for delta in deltas] == ["  one", " two", "\n\n  three", " \n", None]
    assert agglomerate_stream_deltas(deltas) == ScriptedModel([text]).generate(HELLO)


def test_usage_is_that_of_the_words() -> None:
    assert ScriptedModel(["a b"]).generate(HELLO).token_usage == TokenUsage(3, 2)


def test_stop_sequences_cut() -> None:
    assert ScriptedModel(["a END b"]).generate(HELLO, stop_sequences=["END"]).content == "a "


def test_a_function_answers_the_messages() -> None:
    model = ScriptedModel(lambda messages: messages[-1].text.upper())
    assert asyncio.run(model.agenerate(HELLO)).content == "HELLO BIG WORLD"


def test_threads_share_a_script_without_losing_a_reply() -> None:
    model = ScriptedModel([str(n) for n in range(400)])
    got: list[str] = []

    def ask() -> None:
        for _ in range(50):
            got.append(model.generate(HELLO).text)  # noqa: PERF401 - a race is wanted

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got, key=int) == [str(n) for n in range(400)]


def test_one_text_is_no_script() -> None:
    with pytest.raises(TypeError, match="list"):
        ScriptedModel("hello")
