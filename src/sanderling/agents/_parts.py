"""What agents are made of: checked and named."""

from __future__ import annotations

import difflib
import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sanderling.tools import as_tool

from ._managed_agent import ManagedAgent
from ._recall import RecallTool

if TYPE_CHECKING:
    from sanderling.tools import Tool

    from ._base import MultiStepAgent


def check_name(name: object) -> str | None:
    """Returns the name of an agent.

    Raises:
        ValueError: It is no identifier, so that code could not call the agent.
    """
    if name is None:
        return None
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"an agent's name must be a Python identifier, not {name!r}")
    return name


def refuse_unknown(
    called: str, functions: Iterable[Callable[..., Any]], given: Iterable[str]
) -> None:
    """Checks that no argument is left that nobody knows.

    Args:
        called: What was called; the error names it.
        functions: Who may know the arguments: constructors, or methods.
        given: The names of the arguments that are left.

    Raises:
        TypeError: There is one; the message names a close one that is known.
    """
    for name in given:
        known = {
            parameter.name
            for function in functions
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        }
        close = difflib.get_close_matches(name, known, 1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        raise TypeError(f"{called}() got an unexpected keyword argument {name!r}.{guess}")


def is_overridden(agent: object, method: str, base: type) -> bool:
    """Tells whether an agent, or its class, has another method than `base`."""
    found = getattr(agent, method)
    return getattr(found, "__func__", found) is not getattr(base, method)


def at_least_one(name: str, number: object) -> int | None:
    """Returns a setting that counts something.

    Raises:
        ValueError: It is no whole number, or less than one.
    """
    if number is None:
        return None
    if not isinstance(number, int) or number < 1:
        raise ValueError(f"{name} must be a whole number, at least 1, not {number!r}")
    return number


def listed(name: str, given: object) -> list[Any]:
    """Returns the things of an argument that takes a list of them.

    Raises:
        TypeError: It is a single thing, such as a text, whose letters nobody means.
    """
    if given is None:
        return []
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"{name} is a list: write {name}=[...], not a {type(given).__name__}")
    return list(given)


def functions(name: str, given: object) -> list[Callable[..., Any]]:
    """Returns the functions of an argument that takes a list of them.

    Raises:
        TypeError: It is no list, or one of them cannot be called.
    """
    found = listed(name, given)
    for one in found:
        if not callable(one):
            raise TypeError(f"{name} takes what can be called; {type(one).__name__} cannot be")
    return found


def named_tools(
    tools: Iterable[Tool | Callable[..., Any]], more: Iterable[Tool]
) -> dict[str, Tool]:
    """Returns tools by name.

    Args:
        tools: The user's, or functions that become tools.
        more: Ready ones, left out where a tool of the user's has the name already.

    Raises:
        TypeError: Something is no tool.
        ValueError: Two of the user's tools have one name.
    """
    named: dict[str, Tool] = {}
    for tool in map(as_tool, tools):
        if tool.name in named and isinstance(tool, RecallTool):
            raise ValueError(
                f"a tool is called {tool.name!r}, as is the one that an agent has with Compaction, "
                "for its model to look up what was left out; give yours another name"
            )
        if tool.name in named:
            raise ValueError(f"two tools are called {tool.name!r}; give one of them another name")
        named[tool.name] = tool
    for tool in more:
        named.setdefault(tool.name, tool)
    return named


def as_agents(
    agents: Iterable[MultiStepAgent | ManagedAgent] | Mapping[str, MultiStepAgent] | None,
) -> list[MultiStepAgent]:
    """Returns managed agents, those of the old kind as what they stand for.

    Raises:
        TypeError: Something is no agent.
    """
    given = agents.values() if isinstance(agents, Mapping) else listed("managed_agents", agents)
    made = [one.as_agent() if isinstance(one, ManagedAgent) else one for one in given]
    for agent in made:
        if not hasattr(agent, "run"):
            raise TypeError(f"a managed agent must be an agent, not {type(agent).__name__}")
    return made
