"""What agents can do: `Tool`, `@tool`, their schemas, and ready-made tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._collection import ToolCollection as ToolCollection
    from ._decorator import as_tool as as_tool
    from ._decorator import get_json_schema as get_json_schema
    from ._decorator import tool as tool
    from ._docstring import DocstringParsingException as DocstringParsingException
    from ._schema import AUTHORIZED_TYPES as AUTHORIZED_TYPES
    from ._schema import TypeHintParsingException as TypeHintParsingException
    from ._schema import inline_references as inline_references
    from ._tool import BaseTool as BaseTool
    from ._tool import Tool as Tool
    from ._tool import get_tool_json_schema as get_tool_json_schema
    from ._tool import validate_tool_arguments as validate_tool_arguments
    from .toolbox import FinalAnswerTool as FinalAnswerTool
    from .toolbox import PythonInterpreterTool as PythonInterpreterTool

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "AUTHORIZED_TYPES": "._schema",
        "BaseTool": "._tool",
        "DocstringParsingException": "._docstring",
        "FinalAnswerTool": ".toolbox._final_answer",
        "PythonInterpreterTool": ".toolbox._python_interpreter",
        "Tool": "._tool",
        "ToolCollection": "._collection",
        "TypeHintParsingException": "._schema",
        "as_tool": "._decorator",
        "get_json_schema": "._decorator",
        "get_tool_json_schema": "._tool",
        "inline_references": "._schema",
        "tool": "._decorator",
        "validate_tool_arguments": "._tool",
    },
)
