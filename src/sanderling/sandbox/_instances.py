"""Instances of classes of the host, made of what a sandbox says is in their fields."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import decimal
import enum
import functools
import operator
import sys
import typing
import uuid
from collections.abc import Mapping
from typing import Any


class Rebuilder:
    """Makes instances of a class that the host has sent, where the fields fit it.

    The class's own constructor judges: what it refuses or changes stays a record. What is done with
    the fields beside that takes time in proportion to them.

    Args:
        kind: The class.
    """

    def __init__(self, kind: Any) -> None:
        models = sys.modules.get("pydantic.main")  # where it is not loaded, no class is a model
        self._kind = kind
        self._is_model = models is not None and issubclass(kind, models.BaseModel)
        self._declared: tuple[dataclasses.Field[Any], ...] = ()
        self._hints: dict[str, object] | None = None
        self._combined: dict[int, object] = {}  # members of an enum of flags
        if dataclasses.is_dataclass(kind):
            self._declared = dataclasses.fields(kind)
        if not self._is_model:
            with contextlib.suppress(Exception):  # an annotation names what is not there
                self._hints = typing.get_type_hints(kind)
        self._names = {field.name for field in self._declared}

    def made(self, fields: Mapping[str, Any], record: object) -> object:
        """Returns an instance with these fields, or what they came in."""
        try:
            if issubclass(self._kind, enum.Enum):
                made = self._member(fields["name"], fields["value"])
            elif self._is_model:
                made = self._kind.model_validate(fields, strict=True)
            elif dataclasses.is_dataclass(self._kind):
                made = self._instance(fields)
            elif issubclass(self._kind, tuple):
                made = self._named_tuple(fields)
            else:
                made = None
        except Exception:  # whatever the class has against these fields
            return record
        return record if made is None else made

    def _member(self, name: object, value: object) -> object:
        if type(name) is str and name in self._kind.__members__:
            member = self._kind.__members__[name]
            return member if _same(member.value, value) else None
        if not issubclass(self._kind, enum.Flag) or type(value) is not int:
            return None
        known = functools.reduce(operator.or_, (one.value for one in self._kind), 0)
        if value & ~known or len(self._combined) >= _MOST_COMBINED:
            return self._combined.get(value)
        return self._combined.setdefault(value, self._kind(value))

    def _named_tuple(self, fields: Mapping[str, Any]) -> object:
        if not self._fit(fields):
            return None
        made = self._kind(**fields)
        return made if _same(tuple(made), tuple(fields.values())) else None

    def _instance(self, fields: Mapping[str, Any]) -> object:
        if fields.keys() != self._names or not self._fit(fields):
            return None
        given = {field.name: fields[field.name] for field in self._declared if field.init}
        made = self._kind(**given)
        same = all(_same(getattr(made, name), value) for name, value in fields.items())
        return made if same else None

    def _fit(self, fields: Mapping[str, Any]) -> bool:
        hints = self._hints
        return hints is not None and all(
            _fits(value, hints.get(name)) for name, value in fields.items()
        )


_MOST_COMBINED = 1_000  # combinations of flags of one class: Python keeps each for ever
_COMPARED = frozenset(
    {bool, int, float, complex, str, bytes, decimal.Decimal, uuid.UUID}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)


def _fits(value: object, hint: object) -> bool:
    if hint is Any or (hint is float and type(value) is int):
        return True
    return not isinstance(hint, type) or isinstance(value, hint)


def _same(left: Any, right: Any) -> bool:
    """Tells whether a field holds what it was made with: that itself, or the same data.

    Only values of the same type are compared, for others may take any time.
    """
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right):
        return False
    if kind in _COMPARED:
        return bool(left == right)
    if kind in (list, tuple, dict):
        pairs = zip(left, right, strict=True)
        if len(left) != len(right) or not all(_same(*pair) for pair in pairs):
            return False
        return kind is not dict or all(map(_same, left.values(), right.values()))
    if kind in (set, frozenset):
        kinds = {*map(type, left), *map(type, right)}
        return len(kinds) <= 1 and kinds <= _COMPARED and bool(left == right)
    return False
