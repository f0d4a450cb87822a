"""Drives interpreters the way a runtime does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sanderling.sandbox import (
    CodeResult,
    Interpreter,
    ToolRequest,
    ToolSpec,
    create_interpreter,
    failure,
)

Tools = Mapping[str, Callable[..., Any]]


def specs(tools: Tools) -> list[ToolSpec]:
    return [ToolSpec.of(name, function, function.__doc__ or "") for name, function in tools.items()]


@contextmanager
def interpreter(
    kind: str = "local", tools: Tools | None = None, **options: Any
) -> Iterator[Interpreter]:
    python = create_interpreter(kind, **options)
    try:
        python.set_tools(specs(tools or {}))
        yield python
    finally:
        python.close()


@asynccontextmanager
async def ainterpreter(
    kind: str = "local", tools: Tools | None = None, **options: Any
) -> AsyncIterator[Interpreter]:
    python = create_interpreter(kind, **options)
    try:
        python.set_tools(specs(tools or {}))
        yield python
    finally:
        await python.aclose()


def answer(python: Interpreter, request: ToolRequest, tools: Tools) -> None:
    try:
        function = request.method or tools[request.name]
        value = function(*request.args, **request.kwargs)
    except Exception as error:
        python.fail(request, *failure(error))
    else:
        python.reply(request, value)


def run(python: Interpreter, code: str, tools: Tools | None = None) -> CodeResult:
    """Runs one step; calls that come together are answered from a pool."""
    execution = python.execute(code)
    with ThreadPoolExecutor(16) as pool:
        while True:
            try:
                event = next(execution)
            except StopIteration as done:
                result: CodeResult = done.value
                return result
            if isinstance(event, ToolRequest):
                if event.alone:
                    answer(python, event, tools or {})
                else:
                    pool.submit(answer, python, event, tools or {})


def value(python: Interpreter, code: str, tools: Tools | None = None) -> Any:
    """Runs one step that must succeed; returns its value."""
    result = run(python, code, tools)
    if result.error is not None:
        raise AssertionError(f"the step failed: {result.error}\n{result.logs}")
    return result.output


def error(python: Interpreter, code: str, tools: Tools | None = None) -> str:
    """Runs one step that must fail; returns what the model reads."""
    result = run(python, code, tools)
    if result.error is None:
        raise AssertionError(f"the step did not fail: {result.output!r}")
    return str(result.error)


async def arun(python: Interpreter, code: str, tools: Tools | None = None) -> CodeResult:
    """Runs one step under asyncio; calls are answered in the loop's thread."""
    result = None
    async for event in python.aexecute(code):
        if isinstance(event, ToolRequest):
            answer(python, event, tools or {})
        elif isinstance(event, CodeResult):
            result = event
    if result is None:
        raise AssertionError("the step ended without a result")
    return result
