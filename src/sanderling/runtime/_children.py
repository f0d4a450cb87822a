"""Tools whose work is a run of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sanderling.tools import Tool

if TYPE_CHECKING:
    from ._context import RunContext
    from ._run import Run


class ChildRunTool(Tool):
    """A tool that is carried out by a run, whose events come out of the run that calls it."""

    @abstractmethod
    def start(self, arguments: Mapping[str, Any], caller: RunContext) -> Run:
        """Returns the run for one call, made by `Run.start_child`.

        Args:
            arguments: As `validate_arguments` returned them.
            caller: The context of the run that calls.
        """

    @abstractmethod
    def report(self, run: Run) -> object:
        """Returns what the caller is told, once the run has ended."""
