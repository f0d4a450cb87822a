"""A message of a conversation, and conversations as texts."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ._calls import ChatMessageToolCall
from ._content import ContentPart, TextPart, as_part, check_loaded, encodable
from ._json import JSONObject, Readable
from ._usage import TokenUsage


class MessageRole(enum.StrEnum):
    """Who speaks. Providers map `TOOL_CALL` and `TOOL_RESPONSE` to roles of their own.

    ``"tool"`` and ``"developer"``, as chat completions write them, are other names of
    `TOOL_RESPONSE` and `SYSTEM`.
    """

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL_CALL = "tool-call"
    TOOL_RESPONSE = "tool-response"

    @classmethod
    def _missing_(cls, value: object) -> MessageRole | None:
        return {"tool": cls.TOOL_RESPONSE, "developer": cls.SYSTEM}.get(str(value))

    @classmethod
    def roles(cls) -> list[str]:
        """Returns the role names, in the order of definition."""
        return [role.value for role in cls]


@dataclass(slots=True)
class ChatMessage(Readable):
    """One message of a conversation.

    Attributes:
        role: Who speaks.
        content: Text, a list of parts, or `None` where a reply is tool calls only.
        tool_calls: The calls that the model asks for.
        raw: The provider's own reply, for those who need more; not part of the JSON form.
        token_usage: What the reply cost.
        finish_reason: Why the model stopped, in the words of chat completions: ``"stop"``,
            ``"length"``, ``"tool_calls"``, ``"content_filter"``; `None` where it is not known.
        reasoning: Thinking that the provider keeps apart from the answer.
        tool_call_id: For a `TOOL_RESPONSE`, the call it answers.
        native: The reply in its provider's own form, where it holds thinking that the provider
            wants back as it was: ``{"provider": ..., "model": ..., "content": [...]}``. Other
            providers do not look at it.
    """

    role: MessageRole
    content: str | list[ContentPart] | None = None
    tool_calls: list[ChatMessageToolCall] | None = None
    raw: Any = field(default=None, repr=False, compare=False)
    token_usage: TokenUsage | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    tool_call_id: str | None = None
    native: JSONObject | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if type(self.role) is not MessageRole:
            self.role = MessageRole(self.role)
        if isinstance(self.content, str):
            self.content = encodable(self.content)
        elif self.content is not None:
            self.content = [as_part(part) for part in self.content]
        if self.tool_calls is not None:
            self.tool_calls = [ChatMessageToolCall.of(call) for call in self.tool_calls] or None

    @property
    def text(self) -> str:
        """The text of the message, its parts joined by line ends; empty where it has none."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def parts(self) -> list[ContentPart]:
        """The content as parts."""
        if isinstance(self.content, str):
            return [TextPart(self.content)]
        return self.content or []

    def dict(self) -> JSONObject:
        """Returns the JSON form; fields without a value are left out."""
        content = self.content
        data: JSONObject = {
            "role": self.role.value,
            "content": content
            if content is None or isinstance(content, str)
            else [part.dict() for part in content],
        }
        if self.tool_calls is not None:
            data["tool_calls"] = [call.dict() for call in self.tool_calls]
        if self.token_usage is not None:
            data["token_usage"] = self.token_usage.dict()
        for name in ("finish_reason", "reasoning", "tool_call_id", "native"):
            if (value := getattr(self, name)) is not None:
                data[name] = value
        return data

    def model_dump_json(self) -> str:
        """Returns the JSON form as text."""
        return json.dumps(self.dict(), ensure_ascii=False)

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], raw: object = None, token_usage: TokenUsage | None = None
    ) -> ChatMessage:
        """Loads what `dict` wrote, or a message as chat completions write it.

        Raises:
            ValueError: The role or a content part is not known, or an image is given by a path.
            KeyError: The role, or a part of a tool call, is missing.
        """
        message = cls._read(data, raw, token_usage)
        for part in message.parts:
            check_loaded(part)
        return message

    @classmethod
    def _read(
        cls, data: Mapping[str, Any], raw: object = None, token_usage: TokenUsage | None = None
    ) -> ChatMessage:
        calls = data.get("tool_calls")
        usage = data.get("token_usage")
        return cls(
            role=MessageRole(data["role"]),
            content=data.get("content"),
            tool_calls=None if calls is None else [ChatMessageToolCall.from_dict(c) for c in calls],
            raw=raw,
            token_usage=token_usage or (None if usage is None else TokenUsage.from_dict(usage)),
            finish_reason=data.get("finish_reason"),
            reasoning=data.get("reasoning"),
            tool_call_id=data.get("tool_call_id"),
            native=data.get("native"),
        )

    @classmethod
    def of(cls, message: MessageLike) -> ChatMessage:
        """Returns `message` itself, or the message that a dict of your program describes.

        The dict may hold images as `ImagePart` takes them, paths as well.

        Raises:
            TypeError: It is neither.
            ValueError, KeyError: As for `from_dict`.
        """
        if isinstance(message, ChatMessage):
            return message
        if isinstance(message, Mapping):
            return cls._read(message)
        raise TypeError(
            'messages are a list, each of them a ChatMessage or {"role": ..., "content": ...}, '
            f"not {message!r:.80}"
        )

    def render_as_markdown(self) -> str:
        """Returns the text and the tool calls, to be shown to a person."""
        calls = "\n".join(str(call) for call in self.tool_calls or [])
        return "\n".join(filter(None, (self.text, calls)))


MessageLike: TypeAlias = ChatMessage | Mapping[str, Any]


def calls_as_text(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Returns a conversation without native tool calls, for a request that offers no tools.

    Several providers refuse a history that holds calls where the request has no tools.
    """
    return [_as_text(message) for message in messages]


def _as_text(message: ChatMessage) -> ChatMessage:
    if message.tool_calls:
        calls = calling_text([call.dict() for call in message.tool_calls])
        return replace(message, content=[*message.parts, TextPart(calls)], tool_calls=None)
    if message.tool_call_id is not None:
        said = f"Call id: {message.tool_call_id}\nObservation:\n{message.text}"
        return replace(message, content=[TextPart(said)], tool_call_id=None)
    return message


def plain_messages(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Returns a conversation for a model that knows texts and roles only.

    Calls and results are texts, with the roles `MessageRole.TOOL_CALL` and
    `MessageRole.TOOL_RESPONSE`. The messages are copies: the model may change them.
    """
    plain = []
    for message in messages:
        if message.tool_calls:
            if message.content:
                plain.append(replace(_copied(message), tool_calls=None))
            calls = calling_text([call.dict() for call in message.tool_calls])
            plain.append(ChatMessage(MessageRole.TOOL_CALL, [TextPart(calls)]))
        else:
            plain.append(_copied(_as_text(message)))
    return plain


def _copied(message: ChatMessage) -> ChatMessage:
    copied = object.__new__(ChatMessage)  # without the checks that it has passed
    for name in ChatMessage.__slots__:
        setattr(copied, name, getattr(message, name))
    if isinstance(message.content, list):
        # An image is encoded once: a copy of it would be encoded again.
        copied.content = [
            part.copy() if isinstance(part, TextPart) else part for part in message.content
        ]
    return copied


def calling_text(calls: Sequence[object]) -> str:
    """Returns the text form of calls."""
    return f"Calling tools:\n{calls}"
