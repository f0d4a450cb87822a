"""Tool calls of models that write them as JSON into their text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sanderling.errors import AgentParsingError
from sanderling.messages import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction

_MAX_SHOWN = 2_000


def with_tool_calls(message: ChatMessage, name_key: str, arguments_key: str) -> ChatMessage:
    """Returns the message with its tool calls, read from the text where it has none.

    Arguments that are JSON text become the value they spell; a call without an id gets one.

    Raises:
        AgentParsingError: The message calls no tool.
    """
    calls = message.tool_calls or parse_json_tool_calls(message.text, name_key, arguments_key)
    return replace(message, tool_calls=[_complete(call) for call in calls])


def parse_json_tool_calls(
    text: str, name_key: str = "name", arguments_key: str = "arguments"
) -> list[ChatMessageToolCall]:
    """Returns the tool calls that a model wrote as JSON into its text, in order.

    Accepts objects anywhere in the text, in a list or not. The calls get no id.

    Args:
        text: What the model wrote.
        name_key: Where an object has the name of the tool.
        arguments_key: Where it has the arguments.

    Raises:
        AgentParsingError: No object of the text names a tool; the message shows how to do it.
    """
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
        more = len(text) - _MAX_SHOWN
        rest = f"… ({more} more characters)" if more > 0 else ""
        raise AgentParsingError(
            f"Your reply calls no tool. It was:\n{text[:_MAX_SHOWN]}{rest}\n"
            f'Call one like this: {{"{name_key}": "the tool", "{arguments_key}": {{...}}}}'
        )
    return calls


def read_arguments(call: ChatMessageToolCall) -> Any:
    """Returns the arguments of a call: the value, where the model wrote one as JSON text."""
    arguments = call.function.arguments
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return arguments  # a tool with one argument may want the bare text


def as_object(arguments: object) -> Mapping[str, Any]:
    """Returns the arguments of a call as a JSON object, for providers that take nothing else.

    Args:
        arguments: The object, or its JSON text. What is neither is put into one, as
            ``{"arguments": ...}``.
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            return {"arguments": arguments}
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, Mapping) else {"arguments": arguments}


def as_object_text(arguments: object) -> str:
    """Returns the arguments of a call as the JSON text of an object, as the model wrote it.

    Servers refuse a whole conversation in which a model once wrote something else.

    Args:
        arguments: As for `as_object`.
    """
    if isinstance(arguments, str) and _is_object_text(arguments):
        return arguments
    return json.dumps(as_object(arguments), ensure_ascii=False)


def _is_object_text(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _complete(call: ChatMessageToolCall) -> ChatMessageToolCall:
    import uuid

    function = replace(call.function, arguments=read_arguments(call))
    return replace(call, function=function, id=call.id or str(uuid.uuid4()))
