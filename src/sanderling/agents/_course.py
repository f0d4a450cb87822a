"""The course of one run, from its first event to its result, under either driver."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from typing import TYPE_CHECKING, Any

from sanderling.errors import AgentStoppedError
from sanderling.loop import Event, RunResult, RunStarted, react
from sanderling.messages import Timing
from sanderling.runtime import Done, adrive, drive, time_limit

from ._tracebacks import ShortTracebacks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from sanderling.console import RunPrinter
    from sanderling.loop import Action, Planning, Run
    from sanderling.memory import AgentMemory
    from sanderling.messages import ChatMessage, TokenUsage
    from sanderling.runtime import Services

    from ._conversation import Conversation
    from ._files import RunFiles


class Course:
    """One run under way.

    Args:
        conversation: What the run works on, for itself alone as long as it lasts.
        services: What its effects are carried out with.
        action: What a step does.
        forced_answer: Makes the messages that ask for an answer when the steps are used up.
        started: The first event.
        files: Takes files in and out.
        printer: Shows the events, if anything is to be shown.
        release: Called at the end, however the run ended.
        max_calls: How many tool calls of one reply may run together.
        planning: Makes plans on the way.
        seconds: How long the run may take.
    """

    def __init__(
        self,
        conversation: Conversation,
        services: Services,
        action: Action,
        forced_answer: Callable[[Run], list[ChatMessage]],
        started: RunStarted,
        files: RunFiles,
        printer: RunPrinter | None,
        release: Callable[[Conversation], None],
        max_calls: int | None = None,
        planning: Planning | None = None,
        seconds: float | None = None,
    ) -> None:
        self._conversation = conversation
        self._services = services
        self._action = action
        self._forced_answer = forced_answer
        self._started = started
        self._files = files
        self._printer = printer
        self._release = release
        self._max_calls = max_calls
        self._planning = planning
        self._seconds = seconds
        self._timing = Timing(0.0)
        self._output: Any = None

    @property
    def result(self) -> RunResult[Any]:
        """What the run came to; complete once its last event is out."""
        run = self._services.run
        return RunResult(
            output=self._output,
            state=run.status,
            steps=run.memory.get_succinct_steps(),
            token_usage=None if run.is_untold and not run.usage.total_tokens else run.usage,
            timing=self._timing,
            files=self._files.written,
        )

    @property
    def output(self) -> Any:
        """The answer."""
        return self._output

    @property
    def path(self) -> str:
        """The names of the agents from the outermost one to this one."""
        return self._services.path

    @property
    def memory(self) -> AgentMemory:
        """The steps so far."""
        return self._services.run.memory

    @property
    def usage(self) -> TokenUsage:
        """What the run has cost so far, the runs beneath it included."""
        return self._services.run.usage

    def events(self) -> Generator[Event, None, None]:
        """Runs in the calling thread; yields the events."""
        from sanderling.runtime import Performer

        with ShortTracebacks(), self._under_way():
            self._files.bring()
            try:
                with (
                    Performer(self._services, self._max_calls) as performer,
                    closing(drive(self._loop(), performer.perform)) as events,
                ):
                    for event in events:
                        yield self._shown(event)
            finally:
                self._files.gather()

    async def aevents(self) -> AsyncGenerator[Event, None]:
        """Runs under asyncio; yields the same events."""
        with ShortTracebacks(), self._under_way():
            async with self._with_files(), aclosing(self._adriven()) as events:
                async for event in events:
                    if not isinstance(event, Done):
                        yield self._shown(event)

    async def arun(self) -> None:
        """Runs under asyncio, for whoever wants the outcome alone."""
        with ShortTracebacks(), self._under_way():
            async with self._with_files(), aclosing(self._adriven()) as events:
                async for event in events:
                    if not isinstance(event, Done):
                        self._shown(event)

    @asynccontextmanager
    async def _with_files(self) -> AsyncIterator[None]:
        files = self._files
        if files.has_work:
            from sanderling._bridge import in_thread

            await in_thread(files.bring)
        try:
            yield
        finally:
            if files.has_work:
                await in_thread(files.gather)
            else:
                files.gather()

    def _adriven(self) -> AsyncGenerator[Event | Done, None]:
        from sanderling.runtime import AsyncPerformer  # asyncio is slow to import

        return adrive(self._loop(), AsyncPerformer(self._services, self._max_calls).perform)

    def _loop(self) -> Generator[Any, Any, None]:
        yield self._started
        self._output = yield from react(
            self._services.run, self._action, self._forced_answer, self._planning
        )

    def _shown(self, event: Event) -> Event:
        if self._printer is not None:
            self._printer.show(event)
        return event

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        self._conversation.check_free()
        self._conversation.busy = True
        self._timing.start_time = time.time()
        try:
            with time_limit(self._services.control, self._seconds):
                yield
        except AgentStoppedError as error:
            self._timing.end_time = time.time()
            self._services.run.status = error.state
            error.result = self.result
            raise
        finally:
            self._timing.end_time = time.time()
            self._conversation.busy = False
            self._services.control.release()
            if self._printer is not None:
                self._printer.close()
            self._release(self._conversation)
