r"""What happened, in order, for whoever watches a run.

A run is told as: `RunStarted`; for each step `StepStarted`, `ChatMessageStreamDelta`\\* (when the
reply is streamed), `ToolCall`\\*, `CodeOutputDelta`\\* or `ToolOutput`\\*, `ActionOutput`,
`ActionStep`; and at the end `FinalAnswerStep`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from sanderling.memory import ActionStep, FinalAnswerStep, ToolCall
from sanderling.messages import ChatMessageStreamDelta, ImageSource


@dataclass(frozen=True, slots=True)
class RunStarted:
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
    images: tuple[ImageSource, ...] = ()


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step began; numbers count from 1."""

    step_number: int


@dataclass(frozen=True, slots=True)
class CodeOutputDelta:
    """The code in progress printed something."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolOutput:
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
    tool_call: ToolCall


@dataclass(frozen=True, slots=True)
class ActionOutput:
    """The action of a step came to a value."""

    output: Any
    is_final_answer: bool


Event: TypeAlias = (
    RunStarted
    | StepStarted
    | ChatMessageStreamDelta
    | ToolCall
    | CodeOutputDelta
    | ToolOutput
    | ActionOutput
    | ActionStep
    | FinalAnswerStep
)
