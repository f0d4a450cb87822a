"""Texts for values that nobody vouches for."""

from __future__ import annotations

from collections.abc import Callable


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
