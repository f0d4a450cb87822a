"""As much of the Hub as a download needs: repositories are folders, and some want a token.

https://huggingface.co/docs/hub/api
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0" * 39 + "1"


class HubServer(ThreadingHTTPServer):
    """Serves ``{"owner/name": folder}``; `gated` is open to `token` only.

    Attributes:
        downloaded: The files that were sent.
    """

    def __init__(self, repositories: Mapping[str, Path], gated: str | None, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories = repositories
        self.gated = gated
        self.token = token
        self.downloaded: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def hub(
    repositories: Mapping[str, Path], gated: str | None = None, token: str = ""
) -> Iterator[HubServer]:
    with HubServer(repositories, gated, token) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, body: bool) -> None:
        path = self.path.partition("?")[0].strip("/").removeprefix("api/models/")
        repository, name = "/".join(path.split("/")[:2]), path.partition("/resolve/")[2]
        folder = self.server.repositories.get(repository)
        file = None if folder is None else folder / name.partition("/")[2]
        if folder is None:
            self._refuse(401, "RepoNotFound")  # to strangers the Hub says no more
        elif repository == self.server.gated and not self._authorized():
            self._refuse(401, "GatedRepo")
        elif file is None or not file.is_file():
            self._refuse(404, "EntryNotFound")
        else:
            data = file.read_bytes()
            self.send_response(200)
            self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.server.downloaded.append(f"{repository}/{file.name}")
                self.wfile.write(data)

    def _authorized(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.server.token}"

    def _refuse(self, status: int, code: str) -> None:
        data = json.dumps({"error": code}).encode()
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", code)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
