"""Tool calls of models that write them as JSON into their text."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

from sanderling.errors import AgentParsingError
from sanderling.messages import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction

_MAX_SHOWN = 2_000


def with_tool_calls(message: ChatMessage, name_key: str, arguments_key: str) -> ChatMessage:
    """Returns the message with its tool calls, read from the text where it has none.

    Arguments that are JSON text become the value they spell; a call without an id gets one.

    Raises:
        AgentParsingError: The message calls no tool.
    """
    calls = message.tool_calls or _calls_in(message.text, name_key, arguments_key)
    return replace(message, tool_calls=[_complete(call) for call in calls])


def _calls_in(text: str, name_key: str, arguments_key: str) -> list[ChatMessageToolCall]:
    decoder = json.JSONDecoder()
    calls: list[ChatMessageToolCall] = []
    position = 0
    while (brace := text.find("{", position)) != -1:
        try:
            value, position = decoder.raw_decode(text, brace)
        except (ValueError, RecursionError):
            position = brace + 1
            continue
        if isinstance(name := value.get(name_key), str):
            function = ChatMessageToolCallFunction(value.get(arguments_key, {}), name)
            calls.append(ChatMessageToolCall(function, id=""))
    if not calls:
        raise AgentParsingError(
            f"The reply calls no tool: it holds no JSON object with the key {name_key!r}. "
            f"It was:\n{text[:_MAX_SHOWN]}"
        )
    return calls


def _complete(call: ChatMessageToolCall) -> ChatMessageToolCall:
    arguments = call.function.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            arguments = call.function.arguments  # a tool with one argument may want the bare text
    function = replace(call.function, arguments=arguments)
    return replace(call, function=function, id=call.id or str(uuid.uuid4()))
