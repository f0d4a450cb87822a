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
    def of(cls, call: Any) -> ChatMessageToolCall:
        """Returns the call itself, or that of a dict or of a provider's package.

        A call without an id has an empty one: the agent chooses one.

        Raises:
            TypeError: It is none of them.
        """
        if isinstance(call, cls):
            return call
        try:
            if isinstance(call, Mapping):
                return cls.from_dict({**call, "id": call.get("id") or ""})
            function = ChatMessageToolCallFunction(call.function.arguments, call.function.name)
            return cls(function, call.id or "")
        except (AttributeError, KeyError, TypeError) as error:
            raise TypeError(
                'a tool call is a ChatMessageToolCall or {"id": ..., "function": {"name": ..., '
                f'"arguments": ...}}}}, not {call!r:.200}'
            ) from error

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
