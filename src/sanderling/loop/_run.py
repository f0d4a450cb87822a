"""What one task changes, and what comes of it. The agent itself stays as it was defined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sanderling.memory import json_form
from sanderling.messages import Timing, TokenUsage

if TYPE_CHECKING:
    from sanderling.memory import AgentMemory
    from sanderling.messages import ChatMessage, JSONObject

RunState = Literal["success", "max_steps_error"]


@dataclass
class Run:
    """One task under way.

    Attributes:
        task: What was asked.
        memory: The steps so far; those of earlier runs too, where the run continues them.
        max_steps: How many steps the loop may take.
        state: Variables that came with the task, by name.
    """

    task: str
    memory: AgentMemory
    max_steps: int
    state: dict[str, Any] = field(default_factory=dict)
    status: RunState = "success"
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(0, 0))

    def count(self, reply: ChatMessage) -> None:
        """Adds what a reply cost."""
        if reply.token_usage is not None:
            self.usage += reply.token_usage


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to.

    Attributes:
        output: The answer.
        state: ``"success"``, or ``"max_steps_error"`` where the answer was forced at the limit.
        steps: The steps in memory, in their JSON form.
        token_usage: The sum over all replies of the model.
        timing: Start and end of the run, in seconds since the epoch.
    """

    output: Any
    state: RunState
    steps: list[JSONObject]
    token_usage: TokenUsage
    timing: Timing

    def dict(self) -> JSONObject:
        """Returns the JSON form; an output that has none is shown by its repr."""
        return {
            "output": json_form(self.output),
            "state": self.state,
            "steps": self.steps,
            "token_usage": self.token_usage.dict(),
            "timing": self.timing.dict(),
        }
