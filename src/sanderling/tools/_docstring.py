"""Reads what a docstring in the Google style says about a function.

The format: https://google.github.io/styleguide/pyguide.html#383-functions-and-methods
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_HEADER = re.compile(r"(Args|Arguments|Parameters|Returns?|Yields?|Raises):\s*(.*)")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\)\s*)?:\s*(.*)")
_SECTION = {
    "Args": "args",
    "Arguments": "args",
    "Parameters": "args",
    "Return": "returns",
    "Returns": "returns",
}


class DocstringParsingException(ValueError):  # noqa: N818 - the name smolagents gave it
    """A docstring does not say what a tool must say about itself."""


@dataclass(frozen=True, slots=True)
class Docstring:
    """The parts of a docstring that a tool needs.

    Attributes:
        description: All text outside the sections that are read here.
        args: What is said about each argument, on one line each.
        returns: What is said about the result, on one line.
    """

    description: str
    args: dict[str, str] = field(default_factory=dict)
    returns: str = ""


def parse_docstring(text: str) -> Docstring:
    """Takes a docstring apart.

    A section ends at the next header, or at a line that is not indented deeper than its own header.
    Within ``Args:`` an entry is ``name: text`` or ``name (type): text``; lines indented deeper
    continue it.

    Args:
        text: The docstring as it stands in the source.
    """
    description: list[str] = []
    returns: list[str] = []
    args: dict[str, list[str]] = {}
    section = "description"
    section_indent = 0
    entry_indent: int | None = None
    entry: list[str] | None = None
    for line in inspect.cleandoc(text).splitlines():
        words = line.strip()
        indent = len(line) - len(line.lstrip())
        inside = section != "description" and (not words or indent > section_indent)
        if not inside and (header := _HEADER.fullmatch(words)) and _opens(header):
            section = _SECTION.get(header[1], "ignored")
            section_indent, entry_indent, entry = indent, None, None
            if section == "returns":
                returns.append(header[2])
        elif not inside:
            section = "description"
            description.append(line)
        elif section == "returns":
            returns.append(words)
        elif section == "args" and words:
            if entry_indent is None:
                entry_indent = indent
            found = _ENTRY.fullmatch(words) if indent <= entry_indent else None
            if found:
                entry = args[found[1]] = [found[2]]
            elif entry is not None:
                entry.append(words)
    return Docstring(
        "\n".join(description).strip(),
        {name: " ".join(filter(None, lines)) for name, lines in args.items()},
        " ".join(filter(None, returns)),
    )


def _opens(header: re.Match[str]) -> bool:
    # Only "Returns:" may be followed by its text: "Args: of a debate" is prose.
    return not header[2] or _SECTION.get(header[1]) == "returns"
