"""Tools whose work is a run of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from sanderling.tools import Tool

if TYPE_CHECKING:
    from sanderling.loop import Event
    from sanderling.messages import TokenUsage

    from ._services import Services


class Errand(Protocol):
    """One run on behalf of another one."""

    @property
    def path(self) -> str:
        """The names of the agents, from the outermost one to the one that runs."""

    @property
    def usage(self) -> TokenUsage:
        """What the run has cost so far, the runs beneath it included."""

    def events(self) -> Generator[Event, None, None]:
        """Runs in the calling thread."""

    def aevents(self) -> AsyncGenerator[Event, None]:
        """Runs under asyncio."""

    def report(self) -> object:
        """Returns what the caller is told, once the run has ended."""


class Delegate(Tool):
    """A tool that is carried out by driving another loop, whose events come out of the caller's."""

    @abstractmethod
    def begin(self, arguments: Mapping[str, Any], caller: Services) -> Errand:
        """Returns a run of its own for one call.

        Args:
            arguments: As `validate_arguments` returned them.
            caller: The services of the run that calls: its policies and its end hold for the
                errand as well.
        """
