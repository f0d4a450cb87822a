"""This very process: no walls, live objects. For code that is trusted, by explicit name only."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling.errors import SandboxError
from sanderling.sandbox import kernel
from sanderling.sandbox._clock import StepClock
from sanderling.sandbox._interpreter import CodeResult, Printed, ToolRequest, ToolSpec
from sanderling.sandbox._outcome import Finished, StepLimits, final_result

from ._inprocess_worker import Event, Step, Worker

if TYPE_CHECKING:
    from sanderling.sandbox._work_files import WorkFiles

_Item: TypeAlias = Printed | ToolRequest | CodeResult

_GRACE = 0.5
_GONE = (
    "It goes on in the background, because a thread cannot be killed. "
    "The interpreter was replaced: all variables of earlier steps are gone."
)


class InProcessInterpreter:
    """Runs code in this process, in a thread of its own; see `Interpreter` for the methods.

    There are no walls: the code can do whatever this process can, and may keep or change each
    object it is given. The import policy only guards against mistakes. ``print`` is captured, other
    writing to ``sys.stdout`` is not. A time-out interrupts Python code; code within a library
    is waited for until it returns, or left behind in its thread.

    Args:
        imports: What the code may import beside `BASE_BUILTIN_MODULES`.
        timeout_seconds: How long a step may run, tool calls not counted; None for no limit.
        max_output: Characters that a step may print.
        max_tool_calls: Tool calls that a step may make.
    """

    def __init__(
        self,
        *,
        imports: Sequence[str] = (),
        timeout_seconds: float | None = 30,
        max_output: int = 50_000,
        max_tool_calls: int = 10_000,
    ) -> None:
        self._new_worker = partial(Worker, tuple(imports), max_output, max_tool_calls)
        self._timeout = timeout_seconds
        self._tools: list[kernel.ToolSpec] = []
        self._variables: dict[str, object] = {}
        self._steps = itertools.count(1)
        self._worker: Worker | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._lock = threading.Lock()  # of the two below
        self._running = False
        self._is_interrupted_early = False
        self._closed = False

    @property
    def layers(self) -> Mapping[str, object]:
        """No walls, ever."""
        return MappingProxyType({})

    @property
    def work_files(self) -> WorkFiles:
        """It has none of its own: code opens the files of this process."""
        raise SandboxError(
            'executor_type="inprocess" has no work folder, so that files= and keep_files= do not '
            "go with it: code opens and writes files by their own paths, as your program does."
        )

    def open(self) -> None:
        """Does nothing: all is here."""

    async def aopen(self) -> None:
        """Does nothing: all is here."""

    def set_tools(self, specs: Sequence[ToolSpec]) -> None:
        """Puts these tools in the place of those before."""
        self._tools = [
            kernel.ToolSpec(spec.name, spec.signature, spec.doc, spec.final) for spec in specs
        ]
        if self._worker is not None:
            self._worker.set_tools(self._tools)

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables: the objects themselves."""
        self._variables.update(variables)
        if self._worker is not None:
            self._worker.set_variables(variables)

    def reply(self, request: ToolRequest, value: object) -> None:
        """Answers a call, from any thread."""
        if (worker := self._worker) is not None:
            worker.settle(request.id, value, None)

    def fail(self, request: ToolRequest, error: str, kind: str = "") -> None:
        """Makes a call raise, from any thread."""
        if (worker := self._worker) is not None:
            worker.settle(request.id, None, kernel.tool_error(error, kind))

    def interrupt(self) -> None:
        """Ends the step in progress, from any thread."""
        self._is_interrupted_early = True  # if it has not begun yet
        if (worker := self._worker) is not None:
            worker.interrupt()

    def execute(self, code: str) -> Generator[ToolRequest | Printed, None, CodeResult]:
        """Runs one step; the calling thread waits. See `Interpreter.execute`."""
        self._is_interrupted_early = False
        return self._steps_of(code)

    def _steps_of(self, code: str) -> Generator[ToolRequest | Printed, None, CodeResult]:
        inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
        with self._started(code, inbox.put) as step:
            try:
                while not isinstance(item := self._take(step, inbox), CodeResult):
                    if item is not None:
                        yield item
                return item
            finally:  # the caller may have left before the end
                self.interrupt()
                while not step.over:
                    self._take(step, inbox)

    def _take(self, step: Step, inbox: queue.SimpleQueue[Event]) -> _Item | None:
        try:
            event = inbox.get(timeout=step.clock.patience())
        except queue.Empty:
            return self._check_time(step)
        return self._handle(step, event)

    async def aexecute(self, code: str) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
        """Runs one step, under asyncio. See `Interpreter.aexecute`."""
        self._is_interrupted_early = False
        inbox: asyncio.Queue[Event] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def post(event: Event) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(inbox.put_nowait, event)

        with self._started(code, post) as step:
            try:
                while not isinstance(item := await self._atake(step, inbox), CodeResult):
                    if item is not None:
                        yield item
            finally:
                await self._aend(step, inbox)
        yield item

    async def _atake(self, step: Step, inbox: asyncio.Queue[Event]) -> _Item | None:
        try:
            async with asyncio.timeout(step.clock.patience()):
                event = await inbox.get()
        except TimeoutError:
            return self._check_time(step)
        return self._handle(step, event)

    async def _aend(self, step: Step, inbox: asyncio.Queue[Event]) -> None:
        self.interrupt()
        try:
            while not step.over:
                await self._atake(step, inbox)
        except BaseException:  # cancelled a second time: no more patience
            self._leave_behind(step)
            raise

    @contextlib.contextmanager
    def _started(self, code: str, post: Callable[[Event], None]) -> Iterator[Step]:
        with self._lock:
            if self._closed:
                raise RuntimeError("the interpreter is closed: create another one")
            if self._running:
                raise RuntimeError("the interpreter runs a step already: one at a time")
            self._running = True
        try:
            if self._worker is None:
                self._worker = self._new_worker()
                self._finalizer = weakref.finalize(self, self._worker.stop)
                self._worker.set_tools(self._tools)
                self._worker.set_variables(self._variables)
            clock, limits = StepClock(self._timeout, _GRACE), StepLimits(self._timeout)
            step = Step(next(self._steps), code, post, clock, limits)
            self._worker.start(step)
            if self._is_interrupted_early:
                self._worker.interrupt()
            yield step
        finally:
            self._release()

    def _release(self) -> None:
        with self._lock:
            self._running = False
            if self._closed:
                self._worker = None

    def _handle(self, step: Step, event: Event) -> _Item:
        if isinstance(event, Finished):
            step.over = True
            if step.final is not None:
                return final_result(step.final[0], step.logs)
            return step.limits.result(event, step.logs)
        if isinstance(event, Printed):
            step.printed.append(event.text)
        return event

    def _check_time(self, step: Step) -> CodeResult | None:
        verdict = step.clock.verdict()
        if verdict == "kill":
            return self._leave_behind(step)
        if verdict == "interrupt":
            step.limits.is_overdue()
            self.interrupt()
        return None

    def _leave_behind(self, step: Step) -> CodeResult:
        """Leaves the thread to itself, which cannot be stopped; the next step gets another one."""
        step.over = True
        if self._worker is not None and self._finalizer is not None:
            self._finalizer.detach()
            self._worker.abandon()
            self._worker = None
        if step.final is not None:
            return final_result(step.final[0], step.logs)
        error = step.limits.unstoppable(_GONE)
        error.logs = step.logs
        return CodeResult(logs=step.logs, error=error)

    def close(self) -> None:
        """Ends the thread and forgets the variables. May be called again."""
        with self._lock:
            self._closed = True
            finalizer = self._finalizer
            if not self._running:
                self._worker = None
        if finalizer is not None:
            finalizer()
        self._variables.clear()

    async def aclose(self) -> None:
        """Does the same under asyncio."""
        self.close()
