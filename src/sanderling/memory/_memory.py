"""The memory of one run: a system prompt and the steps after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import is_not
from typing import TYPE_CHECKING, Any, Self

from sanderling.messages import ChatMessage

from ._forms import FORMAT_VERSION, check_version, exact_form, json_form
from ._history import History
from ._replay import Page, replay
from ._steps import ActionStep, Edits, MemoryStep, SystemPromptStep

if TYPE_CHECKING:
    from sanderling.messages import ImageSource, JSONObject, JSONValue


class AgentMemory:
    """Steps in the order in which they happened.

    `steps` is a plain list: append to it, assign it (also the steps of another agent), change the
    steps in it. What the model is sent follows, at a cost that depends on what is new or changed
    and not on how much there is. A step tells that it was changed when one of its attributes is
    assigned, and a list of images is looked at: ``step.observations_images.clear()`` works as well
    as assigning ``None``. What stands within other lists, such as ``tool_calls``, is not.

    Args:
        system_prompt: The text that opens every conversation.
    """

    def __init__(self, system_prompt: str) -> None:
        self.system_prompt = SystemPromptStep(system_prompt)
        self.steps: list[MemoryStep] = []
        self._rendered: list[MemoryStep] = []
        self._messages: list[ChatMessage] = []
        self._images: list[tuple[MemoryStep, list[ImageSource], list[ImageSource]]] = []
        self._edits = Edits()

    def __repr__(self) -> str:
        return f"<AgentMemory of {len(self.steps)} steps>"

    def reset(self) -> None:
        """Forgets the steps, and keeps the system prompt."""
        self.steps = []

    def messages(self) -> History:
        """Returns everything as messages to the model.

        The history of a step is a prefix of that of the next one, with the very same message
        objects, as long as nobody edits a step that was rendered before.
        """
        for step, images, rendered in self._images:
            if len(images) != len(rendered) or any(map(is_not, images, rendered)):
                step._edited()
        known = len(self._rendered)
        if (
            self._edits.found
            or not known
            or self._rendered[0] is not self.system_prompt
            or self.steps[: known - 1] != self._rendered[1:]
        ):
            self._edits.found = False
            self._rerender()
        for step in self.steps[len(self._rendered) - 1 :]:
            self._messages.extend(step.messages())
            self._rendered.append(step)
            self._watch(step)
        return History(self._messages)

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """Returns the messages as a list of their own.

        Args:
            summary_mode: Leave out what only the acting model needs: see `MemoryStep.to_messages`.
        """
        if not summary_mode:
            return self.messages()[:]
        steps = [self.system_prompt, *self.steps]
        return [message for step in steps for message in step.to_messages(summary_mode=True)]

    def _rerender(self) -> None:
        """Starts a new list where the old one no longer tells what the steps say."""
        steps = [self.system_prompt, *self.steps][: max(1, len(self._rendered))]
        messages = [message for step in steps for message in step.messages()]
        if len(messages) != len(self._messages) or any(map(is_not, messages, self._messages)):
            self._messages = messages
        self._rendered = steps
        self._images = []
        for step in steps:
            self._watch(step)

    def _watch(self, step: MemoryStep) -> None:
        """Has changes of a step noticed; a list of images does not tell when it is changed."""
        step._tell(self._edits)
        if images := step._images():
            self._images.append((step, images, images[:]))

    def get_succinct_steps(self) -> list[JSONObject]:
        """Returns the JSON form of the steps, without the messages that the model was sent."""
        return [step.dict() for step in self.steps]

    def get_full_steps(self) -> list[JSONObject]:
        """Returns the JSON form of the steps, with the messages that the model was sent.

        Each message is there once, however many steps were sent it: a step's
        ``"model_input_messages"`` are those that are new, and ``"model_input_prefix"`` tells how
        many of the messages of the step before come in front of them. (What was sent for a plan is
        left out: it is a summary of the steps before.)
        """
        full = []
        before = History([])
        for step in self.steps:
            data = step.dict()
            if isinstance(step, ActionStep) and (sent := step.model_input_messages) is not None:
                prefix = before.shared_with(sent)
                data["model_input_prefix"] = prefix
                data["model_input_messages"] = [json_form(message) for message in sent[prefix:]]
                before = sent if isinstance(sent, History) else History(list(sent))
            full.append(data)
        return full

    def return_full_code(self) -> str:
        """Returns the code of all actions as one script."""
        codes = [step.code_action for step in self.steps if isinstance(step, ActionStep)]
        return "\n\n".join(filter(None, codes))

    def replay(self, logger: Page, detailed: bool = False) -> None:
        """Shows what happened, step by step.

        Args:
            logger: Prints, such as an `AgentLogger`.
            detailed: Also show what the model was sent in each step.
        """
        replay(self, logger, detailed)

    def dict(self) -> JSONObject:
        """Returns the JSON form of everything, with the version of the format.

        `from_dict` makes a memory that reads the same to a model, step by step. Images are inside,
        as ``data:`` URLs, and so are the samples of sound. A value that is no plain data (an
        instance of a class, a connection) leaves its repr, a dataclass its fields.

        Raises:
            OSError: The file of an image cannot be read.
        """
        said = self.messages()
        return {
            "version": FORMAT_VERSION,
            "system_prompt": self.system_prompt.system_prompt,
            "steps": [{**step.form(exact_form), **_sent(step, said)} for step in self.steps],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Makes the memory that `dict` described; fields that are not known are left out.

        Nothing of the data is executed, unpickled or read as a path, so it may come from anywhere.

        Raises:
            ValueError: The data was written by a newer version, or is broken.
        """
        if "version" not in data:
            raise ValueError("this is no saved memory: it has no version")
        check_version(data, "saved memory")
        prompt, forms = data.get("system_prompt"), data.get("steps")
        if not isinstance(prompt, str) or not isinstance(forms, list):
            raise ValueError("this is no saved memory: it has no system_prompt, or no steps")
        memory = cls(prompt)
        for place, form in enumerate(forms):
            try:
                step = MemoryStep.from_dict(form)
                if isinstance(sent := form.get("model_input_messages"), list):
                    vars(step)["model_input_messages"] = list(map(ChatMessage.from_dict, sent))
                step.messages()  # what cannot be read by a model is better told now
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"step {place} of the saved memory: {error}") from error
            memory.steps.append(step)
        said = memory.messages()
        for step, form in zip(memory.steps, forms, strict=True):
            if isinstance(sent := form.get("model_input_messages"), int):
                vars(step)["model_input_messages"] = said.first(sent)
        return memory

    def to_json(self) -> str:
        """Returns `dict` as text."""
        return json.dumps(self.dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Makes the memory that `to_json` wrote; see `from_dict`.

        Raises:
            ValueError: The text is no JSON, was written by a newer version, or is broken.
        """
        try:
            data = json.loads(text)
        except RecursionError:
            raise ValueError("this is no saved memory: it is nested too deeply") from None
        if not isinstance(data, Mapping):
            raise ValueError("this is no saved memory: it is no JSON object")
        return cls.from_dict(data)


def _sent(step: MemoryStep, said: History) -> JSONObject:
    """Tells what the model was sent: how much of what memory says, where that was all."""
    sent = step.model_input_messages if isinstance(step, ActionStep) else None
    if sent is None:
        return {}
    told: JSONValue = len(sent)
    if len(sent) > len(said) or said.shared_with(sent) < len(sent):
        told = [json_form(message) for message in sent]
    return {"model_input_messages": told}
