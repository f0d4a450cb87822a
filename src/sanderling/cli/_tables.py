"""Tables of findings, for a terminal and for a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sanderling.console import AgentLogger

GOOD: Final = "green"
BAD: Final = "bold red"
SO_WHAT: Final = "yellow"
_GAP = "  "


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: cells of plain text, the second of them in a colour."""

    cells: Sequence[str]
    colour: str


def print_table(
    logger: AgentLogger, title: str, rows: Sequence[Row], *, first: bool = False
) -> None:
    """Prints a table: in columns that fit a terminal, or for a pipe one line for each row.

    Args:
        logger: Where to.
        title: Stands above it, after an empty line.
        rows: What is in it; without rows nothing is printed.
        first: Whether nothing was printed before: then there is no empty line.
    """
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    logger.log(title if first else f"\n{title}", style="bold")
    # No line end in a detail may make it look like another row.
    lines = [[logger.plain(" ".join(cell.split())) for cell in row.cells] for row in rows]
    for row, cells in zip(rows, lines, strict=True):
        cells[1].stylize(row.colour)
    *narrow, _ = zip(*lines, strict=True)
    widths = [max(map(len, column)) for column in narrow]
    if not logger.console.is_terminal:  # a line for each, however long
        for cells in lines:
            for cell, width in zip(cells, widths, strict=False):
                cell.pad_right(width - len(cell))
            logger.log(Text(_GAP).join(cells))
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, len(_GAP), 0, 0))
    for width in widths:
        table.add_column(width=width)
    table.add_column()
    for cells in lines:
        table.add_row(*cells)
    logger.log(table)
