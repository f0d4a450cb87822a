"""The four doors of a model, so that a scenario is written once and run through each of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from sanderling.messages import (
    ChatMessage,
    ChatMessageStreamDelta,
    MessageRole,
    agglomerate_stream_deltas,
)

if TYPE_CHECKING:
    from sanderling.models import Model

HELLO = [ChatMessage(MessageRole.USER, "Hello")]


@dataclass(frozen=True)
class Door:
    """One way to ask.

    Attributes:
        streamed: Piece by piece.
        awaited: Under asyncio.
    """

    streamed: bool
    awaited: bool

    def ask(self, model: Model, messages: Any = HELLO, **kwargs: Any) -> ChatMessage:
        """Returns the whole reply."""
        if self.streamed:
            return agglomerate_stream_deltas(self.deltas(model, messages, **kwargs))
        if self.awaited:
            return asyncio.run(model.agenerate(messages, **kwargs))
        return model.generate(messages, **kwargs)

    def deltas(
        self, model: Model, messages: Any = HELLO, **kwargs: Any
    ) -> list[ChatMessageStreamDelta]:
        """Returns the pieces of the reply."""
        if not self.awaited:
            return list(model.generate_stream(messages, **kwargs))

        async def collect() -> list[ChatMessageStreamDelta]:
            return [delta async for delta in model.agenerate_stream(messages, **kwargs)]

        return asyncio.run(collect())

    def __str__(self) -> str:
        return ("a" if self.awaited else "") + ("streamed" if self.streamed else "whole")


DOORS = [Door(streamed, awaited) for streamed in (False, True) for awaited in (False, True)]
doors = pytest.mark.parametrize("door", DOORS, ids=str)
streams = pytest.mark.parametrize("door", [door for door in DOORS if door.streamed], ids=str)
wholes = pytest.mark.parametrize("door", [door for door in DOORS if not door.streamed], ids=str)
