"""What agents and models say to each other: messages, parts, tool calls, stream deltas, usage.

Every class has a JSON form (`dict`) that loads back (`from_dict`). Images become base64 once per
part, however often a history that holds them is sent.
"""

from ._calls import ChatMessageToolCall, ChatMessageToolCallFunction
from ._content import ContentPart, ImagePart, ImageSource, TextPart
from ._json import JSONObject, JSONValue
from ._message import (
    ChatMessage,
    MessageLike,
    MessageRole,
    calling_text,
    calls_as_text,
    plain_messages,
)
from ._stream import (
    ChatMessageStreamDelta,
    ChatMessageToolCallStreamDelta,
    agglomerate_stream_deltas,
)
from ._usage import Timing, TokenUsage

__all__ = [
    "ChatMessage",
    "ChatMessageStreamDelta",
    "ChatMessageToolCall",
    "ChatMessageToolCallFunction",
    "ChatMessageToolCallStreamDelta",
    "ContentPart",
    "ImagePart",
    "ImageSource",
    "JSONObject",
    "JSONValue",
    "MessageLike",
    "MessageRole",
    "TextPart",
    "Timing",
    "TokenUsage",
    "agglomerate_stream_deltas",
    "calling_text",
    "calls_as_text",
    "plain_messages",
]
