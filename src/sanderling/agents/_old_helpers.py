"""Names that smolagents has in ``agents`` and ``utils``, by what does their work here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling.loop import CodeTags, Event, extract_code, shorten
from sanderling.memory import json_form
from sanderling.models import parse_json_tool_calls, read_arguments

from ._code_agent import CodeAgent
from ._tool_calling_agent import ToolCallingAgent

if TYPE_CHECKING:
    from sanderling.messages import JSONValue

    from ._agent import MultiStepAgent

StreamEvent: TypeAlias = Event
"""Whatever a run yields."""

AGENT_REGISTRY: dict[str, type[MultiStepAgent]] = {
    "CodeAgent": CodeAgent,
    "ToolCallingAgent": ToolCallingAgent,
}
"""The kinds of agents; `MultiStepAgent.from_dict` makes classes derived from them as well."""

MAX_LENGTH_TRUNCATE_CONTENT = 20_000


def parse_code_blobs(text: str, code_block_tags: tuple[str, str] | None = None) -> str:
    """Returns the Python code of a reply.

    Raises:
        AgentParsingError: There is none.
    """
    return extract_code(text, CodeTags(*(code_block_tags or ())))


def parse_json_tool_call(json_blob: str) -> tuple[str, Any]:
    """Returns the name and the arguments of the first tool call in a reply.

    Raises:
        AgentParsingError: There is none.
    """
    call = parse_json_tool_calls(json_blob)[0]
    return call.function.name, read_arguments(call)


def truncate_content(content: str, max_length: int = MAX_LENGTH_TRUNCATE_CONTENT) -> str:
    """Returns a text with its middle cut out where it is longer than `max_length`."""
    return shorten(content, max_length)


def make_json_serializable(obj: object) -> JSONValue:
    """Returns the JSON form of a value; one that has none is named by its class."""
    return json_form(obj)
