"""How a step ended, as a `CodeResult`: in words for the model, the same for every kind of place."""

from __future__ import annotations

from dataclasses import dataclass

from sanderling.errors import (
    InterpreterError,
    SandboxCrashed,
    SandboxError,
    SandboxLimitExceeded,
    SandboxTimeout,
)

from . import kernel
from ._interpreter import CodeResult
from ._limits import LESS_TIME, Excess
from ._texts import text_of


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
        output: The value of its last statement.
        text: What ``str()`` says of it.
        error: What it raised.
        interrupted: Whether an interrupt reached the code.
        threads: How many threads of the code still run.
        imported: Which of `kernel.PRELOADABLE` it was the first to load.
    """

    output: object
    text: str
    error: Fault | None
    interrupted: bool
    threads: int
    imported: frozenset[str] = frozenset()


@dataclass(slots=True)
class StepLimits:
    """What a step was told, for the words about its end.

    Attributes:
        seconds: How long it might run.
        excess: What it did that it may not.
    """

    seconds: float | None
    excess: Excess | None = None

    def is_overdue(self) -> None:
        """Takes note that the time is over."""
        self.excess = self.excess or Excess(f"exceeded {self.seconds:g} s", LESS_TIME)

    def result(self, finished: Finished, logs: str) -> CodeResult:
        """Returns the result of a step without a final answer."""
        told = "" if finished.error is None else finished.error.traceback
        error: SandboxError | None = None
        if self.excess is not None:
            stopped = " and was stopped" if finished.interrupted else ""
            what = f"The step {self.excess.did}{stopped}. Variables keep what they had then, and "
            text = f"{what}files stay. {self.excess.advice}\n{told}".rstrip()
            error = _over_limit(self.excess, text, logs)
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
        if self.excess is None:
            return SandboxCrashed(f"The step was interrupted and did not stop. {gone}")
        how = "was killed" if self.excess.final else "did not stop"
        text = f"The step {self.excess.did} and {how}. {gone} {self.excess.advice}"
        return _over_limit(self.excess, text)


def _over_limit(excess: Excess, text: str, logs: str = "") -> SandboxError:
    kind = SandboxTimeout if excess.advice == LESS_TIME else SandboxLimitExceeded
    return kind(text, logs)


def final_result(
    answer: object, logs: str, threads: int = 0, text: str | None = None
) -> CodeResult:
    """Returns the result of a step that gave the final answer, however it ended then.

    Args:
        answer: The answer.
        logs: What the code printed.
        threads: How many threads of the code still run.
        text: What the sandbox says of the answer; None where the host has made it.
    """
    text = kernel.show(text_of(answer)) if text is None else text
    return CodeResult(answer, text, logs, is_final_answer=True, threads=threads)
