"""Texts for values that nobody vouches for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MAX_QUOTED: Final = 2_000


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
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}: {error}>"


def quoted(reply: str) -> str:
    """Returns a sentence that quotes a model's reply, cut to what it takes to recognize it."""
    if not reply.strip():
        return "It was empty."
    more = len(reply) - MAX_QUOTED
    rest = f"… ({more} more characters)" if more > 0 else ""
    return f"It was:\n{reply[:MAX_QUOTED]}{rest}"
