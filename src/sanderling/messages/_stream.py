"""A reply while it is being written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ._calls import ChatMessageToolCall, ChatMessageToolCallFunction
from ._json import JSONObject, Readable
from ._message import ChatMessage, MessageRole
from ._usage import TokenUsage


@dataclass(slots=True)
class ChatMessageToolCallStreamDelta(Readable):
    """A piece of a tool call; pieces of one call share the `index`, their arguments are joined."""

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: ChatMessageToolCallFunction | None = None

    def dict(self) -> JSONObject:
        """Returns the JSON form."""
        function = self.function
        return {
            "index": self.index,
            "id": self.id,
            "type": self.type,
            "function": None
            if function is None
            else {"name": function.name, "arguments": function.arguments},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChatMessageToolCallStreamDelta:
        """Loads what `dict` wrote."""
        function = data.get("function")
        return cls(
            index=data.get("index"),
            id=data.get("id"),
            type=data.get("type"),
            function=function
            and ChatMessageToolCallFunction(function.get("arguments"), function.get("name") or ""),
        )


@dataclass(slots=True)
class ChatMessageStreamDelta(Readable):
    """A piece of a reply while it is being written; any field may be absent.

    `native` is that of the whole reply, as in `ChatMessage`, and comes at its end.
    """

    content: str | None = None
    tool_calls: list[ChatMessageToolCallStreamDelta] | None = None
    token_usage: TokenUsage | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    native: JSONObject | None = None

    def dict(self) -> JSONObject:
        """Returns the JSON form; fields without a value are left out."""
        data: JSONObject = {}
        for name in ("content", "finish_reason", "reasoning", "native"):
            if (value := getattr(self, name)) is not None:
                data[name] = value
        if self.token_usage is not None:
            data["token_usage"] = self.token_usage.dict()
        if self.tool_calls is not None:
            data["tool_calls"] = [call.dict() for call in self.tool_calls]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChatMessageStreamDelta:
        """Loads what `dict` wrote."""
        usage, calls = data.get("token_usage"), data.get("tool_calls")
        return cls(
            content=data.get("content"),
            tool_calls=calls and [ChatMessageToolCallStreamDelta.from_dict(c) for c in calls],
            token_usage=None if usage is None else TokenUsage.from_dict(usage),
            finish_reason=data.get("finish_reason"),
            reasoning=data.get("reasoning"),
            native=data.get("native"),
        )


def agglomerate_stream_deltas(
    stream_deltas: Iterable[ChatMessageStreamDelta], role: MessageRole = MessageRole.ASSISTANT
) -> ChatMessage:
    """Joins the deltas of one reply into the message they spell.

    Usage is summed. Tool calls are joined by index, in the order in which they first appear; the
    name of a call that never got one is empty.

    Raises:
        ValueError: A piece of a tool call has no index.
    """
    text: list[str] = []
    reasoning: list[str] = []
    calls: dict[int, _JoinedCall] = {}
    usage: TokenUsage | None = None
    finish_reason: str | None = None
    native: JSONObject | None = None
    for delta in stream_deltas:
        if delta.content:
            text.append(delta.content)
        if delta.reasoning:
            reasoning.append(delta.reasoning)
        if delta.token_usage:
            usage = delta.token_usage if usage is None else usage + delta.token_usage
        finish_reason = delta.finish_reason or finish_reason
        native = delta.native or native
        for piece in delta.tool_calls or ():
            if piece.index is None:
                raise ValueError("a piece of a streamed tool call has no index")
            calls.setdefault(piece.index, _JoinedCall()).add(piece)
    return ChatMessage(
        role=role,
        content="".join(text) if text or not calls else None,
        tool_calls=[call.whole() for call in calls.values()] or None,
        token_usage=usage,
        finish_reason=finish_reason,
        reasoning="".join(reasoning) or None,
        native=native,
    )


class _JoinedCall:
    """The pieces of one tool call."""

    def __init__(self) -> None:
        self._id = self._name = ""
        self._type = "function"
        self._arguments: object = None  # where they are no text
        self._texts: list[str] = []

    def add(self, piece: ChatMessageToolCallStreamDelta) -> None:
        self._id = piece.id or self._id
        self._type = piece.type or self._type
        if piece.function is None:
            return
        self._name = piece.function.name or self._name
        arguments = piece.function.arguments
        if isinstance(arguments, str):
            self._texts.append(arguments)
        elif arguments is not None:
            self._arguments = arguments

    def whole(self) -> ChatMessageToolCall:
        text = "".join(self._texts)
        arguments = text if self._arguments is None else self._arguments
        function = ChatMessageToolCallFunction(arguments, self._name)
        return ChatMessageToolCall(function, self._id, self._type)
