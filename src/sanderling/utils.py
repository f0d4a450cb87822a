"""The import path of smolagents for its errors and helpers; nothing is defined here."""

from .agents._old_helpers import (
    MAX_LENGTH_TRUNCATE_CONTENT,
    make_json_serializable,
    parse_code_blobs,
    parse_json_tool_call,
    truncate_content,
)
from .errors import (
    AgentError,
    AgentExecutionError,
    AgentGenerationError,
    AgentMaxStepsError,
    AgentParsingError,
    AgentToolCallError,
    AgentToolExecutionError,
)
from .sandbox import BASE_BUILTIN_MODULES

__all__ = [
    "BASE_BUILTIN_MODULES",
    "MAX_LENGTH_TRUNCATE_CONTENT",
    "AgentError",
    "AgentExecutionError",
    "AgentGenerationError",
    "AgentMaxStepsError",
    "AgentParsingError",
    "AgentToolCallError",
    "AgentToolExecutionError",
    "make_json_serializable",
    "parse_code_blobs",
    "parse_json_tool_call",
    "truncate_content",
]
