"""Text that grows in one place of a notebook page, instead of a new output for every line."""

from __future__ import annotations

import html
from typing import Any

_BLOCK = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:normal;font-family:'
    "Menlo,'DejaVu Sans Mono',consolas,'Courier New',monospace\">{}</pre>"
)


class NotebookText:
    """One output of a notebook. It has no colours of its own, so that every theme can show it.

    Args:
        title: Stands above the text; empty for none.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._text = ""
        self._handle: Any = None  # of IPython, which has no types

    def write(self, text: str) -> None:
        """Adds text, in which nothing is read as HTML, and shows it."""
        from IPython.display import display  # type: ignore[import-not-found]  # notebooks have it

        self._text += text
        bundle = {"text/plain": self._plain(), "text/html": self._html()}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)

    def _plain(self) -> str:
        text = self._text.rstrip("\n")
        return f"{self._title}\n{text}" if self._title else text

    def _html(self) -> str:
        title = f"<b>{html.escape(self._title)}</b>\n" if self._title else ""
        return _BLOCK.format(title + html.escape(self._text.rstrip("\n")))
