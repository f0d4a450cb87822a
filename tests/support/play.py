"""Plays a loop with given replies and no I/O at all."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from sanderling.loop import CallTool, CheckAnswer, Effect, Generate, Notify, Now, Together
from sanderling.loop import Outcome as Outcome
from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    TokenUsage,
)

Answer = Callable[[Any], Any]


def says(text: str | None, *calls: tuple[str, Any], **fields: Any) -> ChatMessage:
    """Returns a reply of the model: text, tool calls as ``(name, arguments)``, further fields."""
    made = [
        ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), f"id_{place}")
        for place, (name, arguments) in enumerate(calls)
    ]
    fields.setdefault("token_usage", TokenUsage(10, 2))
    return ChatMessage(MessageRole.ASSISTANT, text, made or None, **fields)


class Player:
    """Carries effects out from scripts; an exception in a script is raised into the loop.

    Attributes:
        effects: Those that the loop asked for, in order.
        events: Those that came out.
    """

    def __init__(
        self,
        replies: Iterable[ChatMessage | Exception],
        call: Answer = lambda effect: None,
        execute: Answer = lambda effect: None,
        check: Answer = lambda effect: None,
    ) -> None:
        self._replies = iter(replies)
        self._call, self._execute, self._check = call, execute, check
        self._clock = 0.0
        self.effects: list[Effect] = []
        self.events: list[Any] = []

    def _perform(self, effect: Effect) -> Any:
        self.effects.append(effect)
        match effect:
            case Generate():
                reply = next(self._replies)
                if isinstance(reply, Exception):
                    raise reply
                return reply
            case Together():
                return [self._outcome(call) for call in effect.effects]
            case CheckAnswer():
                return self._check(effect)
            case Now():
                self._clock += 1.0
                return self._clock
            case Notify():
                return None
        return self._execute(effect)

    def _outcome(self, effect: CallTool) -> Outcome:
        try:
            return Outcome(self._call(effect))
        except Exception as error:  # the loop reads it
            return Outcome(error=error)

    def play(self, loop: Generator[Any, Any, Any]) -> Any:
        """Runs the loop to its end and returns what it returns."""
        reply: Any = None
        error: Exception | None = None
        while True:
            try:
                item = loop.throw(error) if error else loop.send(reply)
            except StopIteration as done:
                return done.value
            reply = error = None
            if isinstance(item, Effect):
                try:
                    reply = self._perform(item)
                except Exception as caught:  # handed to the loop
                    error = caught
            else:
                self.events.append(item)

    @property
    def names(self) -> list[str]:
        """The classes of the events, in order."""
        return [type(event).__name__ for event in self.events]
