"""Blaxel on the loopback: its control plane, and the interface of its sandboxes.

It speaks the REST that the SDK speaks, with output as lines of JSON. The sandboxes are processes of
this machine.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.machines import Machines, Process

KEY, WORKSPACE = "bl_0123456789", "workspace"


class BlaxelServer(Machines):
    """What the SDK talks to.

    Attributes:
        url: Of the control plane; that of a sandbox is below it.
    """

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.by_name: dict[str, tuple[str, list[Process]]] = {}


class _Handler(BaseHTTPRequestHandler):
    provider: BlaxelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        body, path = self._body(), self.path.strip("/").split("?")[0].split("/")
        if KEY not in str(self.headers):
            self._answer(401, {"error": "no such key"})
        elif path == ["sandboxes"]:
            self._create(json.loads(body))
        elif path[2:] == ["process"]:
            self._run(path[1], json.loads(body))
        elif path[2] == "process" and path[-1] == "stdin":
            try:
                self.provider.by_name[path[1]][1][-1].write(body)
            except BrokenPipeError:
                self._answer(409, {"code": 409, "error": "Conflict", "message": "it has ended"})
            else:
                self._answer(200, {"message": "written"})

    def do_DELETE(self) -> None:
        name = self.path.rpartition("/")[2]
        self.provider.asked.append((f"DELETE {name}", None))
        self.provider.end(self.provider.by_name[name][0])
        self._answer(200, self._record(name))

    def _record(self, name: str) -> dict[str, object]:
        url = f"{self.provider.url}/sandbox/{name}"
        return {"metadata": {"name": name, "url": url}, "spec": {}, "status": "DEPLOYED"}

    def _create(self, wanted: dict[str, Any]) -> None:
        self.provider.asked.append(("POST sandboxes", wanted))
        if self.provider.refuse:
            told = {"code": 400, "error": "Bad Request", "message": self.provider.refuse}
            self._answer(400, told)
            return
        name = wanted["metadata"]["name"]
        machine = self.provider.create()
        self.provider.by_name[name] = (machine, self.provider.processes[machine])
        self._answer(200, self._record(name))

    def _run(self, name: str, wanted: dict[str, Any]) -> None:
        machine, _ = self.provider.by_name[name]
        process = self.provider.start(machine, "sh", "-c", wanted["command"])
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Connection", "close")
        self.end_headers()
        rest = b""
        for stream, data in process.output():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._tell(stream, line.decode())
        code = process.popen.returncode
        status = "completed" if code == 0 else "failed"
        result = {"pid": str(process.pid), "status": status, "exitCode": code, "name": "x"}
        self._tell("result", json.dumps({**result, "stdout": "", "stderr": "", "logs": ""}))

    def _tell(self, kind: str, data: str) -> None:
        self.wfile.write(json.dumps({"type": kind, "data": data}).encode() + b"\n")
        self.wfile.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a client that has gone away is no fault."""


@contextmanager
def blaxel_server() -> Iterator[BlaxelServer]:
    """Serves on the loopback."""
    provider = BlaxelServer()
    handler = type("Handler", (_Handler,), {"provider": provider})
    with _Server(("127.0.0.1", 0), handler) as http:
        provider.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield provider
        finally:
            provider.close()
            http.shutdown()
            thread.join()
