"""The steps of a run, and how each reads as messages to the model.

A step that has been read by the model keeps its messages. Changing one of its attributes, as a
callback that drops old screenshots does, makes that step render anew, and no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from sanderling._registry import Registry, name_of
from sanderling.messages import (
    ChatMessage,
    ContentPart,
    ImagePart,
    ImageSource,
    JSONObject,
    MessageRole,
    TextPart,
    Timing,
    TokenUsage,
    calling_text,
)

from ._calls import native_form, native_messages, was_called_natively
from ._forms import (
    AGENT_ERROR,
    FORM,
    FORMAT_VERSION,
    IMAGES,
    MESSAGE,
    TIMING,
    TOKEN_USAGE,
    WITH_FORM,
    Form,
    Write,
    check_version,
    forms_of,
    json_form,
    value_of,
)
from ._old_names import AGENT_MEMORY, DURATION, END_TIME, LLM_OUTPUT, START_TIME, OldNames

if TYPE_CHECKING:
    from sanderling.errors import AgentError

RETRY_NUDGE = (
    "Now try again. Do not repeat the same mistake: read the error, and if the same way has failed "
    "more than once, take another one."
)
PLAN_NUDGE = "Now go on and carry out this plan."


class Edits:
    """Whether a step that a memory has rendered was changed since."""

    found = False


_STEPS: Registry[Any] = Registry()


@dataclass(eq=False)
class MemoryStep:
    """Base of all steps."""

    _messages: ClassVar[list[ChatMessage] | None] = None  # of a step that was rendered, its own
    _edits: ClassVar[tuple[Edits, ...]] = ()  # of the memories that have rendered it

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _STEPS.add(cls)

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        if self._messages is not None:
            self._edited()

    def _edited(self) -> None:
        """Marks the step as changed, so that it is rendered anew."""
        object.__setattr__(self, "_messages", None)
        for edits in self._edits:
            edits.found = True

    def _tell(self, edits: Edits) -> None:
        """Has changes of the step marked in the edits of a memory."""
        if edits not in self._edits:
            object.__setattr__(self, "_edits", (*self._edits, edits))

    def _images(self) -> list[ImageSource] | None:
        """The images that the step shows to the model: the list itself, which may be changed."""
        return None

    def messages(self) -> list[ChatMessage]:
        """Returns what `to_messages` does, rendered once for as long as the step is not changed."""
        rendered = self._messages
        if rendered is None:
            rendered = self.to_messages()
            object.__setattr__(self, "_messages", rendered)
        return rendered

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """Renders the step for the model.

        Args:
            summary_mode: Leave out what only the acting model needs: the system prompt, the
                reasoning, plans.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it reads as messages")

    def dict(self) -> JSONObject:
        """Returns the light JSON form, with the class under ``"type"``, and a ``"version"``.

        The messages that the model was sent are left out: they are those of the steps before. What
        JSON has no word for is shown by its repr; `AgentMemory.to_json` keeps it.
        """
        return self.form(json_form)

    def form(self, write: Write) -> JSONObject:
        """Returns the JSON form; `write` says how values that may be anything are written."""
        forms = forms_of(type(self))
        return {
            "type": name_of(type(self)),
            "version": FORMAT_VERSION,
            **{
                name: forms[name].write(value, write) if name in forms else write(value)
                for name, value in self.__dict__.items()
                if not name.startswith("_") and name != "model_input_messages"
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Makes the step that `dict` described.

        Called on `MemoryStep`, it makes a step of the class that the data names, which may be one
        of your own. Fields that the class does not have are left out.

        Raises:
            ValueError: The data is of another class, or broken, or a newer version has written it.
        """
        kind = cls if (name := data.get("type")) is None else _STEPS.find(name, cls)
        check_version(data, "step")
        forms = forms_of(kind)
        try:
            return kind(
                **{name: forms[name].read(form) for name, form in data.items() if name in forms}
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"this is no {kind.__name__}: {type(error).__name__}: {error}"
            ) from error


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
        """Returns the light JSON form, as chat completions write a call."""
        return self.form(json_form)

    def form(self, write: Write) -> JSONObject:
        """Returns the JSON form; `write` says how the arguments are written."""
        function: JSONObject = {"name": self.name, "arguments": write(self.arguments)}
        return {"id": self.id, "type": "function", "function": function}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Makes the call that `dict` described.

        Raises:
            KeyError: A part is missing.
        """
        function = data["function"]
        return cls(function["name"], value_of(function["arguments"]), data["id"])


WITH_FORM += [MemoryStep, ToolCall]
_TOOL_CALLS = {
    FORM: Form(
        lambda calls, write: calls and [call.form(write) for call in calls],
        lambda forms: forms and [ToolCall.from_dict(form) for form in forms],
    )
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
    task_images: list[ImageSource] | None = field(default=None, metadata=IMAGES)

    def _images(self) -> list[ImageSource] | None:
        """The images that came with the task."""
        return self.task_images

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """Renders the task, its images after it, as a user message."""
        return [_message(MessageRole.USER, f"New task:\n{self.task}", self.task_images)]


@dataclass(eq=False)
class ActionStep(MemoryStep, OldNames):
    """One step of the loop: what the model was asked, what it did, what came of it.

    The old names ``agent_memory``, ``llm_output``, ``start_time``, ``end_time`` and ``duration``
    are taken and read as well.

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
        tool_responses: What each of several calls is answered with; `observations` joins them, and
            counts where somebody has changed it.
        observations_images: Images that it is shown.
        action_output: The value of the action.
        token_usage: What the reply cost.
        is_final_answer: Whether `action_output` ended the run.
    """

    step_number: int | None = None
    timing: Timing | None = field(default=None, metadata=TIMING)
    model_input_messages: Sequence[ChatMessage] | None = None
    tool_calls: list[ToolCall] | None = field(default=None, metadata=_TOOL_CALLS)
    error: AgentError | None = field(default=None, metadata=AGENT_ERROR)
    model_output_message: ChatMessage | None = field(default=None, metadata=MESSAGE)
    model_output: str | None = None
    code_action: str | None = None
    observations: str | None = None
    observations_images: list[ImageSource] | None = field(default=None, metadata=IMAGES)
    action_output: Any = None
    token_usage: TokenUsage | None = field(default=None, metadata=TOKEN_USAGE)
    is_final_answer: bool = False
    tool_responses: list[str] | None = None
    agent_memory: InitVar[Sequence[ChatMessage] | None] = AGENT_MEMORY
    llm_output: InitVar[str | None] = LLM_OUTPUT
    start_time: InitVar[float | None] = START_TIME
    end_time: InitVar[float | None] = END_TIME
    duration: InitVar[float | None] = DURATION

    def _images(self) -> list[ImageSource] | None:
        """The images that were observed."""
        return self.observations_images

    def __post_init__(self, *given: object) -> None:
        for name, value in zip(_OLD_NAMES, given, strict=True):
            if value is not None:
                setattr(self, name, value)

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """Renders reply, calls, images, observation and error, each where there is one.

        Calls that the provider made natively are told natively, except in summary mode.
        """
        error = None if self.error is None else f"Error:\n{self.error}\n{RETRY_NUDGE}"
        images = (
            [_message(MessageRole.USER, None, self.observations_images)]
            if self.observations_images
            else []
        )
        if was_called_natively(self) and not summary_mode:
            return [*native_messages(self, error), *images]
        messages = []
        if self.model_output and not summary_mode:
            reply = _message(MessageRole.ASSISTANT, self.model_output.strip())
            reply.native = native_form(self)
            messages.append(reply)
        if self.tool_calls and not (self.code_action is not None and messages):
            # The reply of a code action holds the code already: saying it twice costs tokens.
            text = calling_text([call.dict() for call in self.tool_calls])
            messages.append(_message(MessageRole.TOOL_CALL, text))
        messages += images
        if self.observations is not None:
            text = f"Observation:\n{self.observations}"
            messages.append(_message(MessageRole.TOOL_RESPONSE, text))
        if error is not None:
            call = f"Call id: {self.tool_calls[0].id}\n" if self.tool_calls else ""
            messages.append(_message(MessageRole.TOOL_RESPONSE, f"{call}{error}"))
        return messages


_OLD_NAMES = ("agent_memory", "llm_output", "start_time", "end_time", "duration")


@dataclass(eq=False)
class PlanningStep(MemoryStep):
    """A plan that the model made, before its first step or on the way.

    As in smolagents 1.4, ``PlanningStep(plan, facts)`` is taken as well.

    Attributes:
        model_input_messages: What the model was sent when it was asked for the plan.
        model_output_message: The reply that holds the plan.
        plan: What it is going to do.
        timing: Start and end, in seconds since the epoch.
        token_usage: What the plan cost, and the facts where they were asked for by themselves.
        facts: What is known and what is still to be found, where the prompts ask for that first.
    """

    model_input_messages: Sequence[ChatMessage] | None = None
    model_output_message: ChatMessage | None = field(default=None, metadata=MESSAGE)
    plan: str = ""
    timing: Timing | None = field(default=None, metadata=TIMING)
    token_usage: TokenUsage | None = field(default=None, metadata=TOKEN_USAGE)
    facts: str | None = None

    def __post_init__(self) -> None:
        plan: object = self.model_input_messages
        if isinstance(plan, str):
            self.plan, self.facts = plan, cast("str | None", self.model_output_message)
            self.model_input_messages = self.model_output_message = None

    @property
    def duration(self) -> float | None:
        """Seconds that planning took; `None` while it lasts."""
        return None if self.timing is None else self.timing.duration

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """Renders facts and plan, and the word to go on; the facts alone in summary mode.

        A new plan shall not copy an old one, so a summary leaves plans out.
        """
        facts = [f"[FACTS LIST]:\n{self.facts.strip()}"] if self.facts else []
        if summary_mode:
            return [_message(MessageRole.ASSISTANT, text) for text in facts]
        text = "\n\n".join([*facts, f"[PLAN]:\n{self.plan.strip()}"])
        return [_message(MessageRole.ASSISTANT, text), _message(MessageRole.USER, PLAN_NUDGE)]


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
