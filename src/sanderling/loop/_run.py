"""What one task changes, and what comes of it. The agent itself stays as it was defined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias

from sanderling.errors import AgentError, AgentGenerationError, AgentStoppedError
from sanderling.memory import json_form
from sanderling.messages import Timing, TokenUsage

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from sanderling.memory import AgentMemory
    from sanderling.messages import ChatMessage, JSONObject
    from sanderling.sandbox import WorkFile

    from ._answers import AnswerType

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")
RunState: TypeAlias = Literal["success", "max_steps_error", "interrupted", "limit_error", "stopped"]


@dataclass(eq=False)
class Run:
    """One task under way.

    Attributes:
        task: What was asked.
        memory: The steps so far; those of earlier runs too, where the run continues them.
        max_steps: How many steps the loop may take.
        state: Variables that came with the task, by name.
        answer_type: What the answer has to be; anything will do without one.
        on_generation_error: Whether a model that could not be asked ends the run, or only the step.
        status: How it stands, or ended.
        usage: What it has cost so far.
        is_untold: Whether a reply came without its usage.
    """

    task: str
    memory: AgentMemory
    max_steps: int
    state: dict[str, Any] = field(default_factory=dict)
    answer_type: AnswerType[Any] | None = None
    on_generation_error: Literal["raise", "record"] = "raise"
    status: RunState = "success"
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(0, 0))
    is_untold: bool = False

    def is_ended_by(self, error: Exception) -> bool:
        """Tells whether an error of a step is more than a mistake of the model."""
        if isinstance(error, AgentGenerationError):
            return self.on_generation_error == "raise"
        return not isinstance(error, AgentError) or isinstance(error, AgentStoppedError)

    def count(self, reply: ChatMessage) -> None:
        """Adds what a reply cost."""
        if reply.token_usage is None:
            self.is_untold = True
        else:
            self.usage += reply.token_usage


@dataclass(frozen=True, slots=True)
class RunResult(Generic[T]):
    """What a run came to; with an ``output_type``, its `output` is of that type.

    Attributes:
        output: The answer.
        state: ``"success"``, or ``"max_steps_error"`` where the answer was forced at the limit; in
            the `AgentStoppedError` of a run that was ended from outside ``"interrupted"``,
            ``"limit_error"`` or ``"stopped"``.
        steps: The steps in memory, in their JSON form.
        token_usage: The sum over all replies of the model; `None` where none told its usage.
        timing: Start and end of the run, in seconds since the epoch.
        files: What its code has written; each can be read as long as the sandbox lives.
    """

    output: T
    state: RunState
    steps: list[JSONObject]
    token_usage: TokenUsage | None
    timing: Timing
    files: tuple[WorkFile, ...] = ()

    def dict(self) -> JSONObject:
        """Returns the JSON form; an output that has none is shown by its repr."""
        return {
            "output": json_form(self.output),
            "state": self.state,
            "steps": self.steps,
            "token_usage": None if self.token_usage is None else self.token_usage.dict(),
            "timing": self.timing.dict(),
            "files": [file.dict() for file in self.files],
        }
