"""Describes to a model the variables that its code can use."""

from __future__ import annotations

from . import kernel
from ._host_values import HostObject, is_code, safe_signature
from ._interpreter import ToolSpec
from ._texts import HostEncoder, data_repr, safe_repr

_MAX_TEXT = 1_000  # characters of one value


def describe_variable(name: str, value: object) -> tuple[str, str]:
    """Describes a variable that code can use.

    Args:
        name: How the code calls it.
        value: Its value.

    Returns:
        A text of a line or more, and what the user is to be warned of, which may be nothing.
    """
    text, warning = _shown(name, value)
    if len(text) > _MAX_TEXT:
        text = f"{text[:_MAX_TEXT]}… ({len(text)} characters in all)"
    more = "\n" if "\n" in text else " "  # the columns of a table begin below each other
    return f"{name} ({type(value).__name__}):{more}{text}", warning


def _shown(name: str, value: object) -> tuple[str, str]:
    kind = type(value).__name__
    if isinstance(value, HostObject | type):
        return safe_repr(value), ""
    if is_code(value):
        return f"<function {_signature(value)}>", ""
    objects = _Objects()
    try:
        encoder = HostEncoder(objects, objects.stay)
        kernel.pack("set", {"v": encoder.value({name: value}, 0)}, encoder.blobs)
    except kernel.CodecError as error:
        why = f"{name} cannot enter the sandbox, so code cannot use it, but give it to tools"
        return (
            f"<{kind} object of the host ({error.problem}): only tools can use it>",
            f"{why}: {error.problem}",
        )
    if objects.found is value:
        how = f"to let code call its methods, the user gives HostObject({name}, methods=[...])"
        return f"<{kind} object of the host: only tools can use it; {how}>", ""
    return (safe_repr(value) if objects.are_there else data_repr(value)), ""


def _signature(function: object) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    shown = name if name.isidentifier() else "f"
    signature = ToolSpec.of(shown, safe_signature(function)).signature  # type: ignore[arg-type]  # it can be called
    return f"{name}{signature}"


class _Objects(kernel.Extension):
    """Finds what stays on the host."""

    found: object = None
    are_there = False

    def write(self, encoder: kernel.Encoder, value: object) -> object:
        self.found = value
        return self.stay(value)

    def stay(self, value: object) -> object:
        self.are_there = True
        return {"$": "host", "id": ""}
