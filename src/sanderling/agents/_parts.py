"""What agents are made of: checked and named."""

from __future__ import annotations

import difflib
import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sanderling.tools import as_tool

from ._managed_agent import ManagedAgent

if TYPE_CHECKING:
    from sanderling.tools import Tool

    from ._base import MultiStepAgent


def check_name(name: str | None) -> str | None:
    """Returns the name of an agent.

    Raises:
        ValueError: It is no identifier, so that code could not call the agent.
    """
    if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
        raise ValueError(f"an agent's name must be a Python identifier, not {name!r}")
    return name


def refuse_unknown(agent_class: type, given: Iterable[str]) -> None:
    """Checks that no argument is left that no constructor of an agent knows.

    Args:
        agent_class: The class of the agent, which the error names.
        given: The names of the arguments that are left.

    Raises:
        TypeError: There is one; the message names a close one that is known.
    """
    for name in given:
        known = {
            parameter.name
            for kind in agent_class.__mro__
            for parameter in inspect.signature(kind).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        }
        close = difflib.get_close_matches(name, known, 1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        raise TypeError(
            f"{agent_class.__name__}() got an unexpected keyword argument {name!r}.{guess}"
        )


def at_least_one(name: str, number: int | None) -> int | None:
    """Returns a setting that counts something.

    Raises:
        ValueError: It is less than one.
    """
    if number is not None and number < 1:
        raise ValueError(f"{name} must be at least 1, not {number}")
    return number


def named_tools(
    tools: Sequence[Tool | Callable[..., Any]], more: Iterable[Tool]
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
        if tool.name in named:
            raise ValueError(f"two tools are called {tool.name!r}; give one of them another name")
        named[tool.name] = tool
    for tool in more:
        named.setdefault(tool.name, tool)
    return named


def as_agents(
    agents: Sequence[MultiStepAgent | ManagedAgent] | Mapping[str, MultiStepAgent] | None,
) -> list[MultiStepAgent]:
    """Returns managed agents, those of the old kind as what they stand for.

    Raises:
        TypeError: Something is no agent.
    """
    given = agents.values() if isinstance(agents, Mapping) else agents or ()
    made = [one.as_agent() if isinstance(one, ManagedAgent) else one for one in given]
    for agent in made:
        if not hasattr(agent, "run"):
            raise TypeError(f"a managed agent must be an agent, not {type(agent).__name__}")
    return made
