"""What outlives a single run of an agent: memory, variables, and the sandbox that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sanderling.memory import AgentMemory
    from sanderling.sandbox import Interpreter


@dataclass
class Conversation:
    """One line of tasks, each of which may build on those before.

    Attributes:
        memory: The steps.
        state: Variables given with tasks, by name.
        interpreter: The sandbox, once a code action has needed it.
        busy: Whether a run is under way in it.
    """

    memory: AgentMemory
    state: dict[str, Any] = field(default_factory=dict)
    interpreter: Interpreter | None = None
    busy: bool = False

    def close(self) -> None:
        """Ends the sandbox, with its variables and files."""
        if self.interpreter is not None:
            self.interpreter.close()
            self.interpreter = None
