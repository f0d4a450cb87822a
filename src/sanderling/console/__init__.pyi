from ._logger import YELLOW_HEX as YELLOW_HEX
from ._logger import AgentLogger as AgentLogger
from ._logger import LogLevel as LogLevel
from ._monitor import Monitor as Monitor
from ._printer import RunPrinter as RunPrinter
