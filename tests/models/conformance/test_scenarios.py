"""Every provider through its real package, against a server that speaks its protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from sanderling.errors import (
    AgentGenerationError,
    ContentFilterError,
    ContextLengthError,
    ModelAccessError,
    ModelTimeoutError,
    RateLimitError,
    UnknownModelError,
)
from sanderling.messages import (
    ChatMessage,
    JSONObject,
    MessageRole,
)
from sanderling.models import RetryPolicy
from support.dialects.all import DIALECTS
from support.dialects.dialect import FEATURES, SIGNATURE, Call, Dialect, Reply
from support.doors import HELLO, Door, doors, streams
from support.scripted_http import Answer, ScriptedServer, serving

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
BERN = Call("call_1", "weather", {"city": "Bern"})
ROME = Call("call_2", "weather", {"city": "Rome"})
QUICK = RetryPolicy(attempts=3, first_wait=0.001)


class Weather:
    name = "weather"

    def to_json_schema(self) -> JSONObject:
        parameters: JSONObject = {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        }
        function: JSONObject = {
            "name": self.name,
            "description": "Tells the weather.",
            "parameters": parameters,
        }
        return {"type": "function", "function": function}


def offering(feature: str | None = None) -> Callable[..., Any]:
    """Runs a test for each provider that offers the feature."""
    if feature is not None and feature not in FEATURES:
        raise ValueError(feature)
    able = [each for each in DIALECTS if feature is None or feature in each.offers]
    return pytest.mark.parametrize("dialect", able, ids=repr, indirect=True)


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> Dialect:
    asked: Dialect = request.param
    asked.require()
    return asked


def says(dialect: Dialect, door: Door, reply: Reply) -> Answer:
    return dialect.streamed(reply) if door.streamed else dialect.whole(reply)


@offering("plain")
@doors
def test_plain(dialect: Dialect, door: Door) -> None:
    conversation = [
        ChatMessage(MessageRole.SYSTEM, "Be brief."),
        ChatMessage(MessageRole.USER, "Hello"),
        ChatMessage(MessageRole.ASSISTANT, "Yes?"),
        ChatMessage(MessageRole.TOOL_RESPONSE, "It rains."),
        ChatMessage(MessageRole.USER, "So?"),
    ]
    with serving(says(dialect, door, Reply())) as server:
        reply = door.ask(dialect.model(server), conversation)
    assert (reply.role, reply.content) == (MessageRole.ASSISTANT, "Hello world")
    assert reply.finish_reason == "stop"
    assert reply.tool_calls is None
    (request,) = server.requests
    said = " ".join(text for _, text in dialect.sent(request).texts)
    assert said.replace("\n", " ") == "Be brief. Hello Yes? It rains. So?"


@offering("streamed")
@streams
def test_streamed(dialect: Dialect, door: Door) -> None:
    reply = Reply(["One ", "two ", "three"])
    with serving(dialect.streamed(reply)) as server:
        deltas = door.deltas(dialect.model(server))
    assert [delta.content for delta in deltas if delta.content] == ["One ", "two ", "three"]
    assert [delta.finish_reason for delta in deltas if delta.finish_reason] == ["stop"]


@offering("tools")
@pytest.mark.parametrize("awaited", [False, True])
def test_tools(dialect: Dialect, awaited: bool) -> None:
    called(dialect, Door(streamed=False, awaited=awaited))


@offering("streamed_tools")
@pytest.mark.parametrize("awaited", [False, True])
def test_streamed_tools(dialect: Dialect, awaited: bool) -> None:
    called(dialect, Door(streamed=True, awaited=awaited))


def called(dialect: Dialect, door: Door) -> None:
    asked = Reply([], [BERN, ROME], finish="tool_calls")
    with serving(says(dialect, door, asked), says(dialect, door, Reply())) as server:
        model = dialect.model(server)
        reply = door.ask(model, tools_to_call_from=[Weather()])
        assert reply.finish_reason == "tool_calls"
        assert not reply.content
        calls = model.parse_tool_calls(reply).tool_calls or []
        assert [call.function.arguments for call in calls] == [BERN.arguments, ROME.arguments]
        assert len({call.id for call in calls}) == 2
        results = [
            ChatMessage(MessageRole.TOOL_RESPONSE, "rain", tool_call_id=call.id) for call in calls
        ]
        asked_again = [*HELLO, ChatMessage(MessageRole.ASSISTANT, None, calls), *results]
        assert door.ask(model, asked_again, tools_to_call_from=[Weather()]).text == "Hello world"
    assert dialect.sent(server.requests[0]).tools == ["weather"]
    for id_ in (call.id for call in calls):
        assert json.dumps(server.requests[1].body).count(id_) == 2


@offering("tools")
@doors
def test_two_calls_with_one_id_are_told_apart(dialect: Dialect, door: Door) -> None:
    same = [Call("call_1", "weather", {"city": city}) for city in ("Bern", "Rome")]
    with serving(says(dialect, door, Reply([], same, finish="tool_calls"))) as server:
        calls = door.ask(dialect.model(server), tools_to_call_from=[Weather()]).tool_calls or []
    assert len({call.id for call in calls}) == 2


@offering("stop")
@doors
def test_stop(dialect: Dialect, door: Door) -> None:
    stops = [f"<stop{n}>" for n in range(8)]
    reply = Reply(["keep <st", "op6", ">drop"])
    with serving(says(dialect, door, reply)) as server:
        model = dialect.model(server)
        said = door.ask(model, stop_sequences=stops)
    most = model.capabilities.max_stops if model.capabilities.stop else 0
    assert list(dialect.sent(server.requests[0]).stops) == stops[:most]
    # What the provider could not be told of is cut here.
    assert said.text == ("keep " if most is not None and most <= 6 else reply.text)
    assert said.finish_reason == "stop"


@offering("stop")
@doors
def test_one_stop_sequence_needs_no_list(dialect: Dialect, door: Door) -> None:
    with serving(says(dialect, door, Reply())) as server:
        door.ask(dialect.model(server), stop_sequences="<stop>")
    assert list(dialect.sent(server.requests[0]).stops) == ["<stop>"]


@offering("schema")
@doors
def test_schema(dialect: Dialect, door: Door) -> None:
    wrong, right = Reply(['{"n": ', '"one"}']), Reply(['{"n": ', "1}"])
    with serving(dialect.whole(wrong), dialect.whole(right)) as unheld:
        model = dialect.model(unheld, capabilities={"json_schema": False})
        reply = door.ask(model, response_format=FORM)
    assert json.loads(reply.text) == {"n": 1}
    assert reply.token_usage is not None
    assert reply.token_usage.input_tokens == 22
    first, second = (dialect.sent(request) for request in unheld.requests)
    assert first.schema is None
    assert json.dumps(SCHEMA) in first.texts[-1][1]
    assert "$.n" in second.texts[-1][1]

    with serving(says(dialect, door, right)) as held:
        model = dialect.model(held, capabilities={"json_schema": True})
        assert json.loads(door.ask(model, response_format=FORM).text) == {"n": 1}
    assert dialect.sent(held.requests[0]).schema == SCHEMA


@offering("schema")
@doors
def test_a_grammar_of_json_is_a_schema(dialect: Dialect, door: Door) -> None:
    grammar = {"type": "json", "value": SCHEMA}
    with serving(says(dialect, door, Reply(['{"n": 1}']))) as server:
        model = dialect.model(server, capabilities={"json_schema": True})
        assert json.loads(door.ask(model, grammar=grammar).text) == {"n": 1}
    assert dialect.sent(server.requests[0]).schema == SCHEMA
    assert "grammar" not in json.dumps(server.requests[0].body)


@offering("image")
@doors
def test_image(dialect: Dialect, door: Door) -> None:
    parts: list[Any] = [{"type": "text", "text": "What is it?"}, {"type": "image", "image": PNG}]
    with serving(says(dialect, door, Reply())) as server:
        door.ask(dialect.model(server), [{"role": "user", "content": parts}])
    sent = dialect.sent(server.requests[0])
    assert [image.partition(",")[0] for image in sent.images] == ["data:image/png;base64"]
    assert "What is it?" in sent.texts[-1][1]


@offering("image_url")
@doors
def test_image_url(dialect: Dialect, door: Door) -> None:
    parts: list[Any] = [{"type": "image", "image": "https://example.org/a.png"}]
    with serving(says(dialect, door, Reply())) as server:
        door.ask(dialect.model(server), [{"role": "user", "content": parts}])
    assert list(dialect.sent(server.requests[0]).images) == ["https://example.org/a.png"]


@offering("usage")
@doors
def test_usage(dialect: Dialect, door: Door) -> None:
    with serving(says(dialect, door, Reply())) as server:
        usage = door.ask(dialect.model(server)).token_usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (11, 7, 0)


@offering("cached_usage")
@doors
def test_cached_usage(dialect: Dialect, door: Door) -> None:
    with serving(says(dialect, door, Reply(cached=5))) as server:
        usage = door.ask(dialect.model(server)).token_usage
    assert usage is not None
    assert (usage.input_tokens, usage.cached_tokens) == (11, 5)


@offering("reasoning")
@doors
def test_reasoning(dialect: Dialect, door: Door) -> None:
    thought = Reply(reasoning="Hmm.", reasoning_tokens=3)
    with serving(says(dialect, door, thought)) as server:
        reply = door.ask(dialect.model(server))
    assert (reply.text, reply.reasoning) == ("Hello world", "Hmm.")


@offering("cache_marks")
@doors
def test_cache_marks(dialect: Dialect, door: Door) -> None:
    conversation = [ChatMessage(MessageRole.SYSTEM, "Be brief."), *HELLO]
    with serving(says(dialect, door, Reply())) as server:
        door.ask(dialect.model(server, capabilities={"cache_marks": True}), conversation)
        door.ask(dialect.model(server, capabilities={"cache_marks": False}), conversation)
    marked, plain = (dialect.sent(request) for request in server.requests)
    assert (marked.marks, plain.marks) == (2, 0)
    assert marked.texts == plain.texts


@offering("signed_thinking")
@doors
def test_signed_thinking(dialect: Dialect, door: Door) -> None:
    calling = Reply([], [BERN], reasoning="Hmm.", finish="tool_calls")
    speaking = Reply(["Hello", " you"], reasoning="Well.")
    with serving(*(says(dialect, door, each) for each in (calling, speaking, Reply()))) as server:
        model = dialect.model(server)
        history = list(HELLO)
        for answer in (ChatMessage(MessageRole.TOOL_RESPONSE, "rain"), HELLO[0]):
            reply = door.ask(model, history, tools_to_call_from=[Weather()])
            saved = ChatMessage.from_dict(json.loads(reply.model_dump_json()))
            if saved.tool_calls:
                answer = replace(answer, tool_call_id=saved.tool_calls[0].id)
            else:
                saved.content = "Hello you</code>"  # as the loop completes what a stop cut off
            history += [saved, answer]
        door.ask(model, history, tools_to_call_from=[Weather()])
    first, second, third = (dialect.sent(request) for request in server.requests)
    assert [len(sent.signatures) for sent in (first, second, third)] == [0, 1, 2]
    assert set(third.signatures) == {SIGNATURE}
    assert third.texts[-2][1] == "Hello you</code>"


@offering("retry")
@doors
@pytest.mark.parametrize("status", [429, 503])
def test_retry(dialect: Dialect, door: Door, status: int) -> None:
    busy = dialect.fails(status, "try later", {"retry-after": "0"})
    with serving(busy, busy, says(dialect, door, Reply())) as server:
        assert door.ask(dialect.model(server, retry=QUICK)).text == "Hello world"
    assert len(server.requests) == 3

    told = r"(?s)try later.*asked 3 times"
    with serving(busy) as server, pytest.raises(AgentGenerationError, match=told) as caught:
        door.ask(dialect.model(server, retry=QUICK))
    assert len(server.requests) == 3
    assert (caught.value.status, caught.value.retry_after) == (status, 0)
    assert isinstance(caught.value, RateLimitError) == (status == 429)


@offering("retry")
@streams
def test_a_stream_that_began_is_not_repeated(dialect: Dialect, door: Door) -> None:
    broken = dialect.streamed(Reply(ends=False))
    with serving(broken) as server, pytest.raises(AgentGenerationError):
        door.ask(dialect.model(server, retry=QUICK))
    assert len(server.requests) == 1


@offering("retry")
@streams
def test_a_stream_that_broke_before_it_began_is_repeated(dialect: Dialect, door: Door) -> None:
    nothing = dialect.streamed(Reply([], ends=False))
    with serving(nothing, dialect.streamed(Reply())) as server:
        assert door.ask(dialect.model(server, retry=QUICK)).text == "Hello world"
    assert len(server.requests) == 2


@offering("cancellation")
def test_cancellation(dialect: Dialect) -> None:
    endless = dialect.streamed(Reply(stall=True))

    with serving(endless) as server:
        with closing(dialect.model(server).generate_stream(HELLO)) as stream:
            assert next(stream).content
        assert server.hung_up.wait(10)

    with serving(endless) as server:
        asyncio.run(begin_and_cancel(dialect, server))
        assert server.hung_up.wait(10)


async def begin_and_cancel(dialect: Dialect, server: ScriptedServer) -> None:
    begun = asyncio.Event()

    async def ask() -> None:
        async for _ in dialect.model(server).agenerate_stream(HELLO):
            begun.set()

    task = asyncio.create_task(ask())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@offering()
@doors
def test_refusals(dialect: Dialect, door: Door) -> None:
    refused: list[tuple[int, str, type[AgentGenerationError]]] = [
        (401, "who are you", ModelAccessError),
        (403, "not yours", ModelAccessError),
        (404, "no such model", UnknownModelError),
        (400, "bad temperature", AgentGenerationError),
        (*dialect.too_long, ContextLengthError),
    ]
    if dialect.filtered is not None:
        refused.append((*dialect.filtered, ContentFilterError))
    for status, message, kind in refused:
        answer = dialect.fails(status, message, {})
        with serving(answer) as server, pytest.raises(kind, match="req-42") as caught:
            door.ask(dialect.model(server, retry=QUICK))
        assert type(caught.value) is kind
        assert message in str(caught.value)
        assert (caught.value.status, caught.value.request_id) == (status, "req-42")
        assert not caught.value.retryable
        assert len(server.requests) == 1


@offering()
@doors
def test_silence(dialect: Dialect, door: Door) -> None:
    answer = dialect.streamed(Reply(stall=True)) if door.streamed else Answer("{", stall=True)
    with serving(answer) as server, pytest.raises(ModelTimeoutError, match="timeout=seconds"):
        door.ask(dialect.model(server, timeout=0.3))


@offering()
def test_one_model_serves_many_loops_and_tasks(dialect: Dialect) -> None:
    async def ask(model: Any) -> list[str]:
        replies = await asyncio.gather(*(model.agenerate(HELLO) for _ in range(5)))
        return [reply.text for reply in replies]

    with serving(dialect.whole(Reply())) as server:
        model = dialect.model(server)
        for _ in range(3):
            assert asyncio.run(ask(model)) == ["Hello world"] * 5
        assert model.generate(HELLO).text == "Hello world"


@offering()
def test_settings_load_back(dialect: Dialect) -> None:
    with serving(dialect.whole(Reply())) as server:
        made = dialect.model(
            server,
            temperature=0.5,
            requests_per_minute=6_000,
            retry={"attempts": 2},
            timeout=5,
            capabilities={"image_urls": False},
        )
        data = json.loads(json.dumps(made.to_dict()))
        secrets = dict.fromkeys(data.get("missing_secrets", ()), "sk-test")
        others = {
            name: data[name]
            for name in data.keys() - type(made).form_settings - {"missing_secrets"}
        }
        loaded = type(made).from_dict(data, **{**others, **secrets})
        assert loaded.to_dict() == made.to_dict()
        assert loaded.generate(HELLO).text == made.generate(HELLO).text == "Hello world"
    first, second = server.requests
    assert (first.path, first.body) == (second.path, second.body)
    assert "sk-test" not in json.dumps(data)
