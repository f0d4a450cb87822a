"""The memory of one run: a system prompt and the steps after it."""

from __future__ import annotations

from operator import is_not
from typing import TYPE_CHECKING

from ._history import History
from ._steps import Edits, MemoryStep, SystemPromptStep

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage, JSONObject

FORMAT_VERSION = 1


class AgentMemory:
    """Steps in the order in which they happened.

    `steps` is a plain list: append to it, assign it, change the steps in it. What the model is sent
    follows, at a cost that depends on what is new or changed and not on how much there is.

    Args:
        system_prompt: The text that opens every conversation.
    """

    def __init__(self, system_prompt: str) -> None:
        self.system_prompt = SystemPromptStep(system_prompt)
        self.steps: list[MemoryStep] = []
        self._rendered: list[MemoryStep] = []
        self._messages: list[ChatMessage] = []
        self._edits = -1

    def reset(self) -> None:
        """Forgets the steps, and keeps the system prompt."""
        self.steps = []

    def messages(self) -> History:
        """Returns everything as messages to the model.

        The history of a step is a prefix of that of the next one, with the very same message
        objects, as long as nobody edits a step that was rendered before.
        """
        known = len(self._rendered)
        if (
            self._edits != Edits.count
            or not known
            or self._rendered[0] is not self.system_prompt
            or self.steps[: known - 1] != self._rendered[1:]
        ):
            self._edits = Edits.count
            self._rerender()
        for step in self.steps[len(self._rendered) - 1 :]:
            self._messages.extend(step.messages())
            self._rendered.append(step)
        return History(self._messages)

    def _rerender(self) -> None:
        """Starts a new list where the old one no longer tells what the steps say."""
        steps = [self.system_prompt, *self.steps][: max(1, len(self._rendered))]
        messages = [message for step in steps for message in step.messages()]
        if len(messages) != len(self._messages) or any(map(is_not, messages, self._messages)):
            self._messages = messages
        self._rendered = steps

    def get_succinct_steps(self) -> list[JSONObject]:
        """Returns the JSON form of the steps, without the messages that the model was sent."""
        return [step.dict() for step in self.steps]

    def dict(self) -> JSONObject:
        """Returns the JSON form of everything, with the version of the format."""
        return {
            "version": FORMAT_VERSION,
            "system_prompt": self.system_prompt.system_prompt,
            "steps": self.get_succinct_steps(),
        }
