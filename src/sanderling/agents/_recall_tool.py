"""The tool with which a model looks up what a note of the compaction stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling.memory import recalled
from sanderling.tools import Tool

if TYPE_CHECKING:
    from sanderling.memory import AgentMemory

MAX_PIECE = 15_000


class RecallTool(Tool):
    """Shows again what was left out of a long conversation.

    Args:
        memory: Of the run whose model asks; the agent's own definition has none.
    """

    name = "recall"
    description = (
        "Shows again, in full, an earlier observation that a note in this conversation says was "
        f"left out; at most {MAX_PIECE:,} characters at a time."
    )
    inputs = {
        "number": {"type": "integer", "description": "The number that the note gives."},
        "start": {
            "type": "integer",
            "nullable": True,
            "description": "The character at which to begin.",
        },
    }
    output_type = "string"

    def __init__(self, memory: AgentMemory | None = None) -> None:
        self._memory = memory

    def forward(self, number: int, start: int = 0) -> str:
        """Returns the text.

        Raises:
            ValueError: There is no such observation.
        """
        text = None if self._memory is None else recalled(self._memory, number)
        if text is None:
            raise ValueError(f"no observation has the number {number}")
        piece = text[start : start + MAX_PIECE]
        left = len(text) - start - len(piece)
        if left <= 0:
            return piece
        more = start + len(piece)
        return f"{piece}\n[{left:,} more characters: recall({number}, start={more})]"
