"""The terminal's view of a run: one consumer of the events, like any other."""

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._logger import YELLOW_HEX as YELLOW_HEX
    from ._logger import AgentLogger as AgentLogger
    from ._logger import LogLevel as LogLevel
    from ._monitor import Monitor as Monitor
    from ._printer import RunPrinter as RunPrinter

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "AgentLogger": "._logger",
        "LogLevel": "._logger",
        "Monitor": "._monitor",
        "RunPrinter": "._printer",
        "YELLOW_HEX": "._logger",
    },
)
