"""GeminiModel: what is its own, beside the scenarios that all providers share."""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any

import pytest

from sanderling import ToolCallingAgent
from sanderling.errors import (
    AgentGenerationError,
    ContentFilterError,
    MissingExtraError,
    ModelAccessError,
    RateLimitError,
)
from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    TokenUsage,
)
from sanderling.models import REMOVE_PARAMETER, GeminiModel, RetryPolicy
from support.dialects.dialect import SIGNATURE, Call, Reply
from support.dialects.gemini import GeminiDialect, fails, piece, response, usage
from support.doors import HELLO, Door, doors, streams, wholes
from support.scripted_http import Answer, ScriptedServer, server_sent, serving
from support.tools import add

DIALECT = GeminiDialect()
ONE = {"name": "add", "args": {"a": 1}}
TWO = {"name": "add", "args": {"a": 2}}
KEY = os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY")


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith(("GOOGLE_", "GEMINI_"))]:
        monkeypatch.delenv(variable)


def model(server: ScriptedServer, **kwargs: Any) -> GeminiModel:
    kwargs.setdefault("retry", False)
    return GeminiModel("gemini-scripted", "sk-test", server.address, **kwargs)


def says(door: Door, reply: Reply | None = None) -> Answer:
    return (DIALECT.streamed if door.streamed else DIALECT.whole)(reply or Reply())


def answers(door: Door, *parts: Any, reason: str = "STOP") -> Answer:
    """Answers with parts, the last one with the end."""
    if not door.streamed:
        return response(list(parts), reason)
    pieces = [piece([part]) for part in parts]
    return server_sent([*pieces, piece([], reason, usage(Reply()))])


@doors
def test_parameters(door: Door) -> None:
    with serving(says(door)) as server:
        served = model(
            server,
            max_tokens=5,
            thinking={"thinking_budget": 9},
            temperature=0.5,
            top_k=REMOVE_PARAMETER,
            extra_body={"new_one": {"a": 1}},
        )
        door.ask(served, max_output_tokens=6, temperature=0.9, top_k=3, seed=7)
    (request,) = server.requests
    kind = "streamGenerateContent?alt=sse" if door.streamed else "generateContent"
    assert request.path.endswith(f"/models/gemini-scripted:{kind}")
    assert request.headers["x-goog-api-key"] == "sk-test"
    assert request.body["generationConfig"] == {
        "maxOutputTokens": 5,
        "temperature": 0.5,
        "seed": 7,
        "thinkingConfig": {"thinking_budget": 9},
    }
    assert request.body["new_one"] == {"a": 1}


@doors
def test_the_longest_reply_of_one_call(door: Door) -> None:
    with serving(says(door), says(door)) as server:
        door.ask(model(server), max_tokens=6)
        door.ask(model(server, max_tokens=5), max_tokens=6)
    sent = [request.body["generationConfig"] for request in server.requests]
    assert sent == [{"maxOutputTokens": 6}, {"maxOutputTokens": 5}]


def test_the_server_is_not_told_the_limit_of_silence_as_that_of_a_reply() -> None:
    with serving(DIALECT.whole(Reply())) as server:
        model(server, timeout=5).generate(HELLO)
    assert server.requests[0].headers["x-server-timeout"] == "600"


def test_tools_and_that_one_must_be_called() -> None:
    with serving(DIALECT.whole(Reply())) as server:
        model(server).generate(HELLO, tools_to_call_from=[add])
        model(server, capabilities={"tool_choice": False}).generate(HELLO, tools_to_call_from=[add])
    must, may = (request.body for request in server.requests)
    (declared,) = must["tools"][0]["functionDeclarations"]
    assert declared["name"] == "add"
    assert declared["parameters_json_schema"]["required"] == ["a", "b"]
    assert must["toolConfig"]["functionCallingConfig"]["mode"] == "ANY"
    assert "toolConfig" not in may


def test_objects_of_any_fields() -> None:
    with serving(DIALECT.whole(Reply(["{}"]))) as server:
        model(server).generate(HELLO, response_format={"type": "json_object"})
    assert server.requests[0].body["generationConfig"] == {"responseMimeType": "application/json"}


@doors
def test_usage_counts_thinking_and_what_tools_of_the_provider_read(door: Door) -> None:
    counted = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 1,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 8,
    }
    answer = piece([], "STOP", counted)
    said = server_sent([answer]) if door.streamed else Answer(json.dumps(answer))
    with serving(said) as server:
        reply = door.ask(model(server))
    assert reply.token_usage == TokenUsage(11, 7, 8, 3)
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", None, "stop")


@doors
def test_parts_go_back_as_they_were(door: Door) -> None:
    parts: list[dict[str, Any]] = [
        {"text": "Hmm.", "thought": True},
        {"text": "Let me look."},
        {"functionCall": ONE, "thoughtSignature": SIGNATURE},
        {"functionCall": TWO},
    ]
    with serving(answers(door, *parts), says(door)) as server:
        served = model(server)
        reply = served.parse_tool_calls(door.ask(served, tools_to_call_from=[add]))
        saved = ChatMessage.from_dict(json.loads(reply.model_dump_json()))
        calls = saved.tool_calls or []
        results = [
            ChatMessage(MessageRole.TOOL_RESPONSE, f"it is {place}", tool_call_id=call.id)
            for place, call in enumerate(calls)
        ]
        door.ask(served, [*HELLO, saved, *results])
    _, said, answered = server.requests[1].body["contents"]
    first, second = (call.id for call in calls)
    named = [
        *parts[:2],
        {"functionCall": {**ONE, "id": first}, "thoughtSignature": SIGNATURE},
        {"functionCall": {**TWO, "id": second}},
    ]
    assert (said["role"], said["parts"]) == ("model", named)
    told = [part["functionResponse"] for part in answered["parts"]]
    assert [(each["id"], each["name"], each["response"]) for each in told] == [
        (call.id, "add", {"output": f"it is {place}"}) for place, call in enumerate(calls)
    ]


@doors
def test_a_signature_goes_back_without_the_text_that_was_changed(door: Door) -> None:
    signed = {"text": "!", "thoughtSignature": SIGNATURE}
    with serving(answers(door, {"text": "Hello"}, signed), says(door)) as server:
        served = model(server)
        reply = door.ask(served)
        reply.content = "Hello there"
        door.ask(served, [*HELLO, reply, *HELLO])
    sent = server.requests[1].body["contents"][1]["parts"]
    assert {"text": "Hello there"} in sent
    assert {"text": "", "thoughtSignature": SIGNATURE} in sent
    assert len(sent) == 2


def test_calls_of_another_model_are_taken_without_a_signature() -> None:
    call = ChatMessageToolCall(ChatMessageToolCallFunction({"a": 1}, "add"), "call_1")
    result = ChatMessage(MessageRole.TOOL_RESPONSE, "2", tool_call_id="call_1")
    history = [*HELLO, ChatMessage(MessageRole.ASSISTANT, None, [call]), result]
    with serving(DIALECT.whole(Reply())) as server:
        model(server).generate(history)
    (sent,) = server.requests[0].body["contents"][1]["parts"]
    assert sent["functionCall"] == {"id": "call_1", "name": "add", "args": {"a": 1}}
    assert base64.b64decode(sent["thoughtSignature"]) == b"skip_thought_signature_validator"


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_that_calls_tools_sends_the_signatures_back(streamed: bool) -> None:
    door = Door(streamed, awaited=False)
    calls = Reply([], [Call("c1", "add", {"a": 1, "b": 2})], "Hmm.", "tool_calls")
    done = Reply([], [Call("c2", "final_answer", {"answer": 3})], "Yes.", "tool_calls")
    with serving(says(door, calls), says(door, done)) as server:
        agent = ToolCallingAgent([add], model(server), stream_outputs=streamed, verbosity_level=0)
        assert agent.run("What is 1 + 2?") == 3
    called = server.requests[1].body["contents"][1]["parts"][-1]
    assert called["thoughtSignature"] == SIGNATURE
    assert called["functionCall"] == {"id": "c1", "name": "add", "args": {"a": 1, "b": 2}}


@doors
@pytest.mark.parametrize("reason", ["SAFETY", "PROHIBITED_CONTENT", "RECITATION"])
def test_what_the_filter_withheld(door: Door, reason: str) -> None:
    answer = answers(door, reason=reason)
    with serving(answer) as server, pytest.raises(ContentFilterError, match=reason):
        door.ask(model(server))
    with serving(answers(door, {"text": "Well"}, reason=reason)) as server:
        reply = door.ask(model(server))
    assert (reply.text, reply.finish_reason) == ("Well", "content_filter")


@doors
def test_a_prompt_that_is_blocked(door: Door) -> None:
    body = {"promptFeedback": {"blockReason": "JAILBREAK"}}
    answer = server_sent([body]) if door.streamed else Answer(json.dumps(body))
    with serving(answer) as server, pytest.raises(ContentFilterError, match="JAILBREAK"):
        door.ask(model(server))


@doors
def test_a_call_that_the_model_spoilt_is_an_empty_reply(door: Door) -> None:
    with serving(answers(door, reason="MALFORMED_FUNCTION_CALL")) as server:
        reply = door.ask(model(server))
    assert (reply.text, reply.finish_reason) == ("", "malformed_function_call")


@wholes
def test_an_answer_without_a_reply_is_asked_for_again(door: Door) -> None:
    with serving(Answer("{}"), says(door)) as server:
        assert door.ask(model(server, retry=RetryPolicy(first_wait=0))).text == "Hello world"
    with serving(Answer("{}")) as server, pytest.raises(AgentGenerationError, match="candidate"):
        door.ask(model(server))


@doors
def test_what_is_no_answer(door: Door) -> None:
    told = r"answers of Gemini|broke off"
    answer = Answer("<html>", content_type="text/html")
    with serving(answer) as server, pytest.raises(AgentGenerationError, match=told):
        door.ask(model(server))


@streams
def test_an_error_within_a_stream(door: Door) -> None:
    error = {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}
    with serving(server_sent([error]), says(door)) as server:
        assert door.ask(model(server, retry=RetryPolicy(first_wait=0))).text == "Hello world"
    broken = server_sent([piece([{"text": "Hello"}]), error])
    with serving(broken) as server, pytest.raises(AgentGenerationError, match="Overloaded"):
        door.ask(model(server))


def test_how_long_to_wait_is_told_in_the_body() -> None:
    quota = "You exceeded your current quota, please check your plan and billing details."
    kind = "type.googleapis.com/google.rpc.RetryInfo"
    busy = fails(429, quota, [{"@type": kind, "retryDelay": "0.5s"}])
    with serving(busy) as server, pytest.raises(RateLimitError) as told:
        model(server).generate(HELLO)
    assert (told.value.retry_after, told.value.retryable) == (0.5, True)


def test_a_wrong_key_is_no_wrong_request() -> None:
    answer = fails(400, "API key not valid. Please pass a valid API key.")
    with serving(answer) as server, pytest.raises(ModelAccessError, match="refused the key"):
        model(server).generate(HELLO)


@doors
def test_a_missing_key(door: Door) -> None:
    with pytest.raises(ModelAccessError, match="GEMINI_API_KEY"):
        door.ask(GeminiModel("gemini-scripted"))


@doors
@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
def test_the_key_of_the_environment(
    door: Door, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(says(door)) as server:
        monkeypatch.setenv(variable, "from-env")
        served = GeminiModel("gemini-scripted", base_url=server.address)
        assert door.ask(served).text == "Hello world"
    assert server.requests[0].headers["x-goog-api-key"] == "from-env"


@doors
def test_a_missing_package(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.genai", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sanderling\[gemini\]'"):
        door.ask(GeminiModel("gemini-scripted", "sk-test"))


@doors
def test_a_client_of_ones_own(door: Door) -> None:
    from google import genai

    with serving(says(door)) as server:
        client = genai.Client(api_key="mine", http_options={"base_url": server.address})
        assert door.ask(GeminiModel("gemini-scripted", client=client)).text == "Hello world"
    assert server.requests[0].headers["x-goog-api-key"] == "mine"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"max_tokens": 0}, "max_tokens is 1 or more"),
        ({"thinking": "high"}, "thinking is as the API has it"),
        ({"requests_per_minute": 0}, "requests_per_minute is more than 0"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        GeminiModel("gemini-scripted", **arguments)


def test_settings_load_back_without_secrets() -> None:
    made = GeminiModel(
        "gemini-scripted",
        "sk-secret",
        "http://localhost:1",
        2_000,
        {"thinking_level": "low"},
        {"http_options": {"api_version": "v1beta"}},
        {MessageRole.SYSTEM: "user"},
    )
    data = json.loads(json.dumps(made.to_dict()))
    assert data["missing_secrets"] == ["api_key"]
    with pytest.raises(ValueError, match="sets base_url, client_kwargs, which only your program"):
        GeminiModel.from_dict(data)
    loaded = GeminiModel.from_dict(data, api_key="sk-secret", client_kwargs=made.client_kwargs)
    assert loaded.to_dict() == made.to_dict()
    assert loaded.kwargs["thinking_config"] == {"thinking_level": "low"}
    assert "sk-secret" not in str(data)


@pytest.mark.skipif(not KEY, reason="asks the real provider: GEMINI_API_KEY is not set")
@doors
def test_live(door: Door) -> None:
    served = GeminiModel("gemini-flash-latest", KEY, max_tokens=200)
    assert door.ask(served, stop_sequences=["5"]).token_usage
