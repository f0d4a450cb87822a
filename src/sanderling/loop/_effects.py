"""What the loop needs from outside. A driver carries an effect out and sends the reply back in.

Effects are data: tools are found by name, and nothing in an effect is alive. `Effect.dict` is their
JSON form, which `effect_from_dict` reads. So they can be written to a journal, retried, approved or
replayed by whoever drives the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sanderling.memory import FORM

from ._records import ERROR, MESSAGES, NAMES, OPTIONS, STEP, Record, each

if TYPE_CHECKING:
    from sanderling.memory import MemoryStep
    from sanderling.messages import ChatMessage


class Effect(Record):
    """Base of all effects."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Generate(Effect):
    """Ask the model. The reply is a `ChatMessage`.

    Attributes:
        messages: The conversation.
        stop_sequences: Texts at which the model shall stop.
        tools: Names of the tools it may call natively.
        options: Further keyword arguments of `Model.generate`.
        stream: Whether deltas of the reply shall come out as events.
    """

    messages: Sequence[ChatMessage] = field(metadata=MESSAGES)
    stop_sequences: tuple[str, ...] = field(default=(), metadata=NAMES)
    tools: tuple[str, ...] = field(default=(), metadata=NAMES)
    options: Mapping[str, Any] = field(default_factory=dict, metadata=OPTIONS)
    stream: bool = False


@dataclass(frozen=True, slots=True)
class ExecuteCode(Effect):
    """Run code in the sandbox of the run. The reply is a `sanderling.sandbox.CodeResult`.

    `code_result_to_dict` and `code_result_from_dict` are the JSON form of that.
    """

    code: str


@dataclass(frozen=True, slots=True)
class CallTool(Effect):
    """Call a tool. The reply is its value.

    Attributes:
        id: Names the call within the run.
        name: The tool.
        arguments: By parameter name; or what the model wrote, where that is no object.
        in_code: Whether code makes the call: its arguments are checked as `Tool.take_arguments`
            says.
    """

    id: str
    name: str
    arguments: Any
    in_code: bool = False


_CALLS = {FORM: each(lambda call, write: call.form(write), CallTool.from_dict)}


@dataclass(frozen=True, slots=True)
class Together(Effect):
    """Carry several calls out at once. The reply is a list of `Outcome`, in the order of calls."""

    effects: tuple[CallTool, ...] = field(metadata=_CALLS)


@dataclass(frozen=True, slots=True)
class Outcome(Record):
    """What became of one of several effects: a value, or the error that it raised."""

    value: Any = None
    error: Exception | None = field(default=None, metadata=ERROR)


@dataclass(frozen=True, slots=True)
class CheckAnswer(Effect):
    """Put an answer before the final-answer checks. The reply is `None`, or what is wrong."""

    answer: Any


@dataclass(frozen=True, slots=True)
class Notify(Effect):
    """Tell the step callbacks that a step is finished; they may change it. The reply is `None`."""

    step: MemoryStep = field(metadata=STEP)


@dataclass(frozen=True, slots=True)
class Now(Effect):
    """Ask for the time. The reply is seconds since the epoch."""


_EFFECTS: dict[str, type[Effect]] = {
    kind.__name__: kind
    for kind in (Generate, ExecuteCode, CallTool, Together, CheckAnswer, Notify, Now)
}


def effect_from_dict(data: Mapping[str, Any]) -> Effect:
    """Makes the effect that `Effect.dict` described.

    Raises:
        ValueError: There is no such effect, or the data is broken.
    """
    kind = _EFFECTS.get(str(data.get("type")))
    if kind is None:
        raise ValueError(f"there is no effect {data.get('type')!r:.80}")
    return kind.from_dict(data)
