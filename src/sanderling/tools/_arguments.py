"""Arguments of a tool: how they are bound to names, checked, and described to a model."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from math import isfinite
from typing import TYPE_CHECKING, Any, get_origin

from sanderling import sandbox

from ._check import Check, Mismatch, alternatives, compile_check, show
from ._conversion import NoForm, as_json, as_list
from ._schema import PYTHON_TYPES, Hint, known_hints, read_hint

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from sanderling.messages import JSONObject, JSONValue

_MISSING = Parameter.empty
_SCALARS = ("string", "integer", "number", "boolean")
_CHOSEN = {"enum", "const"}
_TEXTUAL = {"format", *_CHOSEN}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool.

    Attributes:
        parameter: Its place in the signature, with the type hint and the default of ``forward``.
        declared: Its entry in ``inputs``, refined by the type hint; ``type: any`` is left open.
        nullable: Whether it may be left out, or be null.
        null: What null stands for: `None`, or the default where the tool has no use for `None`.
        check: Checks and converts a value.
        fit: Does so with a value that code passes, which has more forms than JSON has.
    """

    parameter: Parameter
    declared: JSONObject
    nullable: bool
    null: object
    check: Check
    fit: Check


class Arguments:
    """All arguments of one tool.

    Args:
        tool: The tool's name, for messages.
        inputs: The tool's ``inputs``.
        output_type: The tool's ``output_type``.
        forward: The function behind the tool.
        declared_only: Whether `forward` takes whatever comes (``**kwargs``), so that only `inputs`
            say what the arguments are. So it is, too, where `forward` does not name them.
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
        if declared_only or inspect.signature(forward).parameters.keys() != inputs.keys():
            parameters = _declared_parameters(inputs)
            hints: dict[str, object] = {}
        else:
            parameters = list(inspect.signature(forward).parameters.values())
            hints = known_hints(forward)
        self.by_name = {one.name: _argument(inputs[one.name], one, hints) for one in parameters}
        self._checks = {name: argument.check for name, argument in self.by_name.items()}
        self._fits = {name: argument.fit for name, argument in self.by_name.items()}
        self._required = [name for name, one in self.by_name.items() if not one.nullable]
        # forward(x: int | None) has no default for what the schema calls optional.
        self._filled = {
            name: argument.declared.get("default")
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

    def validate(self, arguments: object, *, in_code: bool = False) -> dict[str, object]:
        """Returns arguments that the tool can be called with.

        Args:
            arguments: By name. A lone value is taken where the tool has one argument.
            in_code: Whether code passes them; see `Tool.take_arguments`.

        Raises:
            ValueError: An argument is unknown or missing, or not among the values allowed.
            TypeError: An argument is of a wrong type.
        """
        if not isinstance(arguments, Mapping):
            arguments = self._object(arguments)
        checked: dict[str, object] = {}
        checks = self._fits if in_code else self._checks
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
        if isinstance(value, str) and value.lstrip().startswith("{"):  # encoded twice, or broken
            try:
                found = json.loads(value)
            except (ValueError, RecursionError) as error:
                if len(self.by_name) != 1:
                    raise self._broken(value) from error
            else:
                if self.spreads(found):
                    return dict(found)
        if len(self.by_name) == 1:
            return {next(iter(self.by_name)): value}
        if value is None:
            return {}
        raise TypeError(
            f"The arguments of the tool {self._tool!r} must be an object with the keys "
            f"{self._known()}, but they are {show(value)}."
        )

    def _broken(self, text: str) -> TypeError:
        return TypeError(
            f"The arguments of the tool {self._tool!r} are no complete JSON: {show(text)}. "
            f"Give an object with the keys {self._known()}."
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
            default=declared.get("default") if _may_be_left_out(declared) else _MISSING,
        )
        for name, declared in inputs.items()
    ]
    return sorted(parameters, key=lambda parameter: parameter.default is not _MISSING)


def _may_be_left_out(declared: Mapping[str, JSONValue]) -> bool:
    """Tells whether an argument is optional: adapters of MCP say so with a default, or null."""
    return bool(declared.get("nullable")) or "default" in declared or _takes_null(declared)


def _takes_null(declared: Mapping[str, JSONValue]) -> bool:
    kinds = declared.get("type")
    if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return True
    return any(map(_takes_null, alternatives(declared)))


def _argument(
    declared: Mapping[str, JSONValue], parameter: Parameter, hints: Mapping[str, object]
) -> Argument:
    either = alternatives(declared)
    if either and all("type" in one for one in either):
        # They say it all. Adapters of MCP put a type beside them that says otherwise.
        declared = {key: value for key, value in declared.items() if key != "type"}
    name, kind = parameter.name, declared.get("type")
    annotation = hints.get(name, PYTHON_TYPES.get(kind, Any) if isinstance(kind, str) else Any)
    hint = read_hint(hints[name]) if name in hints else Hint({})
    # A hint refines what was declared; it never contradicts it.
    agrees = kind == "any" or hint.schema.get("type") == kind
    merged = {**hint.schema, **declared} if agrees else dict(declared)
    if kind == "any" and hint.schema:
        merged.update(hint.schema, description=declared["description"])
    check, fit = compile_check(merged), compile_check(merged, convert=True)
    if agrees and hint.adapter is not None:
        # Pydantic would take "5" and True for a constrained int; a format means that text is right.
        is_scalar = hint.schema.get("type") in _SCALARS and not _TEXTUAL & hint.schema.keys()
        fit = _or_as_json(_adapted(hint.adapter, fit if is_scalar else None))
        check = _adapted(hint.adapter, check if is_scalar else None)
    elif not _CHOSEN & merged.keys():
        fit = _or_as_it_is(fit, wants_list=_wants_list(kind, annotation))
    keeps_none = hint.nullable or parameter.default is _MISSING
    return Argument(
        parameter.replace(annotation=annotation),
        {key: value for key, value in merged.items() if key != "nullable"},
        _may_be_left_out(declared),
        None if keeps_none else parameter.default,
        check,
        fit,
    )


def _wants_list(kind: JSONValue, annotation: object) -> bool:
    return kind == "array" and list in (annotation, get_origin(annotation))


def _or_as_it_is(fit: Check, *, wants_list: bool) -> Check:
    """Passes on what is of another type than was declared: its tool may do well with it.

    What was wrapped to stay on the host is not passed on: the tool might show what it holds.
    """

    def checked(value: object) -> object:
        try:
            value = fit(value)
        except Mismatch as mismatch:
            if value is None or not mismatch.of_kind or sandbox.stays_on_host(value):
                raise
        if not wants_list or isinstance(value, list):
            return value
        try:
            return as_list(value)
        except NoForm:
            return value

    return checked


def _or_as_json(fit: Check) -> Check:
    """Builds what a type hint asks for from other forms as well, such as a record of the code."""

    def checked(value: object) -> object:
        try:
            return fit(value)
        except Mismatch as mismatch:
            try:
                converted = as_json(value)
            except NoForm:
                raise mismatch from None
            return fit(converted)

    return checked


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
