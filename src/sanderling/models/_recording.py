r"""Models whose replies are written down, and given again without asking anybody.

A recording is a file of JSON lines. The first one is the header::

    {"format": "sanderling.recording", "version": 1, "model_id": ..., "profile": ...,
     "takes_tool_messages": ..., "secret_settings": [...]}

and each other one a request with what became of it, in the order of the replies::

    {"key": sha256 of the request, "request": {...}, "reply": message} or {..., "error": error}

Requests and messages are in their JSON forms. Settings that are secret are left out, and what looks
like a secret within a text is masked, when a request is recorded and when it is looked for.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import threading
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sanderling._secrets import masked
from sanderling.errors import AgentError, AgentGenerationError
from sanderling.messages import ChatMessage, ChatMessageStreamDelta, agglomerate_stream_deltas

from ._base import Model, ToolLike, given_arguments
from ._callable import as_message
from ._copies import OwnLock, Shared
from ._form import saved
from ._profile import as_profile
from ._scripted import spelled

if TYPE_CHECKING:
    from sanderling.messages import JSONObject, JSONValue, MessageLike

_FORMAT = "sanderling.recording"
_VERSION = 1
_MAX_DIFF_LINES = 40


class RecordingModel(Model):
    """Asks another model, and writes each request and reply into a file, for a `ReplayModel`.

    Args:
        model: Who is asked.
        path: The file, made at once. Only its owner can read it.
        overwrite: Whether a file that is there already may be replaced.

    Raises:
        FileExistsError: The file is there already.
    """

    def __init__(self, model: Model, path: str | Path, overwrite: bool = False) -> None:
        super().__init__(model_id=model.model_id)
        self.model = model
        self.path = Path(path)
        self.profile = model.profile
        self.takes_tool_messages = model.takes_tool_messages
        self._lock = Shared(
            threading.Lock(),
            "a RecordingModel cannot be pickled: two processes would write into one file. Make one "
            "for each",
        )
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "model_id": model.model_id,
            "profile": model.profile and model.profile.dict(),
            "takes_tool_messages": model.takes_tool_messages,
            "secret_settings": sorted(model.secret_settings),
        }
        if overwrite:
            # A new file: who has opened the old one does not read on in this one.
            self.path.unlink(missing_ok=True)
        with open(self.path, "x", encoding="utf-8", opener=_private) as file:
            file.write(_line(header))

    @property
    def prefers_async(self) -> bool:
        """As the model that is recorded."""
        return self.model.prefers_async

    def generate(self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any) -> ChatMessage:
        """Asks the model and records what it says."""
        request = self._request(messages, *args, **kwargs)
        try:
            answer = self.model.generate(messages, *args, **kwargs)
            reply = as_message(answer, self.model_id)
        except AgentError as error:
            self._write(request, error)
            raise
        self._write(request, reply)
        return reply

    async def agenerate(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> ChatMessage:
        """Does what `generate` does, under asyncio."""
        request = self._request(messages, *args, **kwargs)
        try:
            answer = await self.model.agenerate(messages, *args, **kwargs)
            reply = as_message(answer, self.model_id)
        except AgentError as error:
            self._write(request, error)
            raise
        self._write(request, reply)
        return reply

    def generate_stream(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Asks the model; a reply is recorded when it is complete."""
        request = self._request(messages, *args, **kwargs)
        deltas = []
        try:
            with closing(self.model.generate_stream(messages, *args, **kwargs)) as stream:
                for delta in stream:
                    deltas.append(delta)
                    yield delta
        except AgentError as error:
            self._write(request, error)
            raise
        self._write(request, agglomerate_stream_deltas(deltas))

    async def agenerate_stream(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        """Does what `generate_stream` does, under asyncio."""
        request = self._request(messages, *args, **kwargs)
        deltas = []
        try:
            async with aclosing(self.model.agenerate_stream(messages, *args, **kwargs)) as stream:
                async for delta in stream:
                    deltas.append(delta)
                    yield delta
        except AgentError as error:
            self._write(request, error)
            raise
        self._write(request, agglomerate_stream_deltas(deltas))

    def to_dict(self) -> JSONObject:
        """Returns the JSON form of the model that is asked: the recording is no setting."""
        return self.model.to_dict()

    def _write(self, request: JSONObject, outcome: ChatMessage | AgentError) -> None:
        kind = "error" if isinstance(outcome, AgentError) else "reply"
        entry = {"key": _key(request), "request": request, kind: _without_secrets(outcome.dict())}
        with self._lock.value, open(self.path, "a", encoding="utf-8", opener=_private) as file:
            file.write(_line(entry))

    def _request(self, *args: Any, **kwargs: Any) -> JSONObject:
        return _request(self.model.secret_settings, *args, **kwargs)


class ReplayModel(Model):
    """Gives the replies of a recording again: to the same requests, in the order of recording.

    Args:
        path: The file that a `RecordingModel` wrote.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no recording, or of a version that is not known here.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        header, *entries = _read(self.path)
        super().__init__(model_id=header.get("model_id"))
        self.profile = as_profile(header.get("profile"))
        self.takes_tool_messages = header.get("takes_tool_messages", True) is True
        self._secret_settings = frozenset(header.get("secret_settings") or ())
        self._lock = OwnLock()
        self._left: defaultdict[str, deque[Mapping[str, Any]]] = defaultdict(deque)
        for entry in entries:
            self._left[entry["key"]].append(entry)

    @property
    def remaining(self) -> int:
        """How many recorded replies have not been asked for."""
        return sum(map(len, self._left.values()))

    def generate(self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any) -> ChatMessage:
        """Gives the recorded reply to this request.

        Raises:
            AgentGenerationError: This request was not recorded, or was answered before; the message
                shows where it differs from the one that was due.
            AgentError: The recorded request failed like this.
        """
        request = _request(self._secret_settings, messages, *args, **kwargs)
        with self._lock:
            entries = self._left[_key(request)]
            if not entries:
                raise AgentGenerationError(self._divergence(request))
            entry = entries.popleft()
        if "error" in entry:
            raise AgentError.from_dict(entry["error"])
        return ChatMessage.from_dict(entry["reply"])

    async def agenerate(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> ChatMessage:
        """Does what `generate` does."""
        return self.generate(messages, *args, **kwargs)

    def generate_stream(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Gives the recorded reply word by word."""
        yield from spelled(self.generate(messages, *args, **kwargs))

    def to_dict(self) -> JSONObject:
        """Returns where the recording is."""
        return {"path": str(self.path)}

    def _divergence(self, request: JSONObject) -> str:
        due = next((entries[0]["request"] for entries in self._left.values() if entries), None)
        if due is None:
            return f"All replies recorded in {self.path} were given; nobody asked this before."
        diff = list(
            difflib.unified_diff(
                _pretty(due), _pretty(request), "recorded", "asked now", lineterm="", n=2
            )
        )
        if len(diff) > _MAX_DIFF_LINES:
            diff[_MAX_DIFF_LINES:] = [f"… {len(diff) - _MAX_DIFF_LINES} more lines differ"]
        return (
            f"This request is not in {self.path}: the run takes another course than the recorded "
            "one. Record it again if that is meant. It differs from the next recorded request:\n"
            + "\n".join(diff)
        )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _request(
    secret_settings: Collection[str],
    messages: Sequence[MessageLike],
    stop_sequences: Sequence[str] | None = None,
    response_format: Mapping[str, Any] | None = None,
    tools_to_call_from: Sequence[ToolLike] | None = None,
    **kwargs: Any,
) -> JSONObject:
    given = given_arguments(stop_sequences, response_format, None, kwargs)
    request: JSONObject = {
        "messages": [ChatMessage.of(message).dict() for message in messages],
        **saved("a request", given, secret_settings),
    }
    if tools_to_call_from is not None:
        request["tools_to_call_from"] = [tool.to_json_schema() for tool in tools_to_call_from]
    return {name: _without_secrets(value) for name, value in request.items()}


def _without_secrets(value: JSONValue) -> JSONValue:
    match value:
        case str():
            return value if value.startswith("data:") else masked(value)  # an image has none
        case Mapping():
            return {name: _without_secrets(item) for name, item in value.items()}
        case list() | tuple():
            return [_without_secrets(item) for item in value]
    return value


def _key(request: JSONObject) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _line(data: object) -> str:
    return json.dumps(data, ensure_ascii=False) + "\n"


def _pretty(request: JSONObject) -> list[str]:
    # Texts line by line: a diff of one long line says nothing.
    text = json.dumps(request, ensure_ascii=False, indent=2, sort_keys=True)
    return text.replace("\\n", "\n").splitlines()


def _read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        try:
            lines = [json.loads(line) for line in file if line.strip()]
        except ValueError as error:
            raise ValueError(f"{path} is no recording: {error}") from error
    header = lines[0] if lines else None
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(f"{path} is no recording of a model: its first line is not the header")
    if header.get("version") != _VERSION:
        raise ValueError(
            f"{path} is a recording of version {header.get('version')!r}; this version of "
            f"Sanderling reads version {_VERSION}. Record it again."
        )
    for number, entry in enumerate(lines[1:], 2):
        whole = isinstance(entry, dict) and {"key", "request"} <= entry.keys()
        if not whole or not {"reply", "error"} & entry.keys():
            raise ValueError(f"line {number} of {path} is no request with its reply")
    return lines
