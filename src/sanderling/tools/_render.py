"""How tools are written down for a model: as a Python stub, and as a line of a list."""

from __future__ import annotations

import inspect
import json
import textwrap
import types
import typing
from typing import Annotated, Literal, Union, get_args, get_origin

from sanderling import sandbox

if typing.TYPE_CHECKING:
    from sanderling.messages import JSONObject

    from ._tool import Tool


class _Verbatim:
    """Stands for an annotation or a default; `inspect.Signature` writes it as it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def signature_text(signature: inspect.Signature) -> str:
    """Writes a signature as Python that parses: ``(city: str, days: int = 3) -> str``.

    A default that has no literal form is written as ``...``.
    """
    empty, text = inspect.Parameter.empty, sandbox.literal_text
    parameters = [
        parameter.replace(
            annotation=_Verbatim(type_text(parameter.annotation)),
            default=empty if parameter.default is empty else _Verbatim(text(parameter.default)),
        )
        for parameter in signature.parameters.values()
    ]
    returns = signature.return_annotation
    return str(
        signature.replace(
            parameters=parameters,
            return_annotation=empty if returns is empty else _Verbatim(type_text(returns)),
        )
    )


def type_text(hint: object) -> str:
    """Writes a type hint without module names: ``list[Config] | None``."""
    if hint is None or hint is types.NoneType:
        return "None"
    if hint is ...:
        return "..."
    if isinstance(hint, list):
        return f"[{', '.join(map(type_text, hint))}]"
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is None:
        name = getattr(hint, "__name__", "Any")
        return name if isinstance(name, str) and name.isidentifier() else "Any"
    if origin is Annotated:
        return type_text(arguments[0])
    if origin in (Union, types.UnionType):
        return " | ".join(map(type_text, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(sandbox.literal_text, arguments))}]"
    return f"{type_text(origin)}[{', '.join(map(type_text, arguments))}]"


def code_prompt(tool: Tool) -> str:
    """Writes a tool as a Python function without a body."""
    sections = [tool.description.strip()]
    if tool.inputs:
        entries = [_entry(name, str(one.get("description", ""))) for name, one in _ordered(tool)]
        sections.append("\n".join(["Args:", *entries]))
    returns = [tool.output_description] if tool.output_description else []
    if tool.output_schema is not None:
        returns.append(f"a value of this JSON schema: {json.dumps(tool.output_schema)}")
    if returns:
        sections.append(f"Returns:\n{textwrap.indent(_one_line('; '.join(returns)), '    ')}")
    text = "\n\n".join(sections).replace("\\", "\\\\").replace('"""', r"\"\"\"")
    text = text.replace("\0", r"\0")
    closing = '\n"""' if "\n" in text or text.endswith('"') else '"""'
    body = textwrap.indent(f'"""{text}{closing}', "    ")
    return f"def {tool.name}{signature_text(tool.signature)}:\n{body}"


def tool_calling_prompt(tool: Tool) -> str:
    """Writes a tool as a name, what it does, its inputs and its output."""
    return (
        f"{tool.name}: {tool.description.strip()}\n"
        f"    inputs: {json.dumps(tool.inputs, ensure_ascii=False, default=str)}\n"
        f"    output: {tool.output_type}"
    )


def _ordered(tool: Tool) -> list[tuple[str, JSONObject]]:
    return [(name, tool.inputs[name]) for name in tool.signature.parameters]


def _entry(name: str, description: str) -> str:
    return f"    {name}: {_one_line(description)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
