"""What outlives a single run of an agent: memory, variables, and the sandbox that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sanderling import sandbox
from sanderling._warn import warn
from sanderling.errors import AgentError
from sanderling.memory import TaskStep
from sanderling.runtime import Meter

from ._parts import listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from sanderling.memory import AgentMemory
    from sanderling.messages import ImageSource
    from sanderling.runtime import Control, RunLimits
    from sanderling.sandbox import Interpreter, PythonExecutor


@dataclass
class Conversation:
    """One line of tasks, each of which may build on those before.

    Attributes:
        memory: The steps.
        state: Variables given with tasks, by name.
        interpreter: The sandbox, once a code action has needed it.
        executor: What the sandbox belongs to.
        shared: Whether it belongs to others as well, and outlives the conversation.
        sent: The variables that the sandbox was given.
        busy: Whether a run is under way in it.
        control: Ends the run that was started last.
        used: Whether a run, or a step by hand, has begun in it. Until then, it is prepared for one.
        meter: Holds the limits of what is done in it by hand.
    """

    memory: AgentMemory
    state: dict[str, Any] = field(default_factory=dict)
    interpreter: Interpreter | None = None
    executor: PythonExecutor | Callable[..., object] | None = None
    shared: bool = False
    sent: dict[str, Any] = field(default_factory=dict)
    busy: bool = False
    control: Control | None = None
    meter: Meter | None = None
    used: bool = False
    _left: dict[str, Any] = field(default_factory=dict)  # the state, as a run left it

    def __post_init__(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Takes note that a run is at its end: what changes the state from here on is the user."""
        self._left = dict(self.state)

    def prepared(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the variables that the user has set for all runs.

        Args:
            before: Those of before; what has become of them in this conversation since its last run
                holds from now on.
        """
        state, left = self.state, self._left
        kept = {name: before[name] for name in before if name in state or name not in left}
        changed = {n: v for n, v in state.items() if n not in left or left[n] is not v}
        return {**kept, **changed}

    def metered(self, limits: RunLimits | None) -> Meter | None:
        """Returns what holds limits over all that is done by hand, one step after the other."""
        if limits is None:
            return None
        if self.meter is None or self.meter.limits is not limits:
            self.meter = Meter(limits)
        return self.meter

    def begin(
        self,
        task: str,
        images: Sequence[ImageSource] | None,
        additional_args: Mapping[str, Any] | None,
        files: str = "",
    ) -> str:
        """Puts a task into the memory, and what comes with it into the state.

        Args:
            task: What is to be done.
            images: Shown with it.
            additional_args: Variables by name.
            files: What is told of the files that come with it.

        Returns:
            The task as the model is told it.

        Raises:
            TypeError: The images are no list, or the arguments no dict.
        """
        shown = listed("images", images)
        if not isinstance(additional_args, Mapping | None):
            raise TypeError(
                "additional_args is a dict of values by name, "
                f"not a {type(additional_args).__name__}"
            )
        self.used = True
        if additional_args:
            self.state.update(additional_args)
            task = f"{task}\n\n{_told(additional_args)}"
        if files:
            task = f"{task}\n\n{files}"
        self.memory.steps.append(TaskStep(task, shown or None))
        self.leave()
        return task

    def check_free(self) -> None:
        """Makes sure that no run is under way, whose memory and sandbox would be disturbed.

        Raises:
            AgentError: There is one.
        """
        if self.busy:
            raise AgentError(
                "Another run is under way in this conversation. Wait for its end, or start with "
                "reset=True, which gives the run a memory and a sandbox of its own."
            )

    def close(self) -> None:
        """Ends the sandbox, with its variables and files."""
        interpreter, self.interpreter, self.executor = self.interpreter, None, None
        self.sent.clear()
        if interpreter is not None and not self.shared:
            interpreter.close()


def _told(arguments: Mapping[str, Any]) -> str:
    lines = ["These values come with the task, as variables of the given names:"]
    for name, value in arguments.items():
        line, warning = sandbox.describe_variable(name, value)
        lines.append(line)
        if warning:
            warn(warning, "sandbox")
    return "\n".join(lines)
