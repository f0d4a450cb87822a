"""Makes text that nobody vouches for fit to be shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sanderling import _show

if TYPE_CHECKING:
    from rich.console import Console

_INDENT = "  "


def visible(text: str, encoding: str = "utf-8") -> str:
    """Escapes all that would act instead of being seen, and what `encoding` cannot express.

    See `sanderling._show.visible`. Line ends of Windows become plain ones.
    """
    text = _show.visible(text.replace("\r\n", "\n"))
    return text.encode(encoding, "backslashreplace").decode(encoding)


def excerpt(text: str, limit: int) -> str:
    """Cuts the middle out of a text of more than `limit` characters, and says how much that was."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n{omission(len(text) - 2 * half)}\n{text[-half:]}"


def indented(text: str, *, first: bool = False) -> str:
    """Moves lines to the right, so that none can pass for a line of the log itself.

    Args:
        text: The lines.
        first: Whether the first line is moved like the others.
    """
    return re.sub(r"(?m)^(?=[^\n])" if first else r"(?<=\n)(?=[^\n])", _INDENT, text)


def text_width(console: Console) -> int:
    """Returns how many cells a line has that `indented` may move."""
    return max(1, console.width - len(_INDENT))


def omission(count: int) -> str:
    """Returns the line that stands for `count` characters left out."""
    return f"… {count:,} characters are not shown …"
