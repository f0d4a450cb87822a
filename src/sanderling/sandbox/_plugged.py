"""Executors that somebody else wrote, as the runtime drives them."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from sanderling._bridge import in_thread
from sanderling._show import text_of
from sanderling.errors import InterpreterError, MissingExtraError, SandboxError, SandboxUnavailable

from . import kernel
from ._executor import InterpreterExecutor
from ._interpreter import CodeResult, Interpreter, Printed, ToolRequest, ToolSpec

if TYPE_CHECKING:
    from ._work_files import WorkFiles

_PLUMBING = (SandboxUnavailable, MissingExtraError)  # nothing that other code would mend


def interpreter_of(
    executor: Callable[..., object],
    specs: Sequence[ToolSpec],
    tools: Mapping[str, Callable[..., object]],
) -> Interpreter:
    """Returns what drives an executor, with these tools.

    Args:
        executor: A `PythonExecutor`, or what is called like one.
        specs: The tools, for an executor of this library: their calls come out as requests.
        tools: The tools themselves, which any other executor calls where it runs.

    Raises:
        TypeError: The executor cannot be called.
    """
    if isinstance(executor, InterpreterExecutor):
        executor.send_tools(tools)  # for whoever calls it by hand
        return executor.serve(specs)
    if not callable(executor):
        raise TypeError(f"an executor is called with code; {type(executor).__name__} cannot be")
    send = getattr(executor, "send_tools", None)
    if send is not None:
        send(dict(tools))
    return PluggedInterpreter(executor)


class PluggedInterpreter:
    """Runs code with somebody's executor. `Interpreter` says what the methods promise.

    The code is beyond our reach while it runs: it cannot be interrupted, and what it prints comes
    with the result.

    Args:
        executor: Takes code, or code and a dict of variables where it has a second parameter
            without default; returns a `CodeOutput`, or a tuple of its two or three values.
    """

    def __init__(self, executor: Callable[..., object]) -> None:
        self._executor = executor
        self._takes_state = _takes_state(executor)
        self._state: dict[str, object] = {}

    @property
    def layers(self) -> Mapping[str, object]:
        """Nothing is known of its walls."""
        return MappingProxyType({})

    @property
    def work_files(self) -> WorkFiles:
        """Nothing is known of its files."""
        raise SandboxError(
            f"A {type(self._executor).__name__} has no work folder that is known, so that files= "
            "and keep_files= do not go with it: use executor_type=, or LocalPythonExecutor."
        )

    def open(self) -> None:
        """Does nothing: the executor starts when it likes."""

    async def aopen(self) -> None:
        """Does nothing."""

    def set_tools(self, specs: Sequence[ToolSpec]) -> None:
        """Does nothing: the executor was given the tools themselves."""

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sends variables to the executor."""
        self._state.update(variables)
        send = getattr(self._executor, "send_variables", None)
        if send is not None:
            send(dict(variables))

    def execute(self, code: str) -> Generator[ToolRequest | Printed, None, CodeResult]:
        """Runs one step in the calling thread."""
        result = self._run(code)
        if result.logs:
            yield Printed(result.logs)
        return result

    async def aexecute(self, code: str) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
        """Runs one step in a worker thread."""
        result = await in_thread(lambda: self._run(code))
        if result.logs:
            yield Printed(result.logs)
        yield result

    def _run(self, code: str) -> CodeResult:
        try:
            said = self._executor(code, *([self._state] if self._takes_state else []))
        except _PLUMBING:
            raise
        except SandboxError as error:
            return CodeResult(logs=error.logs or self._printed(), error=error)
        except (Exception, SystemExit) as error:
            logs = self._printed()
            told = text_of(error) or type(error).__name__
            return CodeResult(logs=logs, error=InterpreterError(told, logs))
        return _read(self._executor, said)

    def _printed(self) -> str:
        """Returns what was printed before an error, where the executor keeps it as others do."""
        state = getattr(self._executor, "state", None)
        return str(state.get("_print_outputs", "")) if isinstance(state, dict) else ""

    def reply(self, request: ToolRequest, value: object) -> None:
        """Is never needed: the executor calls the tools itself."""

    def fail(self, request: ToolRequest, error: str, kind: str = "") -> None:
        """Is never needed."""

    def interrupt(self) -> None:
        """Asks the executor, where it has a way."""
        ask = getattr(self._executor, "interrupt", None)
        if ask is not None:
            ask()

    def close(self) -> None:
        """Has the executor free what it holds."""
        cleanup = getattr(self._executor, "cleanup", None)
        if cleanup is not None:
            cleanup()

    async def aclose(self) -> None:
        """Does the same under asyncio."""
        await in_thread(self.close)


def _takes_state(executor: Callable[..., object]) -> bool:
    try:
        inspect.signature(executor).bind("code")
    except ValueError:  # it is written in C, and tells nothing about itself
        return False
    except TypeError:
        return True
    return False


def _read(executor: object, said: object) -> CodeResult:
    output: object
    if hasattr(said, "output") and hasattr(said, "logs"):
        output, logs = said.output, said.logs
        final = getattr(said, "is_final_answer", False)
    elif isinstance(said, tuple) and len(said) in (2, 3):
        output, logs, final = (*said, False)[:3]
    else:
        raise TypeError(
            f"{type(executor).__name__} returned {type(said).__name__}; an executor returns "
            "CodeOutput(output, logs, is_final_answer)"
        )
    return CodeResult(output, kernel.show(output), str(logs or ""), is_final_answer=bool(final))
