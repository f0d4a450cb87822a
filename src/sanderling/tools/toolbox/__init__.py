"""Ready-made tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._final_answer import FinalAnswerTool as FinalAnswerTool
    from ._python_interpreter import PythonInterpreterTool as PythonInterpreterTool
    from ._ready import TOOL_MAPPING as TOOL_MAPPING

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "FinalAnswerTool": "._final_answer",
        "PythonInterpreterTool": "._python_interpreter",
        "TOOL_MAPPING": "._ready",
    },
)
