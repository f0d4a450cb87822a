"""The two ways to run an agent, so that a scenario is written once and run twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sanderling import MultiStepAgent


class Driver:
    """Runs an agent in the calling thread."""

    name = "sync"

    def run(self, agent: MultiStepAgent, task: str, **kwargs: Any) -> Any:
        """Returns what the run returns."""
        return agent.run(task, **kwargs)

    def events(self, agent: MultiStepAgent, task: str, **kwargs: Any) -> list[Any]:
        """Returns the events of the run."""
        return list(agent.run(task, stream=True, **kwargs))


class AsyncDriver(Driver):
    """Runs an agent under asyncio."""

    name = "async"

    def run(self, agent: MultiStepAgent, task: str, **kwargs: Any) -> Any:
        """Returns what the run returns."""
        return asyncio.run(agent.arun(task, **kwargs))

    def events(self, agent: MultiStepAgent, task: str, **kwargs: Any) -> list[Any]:
        """Returns the events of the run."""

        async def collect() -> list[Any]:
            return [event async for event in agent.astream(task, **kwargs)]

        return asyncio.run(collect())


both_drivers = pytest.mark.parametrize(
    "driver", [Driver(), AsyncDriver()], ids=lambda driver: driver.name
)
