"""Functions as tools."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

from ._docstring import Docstring, DocstringParsingException, parse_docstring
from ._schema import AUTHORIZED_TYPES, Hint, TypeHintParsingException, hints_of, read_hint
from ._tool import Tool

if TYPE_CHECKING:
    from sanderling.messages import JSONObject, JSONValue

P = ParamSpec("P")
R = TypeVar("R")

_CHOICES = re.compile(r"\s*\(choices:\s*(\[.*\])\s*\)\s*\.?$", re.DOTALL)
_PICKLED = ("name", "description", "inputs", "output_type", "output_schema", "output_description")
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class SimpleTool(Tool, Generic[P, R]):
    """A function as a tool. It can still be called as the function, and has its signature."""

    def __init__(self, function: Callable[P, R]) -> None:
        described = _describe(function)
        self.name = described.name
        self.description = described.docstring.description
        self.inputs = described.inputs
        self.output_type = described.output_type
        self.output_schema = described.output_schema
        self.output_description = described.docstring.returns
        self.forward = function  # type: ignore[method-assign]  # the function is the method
        self.__name__ = described.name
        self.__qualname__ = getattr(function, "__qualname__", described.name)
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # type: ignore[override]  # narrower on purpose
            """Calls the function."""
            ...

    def __repr__(self) -> str:
        return f"<tool {self.name}{self.signature_text}>"

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()  # a function is not copied either

    def __reduce__(self) -> tuple[object, ...]:
        if _function_at(self.__module__, self.__qualname__) is not self.__wrapped__:
            raise TypeError(
                f"the tool {self.name!r} cannot be pickled: its function has to stand at the top "
                "level of a module, under its own name"
            )
        state = {name: value for name, value in vars(self).items() if name in _PICKLED}
        return _tool_at, (self.__module__, self.__qualname__), state


def _function_at(module: str, name: str) -> Any:
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found.__wrapped__ if isinstance(found, SimpleTool) else found


def _tool_at(module: str, name: str) -> SimpleTool[Any, Any]:
    importlib.import_module(module)
    return SimpleTool(_function_at(module, name))


def tool(function: Callable[P, R]) -> SimpleTool[P, R]:
    """Makes a function a tool.

    The name, the type hints and the docstring (Google style, with an ``Args:`` section) are what
    the model is told. An argument with a default, or whose type allows `None`, may be left out.
    ``(choices: ["a", "b"])`` at the end of an argument's description lists the only values allowed.

    Args:
        function: A function, sync or async, or a bound method.

    Returns:
        The tool; calling it calls the function.

    Raises:
        TypeHintParsingException: A type hint is missing or cannot be used.
        DocstringParsingException: The docstring, or the description of an argument, is missing.
        TypeError: It is no function, or a lambda.
    """
    return SimpleTool(function)


def as_tool(obj: Tool | Callable[..., object]) -> Tool:
    """Returns a tool as it is, and a function as a tool.

    Raises:
        TypeHintParsingException: A type hint of the function is missing or cannot be used.
        DocstringParsingException: The function's docstring says too little.
        TypeError: It is neither a tool nor a function.
    """
    if isinstance(obj, Tool):
        return obj
    return tool(obj)


def get_json_schema(func: Callable[..., object]) -> JSONObject:
    """Describes a function by its type hints and docstring, as an OpenAI function entry.

    The ``function`` has one key more than OpenAI reads, ``return``: type and description of the
    result. Arguments that may be left out have ``"nullable": True``.

    Raises:
        TypeHintParsingException: A type hint is missing or cannot be used.
        DocstringParsingException: The docstring, or the description of an argument, is missing.
        TypeError: It is no function, or a lambda.
    """
    described = _describe(func)
    required = [name for name, one in described.inputs.items() if not one.get("nullable")]
    returned = {**described.returns.schema, "description": described.docstring.returns}
    if described.returns.nullable:
        returned["nullable"] = True
    return {
        "type": "function",
        "function": {
            "name": described.name,
            "description": described.docstring.description,
            "parameters": {
                "type": "object",
                "properties": described.inputs,
                "required": typing.cast("list[JSONValue]", required),
            },
            "return": returned,
        },
    }


@dataclass(frozen=True, slots=True)
class _Described:
    name: str
    docstring: Docstring
    inputs: dict[str, dict[str, JSONValue]]
    returns: Hint

    @property
    def output_type(self) -> str:
        kind = self.returns.schema.get("type")
        return kind if isinstance(kind, str) and kind in AUTHORIZED_TYPES else "any"

    @property
    def output_schema(self) -> JSONObject | None:
        # Where JSON's own types are enough, the signature says it all.
        return None if self.returns.adapter is None else self.returns.schema


def _describe(function: Callable[..., object]) -> _Described:
    name = _name(function)
    if not function.__doc__:
        raise DocstringParsingException(
            f"The function {name} has no docstring. Write one: what the tool does, and for each "
            "argument a line `name: description` under `Args:`. "
            "(If a decorator hides it, let the decorator use functools.wraps.)"
        )
    docstring = parse_docstring(function.__doc__)
    if not docstring.description:
        raise DocstringParsingException(
            f"The docstring of {name} does not say what the tool does. Start it with a sentence."
        )
    hints = hints_of(function)
    if "return" not in hints:
        raise TypeHintParsingException(
            f"The function {name} has no return type hint. Write `-> str`, or what it returns "
            "(`-> None` if nothing)."
        )
    inputs = {
        parameter.name: _input(name, parameter, hints, docstring)
        for parameter in inspect.signature(function).parameters.values()
    }
    return _Described(name, docstring, inputs, read_hint(hints["return"]))


def _name(function: object) -> str:
    if isinstance(function, type):
        raise TypeError(
            f"{function.__name__} is a class. Give an instance of it if it is a Tool: "
            f"{function.__name__}(...)."
        )
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise TypeError(
            f"An object of type {type(function).__name__} cannot become a tool. Give a Tool, or a "
            "function with type hints and a docstring: write `def name(...) -> ...:` that calls it."
        )
    if function.__name__ == "<lambda>":
        raise TypeError(
            "A lambda cannot become a tool: it has no name, no type hints and no docstring. "
            "Write it as a `def`."
        )
    return function.__name__


def _input(
    name: str, parameter: inspect.Parameter, hints: dict[str, object], docstring: Docstring
) -> dict[str, JSONValue]:
    if parameter.kind in _VARIADIC:
        raise TypeHintParsingException(
            f"The function {name} takes {parameter}; a model must be told every argument by name. "
            "Name them, or take one list or dict."
        )
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise TypeHintParsingException(
            f"The function {name} takes {parameter.name!r} by position only, but tools are called "
            "by name. Remove the '/' from its signature."
        )
    if parameter.name not in hints:
        raise TypeHintParsingException(
            f"The argument {parameter.name!r} of {name} has no type hint. "
            f"Write `{parameter.name}: str`, or what it is." + _method_hint(parameter)
        )
    description = docstring.args.get(parameter.name)
    if not description:
        raise DocstringParsingException(
            f"The docstring of {name} has no description of the argument {parameter.name!r}. "
            f"Add a line `{parameter.name}: what it is` under `Args:`."
        )
    hint = read_hint(hints[parameter.name])
    schema: dict[str, JSONValue] = dict(hint.schema)
    if choices := _CHOICES.search(description):
        description = description[: choices.start()]
        schema["enum"] = _listed(name, parameter.name, choices[1])
    schema["description"] = description
    if hint.nullable or parameter.default is not inspect.Parameter.empty:
        schema["nullable"] = True
    return schema


def _method_hint(parameter: inspect.Parameter) -> str:
    if parameter.name != "self":
        return ""
    return " To make a method a tool, use the bound one: `tool(instance.method)`."


def _listed(name: str, argument: str, text: str) -> list[JSONValue]:
    try:
        choices: list[JSONValue] = json.loads(text)
    except json.JSONDecodeError as error:
        raise DocstringParsingException(
            f"The choices of the argument {argument!r} of {name} are no JSON list: {text}. "
            'Write them as (choices: ["a", "b"]).'
        ) from error
    return choices
