"""Our messages as those of chat completions.

https://platform.openai.com/docs/api-reference/chat/create#chat-create-messages
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ContentPart,
    ImagePart,
    MessageLike,
    MessageRole,
    TextPart,
    plain_messages,
)
from sanderling.messages._content import encodable

from ._arguments import as_settings
from ._tool_calls import as_object_text

#: A message, or an entry of its content, in the JSON form of chat completions.
Entry: TypeAlias = dict[str, Any]
RoleConversions: TypeAlias = Mapping[MessageRole, str] | Mapping[str, str]

# Most chat templates know three roles only.
DEFAULT_ROLE_CONVERSIONS: Final[Mapping[str, str]] = {
    MessageRole.TOOL_CALL: MessageRole.ASSISTANT,
    MessageRole.TOOL_RESPONSE: MessageRole.USER,
}


def to_chat_messages(
    messages: Iterable[MessageLike],
    role_conversions: RoleConversions | None = None,
    flatten_as_text: bool = False,
) -> list[Entry]:
    """Returns the messages as a chat completions request has them.

    Neighbours of the same role become one message, as many chat templates insist on turns that
    alternate; their texts are joined by a line end, and nothing is left out. Messages that belong
    to native tool calls stay as they are. Content without images is a plain text, which every
    server takes.

    Args:
        messages: The conversation.
        role_conversions: Role by role; replaces `DEFAULT_ROLE_CONVERSIONS`.
        flatten_as_text: The server takes no images.

    Raises:
        ValueError: There is an image, and `flatten_as_text` forbids it; or an image cannot be read.
    """
    roles = roles_of(role_conversions)
    turns: list[tuple[str, list[ChatMessage]]] = []
    for message in told(messages, role_conversions):
        role = _role(message, roles)
        if (
            turns
            and turns[-1][0] == role
            and not (_is_native(message) or _is_native(turns[-1][1][-1]))
        ):
            turns[-1][1].append(message)
        else:
            turns.append((role, [message]))
    return [encodable_all(_entry(role, turn, flatten_as_text)) for role, turn in turns]


def told(
    messages: Iterable[MessageLike], role_conversions: RoleConversions | None
) -> Iterable[ChatMessage]:
    """Returns the messages, without native calls where roles were chosen for calls or results."""
    conversation = map(ChatMessage.of, messages)
    chosen = {} if role_conversions is None else roles_of(role_conversions)
    if chosen.get(MessageRole.TOOL_CALL, "assistant") != "assistant":
        return plain_messages(conversation)
    if chosen.get(MessageRole.TOOL_RESPONSE, "tool") != "tool":
        return plain_messages(conversation)
    return conversation


def roles_of(role_conversions: RoleConversions | None) -> Mapping[str, str]:
    """Returns which role stands for which, by their names.

    Args:
        role_conversions: Role by role; `DEFAULT_ROLE_CONVERSIONS`, if it is `None`.

    Raises:
        ValueError: One of the roles that are to be replaced is none.
        TypeError: It is no mapping.
    """
    if role_conversions is None:
        return DEFAULT_ROLE_CONVERSIONS
    given = as_settings("custom_role_conversions", role_conversions)
    try:
        return {MessageRole(role).value: str(target) for role, target in given.items()}
    except ValueError as error:
        raise ValueError(
            f"custom_role_conversions: {error}; there is: {', '.join(MessageRole.roles())}"
        ) from None


def encodable_all(value: Any) -> Any:
    r"""Returns a JSON value whose texts can be sent: lone surrogates are written as ``\ud800``.

    A model can write them into the arguments of a call, as JSON escapes. Where a text is itself
    JSON, it has the escapes again.
    """
    match value:
        case str():
            return encodable(value)
        case dict():
            return {encodable_all(key): encodable_all(each) for key, each in value.items()}
        case list():
            return [encodable_all(each) for each in value]
    return value


def no_images() -> ValueError:
    """Returns the error for an image that a model does not take."""
    return ValueError(
        "this model takes text only (as flatten_messages_as_text or its capabilities say), and "
        "the conversation holds an image: use a model that can see, or leave the image out"
    )


def _role(message: ChatMessage, roles: Mapping[str, str]) -> str:
    if message.tool_call_id is not None:
        return "tool"
    return roles.get(message.role.value, message.role.value)


def _is_native(message: ChatMessage) -> bool:
    return message.tool_call_id is not None or bool(message.tool_calls)


def _entry(role: str, turn: list[ChatMessage], flatten_as_text: bool) -> Entry:
    entry: Entry = {"role": role, "content": _content(turn, flatten_as_text)}
    if turn[0].tool_calls:
        entry["tool_calls"] = [_call(call) for call in turn[0].tool_calls]
        entry["content"] = entry["content"] or None
    if turn[0].tool_call_id is not None:
        entry["tool_call_id"] = turn[0].tool_call_id
    return entry


def _content(turn: list[ChatMessage], flatten_as_text: bool) -> str | list[Entry]:
    parts = [part for message in turn for part in message.parts]
    if all(isinstance(part, TextPart) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))
    if flatten_as_text:
        raise no_images()
    return _joined(parts)


def _joined(parts: Iterable[ContentPart]) -> list[Entry]:
    entries: list[Entry] = []
    for part in parts:
        if isinstance(part, ImagePart):
            entries.append({"type": "image_url", "image_url": {"url": part.url}})
        elif entries and entries[-1]["type"] == "text":
            entries[-1]["text"] += f"\n{part.text}"
        else:
            entries.append({"type": "text", "text": part.text})
    return entries


def _call(call: ChatMessageToolCall) -> Entry:
    arguments = as_object_text(call.function.arguments)
    return {
        "id": call.id,
        "type": call.type,
        "function": {"name": call.function.name, "arguments": arguments},
    }
