"""One task under way, as an object that you can hold."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, closing, nullcontext
from typing import TYPE_CHECKING, Any, Self

from sanderling._arguments import at_least_one
from sanderling._warn import capture_warnings
from sanderling.errors import AgentError, AgentInterruptedError, AgentStoppedError, SandboxError
from sanderling.memory import ActionStep
from sanderling.messages import Timing, TokenUsage

from ._cancel import CancelScope
from ._context import new_context
from ._drivers import Done
from ._files import RunFiles
from ._limits import RunLimits, UsageLimiter, as_limits, time_limit
from ._manual import ManualControl, alone_in_session
from ._result import RunResult
from ._tracebacks import ShortTracebacks
from ._turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from sanderling.loop import Event, RunState, RunStatus
    from sanderling.memory import AgentMemory
    from sanderling.messages import ImageSource

    from ._context import RunContext
    from ._definition import Definition, EventHandler, RunningAgent, RunOptions
    from ._files import FilePath
    from ._session import Session


class Run:
    """One task of an agent, under way.

    `MultiStepAgent.start` makes it; nothing has happened until it is driven. It can be driven in
    several ways, one after the other: iterated (``for event in run``, ``async for event in run``),
    taken a step further (`step`, `astep`), or finished (`result`, `aresult`). A loop that is left
    early leaves it where it is: go on in any of these ways, or `close` it. Between two steps it can
    change from one driver to the other.

    Args:
        agent: Whose run this is.
        session: Where it works, for itself alone as long as it lasts.
        task: What is to be done.
        images: This and the next five are described at `MultiStepAgent.start`.
        variables: See there.
        max_steps: See there.
        limits: See there.
        files: See there.
        keep_files: See there.
        parent: The context of the run that calls this one: its policies and its end hold for this
            run as well, and it pays for it.
        limiter: Counts in the place of one of its own.
        on_begin: Called when the run begins.

    Raises:
        TypeError: An argument is not what it has to be.
        ValueError: `max_steps` is less than 1.

    Attributes:
        agent: Whose run this is.
        session: Where it works.
        task: What was asked.
    """

    def __init__(
        self,
        agent: Definition,
        session: Session,
        task: str,
        *,
        images: Sequence[ImageSource] | None = None,
        variables: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        limits: RunLimits | None = None,
        files: Sequence[FilePath] | None = None,
        keep_files: FilePath | None = None,
        parent: RunContext | None = None,
        limiter: UsageLimiter | None = None,
        on_begin: Callable[[], object] | None = None,
    ) -> None:
        if not isinstance(variables, Mapping | None):
            raise TypeError(
                f"additional_args is a dict of values by name, not a {type(variables).__name__}"
            )
        self.agent = agent
        self.session = session
        self.task = task
        self._images = agent.check_inputs(images, variables)
        self._variables = variables
        self._max_steps = at_least_one("max_steps", max_steps or None)
        self._limits = agent.limits if limits is None else as_limits(limits)
        self._limiter = limiter
        self._files = RunFiles(session, files, keep_files)
        self._parent = parent
        self._on_begin = on_begin
        self._scope = CancelScope(None if parent is None else parent.scope)
        self._context: RunContext | None = None
        self._state: RunState | None = None
        self._status: RunStatus = "created"
        self._error: BaseException | None = None
        self._timing = Timing(0.0)
        self._resources = ExitStack()  # what ends with the run
        self._turns: Turns | None = None
        self._watcher: EventHandler | None = None
        self._is_driven = False

    @functools.cached_property
    def id(self) -> str:
        """Names the run."""
        return os.urandom(8).hex()

    @property
    def status(self) -> RunStatus:
        """How far it is, or how it ended: ``"stopped"`` is by a policy, or because it was closed.

        ``"max_steps_error"`` means that the answer was forced at the limit of steps.
        """
        return self._status

    @property
    def memory(self) -> AgentMemory:
        """The steps so far; those of earlier runs of the session too."""
        return self.session.memory

    @property
    def usage(self) -> TokenUsage:
        """The tokens it has used so far, the runs beneath it included."""
        return TokenUsage(0, 0) if self._state is None else self._state.usage

    @property
    def output(self) -> Any:
        """The answer; None before there is one."""
        return None if self._state is None else self._state.output

    @property
    def path(self) -> str:
        """The names of the agents from the outermost one to this one, joined by ``/``."""
        above = self._parent.path if self._parent else ""
        return "/".join(filter(None, (above, self.agent.name)))

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.path or type(self.agent).__name__}: {self._status}>"

    def __deepcopy__(self, memo: object) -> Self:
        return self  # what refers to a run refers to this one, and so do its copies

    def result(self) -> RunResult[Any]:
        """Drives the run to its end in the calling thread, and returns what it came to.

        Raises:
            AgentGenerationError: The model could not be asked.
            AgentInterruptedError: `interrupt` was called.
            AgentLimitError: A limit was reached.
            SandboxUnavailable: This machine cannot enforce the walls around code.
        """
        self.answer()
        return self._result()

    async def aresult(self) -> RunResult[Any]:
        """Does what `result` does, under asyncio."""
        await self.aanswer()
        return self._result()

    def answer(self) -> Any:
        """Does what `result` does, and returns the answer alone."""
        with ShortTracebacks():
            self._go_on(())
            if self._error is not None:
                raise self._error
            return self.output

    async def aanswer(self) -> Any:
        """Does what `answer` does, under asyncio."""
        with ShortTracebacks():
            await self._ago_on(())
            if self._error is not None:
                raise self._error
            return self.output

    def step(self) -> ActionStep | None:
        """Goes on to the end of the next step, in the calling thread.

        Returns:
            The step; None where the run has ended without a further one.
        """
        with ShortTracebacks():
            step: ActionStep | None = self._go_on(ActionStep)
        return step

    async def astep(self) -> ActionStep | None:
        """Does what `step` does, under asyncio."""
        with ShortTracebacks():
            step: ActionStep | None = await self._ago_on(ActionStep)
        return step

    def __iter__(self) -> Iterator[Event]:
        """Yields the events, in the calling thread; the last one is a `FinalAnswerStep`."""
        return self

    def __next__(self) -> Event:
        with ShortTracebacks():
            event: Event | None = self._go_on(object)
        if event is None:
            raise StopIteration
        return event

    def __aiter__(self) -> Self:
        """Yields the events under asyncio; the last one is a `FinalAnswerStep`."""
        return self

    async def __anext__(self) -> Event:
        with ShortTracebacks():
            event: Event | None = await self._ago_on(object)
        if event is None:
            raise StopAsyncIteration
        return event

    def events(self) -> Generator[Event, None, None]:
        """Yields the events as iterating does; closing the generator closes the run."""
        with closing(self):
            yield from self

    async def aevents(self) -> AsyncGenerator[Event, None]:
        """Does what `events` does, under asyncio."""
        async with aclosing(self):
            async for event in self:
                yield event

    def interrupt(self) -> None:
        """Ends the run, from any thread, and from a callback.

        Model calls, code and asynchronous tools end at once, a tool that blocks when it returns.
        """
        self._scope.cancel(AgentInterruptedError("The run was interrupted."))

    def close(self) -> None:
        """Ends the run where it is, if it has not ended."""
        if self._status == "created":
            self._scope.close()
            self._status, self._error = "stopped", AgentStoppedError(_CLOSED)
        elif self._status == "running":
            self._end(AgentStoppedError(_CLOSED))

    async def aclose(self) -> None:
        """Does what `close` does, under asyncio."""
        if self._status == "running":
            await self._aend(AgentStoppedError(_CLOSED))
        else:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.close()

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> Any:
        """Calls a tool, or a managed agent, as the model would.

        Args:
            name: Its name.
            arguments: See `MultiStepAgent.execute_tool_call`, as for what is raised.
        """
        return self.manual().call_tool(name, arguments)

    async def acall_tool(self, name: str, arguments: Mapping[str, Any] | str) -> Any:
        """Does what `call_tool` does, under asyncio."""
        return await self.manual().acall_tool(name, arguments)

    def start_child(
        self,
        agent: Definition,
        task: str,
        *,
        images: Sequence[ImageSource] | None = None,
        variables: Mapping[str, Any] | None = None,
        caller: RunContext | None = None,
    ) -> Run:
        """Returns a run of another agent that belongs to this one, and has not begun.

        It has a session of its own. The policies and limits of this run hold for it as well, it
        ends with this run, and what it uses counts for this run, too.

        Args:
            agent: Whose run it is.
            task: What is to be done.
            images: Shown to its model with the task.
            variables: See `Run`.
            caller: Where in this run it is called; by default, just in it.
        """
        session = agent.session()
        session.abandon()  # with its run
        parent = self._prepared() if caller is None else caller
        options: RunOptions = {"images": images, "variables": variables}
        options["keep_files"] = agent.keep_files
        return Run(agent, session, task, parent=parent, **options)

    def manual(self) -> ManualControl:
        """Returns what does things by hand in this run, at its end or between its events."""
        if self._status == "running":
            return ManualControl(self._prepared(), lambda: nullcontext(self._show))
        context, seconds = self._prepared(), self._seconds
        return ManualControl(context, lambda: alone_in_session(context, seconds))

    def agent_within(self, context: RunContext) -> RunningAgent:
        """Returns the agent as its methods and callbacks have it while the run goes on."""
        return self.agent.within(ManualControl(context))

    @property
    def _seconds(self) -> float | None:
        return None if self._limits is None else self._limits.seconds

    def _prepared(self) -> RunContext:
        """Returns what effects are carried out with, made if need be."""
        if self._context is None:
            settings = self.agent.run_settings(self.memory)
            if self._limiter is None and self._limits is not None:
                self._limiter = UsageLimiter(self._limits)
            self._context = new_context(
                self, settings, self._parent, self._limiter, self._scope, self._max_steps
            )
            self._context.state.usage = self.usage
            self._state = self._context.state
        return self._context

    def _go_on(self, until: type | tuple[()]) -> Any:
        """Goes on to the next event of a class and returns that; None at the end of the run."""
        if self._is_over:
            return None
        self._claim_driving()
        try:
            events = self._sync_events()
            try:
                if self._files.are_awaited:
                    self._files.bring()
                watcher = self._watcher
                for event in events:
                    if watcher is not None:
                        watcher.show(event)
                    if isinstance(event, until):
                        return self._turns and self._turns.note(event)
            except BaseException as error:
                self._end(error)
                raise
            self._end(None)
            return None
        finally:
            self._is_driven = False

    async def _ago_on(self, until: type | tuple[()]) -> Any:
        """Does what `_go_on` does, under asyncio."""
        if self._is_over:
            return None
        self._claim_driving()
        try:
            events = self._async_events()
            try:
                if self._files.are_awaited:
                    await self._beside_the_loop(self._files.bring)
                async for event in events:
                    if isinstance(event, Done):
                        break
                    self._show(event)
                    if isinstance(event, until):
                        return self._turns and self._turns.note(event)
            except BaseException as error:
                await self._aend(error)
                raise
            await self._aend(None)
            return None
        finally:
            self._is_driven = False

    @property
    def _is_over(self) -> bool:
        return self._status not in ("created", "running")

    def _claim_driving(self) -> None:
        if self._is_driven:
            raise RuntimeError(
                "The run is being driven already: by another thread or task, or it waits for the "
                "callback or tool that this is in."
            )
        self._is_driven = True

    def _sync_events(self) -> Generator[Event, None, None]:
        return self._begin().events() if self._turns is None else self._turns.events()

    def _async_events(self) -> AsyncGenerator[Event | Done, None]:
        return self._begin().aevents() if self._turns is None else self._turns.aevents()

    def _begin(self) -> Turns:
        try:
            self.session.claim(self)
        except AgentError as error:
            error.run = self
            raise
        self._status = "running"
        try:
            return self._begun()
        except BaseException as error:
            self._end(error)
            raise

    def bring_files(self) -> None:
        """Puts the files that come with the task where code finds them, for going on by hand."""
        self._files.bring()

    def take_task(self) -> str:
        """Puts the task into the memory of the session; returns it as the model is told it."""
        if self._on_begin is not None:
            self._on_begin()
        described = self._files.described
        with capture_warnings(self._prepared().settings.warned):
            return self.session.add_task(self.task, self._images, self._variables, described)

    def _begun(self) -> Turns:
        session = self.session
        self._timing.start_time = time.time()
        self._resources.callback(session.release)
        session.forget_usage()
        self.agent.check_place(session)
        task = self.take_task()
        context = self._prepared()
        context.state.task = task
        self._files.inform = context.settings.informed
        self._watcher = context.settings.handler
        if self._watcher is not None:
            self._resources.callback(self._watcher.close)
        self._resources.enter_context(time_limit(self._scope, self._seconds))
        self._turns = Turns(context, tuple(self._images))
        return self._turns

    def _show(self, event: Event) -> None:
        if self._watcher is not None:
            self._watcher.show(event)

    def _end(self, error: BaseException | None) -> None:
        if self._is_over:
            return
        self._status, self._error = self._status_after(error), error
        if error is not None and not isinstance(error, Exception):
            # Ctrl-C: whatever the calls in the pool have begun, such as other runs, ends as well.
            self._scope.cancel(AgentInterruptedError("The run was interrupted."))
        try:
            if self._turns is not None:
                self._turns.close()
            self._files.gather()
        finally:
            self._timing.end_time = time.time()
            if isinstance(error, AgentError | SandboxError):
                error.run = self
            if isinstance(error, AgentStoppedError):
                error.result = self._result()
            self._scope.close()
            if self._parent is not None:
                self._parent.spend(self.usage)
            self._resources.close()
            self._context = self._turns = None  # they refer to the run, which is freed then

    async def _aend(self, error: BaseException | None) -> None:
        try:
            if self._turns is not None:
                await self._turns.aclose()
            if self._files.has_work and not self._is_over:
                await self._beside_the_loop(self._files.gather)
        finally:
            self._end(error)

    async def _beside_the_loop(self, work: Callable[[], None]) -> None:
        from sanderling._bridge import in_thread

        await in_thread(work)

    def _status_after(self, error: BaseException | None) -> RunStatus:
        if isinstance(error, AgentStoppedError):
            return error.state
        if error is None and self._state is not None:
            return self._state.status
        return "failed" if isinstance(error, Exception) else "interrupted"

    def _result(self) -> RunResult[Any]:
        state = self._state
        is_untold = state is not None and state.is_untold and not state.usage.total_tokens
        usage = None if is_untold else self.usage
        steps, files = self.memory.get_succinct_steps(), self._files.written
        return RunResult(self.output, self._status, steps, usage, self._timing, files, self)


_CLOSED = "The run was closed before it had an answer."
