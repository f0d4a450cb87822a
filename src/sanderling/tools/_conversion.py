"""Values of Python in the form that JSON has for them, where that loses nothing.

Code passes what it has at hand: a tuple, an array, a number as text. What is found here to have no
such form is left to whoever asked.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from sanderling import sandbox

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_MOST_CHARACTERS = 400  # of a number
_LISTED = (tuple, set, frozenset, range, deque)
_ARRAYS = ("numpy", "pandas")
_WORDS = {"true": True, "false": False}


class NoForm(Exception):  # noqa: N818 - a finding
    """The value has no such form."""


def as_integer(value: object) -> int:
    """Returns an integer for one that is written as text or as a `Decimal`.

    Raises:
        NoForm: It is none.
    """
    number = as_number(value)
    if isinstance(number, float):
        if not number.is_integer():
            raise NoForm
        number = int(number)
    return number


def as_number(value: object) -> float:
    """Returns a number for one that is written as text or as a `Decimal`.

    Raises:
        NoForm: It is none, or not finite, or a `Decimal` of more digits than a float has.
    """
    decimal = sys.modules.get("decimal")
    if decimal is not None and isinstance(value, decimal.Decimal):
        return _of_decimal(value, decimal.Decimal)
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > _MOST_CHARACTERS or not (found := _NUMBER.fullmatch(text)):
        raise NoForm
    if found[2] is None and found[3] is None and "." not in text:
        return int(text)
    if not math.isfinite(number := float(text)):
        raise NoForm
    return number


def _of_decimal(value: Any, kind: Callable[[str], Any]) -> float:
    if not value.is_finite() or abs(value.adjusted()) > _MOST_CHARACTERS:
        raise NoForm
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    if kind(repr(number)) != value:
        raise NoForm
    return number


def as_boolean(value: object) -> bool:
    """Returns the boolean that a text names.

    Raises:
        NoForm: It names none.
    """
    word = _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
    if word is None:
        raise NoForm
    return word


def as_list(value: object) -> list[Any]:
    """Returns the items of a tuple, set, range, array, series, or of a list in JSON text.

    Raises:
        NoForm: It is nothing of the kind.
    """
    if isinstance(value, _LISTED):
        return list(value)
    if type(value).__module__.partition(".")[0] in _ARRAYS and getattr(value, "ndim", 0) > 0:
        to_list = getattr(value, "tolist", None)
        if callable(to_list):
            return list(to_list())
    found: list[Any] = _of_json(value, list)
    return found


def as_dict(value: object) -> dict[Any, Any]:
    """Returns the fields of a record, or an object in JSON text.

    Raises:
        NoForm: It is neither.
    """
    return dict(value.record_fields) if isinstance(value, sandbox.Record) else _of_json(value, dict)


def as_json(value: object) -> object:
    """Returns a value in whichever of these forms it has, its parts included.

    Raises:
        NoForm: It has none.
    """
    for convert in (as_list, as_dict):
        try:
            found = convert(value)
        except NoForm:
            continue
        if isinstance(found, dict):
            return {key: _part(item) for key, item in found.items()}
        return [_part(item) for item in found]
    if isinstance(value, list):
        return [_part(item) for item in value]
    if isinstance(value, dict):
        return {key: _part(item) for key, item in value.items()}
    raise NoForm


def _part(value: object) -> object:
    if isinstance(value, str):  # within other data, a text is a text
        return value
    try:
        return as_json(value)
    except NoForm:
        return value


def _of_json(value: object, kind: type[Any]) -> Any:
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        raise NoForm
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        raise NoForm from None
    if not isinstance(found, kind):
        raise NoForm
    return found
