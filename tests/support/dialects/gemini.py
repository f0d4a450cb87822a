"""Gemini's generateContent and streamGenerateContent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sanderling.models import GeminiModel, Model
from support.dialects.dialect import FEATURES, SIGNATURE, Call, Dialect, Reply, Sent
from support.scripted_http import Answer, Request, ScriptedServer, server_sent

FINISH = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS"}
STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED"}
STATUS |= {404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


class GeminiDialect(Dialect):
    name = "GeminiModel"
    package = "google.genai"
    offers = frozenset(FEATURES) - {"image_url", "cache_marks"}
    too_long = (
        400,
        "The input token count (9) exceeds the maximum number of tokens allowed (8).",
    )

    def model(self, server: ScriptedServer, **kwargs: Any) -> Model:
        kwargs.setdefault("retry", False)
        return GeminiModel("gemini-scripted", "sk-test", server.address, **kwargs)

    def whole(self, reply: Reply) -> Answer:
        return response(list(_parts(reply, [reply.text])), FINISH[reply.finish], usage(reply))

    def streamed(self, reply: Reply) -> Answer:
        pieces = [piece([part]) for part in _parts(reply, reply.pieces)]
        if reply.ends and not reply.stall:
            # The end of a reply comes with an empty text, or with its last part.
            end = piece([{"text": ""}], FINISH[reply.finish], usage(reply))
            return server_sent([*pieces, end])
        return server_sent(pieces, stall=reply.stall, cut=not reply.stall)

    def fails(self, status: int, message: str, headers: Mapping[str, str]) -> Answer:
        return fails(status, message, **headers)

    def sent(self, request: Request) -> Sent:
        body = request.body
        turns = [(turn["role"], turn["parts"]) for turn in body["contents"]]
        if "systemInstruction" in body:
            turns.insert(0, ("system", body["systemInstruction"]["parts"]))
        parts = [part for _, content in turns for part in content]
        config = body.get("generationConfig", {})
        return Sent(
            [(role, _text(content)) for role, content in turns],
            [_url(part["inlineData"]) for part in parts if "inlineData" in part],
            config.get("stopSequences") or (),
            [
                declared["name"]
                for tool in body.get("tools", ())
                for declared in tool["functionDeclarations"]
            ],
            config.get("responseJsonSchema"),
            0,
            [part["thoughtSignature"] for part in parts if "thoughtSignature" in part],
        )


def piece(parts: Any, reason: str | None = None, counted: Any = None) -> dict[str, Any]:
    """Returns an answer, whole or a piece of a streamed one."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "usageMetadata": counted or {"promptTokenCount": 11}}


def response(parts: Any, reason: str = "STOP", counted: Any = None) -> Answer:
    """Answers with a whole message."""
    return Answer(json.dumps(piece(parts, reason, counted or usage(Reply()))))


def fails(status: int, message: str, details: Any = (), **headers: str) -> Answer:
    """Refuses."""
    about = {"code": status, "message": message, "status": STATUS.get(status, "UNKNOWN")}
    body = {"error": {**about, "details": list(details)}}
    return Answer(json.dumps(body), status, headers={"x-request-id": "req-42", **headers})


def usage(reply: Reply) -> dict[str, int]:
    return {
        "promptTokenCount": reply.input_tokens,
        "candidatesTokenCount": reply.output_tokens - reply.reasoning_tokens,
        "thoughtsTokenCount": reply.reasoning_tokens,
        "cachedContentTokenCount": reply.cached,
        "totalTokenCount": reply.input_tokens + reply.output_tokens,
    }


def _parts(reply: Reply, texts: Any) -> Iterator[dict[str, Any]]:
    signed = {"thoughtSignature": SIGNATURE} if reply.reasoning else {}
    if reply.reasoning:
        yield {"text": reply.reasoning, "thought": True}
    said = [{"text": each} for each in texts if each]
    calls = [{"functionCall": _call(call)} for call in reply.calls]
    for place, part in enumerate([*said, *calls]):
        yield {**part, **(signed if place == (0 if calls else len(said) - 1) else {})}


def _call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "args": dict(call.arguments)}


def _text(parts: Any) -> str:
    return "\n".join(part["text"] for part in parts if part.get("text") and "thought" not in part)


def _url(data: Mapping[str, str]) -> str:
    # The package sends some names as its own classes have them; the server takes both forms.
    return f"data:{data['mime_type']};base64,{data['data']}"
