"""The executor: code in, output and logs out. For use by itself, and by what plugs one in."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from sanderling.errors import SandboxError

from ._backend import Checked, StartsEarly
from ._interpreter import CodeResult, Interpreter, ToolRequest, ToolSpec
from ._serving import Function, ServingInterpreter
from ._snapshots import NO_SNAPSHOTS, Snapshot, SnapshotInterpreter


class CodeOutput(NamedTuple):
    """What one piece of code came to: its value, what it printed, whether it ended the task."""

    output: object
    logs: str
    is_final_answer: bool


class PythonExecutor(ABC):
    """Runs pieces of code that share their variables.

    An agent takes whatever has these methods as ``executor=``, subclass or not.
    """

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

    def snapshot(self) -> Snapshot:
        """Keeps the variables and files as they are now.

        Raises:
            SandboxError: This executor cannot.
        """
        raise SandboxError(NO_SNAPSHOTS)

    def restore(self, snapshot: Snapshot) -> None:
        """Makes variables and files what they were when `snapshot` made this.

        Raises:
            SandboxError: This executor cannot, or it is not its snapshot.
        """
        raise SandboxError(NO_SNAPSHOTS)

    def fork(self) -> Self:
        """Makes a second executor with the same variables, tools and files, that goes its own way.

        Raises:
            SandboxError: This executor cannot.
        """
        raise SandboxError(NO_SNAPSHOTS)

    def cleanup(self) -> None:  # noqa: B027 - an executor may well hold nothing
        """Frees what the executor holds. May be called again."""


class InterpreterExecutor(PythonExecutor):
    """An interpreter as an executor: all executors of this library are such.

    Nothing is started before the first piece of code.

    Args:
        interpreter: What `create_interpreter` made. It is the executor's from here on.
        additional_functions: Functions that are there beside the tools.
    """

    def __init__(
        self, interpreter: Interpreter, additional_functions: Mapping[str, Function] | None = None
    ) -> None:
        self._interpreter = interpreter
        self._functions = dict(additional_functions or {})
        self.send_tools({})

    def check(self) -> None:
        """Looks for what the sandbox needs, as far as that costs nothing; starts nothing.

        Raises:
            SandboxUnavailable: It is not there.
            MissingExtraError: A package is not installed.
        """
        if isinstance(self._interpreter, Checked):
            self._interpreter.check()

    def start_soon(self) -> None:
        """Starts the sandbox in the background; what goes wrong is raised by the first code."""
        if isinstance(self._interpreter, StartsEarly):
            self._interpreter.start_soon()

    @property
    def layers(self) -> Mapping[str, object]:
        """The walls in force; empty before the first piece of code."""
        return self._interpreter.layers

    def send_tools(self, tools: Mapping[str, Function]) -> None:
        """Makes functions callable by name; ``final_answer`` is the one that ends the task."""
        functions = {**self._functions, **tools}
        self._serving = ServingInterpreter(self._interpreter, functions, members=True)

    def serve(self, specs: Sequence[ToolSpec]) -> Interpreter:
        """Returns the interpreter, for somebody who answers the calls of these tools himself."""
        named = {spec.name for spec in specs}
        own = {name: f for name, f in self._functions.items() if name not in named}
        # The members of host objects are called by who answers the tools, for its policies hold.
        interpreter: Interpreter = self._interpreter
        if own:
            interpreter = ServingInterpreter(interpreter, own, members=False)
        interpreter.set_tools(specs)
        return interpreter

    def send_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables: data is copied, a `HostObject` is referred to."""
        self._interpreter.set_variables(variables)

    def __call__(self, code: str, state: Mapping[str, object] | None = None) -> CodeOutput:
        """Runs code. See `PythonExecutor.__call__`.

        Raises:
            TypeError: `code` is no text.
        """
        if not isinstance(code, str):
            raise TypeError(
                f"an executor runs code given as text, not {type(code).__name__}"
                + ("; decode() it first" if isinstance(code, bytes) else "")
            )
        if state:
            self.send_variables(state)
        result = self._run(code)
        if result.error is not None:
            raise result.error
        return CodeOutput(result.output, result.logs, result.is_final_answer)

    def snapshot(self) -> Snapshot:
        """Keeps the variables and files as they are now. See `SnapshotInterpreter.snapshot`."""
        return self._copyable().snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Makes variables and files what they were. See `SnapshotInterpreter.restore`."""
        self._copyable().restore(snapshot)

    def fork(self) -> Self:
        """Makes a second executor that goes its own way. See `SnapshotInterpreter.fork`."""
        twin = copy.copy(self)
        twin._interpreter = self._copyable().fork()
        twin._serving = self._serving.over(twin._interpreter)
        return twin

    def _copyable(self) -> SnapshotInterpreter:
        if not isinstance(self._interpreter, SnapshotInterpreter):
            raise SandboxError(NO_SNAPSHOTS)
        return self._interpreter

    def _run(self, code: str) -> CodeResult:
        execution = self._serving.execute(code)
        while True:
            try:
                event = next(execution)
            except StopIteration as done:
                result: CodeResult = done.value
                return result
            if isinstance(event, ToolRequest):
                self._interpreter.fail(event, f"there is no tool {event.name!r}")

    def cleanup(self) -> None:
        """Ends the sandbox and removes what it leaves behind. May be called again."""
        self._interpreter.close()

    def delete(self) -> None:
        """Does what `cleanup` does."""
        self.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cleanup()
