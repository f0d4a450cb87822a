"""Reads tool calls the user's way, in the place of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from sanderling.messages import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction
from sanderling.models import Model

ToolParser: TypeAlias = Callable[[str], Any]
ReadMessage: TypeAlias = Callable[[ChatMessage], list[ChatMessageToolCall]]


def parser_of(model: Model, tool_parser: ToolParser | None) -> ReadMessage | None:
    """Returns what reads the calls of a reply: the agent's parser, the model's own, or nothing."""
    if tool_parser is not None:
        return lambda reply: _calls(tool_parser(reply.text))
    if type(model).parse_tool_calls is not Model.parse_tool_calls:
        return lambda reply: model.parse_tool_calls(reply).tool_calls or []
    return None


def _calls(read: Any) -> list[ChatMessageToolCall]:
    if isinstance(read, Sequence) and read and not isinstance(read[0], str):
        return [call for one in read for call in _calls(one)]
    if isinstance(read, ChatMessageToolCall):
        return [read]
    name, arguments = read[0], read[1] if len(read) > 1 else {}
    return [ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), id="")]
