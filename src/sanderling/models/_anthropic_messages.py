"""Anthropic's messages: how a conversation is written for them, and how a reply is read.

https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sanderling.errors import AgentGenerationError, ContentFilterError
from sanderling.messages import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ImagePart,
    MessageRole,
    TokenUsage,
)

from ._bounds import check_blocks, check_length
from ._cache_marks import MARK
from ._completions import broken_off
from ._foreign import count, get, text
from ._streamed_calls import StreamedCalls, with_distinct_ids
from ._tool_calls import as_object
from ._turns import BlockWriter, Conversation, Kind

if TYPE_CHECKING:
    from ._messages import Entry

_FINISH: Final[Mapping[str, str]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_UNMARKED: Final = ("thinking", "redacted_thinking")


class AnthropicWriter(BlockWriter):
    """Writes content blocks."""

    def text(self, text: str) -> Entry:
        """Returns a text."""
        return {"type": "text", "text": text}

    def image(self, image: ImagePart) -> Entry:
        """Returns an image: by its web address, or in base64."""
        if image.url.startswith(("http://", "https://")):
            return {"type": "image", "source": {"type": "url", "url": image.url}}
        media_type, data = image.base64()
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": "image", "source": source}

    def call(self, identity: str, name: str, arguments: Mapping[str, Any]) -> Entry:
        """Returns a tool call."""
        return {"type": "tool_use", "id": identity, "name": name, "input": dict(arguments)}

    def result(self, identity: str, name: str, content: list[Entry]) -> Entry:
        """Returns what a tool call came to."""
        return {"type": "tool_result", "tool_use_id": identity, "content": content}

    def kind(self, block: Entry) -> Kind:
        """Tells what a block of a reply is."""
        kind = block.get("type")
        return "text" if kind == "text" else "call" if kind == "tool_use" else "thinking"

    def text_of(self, block: Entry) -> str:
        """Returns the text of a block that is one."""
        return text(block.get("text")) or ""

    def name_of(self, block: Entry) -> str:
        """Returns the tool that a block calls."""
        return text(block.get("name")) or ""

    def named(self, block: Entry, identity: str) -> Entry:
        """Returns a block that is a call, with the identity that the call has in the history."""
        return {**block, "id": identity}


def mark(conversation: Conversation) -> None:
    """Marks where a cache is worth its price.

    https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    """
    for blocks in conversation.stable_ends():
        for place in range(len(blocks) - 1, -1, -1):
            if blocks[place]["type"] not in _UNMARKED:
                blocks[place] = {**blocks[place], "cache_control": MARK}
                break


def thinks(thinking: object) -> bool:
    """Tells whether a request lets the model think, so that it cannot be held to calling a tool."""
    return get(thinking, "type") not in (None, "disabled")


def read_message(answer: object, writer: BlockWriter) -> ChatMessage:
    """Returns the message of an answer.

    Args:
        answer: The answer, as parsed JSON or as the package read it; the message keeps it as `raw`.
        writer: That of the request.

    Raises:
        AgentGenerationError: It is no message.
        ContentFilterError: The provider refused to answer.
    """
    content = get(answer, "content")
    if not isinstance(content, list):
        raise AgentGenerationError(
            f"The server answered, but not with a message of Anthropic: there is no `content` in "
            f"{answer!r:.500}. Is base_url the address of an endpoint that speaks Anthropic's "
            "messages, without /v1?"
        )
    blocks = [entry for block in content if (entry := _entry(block))]
    said = "".join(writer.text_of(block) for block in blocks if writer.kind(block) == "text")
    calls = with_distinct_ids(
        ChatMessageToolCall(
            ChatMessageToolCallFunction(block.get("input", {}), writer.name_of(block)),
            text(block.get("id")) or "",
        )
        for block in blocks
        if writer.kind(block) == "call"
    )
    if get(answer, "stop_reason") == "refusal" and not said and not calls:
        raise refused(get(answer, "stop_details"))
    return ChatMessage(
        MessageRole.ASSISTANT,
        content=None if calls and not said else said,
        tool_calls=calls or None,
        raw=answer,
        token_usage=_usage(get(answer, "usage")),
        finish_reason=_finish(get(answer, "stop_reason")),
        reasoning="".join(text(block.get("thinking")) or "" for block in blocks) or None,
        native=writer.kept(blocks),
    )


class AnthropicStream:
    """Reads the events of one streamed message."""

    def __init__(self, writer: BlockWriter) -> None:
        self._writer = writer
        self._blocks: dict[object, Entry] = {}
        self._pieces: dict[object, list[str]] = {}  # of the field that a block is streamed in
        self._signatures: dict[object, list[str]] = {}
        self._signed = 0
        self._calls = StreamedCalls()
        self._usage: dict[str, object] = {}
        self._empty = True
        self._complete = False

    def feed(self, event: object) -> ChatMessageStreamDelta | None:
        """Returns what an event adds to the reply, if anything.

        Raises:
            ContentFilterError: The provider refused to answer.
        """
        match get(event, "type"):
            case "content_block_delta":
                return self._more(get(event, "index"), get(event, "delta"))
            case "content_block_start":
                return self._begin(get(event, "index"), _entry(get(event, "content_block")))
            case "message_start":
                self._count(get(get(event, "message"), "usage"))
            case "message_delta":
                self._count(get(event, "usage"))
                return self._finished(get(event, "delta"))
        return None

    def end(self) -> ChatMessageStreamDelta | None:
        """Returns the last delta, with the usage and the native form.

        Raises:
            AgentGenerationError: The stream ended before the reply did.
        """
        if not self._complete:
            raise broken_off("no stop_reason came")
        blocks = [self._whole(index) for index in self._blocks]
        usage = _usage(self._usage) if self._usage else None
        return ChatMessageStreamDelta(token_usage=usage, native=self._writer.kept(blocks))

    def _begin(self, index: object, block: Entry) -> ChatMessageStreamDelta | None:
        if not block:
            return None
        check_blocks(len(self._blocks))
        self._blocks[index] = block
        self._pieces[index] = []
        self._signatures[index] = []
        match self._writer.kind(block):
            case "call":
                self._empty = False
                given = json.dumps(block["input"]) if block.get("input") else ""
                identity = text(block.get("id")) or ""
                return self._calls.begin(index, identity, self._writer.name_of(block), given)
            case "text" if said := self._writer.text_of(block):
                self._empty = False
                return ChatMessageStreamDelta(said)
        return None

    def _more(self, index: object, delta: object) -> ChatMessageStreamDelta | None:
        match get(delta, "type"):
            case "text_delta" if piece := text(get(delta, "text")):
                self._pieces.setdefault(index, []).append(piece)
                self._empty = False
                return ChatMessageStreamDelta(piece)
            case "thinking_delta" if piece := text(get(delta, "thinking")):
                self._pieces.setdefault(index, []).append(piece)
                return ChatMessageStreamDelta(reasoning=piece)
            case "signature_delta" if index in self._blocks:
                piece = text(get(delta, "signature")) or ""
                self._signed += len(piece)
                check_length(self._signed)
                self._signatures[index].append(piece)
            case "input_json_delta" if index in self._calls:
                piece = text(get(delta, "partial_json")) or ""
                self._pieces[index].append(piece)
                return self._calls.more(index, piece)
        return None

    def _finished(self, delta: object) -> ChatMessageStreamDelta | None:
        reason = text(get(delta, "stop_reason"))
        if reason is None:
            return None
        if reason == "refusal" and self._empty:
            raise refused(get(delta, "stop_details"))
        self._complete = True
        return ChatMessageStreamDelta(finish_reason=_finish(reason))

    def _count(self, usage: object) -> None:
        """Takes what an event says of the usage; later ones tell the same numbers again, grown."""
        told = {name: get(usage, name) for name in _COUNTED}
        self._usage.update({name: value for name, value in told.items() if value is not None})

    def _whole(self, index: object) -> Entry:
        """Returns a block as an answer that is not streamed would have it."""
        block, joined = self._blocks[index], "".join(self._pieces[index])
        if signed := "".join(self._signatures[index]):
            block = {**block, "signature": (text(block.get("signature")) or "") + signed}
        match block.get("type"):
            case "text" | "thinking" as name:
                return {**block, name: (text(block.get(name)) or "") + joined}
            case "tool_use" if joined:
                return {**block, "input": as_object(joined)}
        return block


_COUNTED: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens_details",
)


def refused(details: object) -> ContentFilterError:
    """Returns the error for a request that the model does not answer.

    Args:
        details: What the provider says about it.
    """
    explanation = text(get(details, "explanation"))
    category = text(get(details, "category"))
    why = "".join(f" It says: {each}" for each in (explanation or category,) if each)
    return ContentFilterError(
        "The model refused to answer: stop_reason is refusal, and there is no text. Look for what "
        f"it objects to in the task and in what tools returned, or ask another model.{why}"
    )


def _entry(block: object) -> Entry:
    """Returns a block as JSON, with exactly the fields that the provider sent."""
    as_json = getattr(block, "to_dict", None)
    entry = as_json(mode="json") if callable(as_json) else block
    return dict(entry) if isinstance(entry, dict) else {}


def _finish(reason: object) -> str | None:
    said = text(reason)
    return None if said is None else _FINISH.get(said, said)


def _usage(usage: object) -> TokenUsage | None:
    if usage is None:
        return None
    read, written = (
        count(get(usage, "cache_read_input_tokens")),
        count(get(usage, "cache_creation_input_tokens")),
    )
    return TokenUsage(
        # The provider counts only what it neither found in its cache nor put there.
        count(get(usage, "input_tokens")) + read + written,
        count(get(usage, "output_tokens")),
        read,
        count(get(get(usage, "output_tokens_details"), "thinking_tokens")),
        written,
    )
