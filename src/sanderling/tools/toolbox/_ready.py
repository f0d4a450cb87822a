"""The ready tools by name."""

from __future__ import annotations

from ._python_interpreter import PythonInterpreterTool

TOOL_MAPPING = {PythonInterpreterTool.name: PythonInterpreterTool}
"""What `add_base_tools` adds to an agent that has no such tool yet, by name."""
