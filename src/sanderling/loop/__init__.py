"""The agent loop: generators without I/O, which yield effects (what they need) and events."""

from ._actions import Action, CodeAction, ToolAction
from ._effects import (
    CallTool,
    CheckAnswer,
    Effect,
    ExecuteCode,
    Generate,
    Notify,
    Now,
    Outcome,
    Together,
)
from ._events import (
    ActionOutput,
    CodeOutputDelta,
    Event,
    RunStarted,
    StepStarted,
    ToolOutput,
)
from ._parsing import CodeTags, extract_code
from ._react import react
from ._run import Run, RunResult

__all__ = [
    "Action",
    "ActionOutput",
    "CallTool",
    "CheckAnswer",
    "CodeAction",
    "CodeOutputDelta",
    "CodeTags",
    "Effect",
    "Event",
    "ExecuteCode",
    "Generate",
    "Notify",
    "Now",
    "Outcome",
    "Run",
    "RunResult",
    "RunStarted",
    "StepStarted",
    "Together",
    "ToolAction",
    "ToolOutput",
    "extract_code",
    "react",
]
