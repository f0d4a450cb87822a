"""Checks of what agents are made with."""

from __future__ import annotations

import difflib
import errno
import inspect
import keyword
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sanderling._arguments import require_list
from sanderling.tools import as_tool

from ._recall_tool import RecallTool

if TYPE_CHECKING:
    from sanderling.messages import ImageSource
    from sanderling.tools import Tool

_ELSEWHERE = ("http://", "https://", "data:")
_MAX_PATH = 200  # characters that an error shows
_NO_NAME = re.compile(r"\W+|^(?=\d)")


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
    called: str, functions: Iterable[Callable[..., Any]], unknown: Iterable[str]
) -> None:
    """Checks that no argument is left that nobody knows.

    Args:
        called: What was called; the error names it.
        functions: Who may know the arguments: constructors, or methods.
        unknown: The names of the arguments that are left.

    Raises:
        TypeError: There is one; the message names a close one that is known.
    """
    for name in unknown:
        known = {
            parameter.name
            for function in functions
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        }
        close = difflib.get_close_matches(name, known, 1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        raise TypeError(f"{called}() got an unexpected keyword argument {name!r}.{guess}")


def defines(agent: object, method: str, base: type) -> bool:
    """Tells whether an agent, or a class of it below `base`, has a method of its own."""
    below = type(agent).__mro__[: type(agent).__mro__.index(base)]
    return method in vars(agent) or any(method in vars(kind) for kind in below)


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


def images_there(images: object) -> list[ImageSource]:
    """Returns the images that come with a task.

    Raises:
        TypeError: They are no list.
        FileNotFoundError: One is the path of a file that is not there.
    """
    found: list[ImageSource] = require_list("images", images)
    for place, image in enumerate(found):
        if isinstance(image, str | Path) and not str(image).startswith(_ELSEWHERE):
            path = str(image)
            if not os.path.exists(path):  # noqa: PTH110 - a path of its own raises what this does not
                what = f"images[{place}] is not there"
                raise FileNotFoundError(errno.ENOENT, what, path[:_MAX_PATH])
    return found


def check_variables(additional_args: object, tools: Collection[str]) -> None:
    """Checks that code can have values as variables.

    Args:
        additional_args: By name. What is no mapping is left to others.
        tools: The names that mean something to the code already.

    Raises:
        ValueError: A name is none, or is that of a tool.
    """
    for name in additional_args if isinstance(additional_args, Mapping) else ():
        taken = f"the key {name!r:.80} of additional_args"
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            proposal = _NO_NAME.sub("_", str(name)[:40]) or "value"
            proposal += "_" * keyword.iskeyword(proposal)
            raise ValueError(
                f"{taken} cannot be the name of a variable, which code knows the value by: give "
                f"it another one, such as {proposal!r}."
            )
        if name in tools or (name.startswith("__") and name.endswith("__")):
            what = "a tool, which code could not call then" if name in tools else "Python's own"
            raise ValueError(
                f"{taken} is the name of {what}: give the value another one, such as "
                f"{name.strip('_') + '_value'!r}."
            )
