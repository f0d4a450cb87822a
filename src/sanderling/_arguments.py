"""Checks of arguments that several packages take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def at_least_one(name: str, number: object) -> int | None:
    """Returns a setting that counts something.

    Raises:
        ValueError: It is no whole number, or less than one.
    """
    if number is None:
        return None
    if not isinstance(number, int) or number < 1:
        raise ValueError(f"{name} must be a whole number, at least 1, not {number!r}")
    return number


def require_list(name: str, values: object) -> list[Any]:
    """Returns the values of an argument that takes a list of them.

    Raises:
        TypeError: It is a single value, such as a text, whose letters nobody means.
    """
    if values is None:
        return []
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is a list: write {name}=[...], not a {type(values).__name__}")
    return list(values)


def require_callables(name: str, functions: object) -> list[Callable[..., Any]]:
    """Returns the functions of an argument that takes a list of them.

    Raises:
        TypeError: It is no list, or one of them cannot be called.
    """
    checked = require_list(name, functions)
    for function in checked:
        if not callable(function):
            raise TypeError(f"{name} takes what can be called; {type(function).__name__} cannot be")
    return checked
