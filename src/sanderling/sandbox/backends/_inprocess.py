"""This very process: no walls, live objects. For code that is trusted, by explicit name only."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sanderling.errors import SandboxError
from sanderling.sandbox import kernel
from sanderling.sandbox._clock import StepClock
from sanderling.sandbox._interpreter import (
    CodeResult,
    InlineCalls,
    InlineInterpreter,
    Printed,
    ToolRequest,
    ToolSpec,
)
from sanderling.sandbox._outcome import Finished, StepLimits, final_result

from ._inprocess_worker import Event, Step, Worker
from ._step_inbox import Inbox
from ._step_threads import HURRY_AFTER

if TYPE_CHECKING:
    from sanderling.sandbox._work_files import WorkFiles

_GRACE = 0.5
_GONE = (
    "It goes on in the background, because a thread cannot be killed. "
    "The interpreter was replaced: all variables of earlier steps are gone."
)


class InProcessInterpreter(InlineInterpreter):
    """Runs code in a thread of this process. `Interpreter` says what its methods promise.

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
        self._imports = tuple(imports)
        self._max_output = max_output
        self._max_calls = max_tool_calls
        self._timeout = timeout_seconds
        self._lock = threading.RLock()
        self._tools: tuple[ToolSpec, ...] = ()
        self._variables: dict[str, object] = {}
        self._worker: Worker | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._steps = itertools.count(1)
        self._printed: list[str] = []
        self._clock = StepClock(None, _GRACE)
        self._limits = StepLimits(timeout_seconds)
        self._running = False
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
        self._tools = tuple(specs)
        if self._worker is not None:
            self._worker.set_tools([*map(_known, self._tools)])

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables: the objects themselves."""
        self._variables.update(variables)
        if self._worker is not None:
            self._worker.set_variables(variables)

    def reply(self, request: ToolRequest, value: object) -> None:
        """Answers a call, from any thread."""
        self._answer(request, value, None)

    def fail(self, request: ToolRequest, error: str, kind: str = "") -> None:
        """Makes a call raise, from any thread."""
        self._answer(request, None, (error, kind))

    def _answer(self, request: ToolRequest, value: object, error: tuple[str, str] | None) -> None:
        with self._lock:
            worker = self._worker
            call = None if worker is None else worker.calls.pop(request.id, None)
            if worker is None or call is None or call.answered.is_set():
                return
            if call.tool.final and error is None:
                worker.final = worker.final or (value,)
            call.value, call.error = value, error
            call.answered.set()
            if not worker.calls:
                self._clock.run()

    def interrupt(self) -> None:
        """Ends the step in progress, from any thread."""
        with self._lock:
            if self._running and self._worker is not None:
                self._clock.interrupted()
                self._worker.interrupt()

    def execute(self, code: str) -> Generator[ToolRequest | Printed, None, CodeResult]:
        """Runs one step; the calling thread waits. See `Interpreter.execute`."""
        inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
        with self._started(code, inbox.put):
            try:
                while True:
                    event = self._take(inbox)
                    if isinstance(event, Finished):
                        return self._result(event)
                    if event is not None:
                        yield event
            except SandboxError as error:
                return self._lost(error)
            finally:
                self._abandon(inbox)

    def _take(self, inbox: queue.SimpleQueue[Event]) -> Event | None:
        try:
            event = inbox.get(timeout=self._patience())
        except queue.Empty:
            self._judge()
            return None
        return self._noted(event)

    def _abandon(self, inbox: queue.SimpleQueue[Event]) -> None:
        """Ends a step that nobody waits for any more; does nothing after one that has ended."""
        self.interrupt()
        try:
            while self._running:
                self._take(inbox)
        except SandboxError as error:
            self._lost(error)

    def aexecute(self, code: str) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
        """Runs one step in a thread, under asyncio. See `Interpreter.aexecute`."""
        return self._aexecute(code, None)

    def aexecute_inline(
        self, code: str, inline: InlineCalls
    ) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
        """Does the same, and carries out calls itself. See `InlineInterpreter`."""
        return self._aexecute(code, inline)

    async def _aexecute(
        self, code: str, inline: InlineCalls | None
    ) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
        inbox: Inbox[Event] = Inbox()
        result: CodeResult | None = None
        with self._started(code, inbox.put, inline):
            try:
                while result is None:
                    event = await self._atake(inbox)
                    if isinstance(event, Finished):
                        result = self._result(event)
                    elif event is not None:
                        yield event
            except SandboxError as error:
                result = self._lost(error)
            finally:
                await self._aabandon(inbox)
        yield result

    async def _atake(self, inbox: Inbox[Event]) -> Event | None:
        event = await inbox.get(self._patience())
        if event is None:
            self._judge()
            return None
        return self._noted(event)

    async def _aabandon(self, inbox: Inbox[Event]) -> None:
        self.interrupt()
        try:
            while self._running:
                await self._atake(inbox)
        except SandboxError as error:
            self._lost(error)
        except BaseException:  # cancelled a second time: no more patience
            self._lost(self._limits.unstoppable(_GONE))
            raise

    @contextlib.contextmanager
    def _started(
        self, code: str, post: Callable[[Event], None], inline: InlineCalls | None = None
    ) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise RuntimeError("the interpreter is closed: create another one")
            if self._running:
                raise RuntimeError("the interpreter runs a step already: one at a time")
            self._running = True
            if self._worker is None:
                self._worker = Worker(self._imports, self._max_output, self._max_calls, self._lock)
                self._finalizer = weakref.finalize(self, self._worker.stop)
                self._worker.set_tools([*map(_known, self._tools)])
                self._worker.set_variables(self._variables)
            self._printed = []
            self._clock = StepClock(self._timeout, _GRACE)
            self._limits = StepLimits(self._timeout)
            self._worker.start(Step(next(self._steps), code, post, self._clock, inline))
        try:
            yield
        finally:
            self._running = False

    def _noted(self, event: Event) -> Event:
        if isinstance(event, Printed):
            self._printed.append(event.text)
        elif isinstance(event, ToolRequest):
            with self._lock:
                if self._worker is not None and self._worker.calls:
                    self._clock.stand()
        else:
            self._running = False
        return event

    def _patience(self) -> float:
        patience = self._clock.patience()
        has_begun = self._worker is None or self._worker.has_begun
        return patience if has_begun else min(patience, HURRY_AFTER)

    def _judge(self) -> None:
        """Looks at the clock, and whether the step has begun.

        Raises:
            SandboxError: The code goes on after its interrupt.
        """
        if self._worker is not None and not self._worker.has_begun:
            self._worker.hurry()
        verdict = self._clock.verdict()
        if verdict == "interrupt":
            self._limits.is_overdue()
            self.interrupt()
        elif verdict == "kill":
            raise self._limits.unstoppable(_GONE)

    def _result(self, finished: Finished) -> CodeResult:
        worker, logs = self._worker, "".join(self._printed)
        if worker is not None and worker.final is not None:
            return final_result(worker.final[0], logs)
        return self._limits.result(finished, logs)

    def _lost(self, error: SandboxError) -> CodeResult:
        """Leaves a thread behind that cannot be stopped."""
        worker, self._worker, logs = self._worker, None, "".join(self._printed)
        self._running = False
        if worker is not None:
            worker.stop()
            if worker.final is not None:
                return final_result(worker.final[0], logs)
        error.logs = logs
        return CodeResult(logs=logs, error=error)

    def close(self) -> None:
        """Ends the thread and forgets the variables. May be called again."""
        self.interrupt()
        with self._lock:
            self._closed = True
            if self._finalizer is not None:
                self._finalizer()
            if not self._running:
                self._worker = None

    async def aclose(self) -> None:
        """Does the same under asyncio."""
        self.close()


def _known(spec: ToolSpec) -> kernel.ToolSpec:
    return kernel.ToolSpec(spec.name, spec.signature, spec.doc, spec.final)
