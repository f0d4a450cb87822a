"""The names that fields of steps had in smolagents 1.4: as arguments, and as attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sanderling.messages import Timing

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage


class _Renamed:
    """A field under its old name."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __get__(self, step: object, owner: type) -> Any:
        # Asked of the class, it is the default of the argument.
        return None if step is None else getattr(step, self._field)

    def __set__(self, step: object, value: object) -> None:
        setattr(step, self._field, value)


class _TimeOf:
    """A part of ``step.timing`` by itself."""

    def __init__(self, part: str) -> None:
        self._part = part

    def __get__(self, step: Any, owner: type) -> float | None:
        timing = None if step is None else step.timing
        return None if timing is None else getattr(timing, self._part)

    def __set__(self, step: Any, value: float) -> None:
        start = end = None
        if step.timing is not None:
            start, end = step.timing.start_time, step.timing.end_time
        match self._part:
            case "start_time":
                start = value
            case "end_time":
                end = value
            case "duration":
                start = start or 0.0
                end = start + value
        step.timing = Timing(value if start is None else start, end)


AGENT_MEMORY: Any = _Renamed("model_input_messages")
LLM_OUTPUT: Any = _Renamed("model_output")
START_TIME: Any = _TimeOf("start_time")
END_TIME: Any = _TimeOf("end_time")
DURATION: Any = _TimeOf("duration")


class OldNames:
    """Tells type checkers what the old names are as attributes; there is nothing here to run."""

    if TYPE_CHECKING:
        agent_memory: Sequence[ChatMessage] | None
        llm_output: str | None
        start_time: float | None
        end_time: float | None
        duration: float | None
