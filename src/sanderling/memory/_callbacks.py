"""Functions that are told when a step is finished."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from ._steps import ActionStep, MemoryStep

StepCallback: TypeAlias = Callable[..., Any]
StepCallbacks: TypeAlias = (
    "Sequence[StepCallback] | Mapping[type[MemoryStep], StepCallback | Sequence[StepCallback]]"
    " | CallbackRegistry"
)

_STEP_NAMES = ("memory_step", "step_log")


class CallbackRegistry:
    """Callbacks by the class of step that they want to hear of.

    A callback takes the step; if it has more parameters, it gets ``agent=`` as well. It may be
    declared with ``memory_step`` or with ``step_log`` as the name of the step.

    Args:
        callbacks: A list, told of every `ActionStep`; one callback or a list by step class; or
            another registry, of which this becomes a copy.

    Raises:
        TypeError: It is neither.
    """

    def __init__(self, callbacks: StepCallbacks | None = None) -> None:
        self._callbacks: list[tuple[type[MemoryStep], StepCallback]] = []
        if isinstance(callbacks, CallbackRegistry):
            self._callbacks += callbacks._callbacks
        elif isinstance(callbacks, Mapping):
            for step_class, wanted in callbacks.items():
                for callback in wanted if isinstance(wanted, Sequence) else [wanted]:
                    self.register(step_class, callback)
        elif callable(callbacks):
            raise TypeError("step_callbacks is a list: write step_callbacks=[...], also for one")
        else:
            self.extend(callbacks or ())

    def register(self, step_cls: type[MemoryStep], callback: StepCallback) -> None:
        """Adds a callback for steps of a class and of its subclasses.

        Raises:
            TypeError: It is not a class of steps, or not callable.
        """
        kind: object = step_cls
        if not isinstance(kind, type) or not issubclass(kind, MemoryStep):
            raise TypeError(f"step_callbacks goes by step class, not by {step_cls!r}")
        if not callable(callback):
            raise TypeError(f"a step callback must be callable, not {callback!r}")
        self._callbacks.append((step_cls, callback))

    def append(self, callback: StepCallback) -> None:
        """Adds a callback for every `ActionStep`."""
        self.register(ActionStep, callback)

    def extend(self, callbacks: Iterable[StepCallback]) -> None:
        """Adds callbacks for every `ActionStep`."""
        for callback in callbacks:
            self.append(callback)

    def __iter__(self) -> Iterator[StepCallback]:
        return iter([callback for _, callback in self._callbacks])

    def __len__(self) -> int:
        return len(self._callbacks)

    def callback(self, memory_step: MemoryStep, agent: object = None) -> list[Any]:
        """Tells all who want to hear of the step; returns what they returned."""
        return [call() for call in self.calls(memory_step, agent)]

    def calls(self, step: MemoryStep, agent: object) -> list[Callable[[], Any]]:
        """Returns the calls that tell all who want to hear of the step, in order."""
        return [
            partial(_call, callback, step, agent)
            for step_class, callback in self._callbacks
            if isinstance(step, step_class)
        ]


def _call(callback: StepCallback, step: MemoryStep, agent: object) -> Any:
    try:
        parameters = inspect.signature(callback).parameters
    except ValueError:  # some callables written in C tell no signature
        return callback(step)
    named = {name: step for name in _STEP_NAMES if name in parameters}
    many = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if "agent" in parameters or many:
        return callback(**named, agent=agent) if named else callback(step, agent=agent)
    return callback(step) if len(parameters) == 1 else callback(step, agent)
