"""The tool that runs Python, for agents that call tools as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from sanderling.tools._tool import Tool


class PythonInterpreterTool(Tool):
    """Runs a piece of Python in a sandbox of its own, which ends with the call.

    Args:
        authorized_imports: Modules that the code may import, beside those of the standard library
            that are always allowed.
        timeout_seconds: How long a call may run; None for no limit.
        executor_type: Where: see `CodeAgent`.
    """

    name = "python_interpreter"
    inputs = {"code": {"type": "string", "description": "The code. Print what shall be seen."}}
    output_type = "string"

    def __init__(
        self,
        authorized_imports: Sequence[str] | None = None,
        timeout_seconds: float | None = 30,
        executor_type: str = "local",
    ) -> None:
        from sanderling.sandbox import BASE_BUILTIN_MODULES

        self.authorized_imports = sorted({*BASE_BUILTIN_MODULES, *(authorized_imports or ())})
        self.timeout_seconds = timeout_seconds
        self.executor_type = executor_type
        self.description = (
            "Runs Python code, and returns what it printed and the value of its last line. Each "
            "call starts afresh, without the variables of the calls before. The code can import: "
            f"{', '.join(self.authorized_imports)}."
        )

    def forward(self, code: str) -> str:
        """Runs the code.

        Raises:
            SandboxError: The code failed.
        """
        from contextlib import closing

        from sanderling.sandbox import create_interpreter

        with closing(
            create_interpreter(
                self.executor_type,
                additional_authorized_imports=self.authorized_imports,
                timeout_seconds=self.timeout_seconds,
            )
        ) as interpreter:
            execution = interpreter.execute(code)
            while True:
                try:
                    next(execution)
                except StopIteration as done:
                    result = done.value
                    break
        if result.error is not None:
            raise result.error
        return f"Stdout:\n{result.logs.rstrip()}\nOutput: {result.text}"
