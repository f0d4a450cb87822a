"""Reads chat completions, whole and streamed.

https://platform.openai.com/docs/api-reference/chat/object, and what other servers make of it. All
of it is data from outside: nothing is taken to be there, or to be of its type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sanderling.errors import AgentGenerationError
from sanderling.messages import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
    TokenUsage,
)


def read_completion(data: object, raw: object = None) -> ChatMessage:
    """Returns the message of a chat completion.

    Args:
        data: The completion, as parsed JSON.
        raw: Kept with the message.

    Raises:
        AgentGenerationError: It is no completion, or has no choice.
    """
    choice = _first(_mapping(data).get("choices"))
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if choice is None or not isinstance(message, Mapping):
        raise AgentGenerationError(
            "The server answered, but not with a chat completion: there is no "
            f"`choices[0].message` in {data!r:.500}. Is the address that of an "
            "OpenAI-compatible endpoint (it usually ends in /v1)?"
        )
    text, thinking = _content(message.get("content"))
    calls = [
        _call(call) for call in _sequence(message.get("tool_calls")) if isinstance(call, Mapping)
    ]
    return ChatMessage(
        MessageRole.ASSISTANT,
        content=text if text is not None else _text(message.get("refusal")),
        tool_calls=calls or None,
        raw=raw,
        token_usage=_usage(_mapping(data).get("usage")),
        finish_reason=_text(choice.get("finish_reason")),
        reasoning=_reasoning(message) or thinking,
    )


class StreamReader:
    """Reads the chunks of one streamed completion."""

    def __init__(self) -> None:
        self._usage: TokenUsage | None = None
        self._complete = False
        self._calls = 0

    def feed(self, chunk: object) -> ChatMessageStreamDelta | None:
        """Returns what a chunk adds to the reply, if anything.

        Raises:
            AgentGenerationError: The chunk is none.
        """
        if not isinstance(chunk, Mapping):
            raise AgentGenerationError(f"The server streamed what is no chunk: {chunk!r:.500}")
        # Some servers repeat a running total: the last one counts.
        self._usage = _usage(chunk.get("usage")) or self._usage
        choice = _first(chunk.get("choices"))
        if not isinstance(choice, Mapping):
            self._complete = self._complete or self._usage is not None
            return None
        delta = _mapping(choice.get("delta"))
        text, thinking = _content(delta.get("content"))
        finish_reason = _text(choice.get("finish_reason"))
        self._complete = self._complete or finish_reason is not None
        pieces = [
            self._piece(piece)
            for piece in _sequence(delta.get("tool_calls"))
            if isinstance(piece, Mapping)
        ]
        read = ChatMessageStreamDelta(
            content=text or _text(delta.get("refusal")) or None,
            tool_calls=pieces or None,
            finish_reason=finish_reason,
            reasoning=_reasoning(delta) or thinking,
        )
        return None if read == ChatMessageStreamDelta() else read

    def end(self) -> ChatMessageStreamDelta | None:
        """Returns the last delta, with the usage, if the server told it.

        Raises:
            AgentGenerationError: The stream ended before the reply did.
        """
        if not self._complete:
            raise AgentGenerationError(
                "The stream broke off: the server closed it before the reply was finished "
                "(no finish_reason came). The reply is incomplete and was not used. Ask again; if "
                "it happens often, look at the server's log and at time limits of proxies between."
            )
        return None if self._usage is None else ChatMessageStreamDelta(token_usage=self._usage)

    def _piece(self, piece: Mapping[str, Any]) -> ChatMessageToolCallStreamDelta:
        index = piece.get("index")
        call = _call(piece)
        if not isinstance(index, int):
            # Without an index, a name begins the next call.
            index = self._calls if call.function.name else self._calls - 1
        self._calls = max(self._calls, index + 1)
        return ChatMessageToolCallStreamDelta(
            index, call.id or None, _text(piece.get("type")), call.function
        )


def _call(call: Mapping[str, Any]) -> ChatMessageToolCall:
    function = _mapping(call.get("function"))
    arguments = function.get("arguments")
    return ChatMessageToolCall(
        ChatMessageToolCallFunction(
            arguments="" if arguments is None else arguments,
            name=_text(function.get("name")) or "",
        ),
        id=_text(call.get("id")) or "",
    )


def _content(content: object) -> tuple[str | None, str | None]:
    """Returns text and thinking; some servers write both as a list of parts."""
    if content is None or isinstance(content, str):
        return content, None
    parts = [part for part in _sequence(content) if isinstance(part, Mapping)]
    text = "".join(_text(part.get("text")) or "" for part in parts)
    thinking = "".join(
        _content(part["thinking"])[0] or "" for part in parts if part.get("type") == "thinking"
    )
    return text, thinking or None


def _reasoning(message: Mapping[str, Any]) -> str | None:
    # DeepSeek, vLLM and llama.cpp use the first name; OpenRouter, Ollama and newer vLLM the second.
    return _text(message.get("reasoning_content")) or _text(message.get("reasoning")) or None


def _usage(usage: object) -> TokenUsage | None:
    if not isinstance(usage, Mapping):
        return None
    details = _mapping(usage.get("prompt_tokens_details"))
    return TokenUsage(
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        _count(details.get("cached_tokens")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _first(value: object) -> Any:
    items = _sequence(value)
    return items[0] if items else None
