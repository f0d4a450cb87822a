"""Checks of what users pass in: a mistake is told where it is made, by the argument's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat, SupportsIndex


def check_more_than_0(name: str, value: object, unit: str = "", whole: bool = False) -> None:
    """Accepts a positive number, or none at all.

    Raises:
        TypeError: It is no number, or not a whole one where it must be.
        ValueError: It is not positive.
    """
    if value is None:
        return
    if not _number(name, value, whole) > 0:
        raise ValueError(f"{name} is more than 0{unit}, or None; it is {value!r}")


def check_at_least(name: str, value: object, least: int, whole: bool = True) -> None:
    """Accepts a number that is large enough.

    Raises:
        TypeError: It is no number, or not a whole one where it must be.
        ValueError: It is less than `least`.
    """
    if not _number(name, value, whole) >= least:
        raise ValueError(f"{name} is {least} or more; it is {value!r}")


def check_text(name: str, value: object) -> None:
    """Accepts a text that says something, or none at all.

    Raises:
        TypeError: It is no text.
        ValueError: It is empty.
    """
    if value is None:
        return
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {value!r:.80}")
    if not value.strip():
        raise ValueError(f"{name} is an empty text")


def as_settings(name: str, value: Mapping[Any, Any] | None) -> dict[Any, Any]:
    """Returns a mapping as a dict of our own; an empty one for none at all.

    Raises:
        TypeError: It is no mapping.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a dict of names and values, not {value!r:.80}")
    return dict(value)


def _number(name: str, value: object, whole: bool) -> float:
    # By what they can be made into, numbers of numpy are numbers as well.
    kind, called = (SupportsIndex, "a whole number") if whole else (SupportsFloat, "a number")
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{name} is {called}, not {value!r:.80}")
    return float(value)
