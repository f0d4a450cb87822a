"""Text that is shown while it is being written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ._logger import MAX_BLOCK
from ._notebook import NotebookText
from ._text import indented, omission, text_width, visible

if TYPE_CHECKING:
    from ._logger import AgentLogger

_LONGEST_WORD = 30
_LINE_END = re.compile(r"[^\S\n]*\n")


class LiveText:
    """Writes text as it comes: in whole words or pieces to a terminal, else in whole lines.

    Blank lines at the start and the end are left out: space waits for what follows it.
    After `MAX_BLOCK` characters the rest is only counted. In a notebook all is one output.

    Args:
        logger: Prints.
        by: Whether lines shall break between words, or where they are full.
        title: A line above the text, which then stands apart from the lines of the log itself.
    """

    def __init__(
        self, logger: AgentLogger, by: Literal["words", "pieces"], *, title: str = ""
    ) -> None:
        self._console = logger.console
        self._by = by if self._console.is_terminal else "lines"
        self._page = NotebookText(title) if self._console.is_jupyter else None
        self._breaks = by if self._console.is_terminal or self._page is not None else None
        self._indent = bool(title)
        if title and self._page is None:
            logger.log(title, style="bold")
        self._pending = ""
        self._column = 0
        self._begun = False
        self._at_line_start = True
        self._room = MAX_BLOCK
        self._left_out = 0

    def write(self, text: str) -> None:
        """Shows as much as is complete."""
        self._pending += text
        ready = self._ready()
        if len(self._pending) > self._room:
            ready = self._pending[: self._room]
            self._left_out += len(self._pending) - self._room
            self._pending = ready
        self._pending = self._pending[len(ready) :]
        self._room -= len(ready)
        self._emit(ready)

    def close(self) -> None:
        """Shows what is left and ends the line; further text begins a new one."""
        self._emit(self._pending.rstrip())
        self._pending = ""
        if not self._at_line_start:
            self._out("\n")
        self._begun = False
        self._at_line_start = True
        self._column = 0
        if self._left_out:
            self._out(visible(omission(self._left_out), self._console.encoding) + "\n")
            self._left_out = 0

    def _ready(self) -> str:
        match self._by:
            case "lines":
                whole = len(self._pending.rpartition("\n")[0].rstrip())
                return self._pending[: self._pending.index("\n", whole) + 1] if whole else ""
            case "words" if self._pending[-1:].strip():
                *before, word = self._pending.rsplit(None, 1)
                if len(word) <= _LONGEST_WORD:
                    return before[0] if before else ""
            case "pieces":  # with the line's end: what a tool prints shall begin a line
                text = self._pending.rstrip()
                end = _LINE_END.match(self._pending, len(text)) if text else None
                return text if end is None else self._pending[: end.end()]
        return self._pending.rstrip()

    def _emit(self, text: str) -> None:
        if not self._begun and text:
            text = re.sub(r"^(?:[^\S\n]*\n)+", "", text)
        if not text:
            return
        text = visible(text, self._console.encoding)
        if self._breaks == "words":
            text = self._wrapped(text)
        elif self._breaks == "pieces":
            text = self._broken(text)
        if self._indent:
            text = indented(text, first=self._at_line_start)
        self._out(text)
        self._begun = True
        self._at_line_start = text.endswith("\n")

    def _out(self, text: str) -> None:
        if self._page is not None:
            self._page.write(text)
        else:
            self._console.out(text, end="", highlight=False)

    def _broken(self, text: str) -> str:
        from rich.cells import cell_len

        width = text_width(self._console)
        characters = []
        for character in text:
            if character == "\n":
                self._column = 0
            else:
                cells = cell_len(character)
                if self._column and self._column + cells > width:
                    characters.append("\n")
                    self._column = 0
                self._column += cells
            characters.append(character)
        return "".join(characters)

    def _wrapped(self, text: str) -> str:
        from rich.cells import cell_len

        words = []
        first, *others = re.split(r"(\s+)", text)
        for space, word in zip(["", *others[::2]], [first, *others[1::2]], strict=True):
            if not word:
                words.append(space)
                self._column = 0 if "\n" in space else self._column + len(space)
                continue
            width = cell_len(word)
            gap = space
            if "\n" in space:
                self._column = len(space.rpartition("\n")[2])
            elif self._column and self._column + len(space) + width > self._console.width:
                gap = "\n"
                self._column = 0
            else:
                self._column += len(space)
            self._column += width
            words.append(gap + word)
        return "".join(words)


class LiveReply:
    """Shows a model's reply while it is written, up to the mark at which code begins.

    The code itself waits: if it is run, it is shown as code, and otherwise as the text it is. On a
    terminal a line that replaces itself tells how far the code has come.

    Args:
        logger: Prints.
        code_marks: What code may begin with; without any, everything is shown.
    """

    def __init__(self, logger: AgentLogger, code_marks: Sequence[str]) -> None:
        self._console = logger.console
        self._live = LiveText(logger, by="words")
        self._longest = max(map(len, code_marks), default=0)
        self._mark = re.compile("|".join(map(re.escape, code_marks))) if code_marks else None
        self._marks = tuple(code_marks)
        self._tail = ""
        self._code: list[str] = []
        self._lines = 0

    def write(self, text: str) -> None:
        """Takes the next piece of the reply."""
        if self._code:
            self._hold(text)
            return
        text = self._tail + text
        self._tail = ""
        if self._mark is not None and (found := self._mark.search(text)):
            self._live.write(text[: found.start()])
            self._hold(text[found.start() :])
            return
        shown = len(text) - self._half_a_mark(text)
        self._tail = text[shown:]
        self._live.write(text[:shown])

    def close(self, *, code_is_shown: bool) -> None:
        """Ends the reply.

        Args:
            code_is_shown: The code of the reply will be shown as such; it is left out here.
        """
        self._erase_progress()
        self._live.write(self._tail)
        if not code_is_shown:
            self._live.write("".join(self._code))
        self._live.close()

    def _half_a_mark(self, text: str) -> int:
        """Returns the length of the end of `text` that may be the beginning of a mark."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            if any(mark.startswith(text[-length:]) for mark in self._marks):
                return length
        return 0

    def _hold(self, text: str) -> None:
        self._code.append(text)
        if (ends := text.count("\n")) and self._moves:
            from rich.control import Control
            from rich.segment import ControlType

            self._live.close()
            self._lines += ends
            progress = f"… writing code, line {self._lines}"
            self._console.control(Control(ControlType.CARRIAGE_RETURN))
            self._console.out(visible(progress, self._console.encoding), style="dim", end="")

    def _erase_progress(self) -> None:
        if self._lines:
            from rich.control import Control
            from rich.segment import ControlType

            erase = Control((ControlType.ERASE_IN_LINE, 2), ControlType.CARRIAGE_RETURN)
            self._console.control(erase)

    @property
    def _moves(self) -> bool:
        return self._console.is_terminal and not self._console.is_dumb_terminal
