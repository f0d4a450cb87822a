"""Arguments of a tool: how they are bound to names, checked, and described to a model."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from math import isfinite
from typing import TYPE_CHECKING, Any

from ._check import Check, Mismatch, compile_check, show
from ._schema import PYTHON_TYPES, Hint, known_hints, read_hint

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from sanderling.messages import JSONObject, JSONValue

_MISSING = Parameter.empty
_SCALARS = ("string", "integer", "number", "boolean")
_TEXTUAL = {"format", "enum", "const"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool.

    Attributes:
        parameter: Its place in the signature, with the type hint and the default of ``forward``.
        declared: Its entry in ``inputs``, refined by the type hint; ``type: any`` is left open.
        nullable: Whether it may be left out, or be null.
        null: What null stands for: `None`, or the default where the tool has no use for `None`.
        check: Checks and converts a value.
    """

    parameter: Parameter
    declared: JSONObject
    nullable: bool
    null: object
    check: Check


class Arguments:
    """All arguments of one tool.

    Args:
        tool: The tool's name, for messages.
        inputs: The tool's ``inputs``.
        output_type: The tool's ``output_type``.
        forward: The function behind the tool.
        declared_only: Whether `forward` takes whatever comes (``**kwargs``), so that only `inputs`
            say what the arguments are.
    """

    def __init__(
        self,
        tool: str,
        inputs: Mapping[str, Mapping[str, JSONValue]],
        output_type: str,
        forward: Callable[..., object],
        declared_only: bool = False,
    ) -> None:
        self._tool = tool
        if declared_only:
            parameters = _declared_parameters(inputs)
            hints: dict[str, object] = {}
        else:
            parameters = list(inspect.signature(forward).parameters.values())
            hints = known_hints(forward)
        self.by_name = {one.name: _argument(inputs[one.name], one, hints) for one in parameters}
        self._checks = {name: argument.check for name, argument in self.by_name.items()}
        self._required = [name for name, one in self.by_name.items() if not one.nullable]
        # forward(x: int | None) has no default for what the schema calls optional.
        self._filled = {
            name: None
            for name, argument in self.by_name.items()
            if argument.nullable and argument.parameter.default is _MISSING
        }
        self.signature = inspect.Signature(
            [argument.parameter for argument in self.by_name.values()],
            return_annotation=hints.get("return", PYTHON_TYPES.get(output_type, Any)),
        )

    def parameters_schema(self) -> JSONObject:
        """Returns the JSON schema of the arguments as one object."""
        properties: JSONObject = {name: _property(one) for name, one in self.by_name.items()}
        return {"type": "object", "properties": properties, "required": list(self._required)}

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Names the positional arguments of a call.

        Raises:
            TypeError: There are too many, or one comes twice.
        """
        if not args:
            return dict(kwargs)
        if len(args) == 1 and not kwargs and isinstance(args[0], dict) and self.spreads(args[0]):
            return dict(args[0])
        places = [
            name
            for name, argument in self.by_name.items()
            if argument.parameter.kind is not Parameter.KEYWORD_ONLY
        ]
        if len(args) > len(places):
            raise TypeError(
                f"{self._tool} takes {len(places)} positional arguments ({', '.join(places)}), "
                f"but {len(args)} were given."
            )
        bound = dict(zip(places, args, strict=False))
        for name, value in kwargs.items():
            if name in bound:
                raise TypeError(f"{self._tool} got two values for the argument {name!r}.")
            bound[name] = value
        return bound

    def spreads(self, lone: Mapping[object, object]) -> bool:
        """Returns whether a dict, given as the only argument, holds this tool's arguments."""
        names = self.by_name.keys()
        return lone.keys() <= names and (bool(lone) or not names)

    def validate(self, arguments: object) -> dict[str, object]:
        """Returns arguments that the tool can be called with.

        Args:
            arguments: By name. A lone value is taken where the tool has one argument.

        Raises:
            ValueError: An argument is unknown or missing, or not among the values allowed.
            TypeError: An argument is of a wrong type.
        """
        if not isinstance(arguments, Mapping):
            arguments = self._object(arguments)
        checked: dict[str, object] = {}
        checks = self._checks
        for name, value in arguments.items():
            check = checks.get(name)
            if check is None:
                raise self._unknown(name)
            try:
                checked[name] = check(value)
            except Mismatch as mismatch:
                argument = self.by_name[name]
                if value is not None or not argument.nullable:
                    raise mismatch.error(name, self._tool) from None
                checked[name] = argument.null
        for name in self._required:
            if name not in checked:
                raise self._incomplete(checked)
        for name, value in self._filled.items():
            checked.setdefault(name, value)
        return checked

    def _object(self, value: object) -> Mapping[str, object]:
        if len(self.by_name) == 1:
            return {next(iter(self.by_name)): value}
        if value is None:
            return {}
        raise TypeError(
            f"The arguments of the tool {self._tool!r} must be an object with the keys "
            f"{self._known()}, but they are {show(value)}."
        )

    def _unknown(self, name: object) -> ValueError:
        close = difflib.get_close_matches(show(name)[:60], self.by_name, 1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        return ValueError(
            f"The tool {self._tool!r} has no argument {show(name)}.{guess} "
            f"Its arguments are: {self._known()}."
        )

    def _incomplete(self, given: Mapping[str, object]) -> ValueError:
        missing = ", ".join(repr(name) for name in self._required if name not in given)
        return ValueError(
            f"The tool {self._tool!r} needs a value for: {missing}. "
            f"Its arguments are: {self._known()}."
        )

    def _known(self) -> str:
        names = [
            f"{name} (optional)" if one.nullable else name for name, one in self.by_name.items()
        ]
        return ", ".join(names) or "none"


def _declared_parameters(inputs: Mapping[str, Mapping[str, JSONValue]]) -> list[Parameter]:
    parameters = [
        Parameter(
            name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=None if declared.get("nullable") else _MISSING,
        )
        for name, declared in inputs.items()
    ]
    return sorted(parameters, key=lambda parameter: parameter.default is not _MISSING)


def _argument(
    declared: Mapping[str, JSONValue], parameter: Parameter, hints: Mapping[str, object]
) -> Argument:
    name, kind = parameter.name, declared.get("type")
    annotation = hints.get(name, PYTHON_TYPES.get(kind, Any) if isinstance(kind, str) else Any)
    hint = read_hint(hints[name]) if name in hints else Hint({})
    # A hint refines what was declared; it never contradicts it.
    agrees = kind == "any" or hint.schema.get("type") == kind
    merged = {**hint.schema, **declared} if agrees else dict(declared)
    if kind == "any" and hint.schema:
        merged.update(hint.schema, description=declared["description"])
    check = compile_check(merged)
    if agrees and hint.adapter is not None:
        # Pydantic would take "5" and True for a constrained int; a format means that text is right.
        is_scalar = hint.schema.get("type") in _SCALARS and not _TEXTUAL & hint.schema.keys()
        check = _adapted(hint.adapter, check if is_scalar else None)
    keeps_none = hint.nullable or parameter.default is _MISSING
    return Argument(
        parameter.replace(annotation=annotation),
        {key: value for key, value in merged.items() if key != "nullable"},
        bool(declared.get("nullable")),
        None if keeps_none else parameter.default,
        check,
    )


def _adapted(adapter: TypeAdapter[Any], first: Check | None) -> Check:
    from pydantic import ValidationError

    def check(value: object) -> object:
        if first is not None:
            value = first(value)
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)[0]
            place = [f"[{show(key)}]" for key in found["loc"]]
            of_kind = found["type"].endswith("_type")
            expected = f"what its type asks for ({found['msg']})"
            if found["type"] == "missing":
                expected = f"an object with {place.pop()[1:-1]}"
            raise Mismatch(expected, found["input"], of_kind).within("".join(place)) from error

    return check


def _property(argument: Argument) -> JSONObject:
    schema = dict(argument.declared)
    kind = schema.get("type")
    if kind == "any":
        del schema["type"]
    elif kind in ("image", "audio"):
        # JSON cannot carry one: the model names the variable that holds it.
        schema["type"] = "string"
    elif kind == "array" and "prefixItems" not in schema:
        schema.setdefault("items", {})
    default = argument.parameter.default
    if isinstance(default, str | int) or (isinstance(default, float) and isfinite(default)):
        schema.setdefault("default", default)
    return schema
