"""Bounds of one reply: more than that no model writes, and it would cost the host too much."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from sanderling.errors import AgentGenerationError

from ._tool_calls import MAX_CALLS, MAX_NESTING, is_nested_deeply

if TYPE_CHECKING:
    from sanderling.messages import (
        ChatMessage,
        ChatMessageStreamDelta,
        ChatMessageToolCall,
        ChatMessageToolCallStreamDelta,
    )

#: Characters of text, thinking and arguments of tool calls together.
MAX_TEXT: Final = 4 * 2**20
#: Pieces of a stream.
MAX_PIECES: Final = 500_000


#: Blocks of text, thinking and calls that a reply is made of, where a provider has such.
MAX_BLOCKS: Final = 10_000


def check_blocks(count: int) -> None:
    """Checks how many blocks a reply has.

    Raises:
        AgentGenerationError: They are too many.
    """
    _check("blocks", count, MAX_BLOCKS)


def check_length(count: int) -> None:
    """Checks how many characters a reply has.

    Raises:
        AgentGenerationError: They are too many.
    """
    _check("characters", count, MAX_TEXT)


class ReplyBounds:
    """Counts what one reply has.

    Attributes:
        pieces: How many pieces came so far.
    """

    def __init__(self) -> None:
        self._text = self.pieces = 0
        self._calls: set[int | None] = set()

    def add(self, delta: ChatMessageStreamDelta) -> ChatMessageStreamDelta:
        """Returns the next piece of the reply.

        Raises:
            AgentGenerationError: It is too much.
        """
        self.pieces += 1
        self._text += len(delta.content or "") + len(delta.reasoning or "")
        if delta.tool_calls:
            self._text += _length(delta.tool_calls)
            self._calls.update(call.index for call in delta.tool_calls)
        check_length(self._text)
        _check("tool calls", len(self._calls), MAX_CALLS)
        _check("pieces", self.pieces, MAX_PIECES)
        return delta

    def whole(self, message: ChatMessage) -> ChatMessage:
        """Returns the message of a reply that is not streamed.

        Raises:
            AgentGenerationError: It is too much.
        """
        calls = message.tool_calls or ()
        text = len(message.text) + len(message.reasoning or "") + _length(calls)
        check_length(text)
        _check("tool calls", len(calls), MAX_CALLS)
        return message


def _check(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise AgentGenerationError(
            f"The reply has more than {limit:,} {what}, which no model writes. It was given up, "
            "and is not asked for again. Check the address of the server, or lower max_tokens."
        )


def _length(calls: Iterable[ChatMessageToolCall | ChatMessageToolCallStreamDelta]) -> int:
    functions = [call.function for call in calls if call.function is not None]
    if any(is_nested_deeply(each.arguments) for each in functions):
        raise AgentGenerationError(
            f"The reply calls a tool with arguments of more than {MAX_NESTING} levels, which no "
            "model writes. It was given up, and is not asked for again."
        )
    texts = [each.arguments for each in functions if isinstance(each.arguments, str)]
    return sum(map(len, texts)) + sum(len(each.name or "") for each in functions)
