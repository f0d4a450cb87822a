"""Calls of tools, as a model asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._json import JSONObject, Readable


@dataclass(slots=True)
class ChatMessageToolCallFunction(Readable):
    """The function that a model calls, with its arguments: a dict, or the text it wrote."""

    arguments: Any
    name: str
    description: str | None = None


@dataclass(slots=True)
class ChatMessageToolCall(Readable):
    """One call of a tool, as a model asked for it."""

    function: ChatMessageToolCallFunction
    id: str
    type: str = "function"

    def __str__(self) -> str:
        return f"Call: {self.id}: Calling {self.function.name} with {self.function.arguments}"

    def dict(self) -> JSONObject:
        """Returns the JSON form, as chat completions write it."""
        return {
            "id": self.id,
            "type": self.type,
            "function": {"name": self.function.name, "arguments": self.function.arguments},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChatMessageToolCall:
        """Loads what `dict` wrote."""
        function = data["function"]
        return cls(
            ChatMessageToolCallFunction(
                arguments=function.get("arguments"),
                name=function["name"],
                description=function.get("description"),
            ),
            id=data["id"],
            type=data.get("type", "function"),
        )
