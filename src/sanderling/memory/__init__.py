"""What an agent remembers: steps, how they read as messages, and the append-only history."""

from ._history import History
from ._memory import AgentMemory
from ._steps import (
    ActionStep,
    FinalAnswerStep,
    MemoryStep,
    SystemPromptStep,
    TaskStep,
    ToolCall,
    json_form,
)

__all__ = [
    "ActionStep",
    "AgentMemory",
    "FinalAnswerStep",
    "History",
    "MemoryStep",
    "SystemPromptStep",
    "TaskStep",
    "ToolCall",
    "json_form",
]
