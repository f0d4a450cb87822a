"""Calls of tools that the thread of the code carries out itself, under asyncio."""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TYPE_CHECKING

from sanderling.sandbox import CallElsewhere, InlineInterpreter

from ._children import ChildRunTool
from ._context import tool_failure

if TYPE_CHECKING:
    from sanderling.loop import ExecuteCode
    from sanderling.sandbox import CodeResult, Interpreter, Printed, ToolRequest

    from ._context import RunContext


def execution_of(
    effect: ExecuteCode, interpreter: Interpreter, context: RunContext
) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
    """Starts to run code: in this process, and under no policies, with the calls it makes."""
    if isinstance(interpreter, InlineInterpreter) and not context.all_policies:
        return interpreter.aexecute_inline(effect.code, _InlineCalls(context))
    return interpreter.aexecute(effect.code)


class _InlineCalls:
    """Chooses the calls of sync tools, which would be carried out in a worker thread anyway.

    Args:
        context: What to use, with the context variables of this moment.
    """

    def __init__(self, context: RunContext) -> None:
        self._run = context
        self._context = contextvars.copy_context()

    def __call__(self, request: ToolRequest) -> Callable[[], object] | None:
        tool = self._run.tools.get(request.name)
        if tool is None or request.method is not None or self._run.scope.cancelled:
            return None
        if tool.is_async or tool.thread_bound or isinstance(tool, ChildRunTool):
            return None
        return partial(self._context.copy().run, self._call, request)

    def _call(self, request: ToolRequest) -> object:
        tool, arguments = self._run.find_tool(self._run.call_of(request))
        try:
            result = tool.begin(arguments)
        except BaseException as error:  # nothing but the tool raises in this thread
            raise tool_failure(request.name, error) from error
        if inspect.isawaitable(result):
            raise CallElsewhere(lambda: result)
        return result
