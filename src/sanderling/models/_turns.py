"""Conversations for providers that have a form of their own: a system prompt, and turns of blocks.

Anthropic, Gemini and Bedrock agree on the form of a conversation, and on nothing within it: a
`BlockWriter` writes what a turn is made of.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ImagePart,
    JSONObject,
    MessageLike,
    MessageRole,
)

from ._messages import Entry, RoleConversions, encodable_all, no_images, roles_of, told
from ._tool_calls import as_object

#: What a block of a reply is; thinking, and all that is not known, is sent back as it came.
Kind: TypeAlias = Literal["text", "call", "thinking"]


@dataclass(slots=True)
class Turn:
    """What one side says until the other one speaks.

    Attributes:
        role: ``"user"`` or ``"assistant"``.
        blocks: What it says.
    """

    role: str
    blocks: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class Conversation:
    """A conversation.

    Attributes:
        system: The system prompt.
        turns: What follows it; two neighbours are never of the same role.
    """

    system: list[Entry]
    turns: list[Turn]

    def stable_ends(self) -> list[list[Entry]]:
        """Returns the lists of blocks after which a cache mark is worth its price.

        That is the system prompt, which all runs of an agent share; the last turn, as the next
        request begins with all of this one; and the last turn of the request before, as a cache is
        looked for only some twenty blocks back, and a step may have added more.
        """
        ends = [self.system, *(turn.blocks for turn in self.turns[-1:-4:-2])]
        return [blocks for blocks in ends if blocks]


class BlockWriter(ABC):
    """Writes the blocks of one provider.

    Args:
        provider: The provider, and the model that is asked: only its own replies are sent back in
            their native form.
        model_id: The model.
    """

    def __init__(self, provider: str, model_id: str) -> None:
        self.provider = provider
        self.model_id = model_id

    @abstractmethod
    def text(self, text: str) -> Entry:
        """Returns a text."""

    @abstractmethod
    def image(self, image: ImagePart) -> Entry:
        """Returns an image."""

    @abstractmethod
    def call(self, identity: str, name: str, arguments: Mapping[str, Any]) -> Entry:
        """Returns a tool call."""

    @abstractmethod
    def result(self, identity: str, name: str, content: list[Entry]) -> Entry:
        """Returns what a tool call came to.

        Args:
            identity: That of the call.
            name: The tool; empty where the call is not part of the conversation.
            content: Texts and images.
        """

    @abstractmethod
    def kind(self, block: Entry) -> Kind:
        """Tells what a block of a reply is."""

    @abstractmethod
    def text_of(self, block: Entry) -> str:
        """Returns the text of a block that is one."""

    @abstractmethod
    def name_of(self, block: Entry) -> str:
        """Returns the tool that a block calls."""

    @abstractmethod
    def named(self, block: Entry, identity: str) -> Entry:
        """Returns a block that is a call, with the identity that the call has in the history."""

    def restored(self, block: Entry) -> Entry:
        """Returns a block as the package wants it, from its JSON form."""
        return block

    def remains(self, block: Entry) -> Entry | None:
        """Returns what goes back of a text that the history tells otherwise."""
        return None

    def needs_keeping(self, block: Entry) -> bool:
        """Tells whether a history without the native form would lose the block."""
        return self.kind(block) == "thinking"

    def kept(self, content: Sequence[Entry]) -> JSONObject | None:
        """Returns the native form of a reply, where it holds more than a history has anyway."""
        if not any(self.needs_keeping(block) for block in content):
            return None
        return {"provider": self.provider, "model": self.model_id, "content": list(content)}


def conversation(
    messages: Iterable[MessageLike],
    writer: BlockWriter,
    role_conversions: RoleConversions | None = None,
    text_only: bool = False,
) -> Conversation:
    """Returns a conversation as a request has it.

    Nothing is left out but blank texts, which providers refuse. A system message that is not at the
    beginning is said by the user: the beginning of a conversation never changes, so caches hit.

    Args:
        messages: The conversation.
        writer: That of the provider.
        role_conversions: Role by role; replaces `DEFAULT_ROLE_CONVERSIONS`.
        text_only: The model takes no images.

    Raises:
        ValueError: There is an image, and `text_only` forbids it; or an image cannot be read; or
            the conversation says nothing at all.
    """
    roles = roles_of(role_conversions)
    system: list[Entry] = []
    turns: list[Turn] = []
    names: dict[str, str] = {}  # of the tools that were called, by the call
    for message in told(messages, role_conversions):
        role = roles.get(message.role.value, message.role.value)
        blocks = _content(message, writer, text_only)
        if role == MessageRole.SYSTEM and not turns:
            system += blocks
            continue
        if message.tool_call_id is not None:
            name = names.get(message.tool_call_id, "")
            blocks = [writer.result(_identity(message.tool_call_id), name, blocks)]
        elif role == MessageRole.ASSISTANT:
            names |= {call.id: call.function.name for call in message.tool_calls or ()}
            blocks = _reply(message, blocks, writer)
        role = "assistant" if role == MessageRole.ASSISTANT else "user"
        if turns and turns[-1].role == role:
            turns[-1].blocks += blocks
        elif blocks:
            turns.append(Turn(role, blocks))
    if not turns and not system:
        raise ValueError("there is nothing to answer: no message of the conversation says anything")
    if not turns:
        return Conversation([], [Turn("user", system)])
    return Conversation(system, [Turn(turn.role, encodable_all(turn.blocks)) for turn in turns])


def _content(message: ChatMessage, writer: BlockWriter, text_only: bool) -> list[Entry]:
    blocks = []
    for part in message.parts:
        if isinstance(part, ImagePart):
            if text_only:
                raise no_images()
            blocks.append(writer.image(part))
        elif part.text.strip():
            blocks.append(writer.text(part.text))
    return blocks


def _reply(message: ChatMessage, blocks: list[Entry], writer: BlockWriter) -> list[Entry]:
    """Returns what the model said, its thinking as it was wherever the provider wants it back.

    The history may say it otherwise than the model did: text that was cut or completed, calls that
    were told as text. Then the history counts for text and calls, and thinking stays in its place.
    """
    calls = message.tool_calls or []
    written = [_call(call, writer) for call in calls]
    own = _own_blocks(message, writer)
    if own is None:
        return blocks + written
    said = "".join(writer.text_of(block) for block in own if writer.kind(block) == "text")
    as_said = said.strip() == message.text.strip()
    own_calls = [block for block in own if writer.kind(block) == "call"]
    as_called = [writer.name_of(each) for each in own_calls] == [
        call.function.name for call in calls
    ]
    ids = iter([_identity(call.id) for call in calls])
    result: list[Entry] = []
    for block in own:
        match writer.kind(block):
            case "call" if as_called:
                result.append(writer.restored(writer.named(block, next(ids))))
            case "text" if not as_said:
                result += filter(None, [writer.remains(block)])
            case "text" | "thinking":
                result.append(writer.restored(block))
    if not as_said:
        others = [place for place, block in enumerate(own) if writer.kind(block) != "thinking"]
        after_first_thoughts = others[0] if others else len(result)
        result[after_first_thoughts:after_first_thoughts] = blocks
    return result if as_called else result + written


def _own_blocks(message: ChatMessage, writer: BlockWriter) -> list[Entry] | None:
    match message.native:
        case {"provider": writer.provider, "model": writer.model_id, "content": list(content)}:
            return [block for block in content if isinstance(block, dict)]
    return None


def _call(call: ChatMessageToolCall, writer: BlockWriter) -> Entry:
    arguments = as_object(call.function.arguments)
    return writer.call(_identity(call.id), call.function.name, arguments)


def _identity(given: str) -> str:
    """Returns the name of a call as all of them take it, also of one that another model made."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", given)[:64] or "call"
