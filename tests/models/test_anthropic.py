"""AnthropicModel: what is its own, beside the scenarios that all providers share."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from sanderling import CodeAgent, ToolCallingAgent
from sanderling.errors import (
    AgentGenerationError,
    ContentFilterError,
    ContextLengthError,
    MissingExtraError,
    ModelAccessError,
)
from sanderling.messages import ChatMessage, MessageRole, TokenUsage
from sanderling.models import REMOVE_PARAMETER, AnthropicModel, RetryPolicy
from support.dialects.anthropic import (
    AnthropicDialect,
    block,
    ending,
    fails,
    message,
    start,
    stream,
)
from support.dialects.dialect import SIGNATURE, Call, Reply
from support.doors import HELLO, Door, doors, streams, wholes
from support.scripted_http import Answer, ScriptedServer, serving
from support.tools import add

KEY = os.environ.get("ANTHROPIC_API_KEY")
DIALECT = AnthropicDialect()


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for variable in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))  # the package looks there


def model(server: ScriptedServer, **kwargs: Any) -> AnthropicModel:
    kwargs.setdefault("retry", False)
    return AnthropicModel("claude-scripted", "sk-test", server.address, **kwargs)


def says(door: Door, reply: Reply | None = None) -> Answer:
    return (DIALECT.streamed if door.streamed else DIALECT.whole)(reply or Reply())


@doors
def test_parameters(door: Door) -> None:
    with serving(says(door)) as server:
        served = model(
            server, max_tokens=5, temperature=0.5, top_k=REMOVE_PARAMETER, extra_body={"new_one": 1}
        )
        door.ask(served, max_tokens=6, temperature=0.9, top_k=3, metadata={"user_id": "u"})
    (request,) = server.requests
    assert request.path == "/v1/messages"
    body = request.body
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("claude-scripted", 5, 0.5)
    assert (body["new_one"], body["metadata"]) == (1, {"user_id": "u"})
    assert "top_k" not in body


def test_a_reply_may_be_long_without_being_asked_for_more() -> None:
    with serving(DIALECT.whole(Reply())) as server:
        model(server).generate(HELLO)
        model(server, max_tokens=128_000).generate(HELLO)  # the package alone would refuse
    assert [request.body["max_tokens"] for request in server.requests] == [16_000, 128_000]


@pytest.mark.parametrize(
    ("thinking", "choice"),
    [(None, "any"), ({"type": "disabled"}, "any"), ({"type": "adaptive"}, "auto")],
)
def test_thinking_excludes_that_a_tool_must_be_called(thinking: Any, choice: str) -> None:
    with serving(DIALECT.whole(Reply())) as server:
        model(server, thinking=thinking).generate(HELLO, tools_to_call_from=[add])
    body = server.requests[0].body
    assert body["tool_choice"] == {"type": choice}
    assert body.get("thinking") == thinking
    assert body["tools"][0]["input_schema"]["required"] == ["a", "b"]


@doors
def test_stops_of_white_space_are_cut_here(door: Door) -> None:
    with serving(says(door, Reply(["one", "\n\ntwo"]))) as server:
        assert door.ask(model(server), stop_sequences=["\n\n", "END"]).text == "one"
    assert server.requests[0].body["stop_sequences"] == ["END"]


@doors
def test_objects_of_any_fields_are_asked_for_in_words(door: Door) -> None:
    with serving(DIALECT.whole(Reply(["[]"])), DIALECT.whole(Reply(['{"a": 1}']))) as server:
        reply = door.ask(model(server), response_format={"type": "json_object"})
    assert json.loads(reply.text) == {"a": 1}
    assert "output_config" not in server.requests[1].body


def test_a_schema_leaves_the_effort_as_it_is() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"schema": schema}}
    with serving(DIALECT.whole(Reply(["{}"]))) as server:
        model(server, output_config={"effort": "low"}).generate(HELLO, response_format=form)
    output = server.requests[0].body["output_config"]
    assert (output["effort"], output["format"]["type"]) == ("low", "json_schema")


@doors
def test_usage_counts_what_the_cache_read_and_wrote(door: Door) -> None:
    counted = {
        "input_tokens": 3,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 10,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 4},
    }
    begun = {**counted, "output_tokens": 1}
    later = {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 4}}
    answer = (
        stream([start(begun), *ending("end_turn", later)])
        if door.streamed
        else message([], counted=counted)
    )
    with serving(answer) as server:
        reply = door.ask(model(server))
    assert reply.token_usage == TokenUsage(33, 7, 20, 4, 10)
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", None, "stop")


def test_the_prefix_of_the_last_request_is_marked_as_well() -> None:
    history = [ChatMessage(MessageRole.SYSTEM, "Be brief."), *HELLO]
    for n in range(3):
        history.append(ChatMessage(MessageRole.ASSISTANT, f"a{n}"))
        history.append(ChatMessage(MessageRole.USER, f"b{n}"))
    with serving(DIALECT.whole(Reply())) as server:
        model(server).generate(history)
    body = server.requests[0].body
    marked = [
        part["text"]
        for part in [*body["system"], *(each["content"][-1] for each in body["messages"])]
        if "cache_control" in part
    ]
    assert marked == ["Be brief.", "b1", "b2"]


@doors
def test_redacted_thinking_goes_back(door: Door) -> None:
    hidden = {"type": "redacted_thinking", "data": "EmwKAhgB"}
    text = {"type": "text", "text": "Hello"}
    answer = (
        stream([start(), *block(0, hidden), *block(1, text), *ending("end_turn")])
        if door.streamed
        else message([hidden, text])
    )
    with serving(answer) as server:
        served = model(server)
        reply = door.ask(served)
        door.ask(served, [*HELLO, reply, *HELLO])
    assert (reply.text, reply.reasoning) == ("Hello", None)
    assert server.requests[1].body["messages"][1]["content"] == [hidden, text]


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_that_calls_tools_sends_its_thinking_back(streamed: bool) -> None:
    door = Door(streamed, awaited=False)
    calls = Reply([], [Call("toolu_1", "add", {"a": 1, "b": 2})], "Hmm.", "tool_calls")
    done = Reply([], [Call("toolu_2", "final_answer", {"answer": 3})], "Yes.", "tool_calls")
    with serving(says(door, calls), says(door, done)) as server:
        served = model(server, thinking={"type": "adaptive"})
        agent = ToolCallingAgent([add], served, stream_outputs=streamed, verbosity_level=0)
        assert agent.run("What is 1 + 2?") == 3
    thought, called = server.requests[1].body["messages"][1]["content"]
    assert thought == {"type": "thinking", "thinking": "Hmm.", "signature": SIGNATURE}
    assert (called["id"], called["input"]) == ("toolu_1", {"a": 1, "b": 2})
    result = server.requests[1].body["messages"][2]["content"][0]
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_1")


def test_an_agent_that_writes_code_sends_its_thinking_back() -> None:
    first = Reply(["Thought: I print.\n<code>\nprint(1)\n"], reasoning="Hmm.")
    last = Reply(["<code>\nfinal_answer(3)\n"])
    with serving(DIALECT.whole(first), DIALECT.whole(last)) as server:
        agent = CodeAgent([], model(server), verbosity_level=0)
        assert agent.run("Say 3") == 3
    thought, text = server.requests[1].body["messages"][1]["content"]
    assert thought["signature"] == SIGNATURE
    assert text["text"].endswith("</code>")


@doors
def test_a_refusal(door: Door) -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "This is about microbes."}
    answer = (
        stream([start(), *ending("refusal", stop_details=details)])
        if door.streamed
        else message([], "refusal", stop_details=details)
    )
    told = r"stop_reason is refusal.*microbes"
    with serving(answer) as server, pytest.raises(ContentFilterError, match=told):
        door.ask(model(server))


@doors
def test_a_refusal_on_the_way_keeps_what_was_said(door: Door) -> None:
    text = {"type": "text", "text": "Well, "}
    answer = (
        stream([start(), *block(0, text), *ending("refusal")])
        if door.streamed
        else message([text], "refusal")
    )
    with serving(answer) as server:
        reply = door.ask(model(server))
    assert (reply.text, reply.finish_reason) == ("Well, ", "content_filter")


@streams
def test_a_tool_call_with_broken_json_keeps_its_text(door: Door) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"a": 1'}
    thought = {"type": "thinking", "thinking": "Hm", "signature": "s"}
    events = [start(), *block(0, thought), *block(1, call, piece), *ending("max_tokens")]
    with serving(stream(events)) as server:
        served = model(server)
        reply = served.parse_tool_calls(door.ask(served))
        door.ask(served, [*HELLO, reply])
    assert reply.finish_reason == "length"
    assert (reply.tool_calls or [])[0].function.arguments == '{"a": 1'
    sent = server.requests[1].body["messages"][1]["content"]
    assert sent == [thought, {**call, "input": {"arguments": '{"a": 1'}, **MARKED}]


MARKED = {"cache_control": {"type": "ephemeral"}}


@streams
def test_an_error_within_a_stream(door: Door) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    broken = stream([start(), error])
    with serving(broken, says(door)) as server:
        assert door.ask(model(server, retry=RetryPolicy(first_wait=0))).text == "Hello world"
    with serving(broken) as server, pytest.raises(AgentGenerationError, match="Overloaded") as told:
        door.ask(model(server))
    assert told.value.retryable


@streams
def test_a_stream_of_other_things(door: Door) -> None:
    odd: list[dict[str, Any]] = [
        start(None),
        {"type": "content_block_start", "index": 0, "content_block": {"type": "new_thing", "x": 1}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "x": 1}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "input_json_delta"}},
        {"type": "content_block_delta", "index": 8, "delta": {"type": "text_delta", "text": 5}},
        {"type": "content_block_start", "index": 9},
        {"type": "new_event"},
        *block(1, {"type": "text", "text": "Hello"}),
        *ending("new_reason"),
    ]
    with serving(stream(odd)) as server:
        reply = door.ask(model(server))
    assert (reply.text, reply.finish_reason) == ("Hello", "new_reason")


@wholes
@pytest.mark.parametrize("body", ["<html>", "{}", '{"content": "text"}', "[1]"])
def test_what_is_no_message(door: Door, body: str) -> None:
    kind = "text/html" if body.startswith("<") else "application/json"
    answer = Answer(body, content_type=kind)
    with serving(answer) as server, pytest.raises(AgentGenerationError, match="messages"):
        door.ask(model(server))


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (
            fails(400, "Your credit balance is too low to access the API"),
            ModelAccessError,
            "credit",
        ),
        (fails(401, "invalid x-api-key", "authentication_error"), ModelAccessError, "api_key"),
        (fails(413, "prompt is too long"), ContextLengthError, "413"),
        (fails(529, "Overloaded", "overloaded_error"), AgentGenerationError, "Try later"),
        (fails(404, "model: claude-0", "not_found_error"), AgentGenerationError, "Anthropic's"),
    ],
    ids=["credit", "key", "long", "overloaded", "unknown"],
)
def test_refused_requests(answer: Answer, kind: type[AgentGenerationError], told: str) -> None:
    with serving(answer) as server, pytest.raises(kind, match=told):
        model(server).generate(HELLO)


@doors
def test_a_missing_key(door: Door) -> None:
    with pytest.raises(ModelAccessError, match="ANTHROPIC_API_KEY"):
        door.ask(AnthropicModel("claude-scripted", base_url="http://127.0.0.1:1"))


@doors
def test_the_key_of_the_environment(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(says(door)) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "from-env")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.address)
        assert door.ask(AnthropicModel("claude-scripted")).text == "Hello world"
    assert "from-env" in str(server.requests[0].headers)


@doors
def test_a_missing_package(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sanderling\[anthropic\]'"):
        door.ask(AnthropicModel("claude-scripted", "sk-test"))


@pytest.mark.skipif(not KEY, reason="asks the real provider: ANTHROPIC_API_KEY is not set")
@doors
def test_live(door: Door) -> None:
    served = AnthropicModel("claude-haiku-4-5", KEY, max_tokens=50)
    assert door.ask(served, stop_sequences=["5"]).token_usage


@doors
def test_a_client_of_ones_own(door: Door) -> None:
    import anthropic

    with (
        serving(says(door)) as server,
        anthropic.Anthropic(api_key="mine", base_url=server.address) as client,
    ):
        assert door.ask(AnthropicModel("claude-scripted", client=client)).text == "Hello world"
        assert not client.is_closed()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"max_tokens": 0}, "max_tokens is 1 or more"),
        ({"thinking": "adaptive"}, "thinking is as the API has it"),
        ({"thinking": {"budget_tokens": 1024}}, "thinking is as the API has it"),
        ({"timeout": -1}, "timeout is more than 0"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        AnthropicModel("claude-scripted", **arguments)


def test_settings_load_back_without_secrets() -> None:
    made = AnthropicModel(
        "claude-scripted",
        "sk-secret",
        "http://localhost:1",
        2_000,
        {"type": "adaptive"},
        {"default_headers": {"X": "y"}},
        {MessageRole.SYSTEM: "user"},
    )
    data = json.loads(json.dumps(made.to_dict()))
    assert data["missing_secrets"] == ["api_key"]
    with pytest.raises(ValueError, match="sets base_url, client_kwargs, which only your program"):
        AnthropicModel.from_dict(data)
    loaded = AnthropicModel.from_dict(data, api_key="sk-secret", client_kwargs=made.client_kwargs)
    assert loaded.to_dict() == made.to_dict()
    assert loaded.kwargs == {"max_tokens": 2_000, "thinking": {"type": "adaptive"}}
    assert "sk-secret" not in str(data)
