"""The agent loop: generators without I/O, which yield effects (what they need) and events."""

from ._actions import MAX_LOGS, Action, answer_in, shorten
from ._answers import AnswerType
from ._code_action import CodeAction
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
    effect_from_dict,
)
from ._events import (
    ActionOutput,
    CodeOutputDelta,
    Event,
    ModelReply,
    NestedEvent,
    PlanningStarted,
    ReplyBrokenOff,
    RunStarted,
    StepStarted,
    ToolOutput,
    event_from_dict,
    event_to_dict,
)
from ._parsing import CodeTags, extract_code
from ._planning import Planning, PlanRequest
from ._react import checked, react
from ._records import code_result_from_dict, code_result_to_dict
from ._state import RunState, RunStatus
from ._tool_action import ToolAction

__all__ = [
    "MAX_LOGS",
    "Action",
    "ActionOutput",
    "AnswerType",
    "CallTool",
    "CheckAnswer",
    "CodeAction",
    "CodeOutputDelta",
    "CodeTags",
    "Effect",
    "Event",
    "ExecuteCode",
    "Generate",
    "ModelReply",
    "NestedEvent",
    "Notify",
    "Now",
    "Outcome",
    "PlanRequest",
    "Planning",
    "PlanningStarted",
    "ReplyBrokenOff",
    "RunStarted",
    "RunState",
    "RunStatus",
    "StepStarted",
    "Together",
    "ToolAction",
    "ToolOutput",
    "answer_in",
    "checked",
    "code_result_from_dict",
    "code_result_to_dict",
    "effect_from_dict",
    "event_from_dict",
    "event_to_dict",
    "extract_code",
    "react",
    "shorten",
]
