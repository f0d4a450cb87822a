"""What an agent remembers: steps, how they read as messages, and the append-only history."""

from ._callbacks import CallbackRegistry, StepCallbacks
from ._calls import joined_observations
from ._compaction import Compaction, recalled
from ._forms import (
    FORM,
    FORMAT_VERSION,
    WITH_FORM,
    Form,
    check_version,
    exact_form,
    forms_of,
    image_forms,
    images_of,
    json_form,
    value_of,
)
from ._history import History
from ._memory import AgentMemory
from ._steps import (
    ActionStep,
    FinalAnswerStep,
    MemoryStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
    ToolCall,
)

__all__ = [
    "FORM",
    "FORMAT_VERSION",
    "WITH_FORM",
    "ActionStep",
    "AgentMemory",
    "CallbackRegistry",
    "Compaction",
    "FinalAnswerStep",
    "Form",
    "History",
    "MemoryStep",
    "PlanningStep",
    "StepCallbacks",
    "SystemPromptStep",
    "TaskStep",
    "ToolCall",
    "check_version",
    "exact_form",
    "forms_of",
    "image_forms",
    "images_of",
    "joined_observations",
    "json_form",
    "recalled",
    "value_of",
]
