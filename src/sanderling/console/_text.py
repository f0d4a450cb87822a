"""Makes text that nobody vouches for fit to be shown."""

from __future__ import annotations

import re

# What a terminal obeys instead of showing it (C0, C1), what makes text read otherwise than it is
# (bidirectional controls, tag characters, line separators), and lone surrogates.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
_INDENT = "  "


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""Returns `text` with all that would act instead of being seen written as an escape.

    Line ends and tabs stay. An escape character becomes the four characters ``\x1b``, and so on for
    what `encoding` cannot express.
    """
    text = _HIDDEN.sub(_escaped, text.replace("\r\n", "\n"))
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


def omission(count: int) -> str:
    """Returns the line that stands for `count` characters left out."""
    return f"… {count:,} characters are not shown …"


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
