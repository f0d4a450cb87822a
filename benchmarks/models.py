"""What models cost on our side: making requests, and reading streamed replies."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sanderling import ChatMessage, MessageRole, OpenAIModel
from sanderling.messages import ImagePart, TextPart

from .figures import Figure, show

LENGTHS = (10, 100, 1_000)
CHUNKS = 1_000
_PNG = b"\x89PNG\r\n\x1a\n" + bytes(200_000)


def _history(length: int) -> list[ChatMessage]:
    """A conversation in which every tenth message holds an image."""
    messages = []
    for number in range(length):
        role = MessageRole.ASSISTANT if number % 2 else MessageRole.USER
        text = TextPart(f"Message {number}. " * 20)
        image = [ImagePart(_PNG)] if number % 20 == 0 else []
        messages.append(ChatMessage(role, [text, *image]))
    return messages


def _least(work: Callable[[], object], rounds: int) -> float:
    """Returns the least CPU seconds of several rounds: the least disturbed one."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def _requests() -> list[Figure]:
    from sanderling.models._question import Question

    model = OpenAIModel("any", "http://localhost:1/v1", "none")
    costs = {}
    for length in LENGTHS:
        history = _history(length)
        model._prepare(Question(history))  # encodes the images
        costs[length] = _least(lambda: model._prepare(Question(history)), 7) / length  # noqa: B023 - called at once
    figures = [
        Figure(f"a message of {length}, in a request", costs[length] * 1e6, "µs")
        for length in LENGTHS[:-1]
    ]
    last = LENGTHS[-1]
    return [
        *figures,
        Figure(
            f"a message of {last:,}, in a request",
            costs[last] * 1e6,
            "µs",
            costs[100] * 1e6,
            1.3,
            goal_is_ratio=True,
        ),
    ]


def _streams() -> Figure:
    with _server() as url:
        model = OpenAIModel("any", url, "none", retry=False)
        messages = [{"role": "user", "content": "go"}]

        def ours() -> int:
            return sum(1 for _ in model.generate_stream(messages))

        def bare() -> int:
            create = model.client.chat.completions.create
            with create(model="any", messages=messages, stream=True) as chunks:
                return sum(1 for chunk in chunks if chunk.choices[0].delta.content)

        ours(), bare()
        return Figure(
            f"a streamed reply of {CHUNKS:,} chunks, CPU",
            _least(ours, 7) * 1e3,
            "ms",
            _least(bare, 7) * 1e3,
            1.3,
            goal_is_ratio=True,
        )


@contextmanager
def _server() -> Iterator[str]:
    """Streams chunks, from a process of its own: its CPU time is not counted."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.terminate()
        process.join()


def _serve(pipe: object) -> None:
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    pipe.send(http.server_port)  # type: ignore[attr-defined]  # a Connection, whose type is private
    http.serve_forever()


def _body() -> bytes:
    def chunk(delta: dict[str, str], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "any"}
        return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"

    words = [chunk({"content": f"word{number} "}) for number in range(CHUNKS)]
    return ("".join(words) + chunk({}, "stop") + "data: [DONE]\n\n").encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    body = _body()

    def do_POST(self) -> None:
        """Answers with the stream."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Is silent."""


def measure() -> list[Figure]:
    """Returns the cost of a message by the length of its history, and that of a stream."""
    return [*_requests(), _streams()]


def main() -> bool:
    """Prints the figures."""
    return show("Models (floor: at 100 messages, and the bare package)", measure())


if __name__ == "__main__":
    main()
