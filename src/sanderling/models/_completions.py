"""Reads chat completions, whole and streamed.

https://platform.openai.com/docs/api-reference/chat/object, and what other servers make of it. All
of it is data from outside: nothing is taken to be there, or to be of its type.
"""

from __future__ import annotations

from typing import Final

from sanderling.errors import AgentGenerationError, ContentFilterError
from sanderling.messages import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
    TokenUsage,
)

from ._failures import Failure, Fault, http_failure
from ._foreign import count as _count
from ._foreign import first as _first
from ._foreign import get as _get
from ._foreign import is_object as _is_object
from ._foreign import sequence as _sequence
from ._foreign import text as _text
from ._streamed_calls import DistinctIds, with_distinct_ids

_NOTHING: Final = ChatMessageStreamDelta()


def read_completion(answer: object) -> ChatMessage:
    """Returns the message of a chat completion.

    Args:
        answer: The completion, as parsed JSON or as what a package read it into; the message keeps
            it as `raw`.

    Raises:
        AgentGenerationError: It is no completion, or has no choice.
        ContentFilterError: Nothing but the provider's filter answered.
    """
    choice = _first(_get(answer, "choices"))
    message = _get(choice, "message")
    if not _is_object(message):
        raise AgentGenerationError(
            "The server answered, but not with a chat completion: there is no "
            f"`choices[0].message` in {answer!r:.500}. Is the address that of an "
            "OpenAI-compatible endpoint (it usually ends in /v1)?"
        )
    text, thinking = _content(_get(message, "content"))
    calls = with_distinct_ids(
        _call(call) for call in _sequence(_get(message, "tool_calls")) if _is_object(call)
    )
    if _get(choice, "finish_reason") == "content_filter" and not text and not calls:
        raise filtered()
    return ChatMessage(
        MessageRole.ASSISTANT,
        content=text if text is not None else _text(_get(message, "refusal")),
        tool_calls=calls or None,
        raw=answer,
        token_usage=_usage(_get(answer, "usage")),
        finish_reason=_text(_get(choice, "finish_reason")),
        reasoning=_reasoning(message) or thinking,
    )


def told_failure(answer: object) -> Failure | None:
    """Returns the failure that an answer with status 200 tells of; `None` where it tells none.

    OpenRouter and other gateways answer so where the provider behind them failed.
    """
    error = _get(answer, "error") or _get(_first(_get(answer, "choices")), "error")
    said, status = _text(_get(error, "message")), _get(error, "code")
    if said is None:
        return None
    if isinstance(status, int) and 400 <= status < 600:
        return http_failure(status, {}, said, _get(error, "type"))
    return Failure(Fault.BROKEN, said)


class StreamReader:
    """Reads the chunks of one streamed completion."""

    def __init__(self) -> None:
        self._usage: TokenUsage | None = None
        self._complete = False
        self._empty = True
        self._calls: list[tuple[str, str]] = []  # the ids of the calls: as they came, and distinct
        self._ids = DistinctIds()
        self._places: dict[int, int] = {}  # from what the server calls a place to the call there

    def feed(self, chunk: object) -> ChatMessageStreamDelta | None:
        """Returns what a chunk adds to the reply, if anything.

        Raises:
            AgentGenerationError: The chunk is none.
            ContentFilterError: The provider's filter ended the reply before it began.
        """
        if not _is_object(chunk):
            raise AgentGenerationError(f"The server streamed what is no chunk: {chunk!r:.500}")
        # Some servers repeat a running total: the last one counts.
        self._usage = _usage(_get(chunk, "usage")) or self._usage
        choice = _first(_get(chunk, "choices"))
        if not _is_object(choice):
            self._complete = self._complete or self._usage is not None
            return None
        delta = _get(choice, "delta")
        text, thinking = _content(_get(delta, "content"))
        finish_reason = _text(_get(choice, "finish_reason"))
        self._complete = self._complete or finish_reason is not None
        pieces = [
            self._piece(piece)
            for piece in _sequence(_get(delta, "tool_calls"))
            if _is_object(piece)
        ]
        read = ChatMessageStreamDelta(
            content=text or _text(_get(delta, "refusal")) or None,
            tool_calls=pieces or None,
            finish_reason=finish_reason,
            reasoning=_reasoning(delta) or thinking,
        )
        if read == _NOTHING:
            return None
        self._empty = self._empty and not read.content and not read.tool_calls
        if finish_reason == "content_filter" and self._empty:
            raise filtered()
        return read

    def end(self) -> ChatMessageStreamDelta | None:
        """Returns the last delta, with the usage, if the server told it.

        Raises:
            AgentGenerationError: The stream ended before the reply did.
        """
        if not self._complete:
            raise broken_off("no finish_reason came")
        return None if self._usage is None else ChatMessageStreamDelta(token_usage=self._usage)

    def _piece(self, piece: object) -> ChatMessageToolCallStreamDelta:
        call = _call(piece)
        place = _get(piece, "index")
        if not isinstance(place, int):  # then a name begins the next call
            index = len(self._calls) - 1
            is_next = bool(call.function.name) or not self._calls
        else:  # some servers call every place 0
            index = self._places.get(place, -1)
            is_named = call.function.name != "" and call.id != ""
            is_next = index < 0 or (is_named and call.id != self._calls[index][0])
        if is_next:
            index = len(self._calls)
            self._calls.append(("", ""))
            if isinstance(place, int):
                self._places[place] = index
        if call.id and call.id != self._calls[index][0]:
            self._calls[index] = call.id, self._ids.of(call.id)
        identity = self._calls[index][1] if call.id else None
        return ChatMessageToolCallStreamDelta(
            index, identity, _text(_get(piece, "type")), call.function
        )


def broken_off(sign: str) -> AgentGenerationError:
    """Returns the error for a stream that ended before the reply did.

    Args:
        sign: How that shows.
    """
    return AgentGenerationError(
        f"The stream broke off: the server closed it before the reply was finished ({sign}). The "
        "reply is incomplete and was not used. Ask again; if it happens often, look at the "
        "server's log and at time limits of proxies between.",
        retryable=True,
    )


def filtered() -> ContentFilterError:
    """Returns the error for a reply of which the provider's filter left nothing."""
    return ContentFilterError(
        "The provider's content filter withheld the reply: finish_reason is content_filter, and "
        "there is no text. Look for what it objects to in the task and in what tools returned, or "
        "ask another model."
    )


def _call(call: object) -> ChatMessageToolCall:
    function = _get(call, "function")
    arguments = _get(function, "arguments")
    return ChatMessageToolCall(
        ChatMessageToolCallFunction(
            arguments="" if arguments is None else arguments,
            name=_text(_get(function, "name")) or "",
        ),
        id=_text(_get(call, "id")) or "",
    )


def _content(content: object) -> tuple[str | None, str | None]:
    """Returns text and thinking; some servers write both as a list of parts."""
    if content is None or isinstance(content, str):
        return content, None
    parts = [part for part in _sequence(content) if _is_object(part)]
    thinking = [_get(part, "thinking") for part in parts if _get(part, "type") == "thinking"]
    return _joined(parts), "".join(map(_joined, thinking)) or None


def _joined(content: object) -> str:
    """Returns the text of a content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(
        _text(_get(part, "text")) or "" for part in _sequence(content) if _is_object(part)
    )


def _reasoning(message: object) -> str | None:
    # DeepSeek, vLLM and llama.cpp use the first name; OpenRouter, Ollama and newer vLLM the second.
    thinking = _text(_get(message, "reasoning_content")) or _text(_get(message, "reasoning"))
    return thinking or None


def _usage(usage: object) -> TokenUsage | None:
    if not _is_object(usage):
        return None
    prompt = _get(usage, "prompt_tokens_details")
    completion = _get(usage, "completion_tokens_details")
    return TokenUsage(
        _count(_get(usage, "prompt_tokens")),
        _count(_get(usage, "completion_tokens")),
        # The second name is DeepSeek's.
        _count(_get(prompt, "cached_tokens")) or _count(_get(usage, "prompt_cache_hit_tokens")),
        _count(_get(completion, "reasoning_tokens")),
        # Anthropic's name, as LiteLLM passes it on.
        _count(_get(usage, "cache_creation_input_tokens")),
    )
