"""What outlives a single run of an agent: memory, variables, and the sandbox that holds them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

from sanderling import sandbox
from sanderling._warn import warn
from sanderling.errors import AgentError
from sanderling.memory import AgentMemory, SystemPromptStep, TaskStep

from ._limits import UsageLimiter

if TYPE_CHECKING:
    from types import TracebackType

    from sanderling.messages import ImageSource
    from sanderling.sandbox import Interpreter

    from ._definition import Definition, RunOptions, Sandbox
    from ._limits import RunLimits
    from ._run import Run


class Session:
    """A conversation with an agent: tasks, each of which builds on those before.

    ::

        with agent.session() as chat:
            chat.run("Load the table.")
            chat.run("And now draw it.")

    Sessions of one agent know nothing of each other, and may be used at the same time: a server has
    one for each visitor. In a session one run goes on at a time.

    Args:
        agent: Whose runs these are.
        variables: By name, usable in code from the beginning.

    Attributes:
        agent: The agent.
        memory: The steps of all runs. Between runs another memory can be assigned.
        variables: The variables that came with tasks, by name.
        run_in_progress: The run under way, if any.
        is_used: Whether a run, or a step by hand, has begun in it. Until then it is prepared for
            one.
    """

    def __init__(self, agent: Definition, variables: Mapping[str, Any] | None = None) -> None:
        self.agent = agent
        self.memory = AgentMemory(agent.system_prompt)
        self.variables: dict[str, Any] = dict(variables or {})
        self.run_in_progress: Run | None = None
        self.is_used = False
        self._variables_of_run = dict(self.variables)  # as the last run left them
        self._keep_sandbox = True
        self._sandbox: Sandbox | None = None
        self._sent: dict[str, Any] = {}  # the variables that the sandbox has
        self._limiter: UsageLimiter | None = None
        self._claiming = threading.Lock()

    def start(self, task: str, **options: Unpack[RunOptions]) -> Run:
        """Returns a run of a task, which has not begun. See `MultiStepAgent.start`."""
        return self.agent.start(task, session=self, **options)

    def run(self, task: str, **options: Unpack[RunOptions]) -> Any:
        """Runs a task in the calling thread and returns the answer.

        Args:
            task: What is to be done.
            **options: See `MultiStepAgent.start`.
        """
        return self.start(task, **options).answer()

    async def arun(self, task: str, **options: Unpack[RunOptions]) -> Any:
        """Does what `run` does, under asyncio."""
        return await self.start(task, **options).aanswer()

    def close(self) -> None:
        """Closes the sandbox, with its variables and files; a later run starts a new one."""
        place, self._sandbox = self._sandbox, None
        self._sent.clear()
        if place is not None and not place.is_shared:
            place.interpreter.close()

    async def aclose(self) -> None:
        """Does what `close` does, under asyncio."""
        place, self._sandbox = self._sandbox, None
        self._sent.clear()
        if place is not None and not place.is_shared:
            await place.interpreter.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    # For runs

    def check_free(self) -> None:
        """Checks that no run is under way, whose memory and sandbox would be disturbed.

        Raises:
            AgentError: There is one.
        """
        if self.run_in_progress is not None:
            raise AgentError(
                "Another run is under way in this conversation. Wait for its end, or start with "
                "reset=True, which gives the run a memory and a sandbox of its own."
            )

    def claim(self, run: Run) -> None:
        """Gives the session to a run, for itself alone.

        Raises:
            AgentError: Another one has it.
        """
        with self._claiming:
            self.check_free()
            self.run_in_progress = run
            self.is_used = True

    def release(self) -> None:
        """Takes the session back from its run."""
        self._note_variables()
        with self._claiming:
            self.run_in_progress = None
            keep = self._keep_sandbox
        if not keep:
            self.close()

    def abandon(self) -> None:
        """Closes the sandbox as soon as no run is under way."""
        with self._claiming:
            self._keep_sandbox = False
            is_free = self.run_in_progress is None
        if is_free:
            self.close()

    def prepared(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the variables that the user has set for all runs.

        Args:
            before: Those of before; what has become of them in this session since its last run
                holds from now on.
        """
        now, left = self.variables, self._variables_of_run
        kept = {name: before[name] for name in before if name in now or name not in left}
        changed = {name: v for name, v in now.items() if name not in left or left[name] is not v}
        return {**kept, **changed}

    def _note_variables(self) -> None:
        """Takes note of the variables: whatever changes from here on, the user has changed."""
        self._variables_of_run = dict(self.variables)

    def renew_memory(self, *, reset: bool = False) -> None:
        """Puts the agent's system prompt of now in the place of the one in memory.

        Args:
            reset: Whether the steps are forgotten.
        """
        prompt = self.agent.system_prompt
        if reset and self.memory.steps:
            self.memory = AgentMemory(prompt)
        elif self.memory.system_prompt.system_prompt != prompt:
            self.memory.system_prompt = SystemPromptStep(prompt)

    def add_task(
        self,
        task: str,
        images: list[ImageSource],
        variables: Mapping[str, Any] | None,
        files: str = "",
    ) -> str:
        """Puts a task into the memory, and what comes with it among the variables.

        Args:
            task: What is to be done.
            images: Shown with it.
            variables: Described to the model.
            files: What the model is told of files that come with the task.

        Returns:
            The task as the model is told it.
        """
        if variables:
            self.variables.update(variables)
            task = f"{task}\n\n{_described(variables)}"
        if files:
            task = f"{task}\n\n{files}"
        self.memory.steps.append(TaskStep(task, images or None))
        self._note_variables()
        return task

    def limiter(self, limits: RunLimits | None) -> UsageLimiter | None:
        """Returns what holds limits over all that is done by hand, one step after the other."""
        if limits is None:
            return None
        if self._limiter is None or self._limiter.limits is not limits:
            self._limiter = UsageLimiter(limits)
        return self._limiter

    def forget_usage(self) -> None:
        """Has what is done by hand from now on counted anew."""
        self._limiter = None

    def sandbox(self) -> Sandbox:
        """Returns the place where code runs, made if need be, with the variables of now."""
        place = self._sandbox
        if place is None:
            place = self._sandbox = self.agent.create_sandbox(self.memory)
        unsent = {
            name: value
            for name, value in self.variables.items()
            if name not in self._sent or self._sent[name] is not value
        }
        if unsent:
            place.interpreter.set_variables(unsent)
            self._sent.update(unsent)
        return place

    def interpreter(self) -> Interpreter:
        """Returns what runs code in `sandbox`."""
        return self.sandbox().interpreter

    @property
    def open_interpreter(self) -> Interpreter | None:
        """What runs code, if there is a sandbox already."""
        return None if self._sandbox is None else self._sandbox.interpreter


def _described(variables: Mapping[str, Any]) -> str:
    lines = ["These values come with the task, as variables of the given names:"]
    for name, value in variables.items():
        line, warning = sandbox.describe_variable(name, value)
        lines.append(line)
        if warning:
            warn(warning, "sandbox")
    return "\n".join(lines)
