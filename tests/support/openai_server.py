"""A server of our own that speaks chat completions from a script, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

JSON = "application/json"
EVENTS = "text/event-stream"


@dataclass(frozen=True)
class Answer:
    """What the server sends back to one request.

    Attributes:
        body: The whole body, or the first part of it.
        stall: Keep the connection open after the body, until the server is closed.
        cut: Announce a longer body than is sent, then hang up.
    """

    body: str | bytes
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    stall: bool = False
    cut: bool = False


@dataclass(frozen=True)
class Request:
    """A request that came in."""

    path: str
    headers: Mapping[str, str]
    body: Any


def usage(prompt: int = 11, completion: int = 7, cached: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
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
    lines = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks)
    return Answer(lines + end, content_type=EVENTS, **fields)


def fails(status: int, message: str, **headers: str) -> Answer:
    body = {"error": {"message": message, "type": "error", "code": None}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(body), status=status, headers={"x-request-id": "req-42", **named})


class OpenAIServer:
    """The server; `url` is what a client takes as its base address.

    Attributes:
        requests: Those that came in, in order.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._answers = list(answers)
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def answer(self, request: Request) -> Answer:
        """Returns the next answer; the last one is repeated."""
        with self._lock:
            self.requests.append(request)
            return self._answers[min(len(self.requests), len(self._answers)) - 1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@contextmanager
def serving(*answers: Answer) -> Iterator[OpenAIServer]:
    with OpenAIServer(answers) as server:
        yield server


def _handler(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self._answer(json.loads(body))

        def _answer(self, body: Any) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = server.answer(Request(self.path, headers, body))
            data = answer.body.encode() if isinstance(answer.body, str) else answer.body
            self.send_response(answer.status)
            self.send_header("content-type", answer.content_type)
            length = len(data) + (1_000 if answer.stall or answer.cut else 0)
            self.send_header("content-length", str(length))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()
            if answer.stall:
                server.closing.wait(30)
            if answer.stall or answer.cut:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    return Handler
