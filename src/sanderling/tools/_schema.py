"""Type hints as JSON schema.

Hints made of JSON's own types are read here; richer ones (pydantic models, dataclasses, typed
dicts, enums, dates, ...) are read by pydantic, which is imported for the first of them.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from sanderling.messages import JSONObject, JSONValue

AUTHORIZED_TYPES = [
    "string",
    "boolean",
    "integer",
    "number",
    "image",
    "audio",
    "array",
    "object",
    "any",
    "null",
]

_NAMES: dict[object, str] = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    list: "array",
    tuple: "array",
    dict: "object",
    types.NoneType: "null",
    None: "null",
}
# What a declared type is called in a signature.
PYTHON_TYPES: dict[str, object] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": None,
}
# Recognised by name: nobody shall import these packages to ask what they are.
_MEDIA = {("PIL.Image", "Image"): "image", ("torch", "Tensor"): "audio"}
_SHAPES = {"type", "anyOf", "oneOf", "allOf", "enum", "const"}
_UNIONS = (Union, types.UnionType)
_SUBSCHEMAS = ("properties", "patternProperties", "dependentSchemas")
_VERBATIM = ("default", "enum", "const", "examples", "required")


class TypeHintParsingException(TypeError):  # noqa: N818 - the name smolagents gave it
    """The type hints of a function do not say what a tool must say about itself."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What a type hint says.

    Attributes:
        schema: JSON schema of its values. The types ``any``, ``image`` and ``audio`` are ours.
        nullable: Whether `None` is one of them.
        adapter: Checks and converts values, where JSON's own types are not enough.
    """

    schema: JSONObject
    nullable: bool = False
    adapter: TypeAdapter[Any] | None = None


def read_hint(hint: object) -> Hint:
    """Translates a type hint. A class that nobody can describe is an ``object``."""
    hint, nullable = _without_none(hint)
    if hint is Any or hint is object or isinstance(hint, TypeVar):
        return Hint({"type": "any"}, nullable)
    media = _MEDIA.get((getattr(hint, "__module__", ""), getattr(hint, "__name__", "")))
    if media:
        return Hint({"type": media}, nullable)
    plain = _plain(hint)
    if plain is not None:
        return Hint(plain, nullable)
    adapter, schema = _rich(hint)
    if not _SHAPES & schema.keys():
        schema["type"] = "any"
    return Hint(schema, nullable, adapter)


def read_nullable(hint: object) -> bool:
    """Returns whether a type hint allows `None` beside other values."""
    return _without_none(hint)[1]


def hints_of(function: Callable[..., object]) -> dict[str, object]:
    """Returns the type hints of a function, resolved.

    Raises:
        TypeHintParsingException: A hint names something that its module does not hold.
    """
    try:
        return typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        name = getattr(function, "__name__", "forward")
        raise TypeHintParsingException(
            f"A type hint of {name} cannot be resolved: {error}. Import or define the type at the "
            "top of the module (outside `if TYPE_CHECKING:` and outside functions)."
        ) from error


def known_hints(function: Callable[..., object]) -> dict[str, object]:
    """Returns the type hints of a function whose arguments are declared elsewhere too.

    Hints that cannot be resolved are left out, all of them: they would only have said more.
    """
    try:
        return hints_of(function)
    except TypeHintParsingException:
        return {}


def inline_references(schema: Mapping[str, JSONValue]) -> JSONObject:
    """Returns a schema that holds no ``$ref``, no ``$defs`` and no generated titles.

    Small models and several servers cannot follow references. Where a type contains itself, its
    inner occurrence is shown as a bare object.
    """
    definitions = schema.get("$defs")
    return _inline(schema, definitions if isinstance(definitions, Mapping) else {}, ())


def _inline(
    schema: Mapping[str, JSONValue], definitions: Mapping[str, JSONValue], path: tuple[str, ...]
) -> JSONObject:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        target = definitions.get(name)
        if name in path or not isinstance(target, Mapping):
            return {"type": "object"}
        rest = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
        return _inline({**target, **rest}, definitions, (*path, name))

    def convert(value: JSONValue) -> JSONValue:
        if isinstance(value, Mapping):
            return _inline(value, definitions, path)
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [convert(item) for item in value]
        return value

    inlined: JSONObject = {}
    for key, value in schema.items():
        if key in _SUBSCHEMAS and isinstance(value, Mapping):
            inlined[key] = {name: convert(inner) for name, inner in value.items()}
        elif key in _VERBATIM:
            inlined[key] = value
        elif key not in ("$defs", "title", "discriminator"):
            inlined[key] = convert(value)
    return inlined


def _without_none(hint: object) -> tuple[object, bool]:
    if get_origin(hint) in _UNIONS:
        members = get_args(hint)
        rest = tuple(member for member in members if member is not types.NoneType)
        if rest and len(rest) < len(members):
            return Union[rest], True  # noqa: UP007 - made at run time from a tuple
    if get_origin(hint) is Literal and None in get_args(hint) and len(get_args(hint)) > 1:
        return Literal[tuple(value for value in get_args(hint) if value is not None)], True
    if get_origin(hint) is Annotated:
        return hint, _without_none(get_args(hint)[0])[1]
    return hint, False


def _plain(hint: object, inside: tuple[object, ...] = ()) -> JSONObject | None:
    """Returns the schema of a hint made of JSON's types alone, else `None`.

    Args:
        hint: Any type hint.
        inside: The typed dicts around it: one that holds itself is cut off there.
    """
    if hint is Any or hint is object:
        return {}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is None:
        if typing.is_typeddict(hint):
            return _typed_dict(hint, inside)
        name = _NAMES.get(hint) if isinstance(hint, type) or hint is None else None
        return None if name is None else {"type": name}
    if origin is list:
        items = _nested(arguments[0], inside)
        return None if items is None else {"type": "array", "items": items}
    if origin is dict and arguments[0] is str:
        values = _nested(arguments[1], inside)
        if values is None:
            return None
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if origin is Literal:
        return _choices(arguments)
    if origin in _UNIONS:
        members = [_plain(member, inside) for member in arguments]
        described = [member for member in members if member is not None]
        return _either(described) if len(described) == len(members) else None
    return None


def _nested(hint: object, inside: tuple[object, ...]) -> JSONObject | None:
    # Several servers refuse an array that does not say what it holds.
    plain = _plain(hint, inside)
    return {"type": "array", "items": {}} if plain == {"type": "array"} else plain


def _typed_dict(hint: Any, inside: tuple[object, ...]) -> JSONObject | None:
    # Read here because pydantic refuses `typing.TypedDict` on Python 3.11.
    if hint in inside:
        return {"type": "object"}
    properties: JSONObject = {}
    required: list[JSONValue] = []
    for name, kind in typing.get_type_hints(hint, include_extras=True).items():
        marker = get_origin(kind) if get_origin(kind) in (Required, NotRequired) else None
        plain = _nested(get_args(kind)[0] if marker else kind, (*inside, hint))
        if plain is None:
            return None
        properties[name] = plain
        if marker is Required or (marker is None and name in hint.__required_keys__):
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _choices(values: tuple[object, ...]) -> JSONObject | None:
    """Returns the schema of a `Literal`."""
    kinds = list(dict.fromkeys(_NAMES.get(type(value)) for value in values))
    if not all(kinds):
        return None
    listed = typing.cast("list[JSONValue]", list(values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": listed}


def _either(members: list[JSONObject]) -> JSONObject:
    if not all(members):
        return {}
    if all(member.keys() == {"type"} for member in members):
        return {"type": [member["type"] for member in members]}
    return {"anyOf": members}


def _rich(hint: Any) -> tuple[TypeAdapter[Any] | None, JSONObject]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        return adapter, inline_references(adapter.json_schema())
    except (PydanticUserError, PydanticInvalidForJsonSchema):
        return None, {"type": "object"}
