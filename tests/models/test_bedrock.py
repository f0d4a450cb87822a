"""AmazonBedrockModel: what is its own, beside the scenarios that all providers share."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
from typing import Any

import pytest

from sanderling.errors import (
    AgentGenerationError,
    ContentFilterError,
    MissingExtraError,
    ModelAccessError,
    UnknownModelError,
)
from sanderling.messages import ChatMessage, ChatMessageToolCall, MessageRole, TokenUsage
from sanderling.messages import ChatMessageToolCallFunction as Function
from sanderling.models import (
    REMOVE_PARAMETER,
    AmazonBedrockModel,
    AmazonBedrockServerModel,
    RetryPolicy,
)
from support.dialects.bedrock import (
    BedrockDialect,
    client_arguments,
    converse,
    delta,
    ending,
    fails,
    framed,
    stream,
)
from support.dialects.dialect import Reply
from support.doors import HELLO, Door, doors, streams, wholes
from support.scripted_http import Answer, ScriptedServer, serving
from support.tools import add

CLAUDE = "us.anthropic.claude-scripted"
ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile"
DIALECT = BedrockDialect()
LIVE = os.environ.get("AWS_BEARER_TOKEN_BEDROCK") or os.environ.get("AWS_SECRET_ACCESS_KEY")
POINT = {"cachePoint": {"type": "default"}}


@pytest.fixture
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))  # the package looks there
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def model(server: ScriptedServer, model_id: str = CLAUDE, **kwargs: Any) -> AmazonBedrockModel:
    kwargs.setdefault("retry", False)
    return AmazonBedrockModel(model_id, client_kwargs=client_arguments(server), **kwargs)


def says(door: Door, reply: Reply | None = None) -> Answer:
    return (DIALECT.streamed if door.streamed else DIALECT.whole)(reply or Reply())


@doors
def test_parameters_go_to_their_places(door: Door) -> None:
    with serving(says(door)) as server:
        served = model(
            server,
            temperature=0.5,
            top_k=4,
            inferenceConfig={"maxTokens": 9},
            stop=REMOVE_PARAMETER,
            requestMetadata={"of": "test"},
        )
        door.ask(served, stop_sequences=["END"], max_tokens=5, temperature=0.9, top_p=0.1)
    (request,) = server.requests
    kind = "converse-stream" if door.streamed else "converse"
    assert request.path == f"/model/{CLAUDE}/{kind}"
    body = request.body
    assert body["inferenceConfig"] == {"maxTokens": 9, "temperature": 0.5, "topP": 0.1}
    assert body["additionalModelRequestFields"] == {"top_k": 4}
    assert body["requestMetadata"] == {"of": "test"}


@doors
def test_what_a_call_gives_to_the_model_itself(door: Door) -> None:
    with serving(says(door)) as server:
        served = model(server, additionalModelRequestFields={"top_k": 4})
        door.ask(served, top_k=5, thinking={"type": "adaptive"})
    sent = server.requests[0].body["additionalModelRequestFields"]
    assert sent == {"top_k": 4, "thinking": {"type": "adaptive"}}


@pytest.mark.parametrize(
    ("model_id", "must_call", "stops", "marks"),
    [
        (CLAUDE, True, True, True),
        (f"{ARN}/us.amazon.nova-pro-v1:0", True, True, True),
        ("mistral.mistral-large-2407-v1:0", True, True, False),
        ("us.meta.llama4-scout-17b-instruct-v1:0", False, False, False),
        ("openai.gpt-oss-120b-1:0", False, True, False),
    ],
)
def test_the_models_behind_it_differ(
    model_id: str, must_call: bool, stops: bool, marks: bool
) -> None:
    with serving(DIALECT.whole(Reply(["one END two"]))) as server:
        served = model(server, model_id)
        reply = served.generate(HELLO, stop_sequences=["END"], tools_to_call_from=[add])
    body = server.requests[0].body
    assert reply.text == ("one END two" if stops else "one ")
    assert body["toolConfig"]["tools"][0]["toolSpec"]["name"] == "add"
    assert body["toolConfig"].get("toolChoice") == ({"any": {}} if must_call else None)
    assert body.get("inferenceConfig") == ({"stopSequences": ["END"]} if stops else None)
    assert (POINT in body["messages"][0]["content"]) == marks


def test_a_schema_leaves_the_effort_as_it_is() -> None:
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
    with serving(DIALECT.whole(Reply(["{}"]))) as server:
        served = model(server, outputConfig={"effort": "low"}, capabilities={"json_schema": True})
        served.generate(HELLO, response_format=form)
    output = server.requests[0].body["outputConfig"]
    assert (output["effort"], output["textFormat"]["type"]) == ("low", "json_schema")


@pytest.mark.parametrize("kind", ["adaptive", "disabled"])
def test_thinking_excludes_that_a_tool_must_be_called(kind: str) -> None:
    with serving(DIALECT.whole(Reply())) as server:
        model(server, thinking={"type": kind}).generate(HELLO, tools_to_call_from=[add])
    choice = server.requests[0].body["toolConfig"]["toolChoice"]
    assert choice == ({"auto": {}} if kind == "adaptive" else {"any": {}})


@doors
def test_usage_counts_what_the_cache_read_and_wrote(door: Door) -> None:
    counted = {
        "inputTokens": 3,
        "outputTokens": 7,
        "totalTokens": 40,
        "cacheReadInputTokens": 20,
        "cacheWriteInputTokens": 10,
    }
    answer = stream(ending("end_turn", counted)) if door.streamed else converse([], counted=counted)
    with serving(answer) as server:
        reply = door.ask(model(server))
    assert reply.token_usage == TokenUsage(33, 7, 20, 0, 10)
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", None, "stop")


@doors
def test_redacted_thinking_goes_back(door: Door) -> None:
    data = base64.b64encode(b"\x00hidden").decode()
    hidden = {"reasoningContent": {"redactedContent": data}}
    events = [delta(0, hidden), delta(1, {"text": "Hello"}), *ending("end_turn")]
    answer = stream(events) if door.streamed else converse([hidden, {"text": "Hello"}])
    with serving(answer) as server:
        served = model(server)
        reply = door.ask(served)
        saved = ChatMessage.from_dict(json.loads(reply.model_dump_json()))
        door.ask(served, [*HELLO, saved, *HELLO])
    assert (reply.text, reply.reasoning) == ("Hello", None)
    assert server.requests[1].body["messages"][1]["content"] == [hidden, {"text": "Hello"}]


def test_an_image_within_the_result_of_a_tool() -> None:
    call = ChatMessageToolCall(Function({}, "look"), "call_1")
    pixel: list[Any] = [{"type": "image", "image": b"GIF89a"}]
    history = [
        *HELLO,
        ChatMessage(MessageRole.ASSISTANT, None, [call]),
        ChatMessage(MessageRole.TOOL_RESPONSE, pixel, tool_call_id="call_1"),
    ]
    with serving(DIALECT.whole(Reply())) as server:
        model(server).generate(history)
    (result, point) = server.requests[0].body["messages"][2]["content"]
    image = {"format": "gif", "source": {"bytes": base64.b64encode(b"GIF89a").decode()}}
    assert result == {"toolResult": {"toolUseId": "call_1", "content": [{"image": image}]}}
    assert point == POINT


def test_an_image_on_the_web_is_not_fetched() -> None:
    parts: list[Any] = [{"type": "image", "image": "https://example.org/a.png"}]
    with serving(DIALECT.whole(Reply())) as server, pytest.raises(ValueError, match="download"):
        model(server).generate([{"role": "user", "content": parts}])
    assert server.requests == []


@doors
@pytest.mark.parametrize("reason", ["content_filtered", "guardrail_intervened"])
def test_what_the_filter_withheld(door: Door, reason: str) -> None:
    answer = stream(ending(reason)) if door.streamed else converse([], reason)
    with serving(answer) as server, pytest.raises(ContentFilterError, match="withheld"):
        door.ask(model(server))
    said = stream([delta(0, {"text": "No."}), *ending(reason)])
    with serving(said if door.streamed else converse([{"text": "No."}], reason)) as server:
        reply = door.ask(model(server))
    assert (reply.text, reply.finish_reason) == ("No.", "content_filter")


@streams
def test_a_tool_call_with_broken_json_keeps_its_text(door: Door) -> None:
    start = {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t1", "name": "add"}}}
    piece = delta(0, {"toolUse": {"input": '{"a": 1'}})
    events = [("contentBlockStart", start), piece, *ending("malformed_tool_use")]
    with serving(stream(events)) as server:
        served = model(server)
        reply = served.parse_tool_calls(door.ask(served))
    assert (reply.tool_calls or [])[0].function.arguments == '{"a": 1'
    assert reply.finish_reason == "malformed_tool_use"


@streams
def test_an_error_within_a_stream(door: Door) -> None:
    broken = Answer(framed("throttlingException", {"message": "Slow down"}, "exception"))
    with serving(broken, says(door)) as server:
        assert door.ask(model(server, retry=RetryPolicy(first_wait=0))).text == "Hello world"
    with serving(broken) as server, pytest.raises(AgentGenerationError, match="Slow down") as told:
        door.ask(model(server))
    assert told.value.retryable


@streams
def test_a_stream_of_other_things(door: Door) -> None:
    odd = [
        ("newEvent", {"x": 1}),
        delta(0, {"newDelta": {"x": 1}}),
        delta(3, {"toolUse": {"input": "{}"}}),
        delta(1, {"text": "Hello"}),
        *ending("new_reason"),
    ]
    with serving(stream(odd)) as server:
        reply = door.ask(model(server))
    assert (reply.text, reply.finish_reason) == ("Hello", "new_reason")


@streams
def test_a_stream_that_is_none(door: Door) -> None:
    answer = Answer(b"<html>" * 50)
    with serving(answer) as server, pytest.raises(AgentGenerationError, match="Converse API"):
        door.ask(model(server))


@wholes
@pytest.mark.parametrize("body", ["<html>", "{}", '{"output": {"message": {}}}'])
def test_what_is_no_message(door: Door, body: str) -> None:
    with serving(Answer(body)) as server, pytest.raises(AgentGenerationError, match="Converse API"):
        door.ask(model(server))


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (fails(400, "The provided model identifier is invalid."), UnknownModelError, "AWS_REGION"),
        (fails(400, "Malformed input request"), AgentGenerationError, "Malformed"),
        (fails(403, "The security token is invalid"), ModelAccessError, "rights"),
    ],
    ids=["model", "request", "token"],
)
def test_refused_requests(answer: Answer, kind: type[AgentGenerationError], told: str) -> None:
    with serving(answer) as server, pytest.raises(kind, match=told):
        model(server).generate(HELLO)


@doors
@pytest.mark.usefixtures("_bare")
def test_missing_credentials(door: Door) -> None:
    arguments = {"region_name": "us-east-1", "endpoint_url": "http://127.0.0.1:1"}
    with pytest.raises(ModelAccessError, match="AWS_BEARER_TOKEN_BEDROCK"):
        door.ask(AmazonBedrockModel(CLAUDE, client_kwargs=arguments))


@doors
@pytest.mark.usefixtures("_bare")
def test_a_missing_region(door: Door) -> None:
    with pytest.raises(AgentGenerationError, match="AWS_REGION"):
        door.ask(AmazonBedrockModel(CLAUDE))


@doors
@pytest.mark.usefixtures("_bare")
def test_key_and_region_of_the_environment(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(says(door)) as server:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "from-env")
        monkeypatch.setenv("AWS_REGION", "eu-central-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.address)
        assert door.ask(AmazonBedrockServerModel(CLAUDE)).text == "Hello world"
    (signed,) = (request.headers["authorization"] for request in server.requests)
    assert re.search(r"Credential=AKIDTEST/\d+/eu-central-1/bedrock/", signed)


@doors
def test_a_missing_package(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sanderling\[bedrock\]'"):
        door.ask(AmazonBedrockModel(CLAUDE))


@doors
def test_a_client_of_ones_own(door: Door) -> None:
    import boto3

    with serving(says(door)) as server:
        client = boto3.client("bedrock-runtime", **client_arguments(server))
        assert door.ask(AmazonBedrockModel(CLAUDE, client)).text == "Hello world"
        client.close()


def test_cancelling_closes_the_connection_of_a_client_of_ones_own() -> None:
    import boto3

    async def main(server: ScriptedServer) -> None:
        client = boto3.client("bedrock-runtime", **client_arguments(server))
        stream = AmazonBedrockModel(CLAUDE, client).agenerate_stream(HELLO)
        await anext(stream)
        waiting = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    with serving(DIALECT.streamed(Reply(["Hello"], stall=True))) as server:
        asyncio.run(main(server))
        assert server.hung_up.wait(10)


def test_settings_load_back_without_secrets() -> None:
    arguments = {"region_name": "us-east-1", "aws_secret_access_key": "sk-secret"}
    made = AmazonBedrockServerModel(CLAUDE, client_kwargs=arguments, temperature=0.5)
    data = json.loads(json.dumps(made.to_dict()))
    assert data["missing_secrets"] == ["client_kwargs.aws_secret_access_key"]
    with pytest.raises(ValueError, match=r"sets client_kwargs, .*region_name"):
        AmazonBedrockModel.from_dict(data)
    loaded = AmazonBedrockModel.from_dict(data, client_kwargs=arguments)
    assert loaded.client_kwargs == arguments
    assert "sk-secret" not in str(data)


@pytest.mark.skipif(not LIVE, reason="asks the real provider: no AWS credentials are set")
@doors
def test_live(door: Door) -> None:
    served = AmazonBedrockModel("us.anthropic.claude-haiku-4-5-20251001-v1:0", max_tokens=50)
    assert door.ask(served, stop_sequences=["5"]).token_usage
