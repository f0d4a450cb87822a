"""E2B on the loopback: its control plane, and envd, the service inside its machines.

It speaks what the SDK speaks: REST for machines, Connect RPC for processes, with the service that
the SDK's own protocol definition generates. The machines are processes of this one.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from support.machines import Machines, Process

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

KEY = "e2b_0123456789"


class E2BServer(Machines):
    """What the SDK talks to.

    Attributes:
        url: Of the control plane and of every machine.
    """

    url = ""

    def __init__(self) -> None:
        from e2b.envd.process.process_connect import ProcessWSGIApplication

        super().__init__()
        self.processes_by_pid: dict[int, Process] = {}
        self._envd = ProcessWSGIApplication(_Processes(self))  # type: ignore[arg-type]  # all that is called

    @property
    def options(self) -> dict[str, Any]:
        """What points the SDK to it."""
        urls = dict.fromkeys(("api_url", "sandbox_url"), self.url)
        return {**urls, "api_key": KEY, "http_version": "1.1"}

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Any:
        path = environ["PATH_INFO"]
        # wsgiref leaves the end of a body to its applications.
        body = environ["wsgi.input"]
        if environ.get("HTTP_TRANSFER_ENCODING") == "chunked":
            data = _unchunked(body)
        else:
            data = body.read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(data)
        if path.startswith("/process."):
            return self._envd(environ, start)
        wanted = json.loads(data or "null")
        if environ.get("HTTP_X_API_KEY") != KEY:
            return _answer(start, "401 Unauthorized", {"code": 401, "message": "no such key"})
        self.asked.append((f"{environ['REQUEST_METHOD']} {path}", wanted))
        return self._control(environ["REQUEST_METHOD"], path.split("/")[1:], start)

    def _control(self, method: str, path: list[str], start: StartResponse) -> Any:
        if method == "POST" and path[-1] == "sandboxes":
            if self.refuse:
                return _answer(start, "400 Bad Request", {"code": 400, "message": self.refuse})
            name = self.create()
            made = {"sandboxID": name, "envdAccessToken": name, "envdVersion": "0.5.0"}
            return _answer(start, "201 Created", {**made, "templateID": "t", "clientID": "c"})
        if method == "DELETE":
            gone = self.end(path[-1])
            return _answer(start, "204 No Content" if gone else "404 Not Found", None)
        return _answer(start, "204 No Content", None)


def _unchunked(body: Any) -> bytes:
    """Reads a body that comes in chunks."""
    data = b""
    while size := int(body.readline(), 16):
        data += body.read(size)
        body.readline()
    body.readline()
    return data


def _answer(start: StartResponse, status: str, body: object) -> list[bytes]:
    data = b"" if body is None else json.dumps(body).encode()
    start(status, [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
    return [data]


class _Processes:
    """The process service of envd. The access token tells the machine."""

    def __init__(self, server: E2BServer) -> None:
        self._server = server

    def start(self, request: Any, context: Any) -> Iterator[Any]:
        from e2b.envd.process import process_pb as pb
        from protobuf import Oneof

        machine = context.request_headers["x-access-token"]
        # Not as a login shell, which would find the system's Python.
        arguments = [each for each in request.process.args if each != "-l"]
        process = self._server.start(machine, request.process.cmd, *arguments)
        self._server.processes_by_pid[process.pid] = process
        event = pb.ProcessEvent

        def said(kind: Any, value: Any) -> Any:
            return pb.StartResponse(event=event(event=Oneof(kind, value)))

        yield said("start", event.StartEvent(pid=process.pid))
        for name, data in process.output():
            yield said("data", event.DataEvent(output=Oneof(name, data)))  # type: ignore[arg-type]
        code = process.popen.returncode
        yield said("end", event.EndEvent(exit_code=code, exited=True, status=f"exit {code}"))

    def send_input(self, request: Any, context: Any) -> Any:
        from connectrpc.code import Code
        from connectrpc.errors import ConnectError
        from e2b.envd.process import process_pb as pb

        try:
            process = self._server.processes_by_pid[request.process.selector.value]
            process.write(request.input.input.value)
        except BrokenPipeError as error:
            raise ConnectError(Code.NOT_FOUND, "the process has ended") from error
        return pb.SendInputResponse()

    def connect(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    list = update = stream_input = send_signal = close_stdin = connect


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a client that has gone away is no fault."""


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def e2b_server() -> Iterator[E2BServer]:
    """Serves on the loopback."""
    server = E2BServer()
    with make_server("127.0.0.1", 0, server, _Server, _Quiet) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.close()
            http.shutdown()
            thread.join()
