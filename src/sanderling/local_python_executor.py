"""The import path of smolagents for running code; see `sanderling.sandbox`."""

from .errors import InterpreterError
from .sandbox import (
    BASE_BUILTIN_MODULES,
    CodeOutput,
    LocalPythonExecutor,
    LocalPythonInterpreter,
    PythonExecutor,
    fix_final_answer_code,
)

__all__ = [
    "BASE_BUILTIN_MODULES",
    "CodeOutput",
    "InterpreterError",
    "LocalPythonExecutor",
    "LocalPythonInterpreter",
    "PythonExecutor",
    "fix_final_answer_code",
]
