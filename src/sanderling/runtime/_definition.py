"""What the runtime knows of an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Unpack

from sanderling.memory import CallbackRegistry

if TYPE_CHECKING:
    from sanderling.loop import Action, AnswerType, Event, Planning, RunState
    from sanderling.memory import ActionStep, AgentMemory, MemoryStep
    from sanderling.messages import ChatMessage, ImageSource
    from sanderling.models import Model
    from sanderling.sandbox import Interpreter, PythonExecutor
    from sanderling.tools import Tool

    from ._files import FilePath
    from ._limits import RunLimits
    from ._manual import ManualControl
    from ._policies import Policy
    from ._run import Run
    from ._session import Session


class EventHandler(Protocol):
    """Watches a run, such as to print it."""

    def show(self, event: Event) -> None:
        """Takes the next event."""

    def count(self, steps: Iterable[MemoryStep]) -> None:
        """Takes note of steps that are in memory already."""

    def close(self) -> None:
        """Is called when the run has ended."""


class RunningAgent(Protocol):
    """An agent as its own methods and callbacks have it while a run goes on."""

    def step(self, memory_step: ActionStep) -> Any:
        """Takes one step."""

    def execute_tool_call(self, tool_name: str, arguments: dict[str, Any] | str) -> Any:
        """Calls a tool."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Where the code of a session runs.

    Attributes:
        executor: What a user sees of it.
        interpreter: What the runtime drives.
        is_shared: Whether others use it as well, so that it outlives the session.
    """

    executor: PythonExecutor | Callable[..., object]
    interpreter: Interpreter
    is_shared: bool = False


@dataclass(slots=True)
class RunSettings:
    """What an agent gives to one of its runs.

    Attributes:
        tools: What can be called, by name; managed agents included.
        action: What a step does.
        forced_answer: Makes the messages that ask for an answer when the steps are used up.
        planning: Makes plans.
        is_planned: Whether they are made on the way, rather than by hand only.
        answer_type: What the answer has to be.
        on_generation_error: See `RunState`.
        callbacks: Called with finished steps.
        checks: Called with an answer, and the memory and ``agent=`` where they take them; a false
            value or an exception sends the answer back to the model.
        policies: Around the effects of the run and of the runs beneath it; the first is outermost.
        own_policies: Around those of the run only, inside of the others.
        handler: Watches the run.
        max_tool_threads: How many tool calls of one reply may run together.
        warned: Called, line by line, with what the user should know while the run goes on.
        informed: Called with what is good to know.
        has_own_step: Whether the agent's class defines `step` itself, which then is the action.
        has_own_calls: Whether it defines `execute_tool_call`, which then makes the model's calls.
    """

    tools: Mapping[str, Tool]
    action: Action
    forced_answer: Callable[[RunState], list[ChatMessage]]
    planning: Planning
    is_planned: bool = False
    answer_type: AnswerType[Any] | None = None
    on_generation_error: Literal["raise", "record"] = "raise"
    callbacks: CallbackRegistry = field(default_factory=CallbackRegistry)
    checks: Sequence[Callable[..., Any]] = ()
    policies: tuple[Policy, ...] = ()
    own_policies: tuple[Policy, ...] = ()
    handler: EventHandler | None = None
    max_tool_threads: int | None = None
    warned: Callable[[str], object] | None = None
    informed: Callable[[str], object] | None = None
    has_own_step: bool = False
    has_own_calls: bool = False


class RunOptions(TypedDict, total=False):
    """What one run may be given beside its task; `MultiStepAgent.start` describes it."""

    images: Sequence[ImageSource] | None
    variables: Mapping[str, Any] | None
    max_steps: int | None
    limits: RunLimits | None
    files: Sequence[FilePath] | None
    keep_files: FilePath | None


class Definition(Protocol):
    """An agent, as runs see it: what it is, and no run changes."""

    @property
    def name(self) -> str | None:
        """Names it in paths and events."""

    @property
    def model(self) -> Model:
        """The model that is asked."""

    @property
    def system_prompt(self) -> str:
        """Opens every memory."""

    @property
    def max_steps(self) -> int:
        """How many steps a run may take."""

    @property
    def limits(self) -> RunLimits | None:
        """How much a run may use."""

    @property
    def keep_files(self) -> FilePath | None:
        """A folder that gets copies of what the code of each run has written."""

    def check_inputs(
        self, images: Sequence[ImageSource] | None, variables: Mapping[str, Any] | None
    ) -> list[ImageSource]:
        """Checks what comes with a task; returns the images."""

    def session(self) -> Session:
        """Returns a new session."""

    def run_settings(self, memory: AgentMemory) -> RunSettings:
        """Returns what a run needs that goes on with this memory."""

    def check_place(self, session: Session) -> None:
        """Looks for what a run will need, before a model is paid for."""

    def create_sandbox(self, memory: AgentMemory) -> Sandbox:
        """Makes the place where the code of a session runs."""

    def within(self, control: ManualControl) -> RunningAgent:
        """Returns the agent as a run hands it to methods and callbacks."""

    def start(
        self, task: str, *, session: Session | None = None, **options: Unpack[RunOptions]
    ) -> Run:
        """Returns a run of the agent, which has not begun."""
