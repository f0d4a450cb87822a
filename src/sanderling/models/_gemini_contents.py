"""Gemini's contents: how a conversation is written for it, and how a reply is read.

https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sanderling.errors import AgentGenerationError, ContentFilterError
from sanderling.messages import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    ImagePart,
    MessageRole,
    TokenUsage,
)

from ._bounds import check_blocks
from ._completions import broken_off
from ._foreign import count, first, get, is_object, sequence, text
from ._streamed_calls import StreamedCalls, with_distinct_ids
from ._turns import BlockWriter, Kind

if TYPE_CHECKING:
    from ._messages import Entry

_LENGTH: Final = "MAX_TOKENS"
_FILTERED: Final = frozenset(
    (
        "BLOCKLIST",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_SAFETY",
        "MODEL_ARMOR",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
    )
)
_SIGNATURE: Final = "thought_signature"
# For calls that this model did not make, or whose signature is lost; without it they are refused.
# https://ai.google.dev/gemini-api/docs/thought-signatures
_UNSIGNED: Final = b"skip_thought_signature_validator"


class GeminiWriter(BlockWriter):
    """Writes parts, in the form that the package takes: its names, and bytes as bytes."""

    def text(self, text: str) -> Entry:
        """Returns a text."""
        return {"text": text}

    def image(self, image: ImagePart) -> Entry:
        """Returns an image."""
        media_type, data = image.base64()
        return {"inline_data": {"mime_type": media_type, "data": base64.b64decode(data)}}

    def call(self, identity: str, name: str, arguments: Mapping[str, Any]) -> Entry:
        """Returns a tool call."""
        call = {"id": identity, "name": name, "args": dict(arguments)}
        return {"function_call": call, _SIGNATURE: _UNSIGNED}

    def result(self, identity: str, name: str, content: list[Entry]) -> Entry:
        """Returns what a tool call came to."""
        output = "\n".join(part["text"] for part in content if "text" in part)
        response: Entry = {
            "id": identity,
            "name": name or identity,
            "response": {"output": output},
        }
        if images := [part for part in content if "inline_data" in part]:
            response["parts"] = images
        return {"function_response": response}

    def kind(self, block: Entry) -> Kind:
        """Tells what a part of a reply is."""
        if "function_call" in block:
            return "call"
        return "text" if "text" in block and not block.get("thought") else "thinking"

    def text_of(self, block: Entry) -> str:
        """Returns the text of a part that is one."""
        return text(block.get("text")) or ""

    def name_of(self, block: Entry) -> str:
        """Returns the tool that a part calls."""
        return text(get(block.get("function_call"), "name")) or ""

    def named(self, block: Entry, identity: str) -> Entry:
        """Returns a part that is a call, with the identity that the call has in the history."""
        return {**block, "function_call": {**block["function_call"], "id": identity}}

    def remains(self, block: Entry) -> Entry | None:
        """Returns what goes back of a text that the history tells otherwise: its signature."""
        if _SIGNATURE not in block:
            return None
        return self.restored({"text": "", _SIGNATURE: block[_SIGNATURE]})

    def restored(self, block: Entry) -> Entry:
        """Returns a part as the package takes it, from its JSON form."""
        from google.genai import types

        part = types.Part.model_validate_json(json.dumps(block))
        return part.model_dump(exclude_none=True)

    def needs_keeping(self, block: Entry) -> bool:
        """Tells whether a history without the native form would lose the part."""
        return _SIGNATURE in block


def read_response(answer: object, writer: BlockWriter) -> ChatMessage:
    """Returns the message of an answer.

    Args:
        answer: The answer, as the package read it; the message keeps it as `raw`.
        writer: That of the request.

    Raises:
        AgentGenerationError: There is no candidate for a reply.
        ContentFilterError: Nothing but the provider's filter answered.
    """
    candidate = first(get(answer, "candidates"))
    if not is_object(candidate):
        if is_object(feedback := get(answer, "prompt_feedback")):
            raise _blocked(get(feedback, "block_reason"))
        raise AgentGenerationError(
            f"Gemini answered without a candidate for a reply: {answer!r:.500}. Ask again; if it "
            "happens often, look at what the conversation asks for.",
            retryable=True,
        )
    parts = _parts(candidate)
    said = "".join(writer.text_of(part) for part in parts if writer.kind(part) == "text")
    calls = with_distinct_ids(
        ChatMessageToolCall(
            ChatMessageToolCallFunction(_arguments(part), writer.name_of(part)), _id(part)
        )
        for part in parts
        if writer.kind(part) == "call"
    )
    reason = _reason(get(candidate, "finish_reason"))
    if reason in _FILTERED and not said and not calls:
        raise _blocked(reason)
    return ChatMessage(
        MessageRole.ASSISTANT,
        content=None if calls and not said else said,
        tool_calls=calls or None,
        raw=answer,
        token_usage=_usage(get(answer, "usage_metadata")),
        finish_reason=_finish(reason, bool(calls)),
        reasoning="".join(_thought(part) for part in parts) or None,
        native=writer.kept(parts),
    )


class GeminiStream:
    """Reads the pieces of one streamed answer, each of which looks like a whole one."""

    def __init__(self, writer: BlockWriter) -> None:
        self._writer = writer
        self._parts: list[Entry] = []
        self._texts: list[str] = []  # of the last part
        self._calls = StreamedCalls()
        self._usage: TokenUsage | None = None
        self._empty = True
        self._complete = False

    def feed(self, piece: object) -> ChatMessageStreamDelta | None:
        """Returns what a piece adds to the reply, if anything.

        Raises:
            ContentFilterError: The provider's filter ended the reply before it began.
        """
        self._usage = _usage(get(piece, "usage_metadata")) or self._usage
        candidate = first(get(piece, "candidates"))
        if not is_object(candidate):
            feedback = get(piece, "prompt_feedback")
            if is_object(feedback) and get(feedback, "block_reason") is not None:
                raise _blocked(get(feedback, "block_reason"))
            return None
        parts = _parts(candidate)
        thoughts = [_thought(part) for part in parts]
        said = [self._writer.text_of(part) for part in parts if self._writer.kind(part) == "text"]
        calls = [call for part in parts for call in self._take(part)]
        read = ChatMessageStreamDelta(
            "".join(said) or None, calls or None, reasoning="".join(thoughts) or None
        )
        self._empty = self._empty and not read.content and not calls
        reason = _reason(get(candidate, "finish_reason"))
        if reason is not None:
            self._complete = True
            if reason in _FILTERED and self._empty:
                raise _blocked(reason)
            read.finish_reason = _finish(reason, bool(self._calls))
        return None if read == ChatMessageStreamDelta() else read

    def end(self) -> ChatMessageStreamDelta | None:
        """Returns the last delta, with the usage and the native form.

        Raises:
            AgentGenerationError: The stream ended before the reply did.
        """
        if not self._complete:
            raise broken_off("no finishReason came")
        self._end_part()
        native = self._writer.kept(self._parts)
        return ChatMessageStreamDelta(token_usage=self._usage, native=native)

    def _take(self, part: Entry) -> Sequence[ChatMessageToolCallStreamDelta]:
        """Keeps a part; returns the call that it is."""
        if self._parts and _goes_on(self._parts[-1], part):
            self._texts.append(part["text"])
            return ()
        self._end_part()
        check_blocks(len(self._parts))
        place = len(self._parts)
        self._parts.append(part)
        if self._writer.kind(part) != "call":
            return ()
        name, arguments = self._writer.name_of(part), json.dumps(_arguments(part))
        return self._calls.begin(place, _id(part), name, arguments).tool_calls or ()

    def _end_part(self) -> None:
        if self._texts:
            last = self._parts[-1]
            self._parts[-1] = {**last, "text": "".join([last["text"], *self._texts])}
            self._texts = []


def _goes_on(part: Entry, more: Entry) -> bool:
    """Tells whether nothing but the streaming made two parts of one text."""
    return "text" in part and part.keys() == more.keys() and part.keys() <= {"text", "thought"}


def _parts(candidate: object) -> list[Entry]:
    """Returns the parts of a candidate as JSON, with exactly the fields that the provider sent."""
    parts = [
        part.model_dump(mode="json", exclude_none=True)
        for part in sequence(get(get(candidate, "content"), "parts"))
    ]
    return [part for part in parts if part != {"text": ""}]


def _id(part: Entry) -> str:
    return text(get(part["function_call"], "id")) or ""


def _arguments(part: Entry) -> Mapping[str, Any]:
    return get(part["function_call"], "args") or {}


def _thought(part: Entry) -> str:
    return (text(part.get("text")) or "") if part.get("thought") else ""


def _reason(reason: object) -> str | None:
    return text(getattr(reason, "value", reason))


def _finish(reason: str | None, called: bool) -> str | None:
    if reason is None:
        return None
    if reason == _LENGTH:
        return "length"
    if reason in _FILTERED:
        return "content_filter"
    if reason == "STOP":
        return "tool_calls" if called else "stop"
    return reason.lower()


def _blocked(reason: object) -> ContentFilterError:
    return ContentFilterError(
        f"Gemini withheld the reply ({_reason(reason)}), and there is no text. Look for what it "
        "objects to in the task and in what tools returned, set safety_settings, or ask another "
        "model."
    )


def _usage(usage: object) -> TokenUsage | None:
    if usage is None:
        return None
    thoughts = count(get(usage, "thoughts_token_count"))
    return TokenUsage(
        count(get(usage, "prompt_token_count")) + count(get(usage, "tool_use_prompt_token_count")),
        # The provider counts thinking apart from the reply.
        count(get(usage, "candidates_token_count")) + thoughts,
        count(get(usage, "cached_content_token_count")),
        thoughts,
    )
