"""What the loop reads and changes while it works on one task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sanderling.errors import AgentError, AgentGenerationError, AgentStoppedError
from sanderling.messages import TokenUsage

if TYPE_CHECKING:
    from sanderling.memory import AgentMemory
    from sanderling.messages import ChatMessage

    from ._answers import AnswerType

RunStatus: TypeAlias = (
    "Literal['created', 'running', 'success', 'max_steps_error', 'interrupted', 'limit_error', "
    "'stopped', 'failed']"
)
"""How far a run is, or how it ended."""


@dataclass(eq=False)
class RunState:
    """What the loop knows of one run.

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
        output: The answer.
    """

    task: str
    memory: AgentMemory
    max_steps: int
    state: dict[str, Any] = field(default_factory=dict)
    answer_type: AnswerType[Any] | None = None
    on_generation_error: Literal["raise", "record"] = "raise"
    status: RunStatus = "success"
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(0, 0))
    is_untold: bool = False
    output: Any = None

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
