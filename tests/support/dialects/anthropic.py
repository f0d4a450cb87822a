"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sanderling.models import AnthropicModel, Model
from support.dialects.dialect import FEATURES, SIGNATURE, Call, Dialect, Reply, Sent
from support.scripted_http import EVENTS, Answer, Request, ScriptedServer

FINISH = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


class AnthropicDialect(Dialect):
    name = "AnthropicModel"
    package = "anthropic"
    offers = frozenset(FEATURES)
    too_long = (400, "prompt is too long: 210000 tokens > 200000 maximum")
    filtered = (400, "Output blocked by content filtering policy")

    def model(self, server: ScriptedServer, **kwargs: Any) -> Model:
        kwargs.setdefault("retry", False)
        return AnthropicModel("claude-scripted", "sk-test", server.address, **kwargs)

    def whole(self, reply: Reply) -> Answer:
        blocks: list[dict[str, Any]] = []
        if reply.reasoning:
            blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": SIGNATURE})
        if reply.text:
            blocks.append({"type": "text", "text": reply.text})
        blocks += [{**_call(call), "input": dict(call.arguments)} for call in reply.calls]
        return message(blocks, FINISH[reply.finish], usage(reply))

    def streamed(self, reply: Reply) -> Answer:
        events = list(_events(reply))
        if reply.ends and not reply.stall:
            return stream([*events, *ending(FINISH[reply.finish], usage(reply))])
        return stream(events, stall=reply.stall, cut=not reply.stall)

    def fails(self, status: int, message: str, headers: Mapping[str, str]) -> Answer:
        return fails(status, message, **headers)

    def sent(self, request: Request) -> Sent:
        body = request.body
        texts = [("system", _text(body["system"]))] if "system" in body else []
        blocks = [block for turn in body["messages"] for block in turn["content"]]
        texts += [(turn["role"], _text(turn["content"])) for turn in body["messages"]]
        form = (body.get("output_config") or {}).get("format") or {}
        return Sent(
            texts,
            [_url(block["source"]) for block in blocks if block["type"] == "image"],
            body.get("stop_sequences") or (),
            [tool["name"] for tool in body.get("tools") or ()],
            form.get("schema"),
            sum("cache_control" in block for block in [*body.get("system", ()), *blocks]),
            [block["signature"] for block in blocks if block["type"] == "thinking"],
        )


def message(blocks: Any, reason: str = "end_turn", counted: Any = None, **fields: Any) -> Answer:
    """Answers with a whole message."""
    return Answer(
        json.dumps(
            {
                **_HEAD,
                "content": blocks,
                "stop_reason": reason,
                "usage": counted or usage(Reply()),
                **fields,
            }
        )
    )


def stream(events: Any, **fields: Any) -> Answer:
    """Streams events."""
    lines = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events]
    return Answer("".join(lines), content_type=EVENTS, **fields)


def start(counted: Any = None) -> dict[str, Any]:
    """Returns the event that begins a message."""
    head: dict[str, Any] = {
        **_HEAD,
        "content": [],
        "stop_reason": None,
        "usage": counted or usage(Reply()),
    }
    return {"type": "message_start", "message": head}


def block(index: int, begun: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the events of one block."""
    events: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": index, "content_block": dict(begun)}
    ]
    events += [
        {"type": "content_block_delta", "index": index, "delta": dict(delta)} for delta in deltas
    ]
    return [*events, {"type": "content_block_stop", "index": index}]


def ending(reason: str, counted: Any = None, **fields: Any) -> list[dict[str, Any]]:
    """Returns the events that end a message."""
    delta = {"stop_reason": reason, "stop_sequence": None, **fields}
    return [
        {"type": "message_delta", "delta": delta, "usage": counted or usage(Reply())},
        {"type": "message_stop"},
    ]


def fails(status: int, message: str, kind: str = "invalid_request_error", **headers: str) -> Answer:
    """Refuses."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req-42"}
    return Answer(json.dumps(body), status, headers={"request-id": "req-42", **headers})


def usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.input_tokens - reply.cached,
        "cache_read_input_tokens": reply.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"thinking_tokens": reply.reasoning_tokens},
    }


_HEAD: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-scripted",
}


def _events(reply: Reply) -> Iterator[dict[str, Any]]:
    yield start({**usage(reply), "output_tokens": 1})
    yield {"type": "ping"}
    index = 0
    if reply.reasoning:
        yield from block(
            index,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": reply.reasoning[:2]},
            {"type": "thinking_delta", "thinking": reply.reasoning[2:]},
            {"type": "signature_delta", "signature": SIGNATURE},
        )
        index += 1
    if reply.pieces:
        deltas = [{"type": "text_delta", "text": piece} for piece in reply.pieces]
        yield from block(index, {"type": "text", "text": ""}, *deltas)
        index += 1
    for place, call in enumerate(reply.calls):
        arguments = json.dumps(call.arguments)
        pieces = ("", arguments[:3], arguments[3:])
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        yield from block(index + place, {**_call(call), "input": {}}, *deltas)


def _call(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _text(blocks: Any) -> str:
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _url(source: Mapping[str, str]) -> str:
    if source["type"] == "url":
        return source["url"]
    return f"data:{source['media_type']};base64,{source['data']}"
