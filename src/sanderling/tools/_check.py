"""Checks values against the part of JSON Schema that says what kind of value is wanted.

Read here: ``type``, ``enum``, ``const``, ``anyOf``, ``oneOf``, ``allOf``, ``items``,
``prefixItems``, ``properties``, ``required`` and ``additionalProperties``. Bounds, patterns and
formats are for whoever declares them to check: a tool's own type hint, or the server behind it.

https://json-schema.org/draft/2020-12/json-schema-validation
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from sanderling import sandbox

from ._conversion import NoForm, as_boolean, as_dict, as_integer, as_list, as_number
from .agent_types import as_raw

if TYPE_CHECKING:
    from sanderling.messages import JSONValue

Check: TypeAlias = Callable[[object], object]

_EXPECTED = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object (dict)",
    "null": "null (None)",
    "image": "an image",
    "audio": "audio",
}


_MOST = 20_000  # microseconds that one part of a text may take


class _Short(reprlib.Repr):
    """Shortens texts of data, and names everything else by its class."""

    def repr1(self, x: object, level: int) -> str:
        return sandbox.safe_repr(x) if sandbox.stays_on_host(x) else super().repr1(x, level)

    def repr_instance(self, x: object, level: int) -> str:
        text = sandbox.safe_repr(x, _MOST)
        half = self.maxother // 2
        return text if len(text) <= self.maxother else f"{text[:half]}...{text[-half:]}"


_short = _Short()
_short.maxstring = _short.maxother = 60
_short.maxlevel = 2


class Mismatch(Exception):  # noqa: N818 - a finding, turned into a TypeError or ValueError
    """A value does not fit its schema.

    Attributes:
        expected: What would fit, as words that follow "must be".
        value: What was found.
        path: Where within the argument, such as ``[2].port``.
        of_kind: Whether the value is of a wrong kind, rather than a wrong one of its kind.
    """

    def __init__(self, expected: str, value: object, of_kind: bool = True) -> None:
        super().__init__(expected)
        self.expected = expected
        self.value = value
        self.of_kind = of_kind
        self.path = ""

    def within(self, step: str) -> Mismatch:
        """Returns this mismatch as seen from the container."""
        self.path = step + self.path
        return self

    def error(self, argument: str, tool: str) -> TypeError | ValueError:
        """Returns the error that tells the caller what to fix."""
        text = (
            f"The argument {argument + self.path!r} of the tool {tool!r} must be {self.expected}, "
            f"but it is {_found(self.value)}."
        )
        if isinstance(self.value, str) and self.of_kind:
            text += " Pass the value itself, not text that shows it."
        return TypeError(text) if self.of_kind else ValueError(text)


def show(value: object) -> str:
    """Returns a short text for a value of any size."""
    try:
        return _short.repr(value)
    except ValueError:
        # Python refuses to write integers of more than 4300 digits.
        return f"an integer of {value.bit_length()} bits" if isinstance(value, int) else "a value"


def compile_check(schema: Mapping[str, JSONValue], *, convert: bool = False) -> Check:
    """Returns a function that returns a value that fits `schema`, and raises `Mismatch` otherwise.

    NumPy scalars come back as Python's own, and 3.0 as 3 where an integer is wanted: JSON has one
    kind of number. Nothing else is converted, unless `convert` asks for it.

    Args:
        schema: What is wanted.
        convert: Whether to convert what does not fit and has a form that does; see `_conversion`.
    """
    checks = [*_kinds(schema, convert), *_combinations(schema, convert)]
    if not checks:
        return _anything
    if len(checks) == 1:
        return checks[0]

    def check_all(value: object) -> object:
        for check in checks:
            value = check(value)
        return value

    return check_all


def _kinds(schema: Mapping[str, JSONValue], convert: bool) -> list[Check]:
    kind = schema.get("type")
    checks: list[Check] = []
    if isinstance(kind, str):
        checks.append(_of_kind(kind, schema, convert))
    elif isinstance(kind, Sequence):
        either = [_of_kind(str(one), schema, form) for form in _forms(convert) for one in kind]
        checks.append(_any_of(either, len(kind)))
    if "enum" in schema and isinstance(choices := schema["enum"], Sequence):
        checks.append(_one_of(choices))
    if "const" in schema:
        checks.append(_one_of([schema["const"]]))
    return checks


def _combinations(schema: Mapping[str, JSONValue], convert: bool) -> list[Check]:
    either = [_schemas(schema.get(key)) for key in ("anyOf", "oneOf")]
    return [
        *(_any_of(_each(members, convert), len(members)) for members in either if members),
        *(compile_check(one, convert=convert) for one in _schemas(schema.get("allOf"))),
    ]


def _each(members: Sequence[Mapping[str, JSONValue]], convert: bool) -> list[Check]:
    return [compile_check(one, convert=form) for form in _forms(convert) for one in members]


def _forms(convert: bool) -> tuple[bool, ...]:
    """Says in which order alternatives are tried: what fits one as it is stays as it is."""
    return (False, True) if convert else (False,)


def alternatives(schema: Mapping[str, JSONValue]) -> list[Mapping[str, JSONValue]]:
    """Returns the schemas of which one or another is to hold; none where that is not asked for."""
    return [*_schemas(schema.get("anyOf")), *_schemas(schema.get("oneOf"))]


def _schemas(value: JSONValue) -> list[Mapping[str, JSONValue]]:
    if not isinstance(value, Sequence):
        return []
    return [member for member in value if isinstance(member, Mapping)]


def _of_kind(kind: str, schema: Mapping[str, JSONValue], convert: bool) -> Check:
    if kind == "array":
        check = _array(schema, convert)
    elif kind == "object":
        check = _object(schema, convert)
    else:
        check = _SCALARS.get(kind, _anything)
    form = _FORMS.get(kind) if convert else None
    return check if form is None else _or_converted(check, form)


def _or_converted(check: Check, form: Callable[[object], object]) -> Check:
    def check_or_convert(value: object) -> object:
        try:
            return check(value)
        except Mismatch as mismatch:
            if mismatch.path or not mismatch.of_kind:
                raise
            try:
                converted = form(value)
            except NoForm:
                raise mismatch from None
            return check(converted)

    return check_or_convert


_FORMS: dict[str, Callable[[object], object]] = {
    "integer": as_integer,
    "number": as_number,
    "boolean": as_boolean,
    "array": as_list,
    "object": as_dict,
}


def _anything(value: object) -> object:
    return value


def _python_scalar(value: object) -> object:
    """Returns a NumPy scalar as Python's own; NumPy itself is not needed to know one."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        item = getattr(value, "item", None)
        return item() if callable(item) else value
    return value


def _string(value: object) -> object:
    if isinstance(value, str):
        return value
    raise Mismatch(_EXPECTED["string"], value)


def _integer(value: object) -> object:
    if type(value) is int:
        return value
    scalar = _python_scalar(value)
    if isinstance(scalar, int) and not isinstance(scalar, bool):
        return scalar
    if isinstance(scalar, float) and scalar.is_integer():
        return int(scalar)
    raise Mismatch(_EXPECTED["integer"], value)


def _number(value: object) -> object:
    if type(value) is float or type(value) is int:
        return value
    scalar = _python_scalar(value)
    if isinstance(scalar, int | float) and not isinstance(scalar, bool):
        return scalar
    raise Mismatch(_EXPECTED["number"], value)


def _boolean(value: object) -> object:
    scalar = _python_scalar(value)
    if isinstance(scalar, bool):
        return scalar
    raise Mismatch(_EXPECTED["boolean"], value)


def _null(value: object) -> object:
    if value is None:
        return None
    raise Mismatch(_EXPECTED["null"], value)


def _media(kind: str) -> Check:
    # An image or a sound may come as an object, as bytes or as a path: its tool knows which.
    def check(value: object) -> object:
        if value is None or isinstance(value, bool | int | float):
            raise Mismatch(_EXPECTED[kind], value)
        if kind == "image":  # an `AgentImage` is a PIL image already
            return value
        try:
            return as_raw(value)
        except ValueError as error:
            raise Mismatch(f"audio that can be read ({error})", value, of_kind=False) from error

    return check


_SCALARS: dict[str, Check] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "image": _media("image"),
    "audio": _media("audio"),
}


def _array(schema: Mapping[str, JSONValue], convert: bool) -> Check:
    prefix, items = _schemas(schema.get("prefixItems")), schema.get("items")
    first = [compile_check(member, convert=convert) for member in prefix]
    rest = compile_check(items, convert=convert) if isinstance(items, Mapping) and items else None

    def check(value: object) -> object:
        if not isinstance(value, list | tuple):
            raise Mismatch(_EXPECTED["array"], value)
        if not first and rest is None:
            return value
        checked = list(value)
        place = 0
        try:
            for place, item in enumerate(value):
                if place < len(first):
                    checked[place] = first[place](item)
                elif rest is not None:
                    checked[place] = rest(item)
        except Mismatch as mismatch:
            raise mismatch.within(f"[{place}]") from None
        return tuple(checked) if isinstance(value, tuple) else checked

    return check


def _object(schema: Mapping[str, JSONValue], convert: bool) -> Check:
    declared = schema.get("properties")
    properties = {
        name: compile_check(inner, convert=convert)
        for name, inner in (declared.items() if isinstance(declared, Mapping) else ())
        if isinstance(inner, Mapping)
    }
    required = schema.get("required")
    needed = [str(name) for name in required] if isinstance(required, Sequence) else []
    others = schema.get("additionalProperties", True)
    other: Check = _anything
    if isinstance(others, Mapping):
        other = compile_check(others, convert=convert)
    bare = not (properties or needed) and other is _anything and others is not False

    def check(value: object) -> object:
        if bare:
            # A live object is as good: "object" is also what any unknown class is called.
            if value is None or isinstance(value, str | int | float | list | tuple):
                raise Mismatch(_EXPECTED["object"], value)
            return value
        if not isinstance(value, Mapping):
            raise Mismatch(_EXPECTED["object"], value)
        missing = [name for name in needed if name not in value]
        if missing:
            raise Mismatch(f"an object with {missing[0]!r}", value, of_kind=False)
        checked: dict[object, object] = {}
        for name, item in value.items():
            if others is False and name not in properties:
                raise Mismatch(f"an object without {show(name)}", value, of_kind=False)
            try:
                checked[name] = properties.get(name, other)(item)
            except Mismatch as mismatch:
                raise mismatch.within(f"[{show(name)}]") from None
        return checked

    return check


def _one_of(choices: Sequence[JSONValue]) -> Check:
    def check(value: object) -> object:
        # Other classes may answer == with anything; and 1 == True in Python, not in JSON.
        known = value is None or isinstance(value, str | int | float | list | dict)
        for choice in choices if known else ():
            if choice == value and isinstance(choice, bool) == isinstance(value, bool):
                return choice
        raise Mismatch(f"one of {list(choices)}", value, of_kind=False)

    return check


def _any_of(checks: Sequence[Check], alternatives: int) -> Check:
    def check(value: object) -> object:
        failures: list[Mismatch] = []
        for one in checks:
            try:
                return one(value)
            except Mismatch as mismatch:
                failures.append(mismatch)
        del failures[alternatives:]  # those of the second attempt say the same
        deepest = max(failures, key=lambda failure: len(failure.path))
        if deepest.path:
            raise deepest
        expected = " or ".join(dict.fromkeys(failure.expected for failure in failures))
        raise Mismatch(expected, value, of_kind=all(failure.of_kind for failure in failures))

    return check


def _found(value: object) -> str:
    names = {str: "the string", int: "the integer", float: "the number", bool: "the boolean"}
    if value is None:
        return "null (None)"
    return f"{names.get(type(value), f'of type {type(value).__name__}:')} {show(value)}"
