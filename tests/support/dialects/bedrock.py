"""Bedrock's Converse, streamed in the event stream encoding of AWS."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sanderling.models import AmazonBedrockModel, Model
from support.dialects.dialect import FEATURES, SIGNATURE, Call, Dialect, Reply, Sent
from support.scripted_http import Answer, Request, ScriptedServer

FINISH = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
ERRORS = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}
Event = tuple[str, Mapping[str, Any]]


class BedrockDialect(Dialect):
    name = "AmazonBedrockModel"
    package = "boto3"
    offers = frozenset(FEATURES) - {"image_url"}
    too_long = (400, "Input is too long for requested model.")

    def model(self, server: ScriptedServer, **kwargs: Any) -> Model:
        kwargs.setdefault("retry", False)
        return AmazonBedrockModel(
            "anthropic.scripted", client_kwargs=client_arguments(server), **kwargs
        )

    def whole(self, reply: Reply) -> Answer:
        blocks: list[dict[str, Any]] = []
        if reply.reasoning:
            thought = {"text": reply.reasoning, "signature": SIGNATURE}
            blocks.append({"reasoningContent": {"reasoningText": thought}})
        if reply.text:
            blocks.append({"text": reply.text})
        blocks += [{"toolUse": {**_call(call), "input": call.arguments}} for call in reply.calls]
        return converse(blocks, FINISH[reply.finish], usage(reply))

    def streamed(self, reply: Reply) -> Answer:
        events = list(_events(reply))
        if reply.ends and not reply.stall:
            return stream([*events, *ending(FINISH[reply.finish], usage(reply))])
        return stream(events, stall=reply.stall, cut=not reply.stall)

    def fails(self, status: int, message: str, headers: Mapping[str, str]) -> Answer:
        return fails(status, message, **headers)

    def sent(self, request: Request) -> Sent:
        body = request.body
        turns = [("system", body.get("system", []))] if "system" in body else []
        turns += [(turn["role"], turn["content"]) for turn in body["messages"]]
        blocks = [block for _, content in turns for block in content]
        form = body.get("outputConfig", {}).get("textFormat", {}).get("structure", {})
        schema = form.get("jsonSchema", {}).get("schema")
        thoughts = [
            block["reasoningContent"]["reasoningText"]
            for block in blocks
            if "reasoningContent" in block
        ]
        return Sent(
            [(role, _text(content)) for role, content in turns],
            [_url(block["image"]) for block in blocks if "image" in block],
            body.get("inferenceConfig", {}).get("stopSequences") or (),
            [tool["toolSpec"]["name"] for tool in body.get("toolConfig", {}).get("tools", ())],
            schema and json.loads(schema),
            sum("cachePoint" in block for block in blocks),
            [thought["signature"] for thought in thoughts],
        )


def client_arguments(server: ScriptedServer) -> dict[str, Any]:
    """Returns what makes a client of the package ask the server."""
    return {
        "endpoint_url": server.address,
        "region_name": "us-east-1",
        "aws_access_key_id": "AKIDTEST",
        "aws_secret_access_key": "sk-test",
    }


def converse(blocks: Any, reason: str = "end_turn", counted: Any = None) -> Answer:
    """Answers with a whole message."""
    body = {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": reason,
        "usage": counted or usage(Reply()),
        "metrics": {"latencyMs": 1},
    }
    return Answer(json.dumps(body))


def stream(events: Sequence[Event], **fields: Any) -> Answer:
    """Streams events."""
    body = b"".join(framed(name, payload) for name, payload in events)
    return Answer(body, content_type="application/vnd.amazon.eventstream", chunked=True, **fields)


def framed(name: str, payload: Mapping[str, Any], kind: str = "event") -> bytes:
    """Returns one event in the encoding of AWS.

    https://smithy.io/2.0/aws/amazon-eventstream.html
    """
    of_kind = ":exception-type" if kind == "exception" else ":event-type"
    values = {of_kind: name, ":content-type": "application/json", ":message-type": kind}
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in values.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 12 + len(headers) + len(body) + 4, len(headers))
    begun = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return begun + struct.pack(">I", zlib.crc32(begun))


def delta(index: int, what: Mapping[str, Any]) -> Event:
    """Returns the event for a piece of a block."""
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": what}


def ending(reason: str, counted: Any = None) -> list[Event]:
    """Returns the events that end a reply."""
    metadata = {"usage": counted or usage(Reply()), "metrics": {"latencyMs": 1}}
    return [("messageStop", {"stopReason": reason}), ("metadata", metadata)]


def fails(status: int, message: str, **headers: str) -> Answer:
    """Refuses."""
    kind = ERRORS.get(status, "ValidationException")
    about = {"x-amzn-requestid": "req-42", "x-amzn-errortype": kind}
    return Answer(json.dumps({"message": message}), status, headers={**about, **headers})


def usage(reply: Reply) -> dict[str, int]:
    return {
        "inputTokens": reply.input_tokens - reply.cached,
        "outputTokens": reply.output_tokens,
        "totalTokens": reply.input_tokens + reply.output_tokens,
        "cacheReadInputTokens": reply.cached,
        "cacheWriteInputTokens": 0,
    }


def _events(reply: Reply) -> Iterator[Event]:
    yield "messageStart", {"role": "assistant"}
    index = 0
    if reply.reasoning:
        thought = [{"text": reply.reasoning[:2]}, {"text": reply.reasoning[2:]}]
        for piece in (*thought, {"signature": SIGNATURE}):
            yield delta(index, {"reasoningContent": piece})
        yield "contentBlockStop", {"contentBlockIndex": index}
        index += 1
    if reply.pieces:
        for said in reply.pieces:
            yield delta(index, {"text": said})
        yield "contentBlockStop", {"contentBlockIndex": index}
        index += 1
    for place, call in enumerate(reply.calls, index):
        arguments = json.dumps(call.arguments)
        start = {"contentBlockIndex": place, "start": {"toolUse": _call(call)}}
        yield "contentBlockStart", start
        for argument in (arguments[:3], arguments[3:]):
            yield delta(place, {"toolUse": {"input": argument}})
        yield "contentBlockStop", {"contentBlockIndex": place}


def _call(call: Call) -> dict[str, Any]:
    return {"toolUseId": call.id, "name": call.name}


def _text(blocks: Any) -> str:
    return "\n".join(block["text"] for block in blocks if "text" in block)


def _url(image: Mapping[str, Any]) -> str:
    data = image["source"]["bytes"]
    base64.b64decode(data, validate=True)
    return f"data:image/{image['format']};base64,{data}"
