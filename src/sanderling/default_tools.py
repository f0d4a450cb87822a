"""The import path of smolagents for ready tools; see `sanderling.tools.toolbox`."""

from .tools.toolbox import TOOL_MAPPING, FinalAnswerTool, PythonInterpreterTool

__all__ = ["TOOL_MAPPING", "FinalAnswerTool", "PythonInterpreterTool"]
