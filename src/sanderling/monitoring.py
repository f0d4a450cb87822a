"""The import path of smolagents for printing and sums; see `sanderling.console`."""

from .console import YELLOW_HEX, AgentLogger, LogLevel, Monitor
from .messages import Timing, TokenUsage

__all__ = ["YELLOW_HEX", "AgentLogger", "LogLevel", "Monitor", "Timing", "TokenUsage"]
