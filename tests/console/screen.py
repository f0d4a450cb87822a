"""Consoles that write into a string, as a pipe or as a terminal."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field

from rich.console import Console

from sanderling.console import AgentLogger, LogLevel

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Screen:
    """What was printed, and a logger that prints to it."""

    level: LogLevel = LogLevel.INFO
    terminal: bool = False
    width: int = 100
    encoding: str = "utf-8"
    logger: AgentLogger = field(init=False)
    _bytes: io.BytesIO = field(init=False, default_factory=io.BytesIO)

    def __post_init__(self) -> None:
        file = io.TextIOWrapper(self._bytes, encoding=self.encoding, newline="\n")
        console = Console(
            file=file,
            width=self.width,
            force_terminal=self.terminal,
            color_system="truecolor" if self.terminal else None,
            highlight=False,
            _environ={"TERM": "xterm-256color"},
        )
        self.logger = AgentLogger(self.level, console)

    @property
    def raw(self) -> str:
        """Everything that was written."""
        self.logger.console.file.flush()
        return self._bytes.getvalue().decode(self.encoding)

    @property
    def text(self) -> str:
        """The same without colours."""
        return _COLOUR.sub("", self.raw)

    @property
    def lines(self) -> list[str]:
        """The lines of `text` without the space at their ends."""
        return [line.rstrip() for line in self.text.splitlines()]
