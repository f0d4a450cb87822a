"""What programs written for smolagents 1.4 import from its ``local_python_executor``."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._executors import LocalPythonExecutor

if TYPE_CHECKING:
    from ._serving import Function

_TOOL = "final_answer"
_VARIABLE = "final_answer_variable"


class LocalPythonInterpreter(LocalPythonExecutor):
    """The old name of `LocalPythonExecutor`, which is given the tools at once.

    Args:
        additional_authorized_imports: What may be imported beside `BASE_BUILTIN_MODULES`.
        tools: What the code can call, by name.
        max_print_outputs_length: Characters that a piece of code may print.
        **settings: Further settings of `LocalPythonExecutor`.
    """

    def __init__(
        self,
        additional_authorized_imports: Sequence[str],
        tools: Mapping[str, Function],
        max_print_outputs_length: int | None = None,
        **settings: Any,
    ) -> None:
        warnings.warn(
            "LocalPythonInterpreter is deprecated: use LocalPythonExecutor, and its send_tools",
            DeprecationWarning,
            stacklevel=2,
        )
        super().__init__(additional_authorized_imports, max_print_outputs_length, **settings)
        self.send_tools(tools)


def fix_final_answer_code(code: str) -> str:
    """Renames a variable that hides the tool ``final_answer``; calls of the tool stay.

    Code without such a variable comes back as it is, and so does what is no Python. Otherwise the
    comments get lost. (Agents need not call this: what runs their code does the same.)
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == _TOOL]
    if all(isinstance(name.ctx, ast.Load) for name in names):
        return code
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for name in names:
        if id(name) not in called:
            name.id = _VARIABLE
    return ast.unparse(tree)
