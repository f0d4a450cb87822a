"""Tools that belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ._decorator import as_tool

if TYPE_CHECKING:
    from ._tool import Tool


class ToolCollection:
    """Tools that come from one place: ``CodeAgent(tools=[*collection.tools], ...)``.

    Args:
        tools: Tools, or functions to be made tools.
    """

    def __init__(self, tools: Iterable[Tool | Callable[..., object]]) -> None:
        self.tools: list[Tool] = [as_tool(tool) for tool in tools]
