"""The steps of a run, and how each reads as messages to the model.

A step that has been read by the model keeps its messages. Changing one of its attributes, as a
callback that drops old screenshots does, makes that step render anew, and no other.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sanderling._show import text_of
from sanderling.messages import (
    ChatMessage,
    ContentPart,
    ImagePart,
    ImageSource,
    JSONObject,
    JSONValue,
    MessageRole,
    TextPart,
    Timing,
    TokenUsage,
)

if TYPE_CHECKING:
    from sanderling.errors import AgentError

RETRY_NUDGE = (
    "Now try again. Do not repeat the same mistake: read the error, and if the same way has failed "
    "more than once, take another one."
)


_MAX_INT_BITS = 14_000  # Python refuses to write more than 4,300 decimal digits


class Edits:
    """Counts the changes made to steps that had been rendered, in any memory of this process."""

    count = 0


@dataclass(eq=False)
class MemoryStep:
    """Base of all steps."""

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        if "_messages" in self.__dict__:
            del self.__dict__["_messages"]
            Edits.count += 1

    def messages(self) -> list[ChatMessage]:
        """Returns what `to_messages` does, rendered once for as long as the step is not changed."""
        rendered: list[ChatMessage] | None = self.__dict__.get("_messages")
        if rendered is None:
            rendered = self.__dict__["_messages"] = self.to_messages()
        return rendered

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """Renders the step for the model.

        Args:
            summary_mode: Leave out what only the acting model needs: the system prompt, the
                reasoning, plans.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it reads as messages")

    def dict(self) -> JSONObject:
        """Returns the JSON form, with the class name under ``"type"``."""
        return {
            "type": type(self).__name__,
            **{
                name: json_form(value)
                for name, value in self.__dict__.items()
                if not name.startswith("_")
            },
        }


@dataclass(eq=False)
class ToolCall:
    """A call of a tool, as memory keeps it.

    Attributes:
        name: The tool.
        arguments: A dict by parameter name; for code, the code itself.
        id: Names the call within the run.
    """

    name: str
    arguments: Any
    id: str

    def dict(self) -> JSONObject:
        """Returns the JSON form, as chat completions write a call."""
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": json_form(self.arguments)},
        }


@dataclass(eq=False)
class SystemPromptStep(MemoryStep):
    """The system prompt: first in memory, kept apart from the other steps."""

    system_prompt: str

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """Renders a system message; nothing in summary mode."""
        if summary_mode:
            return []
        return [_message(MessageRole.SYSTEM, self.system_prompt.strip())]


@dataclass(eq=False)
class TaskStep(MemoryStep):
    """A task that was given to the agent."""

    task: str
    task_images: list[ImageSource] | None = None

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """Renders the task, its images after it, as a user message."""
        return [_message(MessageRole.USER, f"New task:\n{self.task}", self.task_images)]


@dataclass(eq=False)
class ActionStep(MemoryStep):
    """One step of the loop: what the model was asked, what it did, what came of it.

    Attributes:
        step_number: Counts from 1 within a run.
        timing: Start and end, in seconds since the epoch.
        model_input_messages: What the model was sent.
        tool_calls: The calls it made; for a code action one call of ``python_interpreter``.
        error: Why the step failed, if it did.
        model_output_message: The model's reply.
        model_output: The text of that reply, as the model will read it again.
        code_action: The code that was run.
        observations: What the model is told of the outcome.
        observations_images: Images that it is shown.
        action_output: The value of the action.
        token_usage: What the reply cost.
        is_final_answer: Whether `action_output` ended the run.
    """

    step_number: int | None = None
    timing: Timing | None = None
    model_input_messages: Sequence[ChatMessage] | None = None
    tool_calls: list[ToolCall] | None = None
    error: AgentError | None = None
    model_output_message: ChatMessage | None = None
    model_output: str | None = None
    code_action: str | None = None
    observations: str | None = None
    observations_images: list[ImageSource] | None = None
    action_output: Any = None
    token_usage: TokenUsage | None = None
    is_final_answer: bool = False

    @property
    def duration(self) -> float | None:
        """Seconds that the step took; `None` while it lasts."""
        return None if self.timing is None else self.timing.duration

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """Renders reply, calls, images, observation and error, each where there is one."""
        messages = []
        if self.model_output and not summary_mode:
            messages.append(_message(MessageRole.ASSISTANT, self.model_output.strip()))
        if self.tool_calls and not (self.code_action is not None and messages):
            # The reply of a code action holds the code already: saying it twice costs tokens.
            calls = [call.dict() for call in self.tool_calls]
            messages.append(_message(MessageRole.TOOL_CALL, f"Calling tools:\n{calls}"))
        if self.observations_images:
            messages.append(_message(MessageRole.USER, None, self.observations_images))
        if self.observations is not None:
            text = f"Observation:\n{self.observations}"
            messages.append(_message(MessageRole.TOOL_RESPONSE, text))
        if self.error is not None:
            call = f"Call id: {self.tool_calls[0].id}\n" if self.tool_calls else ""
            text = f"{call}Error:\n{self.error}\n{RETRY_NUDGE}"
            messages.append(_message(MessageRole.TOOL_RESPONSE, text))
        return messages

    def dict(self) -> JSONObject:
        """Returns the JSON form.

        The messages that the model was sent are left out: they are those of the steps before.
        """
        data = super().dict()
        del data["model_input_messages"]
        return data


@dataclass(eq=False)
class FinalAnswerStep(MemoryStep):
    """The last event of a run; it is not kept in memory."""

    output: Any

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """Renders nothing: the answer is for the caller."""
        return []


def _message(
    role: MessageRole, text: str | None, images: Sequence[ImageSource] | None = None
) -> ChatMessage:
    parts: list[ContentPart] = [] if text is None else [TextPart(text)]
    return ChatMessage(role, [*parts, *map(ImagePart, images or ())])


def json_form(value: object) -> JSONValue:
    """Returns the JSON form of a field; a value that has none is shown by its repr."""
    if value is None or isinstance(value, bool | float | str):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < _MAX_INT_BITS else hex(value)
    form = getattr(value, "dict", None)
    if callable(form):
        return json_form(form())
    if isinstance(value, builtins.dict):
        return {str(key): json_form(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_form(item) for item in value]
    return text_of(value, repr)
