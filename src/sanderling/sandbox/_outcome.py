"""How a step ended, as a `CodeResult`: in words for the model, the same for every kind of place."""

from __future__ import annotations

from dataclasses import dataclass

from sanderling.errors import InterpreterError, SandboxCrashed, SandboxError, SandboxTimeout

from . import kernel
from ._interpreter import CodeResult


@dataclass(frozen=True, slots=True)
class Fault:
    """What the code raised: the class, its message, and the traceback that ends in it."""

    type: str
    message: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A step ended by itself.

    Attributes:
        output: The value of its last expression.
        text: What ``str()`` says of it.
        error: What it raised.
        interrupted: Whether an interrupt reached the code.
        threads: How many threads of the code still run.
    """

    output: object
    text: str
    error: Fault | None
    interrupted: bool
    threads: int


@dataclass(slots=True)
class StepLimits:
    """What a step was told, for the words about its end.

    Attributes:
        seconds: How long it might run.
        overdue: Whether it ran longer.
    """

    seconds: float | None
    overdue: bool = False

    def result(self, finished: Finished, logs: str) -> CodeResult:
        """Returns the result of a step without a final answer."""
        told = "" if finished.error is None else finished.error.traceback
        error: SandboxError | None = None
        if finished.interrupted and self.overdue:
            error = SandboxTimeout(
                f"The step exceeded {self.seconds:g} s and was stopped. Variables keep what they "
                f"had then. Do it in smaller steps, or faster.\n{told}".rstrip(),
                logs,
            )
        elif finished.interrupted:
            error = InterpreterError(f"The step was interrupted.\n{told}".rstrip(), logs)
        elif finished.error is not None:
            error = InterpreterError(told, logs)
        if error is not None:
            return CodeResult(logs=logs, error=error, threads=finished.threads)
        return CodeResult(finished.output, finished.text, logs, threads=finished.threads)

    def unstoppable(self, gone: str) -> SandboxError:
        """Returns the error of a step that went on after its interrupt.

        Args:
            gone: What became of the interpreter.
        """
        if self.overdue:
            return SandboxTimeout(f"The step exceeded {self.seconds:g} s and did not stop. {gone}")
        return SandboxCrashed(f"The step was interrupted and did not stop. {gone}")


def final_result(answer: object, logs: str, threads: int = 0) -> CodeResult:
    """Returns the result of a step that gave the final answer, however it ended then."""
    return CodeResult(answer, kernel.show(answer), logs, is_final_answer=True, threads=threads)
