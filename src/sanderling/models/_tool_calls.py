"""Tool calls of models that write them as JSON into their text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sanderling._show import quoted
from sanderling.errors import AgentParsingError
from sanderling.messages import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction

#: Tool calls of one reply.
MAX_CALLS = 1_000
#: Levels of lists and objects in the arguments of a call.
MAX_NESTING = 100
_MAX_BROKEN = 200  # objects of a text that may turn out to be none: each costs a look at the rest
_MAX_LITERAL = 20_000
_OBJECT = re.compile(r'\{\s*"')
_OTHER_KEYS = (("name", "parameters"), ("action", "action_input"))


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

    Accepts objects anywhere in the text, in a list or not, and the forms in which models were
    trained to write them: arguments under ``"parameters"`` (Llama 3), ``"action"`` and
    ``"action_input"`` (LangChain), a call within ``"function"`` (chat completions), and the same
    as Python literals. The calls get no id.

    Args:
        text: What the model wrote.
        name_key: Where an object has the name of the tool.
        arguments_key: Where it has the arguments.

    Raises:
        AgentParsingError: No object of the text names a tool; the message shows how to do it. Or
            there are more than 1,000 calls.
    """
    keys = (name_key, arguments_key)
    calls = [call for value in _objects(text) for call in _calls_of(value, keys)]
    if not calls:
        calls = list(_calls_of(_python_literal(text), keys))
    if len(calls) > MAX_CALLS:
        raise AgentParsingError(
            f"Your reply makes {len(calls):,} tool calls, and may make {MAX_CALLS:,}. Make fewer."
        )
    if not calls:
        raise AgentParsingError(
            f"Your reply calls no tool. {quoted(text)}\n"
            f'Call one like this: {{"{name_key}": "the tool", "{arguments_key}": {{...}}}}'
        )
    return calls


def _objects(text: str) -> Iterator[Any]:
    """Yields the outermost JSON objects of a text."""
    decoder = json.JSONDecoder(strict=False)  # models write line ends in strings as they are
    position = failures = 0
    while failures < _MAX_BROKEN and (found := _OBJECT.search(text, position)) is not None:
        try:
            value, position = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            position = found.start() + 1
            failures += 1
        else:
            if not is_nested_deeply(value):
                yield value


def _python_literal(text: str) -> Any:
    """Returns what stands between the first and the last brace, if that is a Python literal."""
    starts = [place for place in (text.find("["), text.find("{")) if place != -1]
    end = max(text.rfind("]"), text.rfind("}"))
    if not starts or end - min(starts) > _MAX_LITERAL:
        return None
    try:
        value = ast.literal_eval(text[min(starts) : end + 1])
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return None if is_nested_deeply(value) else value


def _calls_of(value: Any, keys: tuple[str, str]) -> Iterator[ChatMessageToolCall]:
    """Yields the calls that an object is, or that a list holds."""
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict):
            continue
        inner = one.get("function")
        call = inner if isinstance(inner, dict) else one
        for name_key, arguments_key in (keys, *_OTHER_KEYS):
            if isinstance(name := call.get(name_key), str) and arguments_key in call:
                break
        else:
            name, arguments_key = call.get(keys[0]), keys[1]
        if isinstance(name, str):
            function = ChatMessageToolCallFunction(call.get(arguments_key, {}), name)
            yield ChatMessageToolCall(function, id="")


def read_arguments(call: ChatMessageToolCall) -> Any:
    """Returns the arguments of a call: the value, where the model wrote one as JSON text."""
    arguments = call.function.arguments
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        value = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return arguments  # a tool with one argument may want the bare text
    return arguments if is_nested_deeply(value) else value


def is_nested_deeply(value: object) -> bool:
    """Tells whether a value is nested so deeply that what walks through it might fail."""
    level = [value]
    for _ in range(MAX_NESTING):
        level = [
            item
            for each in level
            if isinstance(each, dict | list)
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


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
