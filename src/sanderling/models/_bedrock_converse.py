"""Bedrock's Converse: how a conversation is written for it, and how a reply is read.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sanderling.errors import AgentGenerationError
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
from ._completions import broken_off, filtered
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
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
}
# What a reply is made of, and may be sent back. The package names members that it does not know
# SDK_UNKNOWN_MEMBER, and refuses to send them.
_BLOCKS: Final = ("text", "toolUse", "reasoningContent")
_BYTES: Final = "$bytes"


class ConverseWriter(BlockWriter):
    """Writes content blocks, which are dicts of one key."""

    def text(self, text: str) -> Entry:
        """Returns a text."""
        return {"text": text}

    def image(self, image: ImagePart) -> Entry:
        """Returns an image; the package wants bytes."""
        media_type, data = image.base64()
        source = {"bytes": base64.b64decode(data)}
        return {"image": {"format": media_type.rpartition("/")[2], "source": source}}

    def call(self, identity: str, name: str, arguments: Mapping[str, Any]) -> Entry:
        """Returns a tool call."""
        return {"toolUse": {"toolUseId": identity, "name": name, "input": dict(arguments)}}

    def result(self, identity: str, name: str, content: list[Entry]) -> Entry:
        """Returns what a tool call came to."""
        return {"toolResult": {"toolUseId": identity, "content": content}}

    def kind(self, block: Entry) -> Kind:
        """Tells what a block of a reply is."""
        return "text" if "text" in block else "call" if "toolUse" in block else "thinking"

    def text_of(self, block: Entry) -> str:
        """Returns the text of a block that is one."""
        return text(block.get("text")) or ""

    def name_of(self, block: Entry) -> str:
        """Returns the tool that a block calls."""
        return text(get(block.get("toolUse"), "name")) or ""

    def named(self, block: Entry, identity: str) -> Entry:
        """Returns a block that is a call, with the identity that the call has in the history."""
        return {"toolUse": {**block["toolUse"], "toolUseId": identity}}

    def restored(self, block: Entry) -> Entry:
        """Returns a block of thinking as the package wants it, from its JSON form."""
        match block:
            case {"reasoningContent": {"redactedContent": {"$bytes": str(data)}}}:
                return {"reasoningContent": {"redactedContent": base64.b64decode(data)}}
        return block


def mark(conversation: Conversation) -> None:
    """Sets cache points where a cache is worth its price: as for Anthropic's own messages.

    https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
    """
    for blocks in conversation.stable_ends():
        blocks.append({"cachePoint": {"type": "default"}})


def read_converse(answer: object, writer: BlockWriter) -> ChatMessage:
    """Returns the message of an answer.

    Args:
        answer: The answer, as the package read it; the message keeps it as `raw`.
        writer: That of the request.

    Raises:
        AgentGenerationError: It holds no message.
        ContentFilterError: Nothing but the provider's filter answered.
    """
    content = get(get(get(answer, "output"), "message"), "content")
    if not isinstance(content, list):
        raise AgentGenerationError(
            f"Bedrock answered, but not with a message: there is no `output.message.content` in "
            f"{answer!r:.500}. Is the model one that the Converse API offers?"
        )
    blocks = [_json_form(block) for block in content if _is_known(block)]
    said = "".join(writer.text_of(block) for block in blocks)
    calls = with_distinct_ids(
        ChatMessageToolCall(
            ChatMessageToolCallFunction(get(block["toolUse"], "input"), writer.name_of(block)),
            text(get(block["toolUse"], "toolUseId")) or "",
        )
        for block in blocks
        if writer.kind(block) == "call"
    )
    finish = _finish(get(answer, "stopReason"))
    if finish == "content_filter" and not said and not calls:
        raise filtered()
    thoughts = [
        get(get(block.get("reasoningContent"), "reasoningText"), "text") for block in blocks
    ]
    return ChatMessage(
        MessageRole.ASSISTANT,
        content=None if calls and not said else said,
        tool_calls=calls or None,
        raw=answer,
        token_usage=_usage(get(answer, "usage")),
        finish_reason=finish,
        reasoning="".join(text(thought) or "" for thought in thoughts) or None,
        native=writer.kept(blocks),
    )


class ConverseStream:
    """Reads the events of one streamed reply."""

    def __init__(self, writer: BlockWriter) -> None:
        self._writer = writer
        self._blocks: dict[object, _Block] = {}
        self._hidden = 0  # how much came that no delta tells
        self._calls = StreamedCalls()
        self._usage: TokenUsage | None = None
        self._empty = True
        self._complete = False

    def feed(self, event: object) -> ChatMessageStreamDelta | None:
        """Returns what an event adds to the reply, if anything.

        Raises:
            ContentFilterError: The provider's filter ended the reply before it began.
        """
        match event:
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}:
                return self._more(index, delta)
            case {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": call}}}:
                self._empty = False
                identity, name = text(get(call, "toolUseId")) or "", text(get(call, "name")) or ""
                self._blocks[index] = _Block({"toolUseId": identity, "name": name})
                return self._calls.begin(index, identity, name)
            case {"messageStop": stop}:
                self._complete = True
                finish = _finish(get(stop, "stopReason"))
                if finish == "content_filter" and self._empty:
                    raise filtered()
                return ChatMessageStreamDelta(finish_reason=finish)
            case {"metadata": metadata}:
                self._usage = _usage(get(metadata, "usage"))
        return None

    def end(self) -> ChatMessageStreamDelta | None:
        """Returns the last delta, with the usage and the native form.

        Raises:
            AgentGenerationError: The stream ended before the reply did.
        """
        if not self._complete:
            raise broken_off("no messageStop came")
        blocks = [block.whole() for block in self._blocks.values()]
        native = self._writer.kept(blocks)
        return ChatMessageStreamDelta(token_usage=self._usage, native=native)

    def _more(self, index: object, delta: object) -> ChatMessageStreamDelta | None:
        block = self._blocks.setdefault(index, _Block())
        check_blocks(len(self._blocks))
        match delta:
            case {"text": str(piece)} if piece:
                block.text.append(piece)
                self._empty = False
                return ChatMessageStreamDelta(piece)
            case {"toolUse": {"input": str(piece)}} if index in self._calls:
                block.text.append(piece)
                return self._calls.more(index, piece)
            case {"reasoningContent": {"text": str(piece)}}:
                block.thinking.append(piece)
                return ChatMessageStreamDelta(reasoning=piece) if piece else None
            case {"reasoningContent": {"signature": str(piece)}}:
                self._hidden += len(piece)
                block.signature.append(piece)
            case {"reasoningContent": {"redactedContent": bytes(piece)}}:
                self._hidden += len(piece)
                block.redacted.append(piece)
        check_length(self._hidden)
        return None


class _Block:
    """A block that is being streamed.

    Attributes:
        call: The beginning of a tool call; empty where it is none.
        text: Its text, or the arguments of the call.
        thinking: Its thinking.
        signature: What the thinking is signed with.
        redacted: Thinking that is not shown.
    """

    def __init__(self, call: Mapping[str, str] | None = None) -> None:
        self.call = call or {}
        self.text: list[str] = []
        self.thinking: list[str] = []
        self.signature: list[str] = []
        self.redacted: list[bytes] = []

    def whole(self) -> Entry:
        """Returns the block as an answer that is not streamed would have it."""
        said, thought = "".join(self.text), "".join(self.thinking)
        signature, redacted = "".join(self.signature), b"".join(self.redacted)
        if self.call:
            return {"toolUse": {**self.call, "input": as_object(said)}}
        if redacted:
            return _json_form({"reasoningContent": {"redactedContent": redacted}})
        if thought or signature:
            signed = {"signature": signature} if signature else {}
            return {"reasoningContent": {"reasoningText": {"text": thought, **signed}}}
        return {"text": said}


def _is_known(block: object) -> bool:
    return isinstance(block, dict) and any(name in block for name in _BLOCKS)


def _json_form(block: Entry) -> Entry:
    match block:
        case {"reasoningContent": {"redactedContent": bytes(data)}}:
            return {
                "reasoningContent": {
                    "redactedContent": {_BYTES: base64.b64encode(data).decode("ascii")}
                }
            }
    return block


def _finish(reason: object) -> str | None:
    said = text(reason)
    return None if said is None else _FINISH.get(said, said)


def _usage(usage: object) -> TokenUsage | None:
    if usage is None:
        return None
    read = count(get(usage, "cacheReadInputTokens"))
    written = count(get(usage, "cacheWriteInputTokens"))
    return TokenUsage(
        # The provider counts only what it neither found in its cache nor put there.
        count(get(usage, "inputTokens")) + read + written,
        count(get(usage, "outputTokens")),
        cached_tokens=read,
        cache_write_tokens=written,
    )
