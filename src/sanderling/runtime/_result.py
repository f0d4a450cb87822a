"""What a run comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from sanderling.memory import json_form

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from sanderling.loop import RunStatus
    from sanderling.messages import JSONObject, Timing, TokenUsage
    from sanderling.sandbox import WorkFile

    from ._run import Run

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunResult(Generic[T]):
    """What a run came to; with an ``output_type``, its `output` is of that type.

    Attributes:
        output: The answer.
        state: ``"success"``, or ``"max_steps_error"`` where the answer was forced at the limit; in
            the `AgentStoppedError` of a run that was ended from outside ``"interrupted"``,
            ``"limit_error"`` or ``"stopped"``.
        steps: The steps in memory, in their JSON form.
        token_usage: The sum over all replies of the model; `None` where none told its usage.
        timing: Start and end of the run, in seconds since the epoch.
        files: What its code has written; each can be read as long as the sandbox lives.
        run: The run itself, with its memory and session. Pickles and copies of the result are
            without it.
    """

    output: T
    state: RunStatus
    steps: list[JSONObject]
    token_usage: TokenUsage | None
    timing: Timing
    files: tuple[WorkFile, ...] = ()
    run: Run | None = field(default=None, repr=False, compare=False)

    def dict(self) -> JSONObject:
        """Returns the JSON form; an output that has none is shown by its repr."""
        return {
            "output": json_form(self.output),
            "state": self.state,
            "steps": self.steps,
            "token_usage": None if self.token_usage is None else self.token_usage.dict(),
            "timing": self.timing.dict(),
            "files": [file.dict() for file in self.files],
        }

    def __reduce__(self) -> tuple[Any, ...]:
        plain = (self.output, self.state, self.steps, self.token_usage, self.timing, self.files)
        return type(self), plain
