from __future__ import annotations

from collections.abc import Callable

import sanderling.tools


def test_every_public_name_is_there() -> None:
    assert dir(sanderling.tools) == [
        "AUTHORIZED_TYPES",
        "BaseTool",
        "DocstringParsingException",
        "FinalAnswerTool",
        "PythonInterpreterTool",
        "Tool",
        "ToolCollection",
        "TypeHintParsingException",
        "as_tool",
        "get_json_schema",
        "get_tool_json_schema",
        "inline_references",
        "tool",
        "validate_tool_arguments",
    ]
    for name in dir(sanderling.tools):
        assert getattr(sanderling.tools, name) is not None


def test_importing_and_using_plain_tools_costs_no_heavy_library(
    run_python: Callable[[str], str],
) -> None:
    out = run_python(
        """
import sys
from sanderling.tools import *
class Note(Tool):
    name = "note"
    description = "Notes."
    inputs = {"text": {"type": "string", "description": "The text."}}
    output_type = "string"
    def forward(self, text: str) -> str:
        return text
Note().call({"text": "a"}), Note().to_json_schema(), FinalAnswerTool().to_code_prompt()
print(sorted({"pydantic", "numpy", "PIL", "openai", "jinja2", "rich"} & set(sys.modules)))
"""
    )
    assert out == "[]\n"
