"""The executor: code in, output and logs out. For use by itself, and by what plugs one in."""

from __future__ import annotations

import contextvars
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from types import TracebackType
from typing import Any, NamedTuple, Self

from ._create import create_interpreter
from ._interpreter import CodeResult, ToolRequest, ToolSpec


class CodeOutput(NamedTuple):
    """What one piece of code came to: its value, what it printed, whether it ended the task."""

    output: object
    logs: str
    is_final_answer: bool


class PythonExecutor(ABC):
    """Runs pieces of code that share their variables."""

    @abstractmethod
    def send_tools(self, tools: Mapping[str, Callable[..., object]]) -> None:
        """Makes functions callable by name, in the place of those before."""

    @abstractmethod
    def send_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables."""

    @abstractmethod
    def __call__(self, code: str, state: Mapping[str, object] | None = None) -> CodeOutput:
        """Runs code.

        Args:
            code: Python.
            state: Variables to be set before.

        Raises:
            SandboxError: The code failed; ``logs`` of the error has what it printed. The subclass
                tells how: `InterpreterError`, `SandboxTimeout`, `SandboxCrashed`.
        """

    def cleanup(self) -> None:  # noqa: B027 - an executor may well hold nothing
        """Frees what the executor holds. May be called again."""


class LocalPythonExecutor(PythonExecutor):
    """Runs code in a locked process of this machine; functions are called back in this one.

    ::

        with LocalPythonExecutor(["numpy"]) as python:
            python("import numpy").output
            python("numpy.arange(3).sum()").output

    Args:
        additional_authorized_imports: What may be imported beside `BASE_BUILTIN_MODULES`.
        max_print_outputs_length: Characters that a piece of code may print; 50,000 by default.
        additional_functions: Functions that are there beside the tools.
        timeout_seconds: How long a piece of code may run; None for no limit.
        **executor_kwargs: Settings of the sandbox, such as ``memory_bytes``.
    """

    def __init__(
        self,
        additional_authorized_imports: Sequence[str] = (),
        max_print_outputs_length: int | None = None,
        additional_functions: Mapping[str, Callable[..., object]] | None = None,
        timeout_seconds: float | None = 30,
        **executor_kwargs: Any,
    ) -> None:
        self._functions = dict(additional_functions or {})
        self._callables: dict[str, Callable[..., object]] = {}
        self._interpreter = create_interpreter(
            "local",
            additional_authorized_imports=additional_authorized_imports,
            timeout_seconds=timeout_seconds,
            max_print_outputs_length=max_print_outputs_length,
            **executor_kwargs,
        )
        self.send_tools({})

    def send_tools(self, tools: Mapping[str, Callable[..., object]]) -> None:
        """Makes functions callable by name; ``final_answer`` is the one that ends the task."""
        self._callables = {**self._functions, **tools}
        self._interpreter.set_tools(
            [
                ToolSpec.of(name, function, inspect.getdoc(function) or "")
                for name, function in self._callables.items()
            ]
        )

    def send_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables.

        Raises:
            CodecError: A value cannot enter the sandbox.
        """
        self._interpreter.set_variables(variables)

    def __call__(self, code: str, state: Mapping[str, object] | None = None) -> CodeOutput:
        """Runs code. See `PythonExecutor.__call__`."""
        if state:
            self.send_variables(state)
        result = self._run(code)
        if result.error is not None:
            raise result.error
        return CodeOutput(result.output, result.logs, result.is_final_answer)

    def _run(self, code: str) -> CodeResult:
        pool: ThreadPoolExecutor | None = None
        answers: list[Future[None]] = []
        execution = self._interpreter.execute(code)
        try:
            with closing(execution):
                while True:
                    event = next(execution)
                    if not isinstance(event, ToolRequest):
                        continue
                    if event.alone:
                        self._answer(event)
                        continue
                    pool = pool or ThreadPoolExecutor()
                    context = contextvars.copy_context()
                    answers.append(pool.submit(context.run, self._answer, event))
        except StopIteration as done:
            result: CodeResult = done.value
            return result
        finally:
            if pool is not None:
                pool.shutdown()
            for answer in answers:
                answer.result()

    def _answer(self, request: ToolRequest) -> None:
        function = self._callables.get(request.name)
        if function is None:
            self._interpreter.fail(request, f"there is no tool {request.name!r}")
            return
        try:
            value = function(*request.args, **request.kwargs)
        except Exception as error:
            self._interpreter.fail(request, f"{type(error).__name__}: {error}")
        else:
            self._interpreter.reply(request, value)

    def cleanup(self) -> None:
        """Ends the process and removes its work folder. May be called again."""
        self._interpreter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cleanup()
