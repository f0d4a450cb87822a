"""What is done to the messages before each model call."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from sanderling.loop import Effect, Event, Generate
from sanderling.messages import ChatMessage

from ._policies import CallHost

if TYPE_CHECKING:
    from ._policies import Scope


class MessageProcessor(Protocol):
    """Decides what the model gets to see."""

    def __call__(
        self, messages: Sequence[ChatMessage], /
    ) -> Sequence[ChatMessage] | Awaitable[Sequence[ChatMessage]]:
        """Returns the messages to send; may be async."""


class HistoryPolicy:
    """The policy that shows the model other messages than the memory has.

    Args:
        processors: Called one after the other with the messages, before each request; each returns
            those to send in their place, and may be async. The memory is left alone.
    """

    def __init__(self, processors: Sequence[MessageProcessor]) -> None:
        self._processors = tuple(processors)

    def __call__(self, effect: Effect, scope: Scope) -> Generator[Effect | Event, Any, Any]:
        """Carries an effect out. See `Policy`."""
        if not isinstance(effect, Generate):
            return (yield effect)
        messages: Any = effect.messages
        for processor in self._processors:
            messages = yield CallHost(partial(processor, messages))
            if not isinstance(messages, Sequence) or not all(
                isinstance(message, ChatMessage) for message in messages
            ):
                name = getattr(processor, "__name__", type(processor).__name__)
                raise TypeError(
                    f"the history processor {name!r} must return a list of ChatMessage, "
                    f"not {messages!r:.100}"
                )
        return (yield dataclasses.replace(effect, messages=messages))
