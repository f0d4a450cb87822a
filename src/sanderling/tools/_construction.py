"""What is checked of every new tool, before a model ever hears of it."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ._schema import AUTHORIZED_TYPES, known_hints, read_nullable

if TYPE_CHECKING:
    from ._tool import Tool

_DESCRIBED_OTHERWISE = ("anyOf", "oneOf", "allOf", "enum", "const")
_NAMELESS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)


def check_tool(tool: Tool, placeholder: Callable[..., object]) -> None:
    """Checks that a tool says about itself all that a model and an agent need.

    Args:
        tool: A tool whose ``__init__`` is done.
        placeholder: The `forward` that does nothing, which the tool must have replaced.

    Raises:
        TypeError: An attribute is missing or of a wrong type.
        ValueError: An attribute's value cannot be used, or `inputs` and `forward` disagree.
    """
    title = type(tool).__name__
    _check_attributes(tool, title)
    if not tool.name.isidentifier() or keyword.iskeyword(tool.name):
        raise ValueError(
            f"{tool.name!r} cannot be the name of a tool: code calls the tool by its name, so it "
            "must be a Python identifier and no keyword. Use letters, digits and underscores, such "
            "as 'web_search'."
        )
    for name, declared in tool.inputs.items():
        _check_input(title, name, declared)
    if tool.output_type not in AUTHORIZED_TYPES:
        raise ValueError(
            f"{title}.output_type is {tool.output_type!r}; it must be one of {AUTHORIZED_TYPES}."
        )
    if getattr(tool.forward, "__func__", None) is placeholder:
        raise TypeError(
            f"{title} has no forward. Write `def forward(self, ...)`: it does the work."
        )
    if not tool.skip_forward_signature_validation:
        _check_forward(tool, title)


def _check_attributes(tool: Tool, title: str) -> None:
    wanted: dict[str, type] = {"name": str, "description": str, "inputs": dict, "output_type": str}
    for attribute, kind in wanted.items():
        value = getattr(tool, attribute, None)
        if value is None:
            raise TypeError(
                f"{title} has no {attribute!r}. Set it: `{attribute} = ...` in the class, or "
                f"`self.{attribute} = ...` in __init__."
            )
        if not isinstance(value, kind):
            raise TypeError(
                f"The attribute {attribute!r} of {title} must be of type {kind.__name__}, "
                f"but it is of type {type(value).__name__}."
            )
    schema: object = tool.output_schema
    if schema is not None and not isinstance(schema, dict):
        raise TypeError(
            f"The attribute 'output_schema' of {title} must be a dict (a JSON schema) or None, "
            f"but it is of type {type(schema).__name__}."
        )


def _check_input(title: str, name: object, declared: object) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(
            f"{title}.inputs has the key {name!r}; every key must be the name of an argument."
        )
    if not isinstance(declared, Mapping):
        raise TypeError(
            f"{title}.inputs[{name!r}] must be a dict such as "
            f"{{'type': 'string', 'description': '...'}}, but it is {declared!r}."
        )
    if not isinstance(declared.get("description"), str):
        raise ValueError(
            f"{title}.inputs[{name!r}] needs a 'description': tell the model what it is."
        )
    if "type" not in declared:
        if any(key in declared for key in _DESCRIBED_OTHERWISE):
            return
        raise ValueError(f"{title}.inputs[{name!r}] needs a 'type', one of {AUTHORIZED_TYPES}.")
    kind = declared["type"]
    kinds = kind if isinstance(kind, list) else [kind]
    if not kinds or any(one not in AUTHORIZED_TYPES for one in kinds):
        raise ValueError(
            f"{title}.inputs[{name!r}] has the type {kind!r}; "
            f"it must be one of {AUTHORIZED_TYPES}, or a list of them."
        )


def _check_forward(tool: Tool, title: str) -> None:
    parameters = inspect.signature(tool.forward).parameters
    for parameter in parameters.values():
        if parameter.kind in _NAMELESS:
            raise ValueError(
                f"{title}.forward takes {parameter} ({parameter.kind.description}), but tools are "
                "called by name: take every argument of `inputs` by its name, or set "
                "skip_forward_signature_validation = True and take **kwargs."
            )
    if parameters.keys() != tool.inputs.keys():
        raise ValueError(
            f"{title}.forward must take exactly the arguments that `inputs` describes: forward "
            f"takes {list(parameters)}, inputs has {list(tool.inputs)}."
        )
    hints = known_hints(tool.forward)
    for name, parameter in parameters.items():
        declared = bool(tool.inputs[name].get("nullable"))
        optional = parameter.default is not inspect.Parameter.empty
        if declared and not optional and not (name in hints and read_nullable(hints[name])):
            raise ValueError(
                f"{title}.inputs[{name!r}] says 'nullable': True, but forward requires a value: "
                f"give {name!r} a default, or a hint such as `str | None`."
            )
        if not declared and (optional or (name in hints and read_nullable(hints[name]))):
            raise ValueError(
                f"{title}.forward has a default or an optional type hint for {name!r}: add "
                f"'nullable': True to {title}.inputs[{name!r}]."
            )
