"""The tool calls of one streamed reply, for providers that stream blocks."""

from __future__ import annotations

from sanderling.messages import (
    ChatMessageStreamDelta,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
)


class StreamedCalls:
    """Numbers the calls of a reply in their order, and tells those of one id apart."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._places: dict[object, int] = {}

    def __contains__(self, block: object) -> bool:
        return block in self._places

    def __bool__(self) -> bool:
        return bool(self._ids)

    def begin(
        self, block: object, identity: str, name: str, arguments: object = ""
    ) -> ChatMessageStreamDelta:
        """Returns the first delta of a call.

        Args:
            block: What the provider calls the place of the call.
            identity: Its id; two of one id would be one call to whoever answers them.
            name: The tool.
            arguments: What is known of them already.
        """
        marks = "_" * self._ids.count(identity) if identity else ""
        self._places[block] = len(self._ids)
        self._ids.append(identity)
        function = ChatMessageToolCallFunction(arguments, name)
        return self._delta(block, function, f"{identity}{marks}" or None, "function")

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
