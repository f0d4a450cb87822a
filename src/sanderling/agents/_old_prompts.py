"""System prompts as smolagents 1.4 had them: one text with tags such as ``{{tool_descriptions}}``.

The tags are variables of every system prompt, so old texts work in the place of new ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ._prompts import render

if TYPE_CHECKING:
    from sanderling.tools import Tool

    from ._agent import MultiStepAgent

DEFAULT_TOOL_DESCRIPTION_TEMPLATE = """- {{ tool.name }}: {{ tool.description }}
    inputs: {{ tool.inputs }}
    output: {{ tool.output_type }}"""
_TOOLS, _TOOL_NAMES, _AGENTS = "tool_descriptions", "tool_names", "managed_agents_descriptions"


def get_tool_description_with_args(tool: Tool, description_template: str | None = None) -> str:
    """Returns the text about one tool; the template knows it as ``tool``."""
    return render(description_template or DEFAULT_TOOL_DESCRIPTION_TEMPLATE, tool=tool)


def get_tool_descriptions(
    tools: Mapping[str, Tool], tool_description_template: str | None = None
) -> str:
    """Returns the texts about tools, one below the other."""
    return "\n".join(
        get_tool_description_with_args(tool, tool_description_template) for tool in tools.values()
    )


def show_agents_descriptions(managed_agents: Mapping[str, MultiStepAgent]) -> str:
    """Returns the text about managed agents; nothing where there are none."""
    if not managed_agents:
        return ""
    lines = [f"- {agent.name}: {agent.description}" for agent in managed_agents.values()]
    return (
        "You can hand a part of the work to these assistants. Each is called like a tool, with the "
        "argument `task`: what it shall do, in full sentences and with all it needs to know.\n"
        + "\n".join(lines)
    )


def format_prompt_with_tools(
    tools: Mapping[str, Tool], prompt_template: str, tool_description_template: str | None = None
) -> str:
    """Fills the tools into a text, at ``{{tool_descriptions}}`` and ``{{tool_names}}``.

    Nothing else in the text is touched.
    """
    names = ", ".join(f"'{name}'" for name in tools)
    described = get_tool_descriptions(tools, tool_description_template)
    return _put(_put(prompt_template, _TOOLS, described), _TOOL_NAMES, names)


def format_prompt_with_managed_agents_descriptions(
    prompt_template: str,
    managed_agents: Mapping[str, MultiStepAgent],
    agent_descriptions_placeholder: str | None = None,
) -> str:
    """Fills the managed agents into a text.

    Raises:
        ValueError: The text has no place for them.
    """
    described = show_agents_descriptions(managed_agents)
    if agent_descriptions_placeholder is not None:
        filled = prompt_template.replace(agent_descriptions_placeholder, described)
        found = agent_descriptions_placeholder in prompt_template
    else:
        filled = _put(prompt_template, _AGENTS, described)
        found = bool(re.search(_tag(_AGENTS), prompt_template))
    if not found:
        raise ValueError(
            f"the prompt has no {agent_descriptions_placeholder or f'{{{{{_AGENTS}}}}}'}, where "
            "the managed agents would be described"
        )
    return filled


def old_tags(
    template: str,
    tools: Mapping[str, Tool],
    managed_agents: Mapping[str, MultiStepAgent],
    tool_description_template: str | None,
) -> dict[str, str]:
    """Returns the values of the old tags that a template has."""
    tags = {}
    if _TOOLS in template:
        tags[_TOOLS] = get_tool_descriptions(tools, tool_description_template)
    if _TOOL_NAMES in template:
        tags[_TOOL_NAMES] = ", ".join(f"'{name}'" for name in tools)
    if _AGENTS in template:
        tags[_AGENTS] = show_agents_descriptions(managed_agents)
    return tags


def check_says(template: str, wanted: Iterable[tuple[str, object]]) -> None:
    """Checks that a system prompt of the user's tells the model what it has.

    Args:
        template: The prompt.
        wanted: Names of variables, with what they stand for; nothing is missed where there is none.

    Raises:
        ValueError: The model would not be told of something.
    """
    for name, things in wanted:
        if things and name not in template:
            raise ValueError(
                f"system_prompt has no {{{{{name}}}}}: the model would not be told of {things!r}"
            )


def _tag(name: str) -> str:
    return r"\{\{\s*" + name + r"\s*\}\}"


def _put(text: str, name: str, value: str) -> str:
    return re.sub(_tag(name), lambda _: value, text)


class Described:
    """A tool whose texts come from the user's template.

    Args:
        tool: What is described.
        template: Knows it as ``tool``.
    """

    def __init__(self, tool: Tool, template: str) -> None:
        self._tool = tool
        self._template = template

    def __getattr__(self, name: str) -> object:
        return getattr(self._tool, name)

    def to_code_prompt(self) -> str:
        """Returns the user's text."""
        return get_tool_description_with_args(self._tool, self._template)

    def to_tool_calling_prompt(self) -> str:
        """Returns the user's text."""
        return self.to_code_prompt()
