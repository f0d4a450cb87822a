"""What happened, in order, for whoever watches a run.

A run is told as: `RunStarted`; where a plan is due `PlanningStarted`, deltas and `PlanningStep`;
for each step `StepStarted`, deltas (`ChatMessageStreamDelta`, when the reply is streamed),
`ModelReply`, `ToolCall`s, `CodeOutputDelta`s or `ToolOutput`s, `ActionOutput`, `ActionStep`; and at
the end `FinalAnswerStep`. What managed agents do meanwhile comes as `NestedEvent`s. Each has a JSON
form; `event_to_dict` puts it under its name, and `event_from_dict` reads that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from sanderling.memory import (
    FORM,
    FORMAT_VERSION,
    ActionStep,
    FinalAnswerStep,
    Form,
    PlanningStep,
    ToolCall,
    check_version,
    exact_form,
    json_form,
)
from sanderling.messages import ChatMessageStreamDelta, ImageSource

from ._records import IMAGES, TOOL_CALL, Record

if TYPE_CHECKING:
    from sanderling.messages import JSONObject

    from ._records import Write


@dataclass(frozen=True, slots=True)
class RunStarted(Record):
    """A run began.

    Attributes:
        task: What it was asked, with the additional arguments.
        agent: The agent's name, if it has one.
        model: The model's class and id, such as ``"OpenAIModel - gpt-5"``.
        images: Images that came with the task.
    """

    task: str
    agent: str | None = None
    model: str = ""
    images: tuple[ImageSource, ...] = field(default=(), metadata=IMAGES)


@dataclass(frozen=True, slots=True)
class PlanningStarted(Record):
    """The model is asked for a plan: the deltas up to the `PlanningStep` are of the plan.

    Attributes:
        is_first: Whether this is the first plan, rather than a new one on the way.
        step_number: The step that comes after the plan.
    """

    is_first: bool
    step_number: int


@dataclass(frozen=True, slots=True)
class StepStarted(Record):
    """A step began; numbers count from 1."""

    step_number: int


@dataclass(frozen=True, slots=True)
class ModelReply(Record):
    """The model has replied, streamed or not; what its reply asks for has not begun yet.

    Attributes:
        text: All that it wrote, reasoning and code included; empty where it only made calls.
    """

    text: str


@dataclass(frozen=True, slots=True)
class ReplyBrokenOff(Record):
    """A streamed reply broke off and is asked for again: its deltas so far count no more.

    Attributes:
        reason: What went wrong.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class CodeOutputDelta(Record):
    """The code in progress printed something."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolOutput(Record):
    """A tool that the model called natively came back.

    Attributes:
        id: The call.
        output: Its value; `None` after an error.
        observation: What the model is told.
        is_final_answer: Whether the call was ``final_answer``.
        tool_call: The call that was made.
    """

    id: str
    output: Any
    observation: str
    is_final_answer: bool
    tool_call: ToolCall = field(metadata=TOOL_CALL)


@dataclass(frozen=True, slots=True)
class ActionOutput(Record):
    """The action of a step came to a value."""

    output: Any
    is_final_answer: bool


def _event_form(event: Event, write: Write) -> JSONObject:
    data = event.dict() if isinstance(event, ChatMessageStreamDelta) else event.form(write)
    return {"event": type(event).__name__, "version": FORMAT_VERSION, "data": data}


def _inner_event(data: Mapping[str, Any]) -> Event:
    if data["event"] == "NestedEvent":
        raise ValueError("a nested event holds no other one")
    return event_from_dict(data)


@dataclass(frozen=True, slots=True)
class NestedEvent(Record):
    """Something happened in the run of a managed agent.

    It comes in an envelope, so that whoever counts the steps of the run counts those alone.

    Attributes:
        path: The names of the agents from the outermost one, such as ``"manager/web_agent"``; an
            outermost agent without a name is left out.
        call_id: The call that the run answers; further in, the ids of all calls on the way, joined
            by ``/``. It tells calls of one agent apart that go on at the same time.
        event: What happened; never itself a `NestedEvent`.
    """

    path: str
    call_id: str
    event: Event = field(metadata={FORM: Form(_event_form, _inner_event)})

    def within(self, call_id: str) -> NestedEvent:
        """Returns the event as the run sees it that made the call `call_id`."""
        return NestedEvent(self.path, f"{call_id}/{self.call_id}", self.event)


Event: TypeAlias = (
    RunStarted
    | PlanningStarted
    | PlanningStep
    | StepStarted
    | ChatMessageStreamDelta
    | ReplyBrokenOff
    | ModelReply
    | ToolCall
    | CodeOutputDelta
    | ToolOutput
    | ActionOutput
    | ActionStep
    | FinalAnswerStep
    | NestedEvent
)


def event_to_dict(event: Event, *, exact: bool = False) -> JSONObject:
    """Returns an event as JSON: ``{"event": its class, "version": 1, "data": its own form}``.

    Args:
        event: The event.
        exact: Write values so that `event_from_dict` rebuilds them, as `AgentMemory.to_json` does,
            and not so that they are easy to read.

    Raises:
        OSError: The file of an image cannot be read, and the form shall be exact.
    """
    return _event_form(event, exact_form if exact else json_form)


def event_from_dict(data: Mapping[str, Any]) -> Event:
    """Makes the event that `event_to_dict` described.

    Nothing of the data is executed, unpickled or read as a path.

    Raises:
        ValueError: There is no such event, or the data is broken, or a newer version has written
            it.
    """
    kind = _EVENTS.get(str(data.get("event")))
    if kind is None:
        raise ValueError(f"there is no event {data.get('event')!r:.80}")
    check_version(data, "event")
    try:
        event: Event = kind.from_dict(data["data"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this is no {kind.__name__}: {error}") from error
    return event


_EVENTS: dict[str, Any] = {kind.__name__: kind for kind in get_args(Event)}
