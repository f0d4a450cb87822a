"""Texts for values that nobody vouches for."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Final

MAX_QUOTED: Final = 2_000

_UNUSUAL = re.compile(r"[^\t\n -~]+")
# What fonts draw as nothing although it is a letter, a mark or a symbol: Unicode's
# Default_Ignorable_Code_Point beside the categories below, and two blank symbols.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)
_JOINER = "\u200d"
_VARIANTS = "\ufe0e\ufe0f"


def text_of(value: object, write: Callable[[object], str] = str) -> str:
    """Returns `str(value)`, or for a value that cannot be written the reason why.

    Integers of more than 4,300 digits are such values, and whatever a hostile ``__str__`` raises.

    Args:
        value: Anything.
        write: `str` or `repr`.
    """
    try:
        return write(value)
    except Exception as error:  # whatever the value's own code raises
        reason = type(error).__name__
        with contextlib.suppress(Exception):
            reason = f"{reason}: {error}"
        return f"<{type(value).__name__} that cannot be shown: {reason}>"


def visible(text: str) -> str:
    r"""Returns `text` with every character that acts, or shows nothing, written as an escape.

    These are controls, formats, private and unassigned characters, surrogates and fillers: an
    escape character becomes the four characters ``\x1b``. Line ends, tabs and spaces stay, and so
    does what joins emoji, directly after an emoji.
    """
    return text if text.isascii() and text.isprintable() else _UNUSUAL.sub(_visible_run, text)


def _visible_run(match: re.Match[str]) -> str:
    run = match[0]
    if run.isprintable() and not _BLANK.search(run):
        return run
    return "".join(
        char if _is_visible(char) or _joins_emoji(run, place) else _escape(char)
        for place, char in enumerate(run)
    )


def _is_visible(char: str) -> bool:
    return (char.isprintable() or _category(char) == "Zs") and not _BLANK.match(char)


def _joins_emoji(run: str, place: int) -> bool:
    if run[place] == _JOINER and _is_emoji(run[place + 1 : place + 2]):
        before = place - 1 - (run[place - 1 : place] in tuple(_VARIANTS))
        return before >= 0 and _is_emoji(run[before])
    return run[place] in _VARIANTS and place > 0 and _is_emoji(run[place - 1])


def _is_emoji(char: str) -> bool:
    is_symbol = char != "" and _category(char) == "So" and not _BLANK.match(char)
    return is_symbol or "\U0001f3fb" <= char <= "\U0001f3ff"  # these are skin tones


def _category(char: str) -> str:
    import unicodedata  # most texts need none of it

    return unicodedata.category(char)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def quoted(reply: str) -> str:
    """Returns a sentence that quotes a model's reply, cut to what it takes to recognize it."""
    if not reply.strip():
        return "It was empty."
    more = len(reply) - MAX_QUOTED
    rest = f"… ({more} more characters)" if more > 0 else ""
    return f"It was:\n{reply[:MAX_QUOTED]}{rest}"
