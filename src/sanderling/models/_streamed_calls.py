"""The tool calls of one reply: those of one id told apart, and numbered where they are streamed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sanderling.messages import (
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
)


class DistinctIds:
    """Gives each call of a reply an id of its own: answers name the call by its id."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def of(self, identity: str) -> str:
        """Returns the id of the next call: what the server calls it, numbered where that is taken.

        A call without an id stays without one.
        """
        if not identity:
            return ""
        distinct, count = identity, self._counts.get(identity, 1)
        while distinct in self._taken:
            count += 1
            distinct = f"{identity}_{count}"
        self._counts[identity] = count
        self._taken.add(distinct)
        return distinct


def with_distinct_ids(calls: Iterable[ChatMessageToolCall]) -> list[ChatMessageToolCall]:
    """Returns the calls of one message, each with an id of its own."""
    ids = DistinctIds()
    return [replace(call, id=ids.of(call.id)) for call in calls]


class StreamedCalls:
    """Numbers the calls of a reply in their order."""

    def __init__(self) -> None:
        self._ids = DistinctIds()
        self._places: dict[object, int] = {}
        self._count = 0

    def __contains__(self, block: object) -> bool:
        return block in self._places

    def __bool__(self) -> bool:
        return bool(self._places)

    def begin(
        self, block: object, identity: str, name: str, arguments: object = ""
    ) -> ChatMessageStreamDelta:
        """Returns the first delta of a call.

        Args:
            block: What the provider calls the place of the call.
            identity: What the provider calls it.
            name: The tool.
            arguments: What is known of them already.
        """
        self._places[block] = self._count
        self._count += 1
        function = ChatMessageToolCallFunction(arguments, name)
        return self._delta(block, function, self._ids.of(identity) or None, "function")

    def more(self, block: object, piece: str) -> ChatMessageStreamDelta:
        """Returns the delta for a further piece of the arguments of a call that has begun."""
        return self._delta(block, ChatMessageToolCallFunction(piece, ""))

    def _delta(
        self,
        block: object,
        function: ChatMessageToolCallFunction,
        identity: str | None = None,
        kind: str | None = None,
    ) -> ChatMessageStreamDelta:
        piece = ChatMessageToolCallStreamDelta(self._places[block], identity, kind, function)
        return ChatMessageStreamDelta(tool_calls=[piece])
