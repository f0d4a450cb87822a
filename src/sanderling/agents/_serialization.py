"""An agent as data, and the way back: the form of ``agent.json``, without files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sized
from typing import TYPE_CHECKING, Any, TypeVar

from sanderling._registry import Registry, name_of
from sanderling.memory import json_form
from sanderling.models import MODEL_CLASSES, Model
from sanderling.tools import FinalAnswerTool, as_tool
from sanderling.tools.toolbox import TOOL_MAPPING

from ._recall_tool import RecallTool

if TYPE_CHECKING:
    from sanderling.messages import JSONObject
    from sanderling.tools import Tool

    from ._definition import AgentDefinition

AgentT = TypeVar("AgentT", bound="AgentDefinition")


def _own_class(name: str) -> type[AgentDefinition] | None:
    from sanderling import agents

    known = getattr(agents, name, None) if name in dir(agents) else None
    return known if isinstance(known, type) and issubclass(known, agents.MultiStepAgent) else None


AGENT_CLASSES: Registry[Any] = Registry(_own_class)
"""The classes that forms of agents may name."""

_READY = {FinalAnswerTool.name, *TOOL_MAPPING}
_ARGUMENTS = {"authorized_imports": "additional_authorized_imports"}


def agent_form(agent: AgentDefinition) -> JSONObject:
    """Returns the JSON form of an agent.

    What has no JSON form is left out with a warning; secrets are left out.
    """
    if left_out := [name for name in agent._python if _is_given(getattr(agent, name))]:
        warnings.warn(
            f"{', '.join(left_out)} of the agent: Python that has no JSON form, and is not saved. "
            "Give it again to from_dict.",
            stacklevel=3,
        )
    from sanderling._secrets import settings_without_secrets

    by_argument = {name: getattr(agent, name) for name in agent._by_argument}
    settings = {
        **{name: getattr(agent, name) for name in agent._saved},
        **settings_without_secrets(by_argument),
    }
    return {
        "class": name_of(type(agent)),
        "tools": [tool_form(tool) for tool in agent.tools.values() if not _is_recall(tool)],
        "model": {"class": name_of(type(agent.model)), "data": agent.model.to_dict()},
        "managed_agents": {name: one.to_dict() for name, one in agent.managed_agents.items()},
        "prompt_templates": json_form(agent.prompt_templates),
        "requirements": ["sanderling"],
        **{name: json_form(value) for name, value in settings.items()},
    }


def _is_recall(tool: Tool) -> bool:
    return isinstance(tool, RecallTool)  # it comes with a Compaction, which is Python


def _is_given(value: Any) -> bool:
    return len(value) > 0 if isinstance(value, Sized) else value is not None


def tool_form(tool: Tool) -> JSONObject:
    """Returns what a model is told of a tool, as data."""
    return {
        "name": tool.name,
        "description": tool.description,
        "inputs": tool.inputs,
        "output_type": tool.output_type,
        "output_schema": tool.output_schema,
    }


def agent_from(
    kind: type[AgentT],
    any_agent: type[AgentDefinition],
    data: Mapping[str, Any],
    given: dict[str, Any],
) -> AgentT:
    """Makes the agent that `agent_form` described.

    Args:
        kind: Its class, or one above it.
        any_agent: The class above those of managed agents.
        data: The form.
        given: Arguments of the constructor, which win over those of the form.

    Raises:
        ValueError: The form names a class or a tool that is not there, sets what only an argument
            may, or is none.
    """
    form: object = data
    if not isinstance(form, Mapping):
        raise ValueError(f"the form of an agent is a dict, not a {type(form).__name__}")
    name = data.get("class")
    agent_class = kind if name is None else AGENT_CLASSES.find(name, kind)
    _check_form(agent_class, data, given)
    tools = [as_tool(tool) for tool in given.pop("tools", ())]
    children = given.pop("managed_agents", None)
    model = given.pop("model", None)
    if children is None:
        shared = {"tools": tools} if model is None else {"tools": tools, "model": model}
        children = [
            _child_from(any_agent, child, dict(shared))
            for child in _child_forms(data.get("managed_agents") or {})
        ]
    return agent_class(
        tools=_tools_named(list(map(_name_of, data.get("tools") or ())), tools),
        model=_model_from(data.get("model")) if model is None else model,
        managed_agents=children,
        **{**_settings(agent_class._saved, data), **given},
    )


def _check_form(
    agent_class: type[AgentDefinition], data: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    if given.get("executor") is not None:
        return  # it says all
    refused = {
        name: data[name]
        for name, usual in agent_class._by_argument.items()
        if name not in given and data.get(name) not in (None, usual)
    }
    if refused:
        passed = ", ".join(f"{name}={value!r:.200}" for name, value in refused.items())
        raise ValueError(
            f"the form sets {', '.join(refused)}, which only your program may choose: where code "
            "runs, and what it can reach there. If you trust where the form comes from, pass what "
            f"it says, or else what you want: {agent_class.__name__}.from_dict(data, {passed})"
        )


def _child_from(kind: type[AgentDefinition], data: Any, given: dict[str, Any]) -> AgentDefinition:
    try:
        return agent_from(kind, kind, data, given)
    except ValueError as error:
        raise ValueError(
            f"a managed agent of the form: {error} Managed agents that you make yourself are "
            "passed as from_dict(data, managed_agents=[...])"
        ) from error


def _child_forms(children: Mapping[str, Any] | Iterable[Any]) -> list[Any]:
    if isinstance(children, Mapping):
        named = [name for name, child in children.items() if isinstance(child, str)]
        if named:
            raise ValueError(
                f"the form has no more of the managed agents {', '.join(named)} than their class: "
                "give them, as from_dict(data, managed_agents=[...])"
            )
        children = children.values()
    return list(children)


def _settings(saved: Iterable[str], data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of the constructor that a form has."""
    settings = {
        _ARGUMENTS.get(name, name): data[name]
        for name in ("prompt_templates", "output_type", *saved)
        if data.get(name) is not None
    }
    if tags := settings.get("code_block_tags"):
        settings["code_block_tags"] = tuple(tags)
    return settings


def _name_of(tool: Mapping[str, Any] | str) -> str:
    """Returns the name of a tool: smolagents saves no more of it."""
    return tool if isinstance(tool, str) else tool["name"]


def _tools_named(names: Iterable[str], given: list[Tool]) -> list[Tool]:
    pool = {tool.name: tool for tool in given}
    missing = [name for name in names if name not in pool and name not in _READY]
    if missing:
        raise ValueError(
            f"the agent had the tools {', '.join(missing)}, which are Python and not in its form: "
            "give them, as from_dict(data, tools=[...])"
        )
    # An agent makes its final_answer itself: what that says depends on the output type.
    wanted = [name for name in names if name in pool or name != FinalAnswerTool.name]
    return [pool[name] if name in pool else TOOL_MAPPING[name]() for name in wanted]


def _model_from(data: Mapping[str, Any] | None) -> Model:
    try:
        kind = MODEL_CLASSES.find((data or {}).get("class"), Model)
    except ValueError as error:
        raise ValueError(f"{error} Or pass the model: from_dict(data, model=...)") from None
    try:
        loaded: Model = kind.from_dict((data or {}).get("data") or {})
    except ValueError as error:
        raise ValueError(
            f"the model of the form: {error} Then give it to the agent: from_dict(data, model=...)"
        ) from error
    return loaded
