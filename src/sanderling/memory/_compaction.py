"""Keeps a long run within the model's context, without forgetting anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sanderling.messages import ChatMessage, ImagePart, MessageRole, TextPart

from ._steps import ActionStep

if TYPE_CHECKING:
    from ._memory import AgentMemory

LOOKUP = "recall"
_CHARACTERS = 4  # of a token, about; what is measured here need not be exact
_IMAGE = 1_000  # tokens of an image, about
_LEFT = 0.75  # of the limit, after a compaction: so much can come before the next one


@dataclass(frozen=True, slots=True)
class Compaction:
    """A history processor that puts short notes in the place of old outputs.

    When the conversation has grown beyond `max_tokens`, what the steps before the last ones had
    shown (observations and images) is replaced by notes, all of it at once; where that leaves more
    than three quarters of `max_tokens`, more steps follow, up to the last but one. From then on the
    messages stay as they are until the limit is reached again, so that the provider's prompt cache
    keeps hitting in between. The system prompt, the tasks, what the model itself said and the last
    step are never touched, and nothing is summarised by a model. The memory keeps everything: an
    agent that has this processor has a tool ``recall``, with which its model looks up what a note
    stands for.

    Attributes:
        max_tokens: About how large the conversation may become; a token counts as four characters.
        keep_steps: How many of the last steps stay as they are, where they are not too large.
        min_characters: Outputs that are shorter stay as well.
        excerpt: How many characters of an output its note shows.

    Raises:
        ValueError: A setting is too small to mean anything.
    """

    max_tokens: int = 60_000
    keep_steps: int = 5
    min_characters: int = 500
    excerpt: int = 200

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or self.keep_steps < 1:
            raise ValueError("a compaction needs max_tokens and keep_steps of at least 1")
        if not 0 <= self.excerpt < self.min_characters:
            raise ValueError("excerpt must be smaller than min_characters: notes shall be shorter")

    def begin(self, memory: AgentMemory) -> Callable[[Sequence[ChatMessage]], list[ChatMessage]]:
        """Returns the processor of one run."""
        return _Compactor(self, memory)


class _Compactor:
    def __init__(self, settings: Compaction, memory: AgentMemory) -> None:
        self._settings = settings
        self._memory = memory
        self._done = 0  # so many entries of the memory are compacted
        # By identity: a message of the memory stays the same object until its step is edited.
        self._notes: dict[int, tuple[ChatMessage, ChatMessage]] = {}
        self._sizes: dict[int, tuple[ChatMessage, int]] = {}

    def __call__(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        given = list(messages)
        shown = self._shown(given)
        size, limit = sum(map(self._size, shown)), self._settings.max_tokens
        if size > limit and self._compact(size - int(limit * _LEFT)):
            shown = self._shown(given)
        return shown

    def _shown(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        notes = self._notes
        if not notes:
            return messages
        shown = []
        for message in messages:
            known = notes.get(id(message))
            shown.append(known[1] if known is not None and known[0] is message else message)
        return shown

    def _size(self, message: ChatMessage) -> int:
        known = self._sizes.get(id(message))
        if known is None or known[0] is not message:
            known = self._sizes[id(message)] = (message, tokens_of(message))
        return known[1]

    def _compact(self, excess: int) -> bool:
        """Makes notes of all that is old by now, and of more if that does not save `excess` tokens.

        The last step stays in any case. Returns whether there was anything.
        """
        steps = self._memory.steps
        actions = [place for place, step in enumerate(steps) if isinstance(step, ActionStep)]
        end = actions[-self._settings.keep_steps] if len(actions) > self._settings.keep_steps else 0
        before = len(self._notes)
        for place in range(self._done, actions[-1] if actions else 0):
            if place >= end and excess <= 0:
                break
            self._done = place + 1
            step = steps[place]
            if isinstance(step, ActionStep):
                for message in step.messages():
                    if (note := self._note(message, place)) is not None:
                        self._notes[id(message)] = (message, note)
                        excess -= self._size(message) - self._size(note)
        return len(self._notes) > before

    def _note(self, message: ChatMessage, place: int) -> ChatMessage | None:
        if message.role is MessageRole.USER:  # the images that a step showed
            images = sum(isinstance(part, ImagePart) for part in message.parts)
            text = f"[{images} image(s) that were shown here are left out.]"
            return dataclasses.replace(message, content=[TextPart(text)]) if images else None
        text = message.text
        if message.role is not MessageRole.TOOL_RESPONSE or len(text) < (
            self._settings.min_characters
        ):
            return None
        note = (
            f"{text[: self._settings.excerpt]}…\n[{len(text) - self._settings.excerpt:,} more "
            f"characters are left out here by now. {LOOKUP}({place}) shows them again.]"
        )
        return dataclasses.replace(message, content=[TextPart(note)])


def tokens_of(message: ChatMessage) -> int:
    """Returns about how many tokens a message takes."""
    size = len(message.text)
    size += sum(len(str(call.function.arguments)) for call in message.tool_calls or ())
    images = sum(isinstance(part, ImagePart) for part in message.parts)
    return size // _CHARACTERS + images * _IMAGE


def recalled(memory: AgentMemory, number: int) -> str | None:
    """Returns in full what the step shows that a note names; None where there is no such step."""
    if not 0 <= number < len(memory.steps):
        return None
    shown = [
        message.text
        for message in memory.steps[number].messages()
        if message.role is MessageRole.TOOL_RESPONSE
    ]
    return "\n".join(shown) or None
