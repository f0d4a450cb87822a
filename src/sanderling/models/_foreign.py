"""Reading what comes from outside: nothing is taken to be there, or to be of its type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def get(value: object, name: str) -> Any:
    """Returns a field of a JSON object, or of what a package read it into; `None` without it.

    The objects of `huggingface_hub` are dicts as well, which hide the fields that it does not know.
    """
    if type(value) is dict:
        return value.get(name)
    return getattr(value, name, None) if is_object(value) else None


def is_object(value: object) -> bool:
    """Tells whether it may have fields: a dict, or what a package read a JSON object into."""
    return not (value is None or isinstance(value, str | int | float | list | tuple))


def text(value: object) -> str | None:
    """Returns what is a text, and `None` for anything else."""
    return value if isinstance(value, str) else None


def count(value: object) -> int:
    """Returns what is a count, up to 2**53, and 0 for anything else."""
    return min(value, 1 << 53) if type(value) is int and value > 0 else 0


def sequence(value: object) -> Sequence[Any]:
    """Returns what is a list, and an empty one for anything else."""
    return value if isinstance(value, list | tuple) else ()


def first(value: object) -> Any:
    """Returns the first entry of a list; `None` without one."""
    items = sequence(value)
    return items[0] if items else None
