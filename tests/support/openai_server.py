"""What a server of chat completions says, for a `ScriptedServer`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from support.scripted_http import Answer as Answer
from support.scripted_http import Request as Request
from support.scripted_http import ScriptedServer as OpenAIServer
from support.scripted_http import server_sent
from support.scripted_http import serving as serving

__all__ = ["Answer", "OpenAIServer", "Request", "serving"]


def usage(
    prompt: int = 11, completion: int = 7, cached: int = 0, reasoning: int = 0
) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def says(text: str | None, finish_reason: str = "stop", **message: Any) -> Answer:
    """Answers with a whole message; give ``tool_calls=`` and the like as they are."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": finish_reason,
    }
    return completion([choice], usage())


def completion(choices: Sequence[Any], usage: Any = None) -> Answer:
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "scripted"}
    return Answer(json.dumps({**body, "choices": choices, "usage": usage}))


def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}],
    }


def streams(*pieces: str | Mapping[str, Any], finish_reason: str | None = "stop") -> Answer:
    """Streams pieces of text, or whole deltas, then the finish, the usage and the end mark."""
    chunks = [chunk({"content": piece} if isinstance(piece, str) else piece) for piece in pieces]
    chunks.append(chunk({}, finish_reason))
    chunks.append({**chunk({}), "choices": [], "usage": usage()})
    return events(chunks)


def events(chunks: Sequence[Any], end: str = "data: [DONE]\n\n", **fields: Any) -> Answer:
    return server_sent(chunks, end, **fields)


def fails(status: int, message: str, code: str | None = None, **headers: str) -> Answer:
    body = {"error": {"message": message, "type": "error", "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(body), status=status, headers={"x-request-id": "req-42", **named})
