"""A server of our own that answers from a script, over real HTTP."""

from __future__ import annotations

import json
import select
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
        stall: Keep the connection open after the body, until the client hangs up or the server is
            closed.
        cut: Announce a longer body than is sent, then hang up.
        chunked: Announce no length, and send the body as one chunk.
        endless: Send this again and again after the body, until the client hangs up.
    """

    body: str | bytes
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    stall: bool = False
    cut: bool = False
    chunked: bool = False
    endless: bytes = b""


@dataclass(frozen=True)
class Request:
    """A request that came in; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


def server_sent(events: Sequence[Any], end: str = "", **fields: Any) -> Answer:
    """Answers with server-sent events, each one JSON."""
    lines = "".join(f"data: {json.dumps(each)}\n\n" for each in events)
    return Answer(lines + end, content_type=EVENTS, **fields)


class ScriptedServer:
    """The server.

    Attributes:
        requests: Those that came in, in order.
        hung_up: Set when a client closed the connection of an answer that stalls.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self.hung_up = threading.Event()
        self._answers = list(answers)
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def address(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def url(self) -> str:
        """What a client of chat completions takes as its base address."""
        return f"{self.address}/v1"

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
def serving(*answers: Answer) -> Iterator[ScriptedServer]:
    with ScriptedServer(answers) as server:
        yield server


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                body = b"".join(self._chunks())
            else:
                body = self.rfile.read(int(self.headers["content-length"]))
            self._answer(json.loads(body))

        def _chunks(self) -> Iterator[bytes]:
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

        def _answer(self, body: Any) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = server.answer(Request(self.path, headers, body))
            data = answer.body.encode() if isinstance(answer.body, str) else answer.body
            self.send_response(answer.status)
            self.send_header("content-type", answer.content_type)
            unfinished = answer.stall or answer.cut or answer.endless != b""
            if answer.chunked or answer.endless:
                self.send_header("transfer-encoding", "chunked")
                data = f"{len(data):x}\r\n".encode() + data + b"\r\n" if data else b""
                data += b"" if unfinished else b"0\r\n\r\n"
            else:
                self.send_header("content-length", str(len(data) + 1_000 * unfinished))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()
            if answer.endless:
                self._go_on(answer.endless)
            if answer.stall:
                self._stall()
            if unfinished:
                self.close_connection = True

        def _go_on(self, more: bytes) -> None:
            with suppress(ConnectionError):
                while not server.closing.is_set():
                    self.wfile.write(f"{len(more):x}\r\n".encode() + more + b"\r\n")
            server.hung_up.set()

        def _stall(self) -> None:
            while not server.closing.is_set():
                ready, _, _ = select.select([self.connection], [], [], 0.02)
                if ready and not self._more():
                    server.hung_up.set()
                    return

        def _more(self) -> bool:
            try:
                return bool(self.connection.recv(1))
            except OSError:
                return False

        def log_message(self, *_: object) -> None:
            pass

    return Handler
