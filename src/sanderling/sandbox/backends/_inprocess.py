"""This very process: no walls, live objects. For code that is trusted, by explicit name only."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import ctypes
import itertools
import queue
import sys
import threading
import typing
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from sanderling.errors import SandboxError
from sanderling.sandbox import kernel
from sanderling.sandbox._clock import StepClock
from sanderling.sandbox._host_values import HostObject, HostValues
from sanderling.sandbox._interpreter import CodeResult, Printed, ToolRequest, ToolSpec
from sanderling.sandbox._outcome import Fault, Finished, StepLimits, final_result

Event: TypeAlias = "Printed | ToolRequest | Finished"

_GRACE = 0.5
_GONE = (
    "It goes on in the background, because a thread cannot be killed. "
    "The interpreter was replaced: all variables of earlier steps are gone."
)


class _Call(kernel.Call):
    """A call that waits for its reply."""

    def __init__(self, tool: kernel.ToolSpec, worker: _Worker) -> None:
        self.tool = tool
        self.answered = threading.Event()
        self.value: object = None
        self.error: str | None = None
        self._worker = worker

    def wait(self) -> object:
        self.answered.wait()
        if self.error is not None:
            raise kernel.ToolError(self.error)
        if self.tool.final:
            # With SystemExit, a thread ends in silence.
            raise kernel.FinalAnswer if self._worker.is_here else SystemExit
        return self._worker.entering(self.value)


class _Worker:
    """The thread that runs the code, with its variables. It knows nothing of the interpreter."""

    def __init__(self, imports: Sequence[str], max_output: int, max_tool_calls: int) -> None:
        self._max_calls = self._calls_left = max_tool_calls
        self._output = kernel.Output(lambda text: self._post(Printed(text)), max_output)
        self.workspace = kernel.Workspace(imports, self._begin, walls=False, print=self._print)
        self._values = HostValues()
        self._references = kernel.Values(self._begin, self.workspace.kept)
        self.calls: dict[str, _Call] = {}
        self.final: tuple[object] | None = None
        self._lock = threading.Lock()
        self._running = False
        self._interrupted = False
        self._step = 0
        self._serial = itertools.count(1)
        self._orders: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()
        self._post: Callable[[Event], None] = lambda _: None
        self._thread = threading.Thread(target=self._work, name="sanderling-code", daemon=True)
        self._thread.start()

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables: the objects themselves, but for each `HostObject`."""
        self.workspace.namespace.update(
            {name: self.entering(value) for name, value in variables.items()}
        )

    def start(self, step: int, code: str, post: Callable[[Event], None]) -> None:
        """Starts a step; what happens is told to `post`, in this thread."""
        self.refuse_calls("the step that made this call has ended")
        self._post, self.final, self._step = post, None, step
        self._interrupted, self._running = False, True
        self._calls_left = self._max_calls
        self._orders.put((step, code))

    def stop(self) -> None:
        """Ends the thread once it is idle, and leaves it alone if it never is."""
        self._post = lambda _: None
        self.refuse_calls("the interpreter was closed")
        self._orders.put(None)

    def interrupt(self) -> None:
        """Raises KeyboardInterrupt in the code, as soon as that executes the next instruction."""
        with self._lock:
            if self._running and not self._interrupted:
                self._interrupted = True
                self._raise_in_thread(ctypes.py_object(KeyboardInterrupt))
        self.refuse_calls("the step was interrupted")

    def refuse_calls(self, error: str) -> None:
        """Answers all calls that wait with an error."""
        while self.calls:
            _, call = self.calls.popitem()
            call.error = error
            call.answered.set()

    def _raise_in_thread(self, error: object) -> None:
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), error)

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            self._post(self._run(*order))

    def _run(self, step: int, code: str) -> Finished:
        value, text, fault = None, "", None
        self._output.start_step()
        try:
            value = self.workspace.run(step, code)
            text = kernel.show(value)
            value = self._leaving(value)
        except kernel.FinalAnswer:
            pass
        except BaseException as error:
            fault = Fault(**self.workspace.explain(error))
        while True:
            with contextlib.suppress(KeyboardInterrupt):  # one that was under way
                with self._lock:
                    self._running = False
                self._raise_in_thread(None)
                self._output.end_step()
                return Finished(value, text, fault, self._interrupted, threads=0)

    def _print(self, *args: object, file: Any = None, **options: Any) -> None:
        if file in (None, sys.stdout, sys.stderr):
            file = self._output
        builtins.print(*args, file=file, **options)

    @property
    def is_here(self) -> bool:
        """Whether this is the thread of the code, rather than one that it has started."""
        return threading.current_thread() is self._thread

    def _begin(
        self,
        tool: kernel.ToolSpec,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        together: bool,
    ) -> kernel.Call:
        self._output.flush()
        if not self._running:
            raise kernel.ToolError(f"{tool.name} was called after the step had ended")
        with self._lock:
            if not self._calls_left:
                raise kernel.ToolError(kernel.too_many_calls(tool.name, self._max_calls))
            self._calls_left -= 1
        alone = self.is_here and not together
        key = f"step_{self._step}_call_{next(self._serial)}"
        name, method = tool.name, None
        if tool.on is not None:
            owner = self._values.find(tool.on)
            name, method = f"{type(owner.obj).__name__}.{name}", owner.member(name)
        left = tuple(map(self._leaving, args))
        named = {name: self._leaving(value) for name, value in kwargs.items()}
        call = self.calls[key] = _Call(tool, self)
        self._post(ToolRequest(key, name, left, named, alone, method))
        return call

    def entering(self, value: object) -> object:
        """Puts a reference in the place of each `HostObject`: the code shall have no more of it."""

        def refer(part: object) -> object:
            if isinstance(part, HostObject):
                return self._references.reference(self._values.refer(part))
            return part

        return _each(value, refer)

    def _leaving(self, value: object) -> object:
        def find(part: object) -> object:
            if isinstance(part, kernel.HostReference):
                return self._values.find(kernel.host_id(part)).obj
            return part

        return _each(value, find)


def _each(value: object, replace: Callable[[object], object]) -> object:
    """Replaces the parts of plain containers; what holds nothing to replace stays itself."""
    new: object
    if type(value) is dict:
        new = {key: _each(item, replace) for key, item in value.items()}
        changed = any(new[key] is not item for key, item in value.items())
    elif type(value) in (list, tuple):
        items = typing.cast("Sequence[object]", value)
        new = [_each(item, replace) for item in items]
        changed = any(one is not other for one, other in zip(new, items, strict=True))
        new = tuple(new) if type(value) is tuple else new
    else:
        return replace(value)
    return new if changed else value


class InProcessInterpreter:
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
        self._worker: _Worker | None = None
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

    def open(self) -> None:
        """Does nothing: all is here."""

    async def aopen(self) -> None:
        """Does nothing: all is here."""

    def set_tools(self, specs: Sequence[ToolSpec]) -> None:
        """Puts these tools in the place of those before."""
        self._tools = tuple(specs)
        if self._worker is not None:
            self._worker.workspace.set_tools(map(_known, self._tools))

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables: the objects themselves."""
        self._variables.update(variables)
        if self._worker is not None:
            self._worker.set_variables(variables)

    def reply(self, request: ToolRequest, value: object) -> None:
        """Answers a call, from any thread."""
        self._answer(request, value, None)

    def fail(self, request: ToolRequest, error: str) -> None:
        """Makes a call raise, from any thread."""
        self._answer(request, None, error)

    def _answer(self, request: ToolRequest, value: object, error: str | None) -> None:
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
            event = inbox.get(timeout=self._clock.patience())
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

    async def aexecute(self, code: str) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
        """Runs one step in a thread, under asyncio. See `Interpreter.aexecute`."""
        loop = asyncio.get_running_loop()
        inbox: asyncio.Queue[Event] = asyncio.Queue()

        def post(event: Event) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(inbox.put_nowait, event)

        result: CodeResult | None = None
        with self._started(code, post):
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

    async def _atake(self, inbox: asyncio.Queue[Event]) -> Event | None:
        try:
            event = await asyncio.wait_for(inbox.get(), self._clock.patience())
        except TimeoutError:
            self._judge()
            return None
        return self._noted(event)

    async def _aabandon(self, inbox: asyncio.Queue[Event]) -> None:
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
    def _started(self, code: str, post: Callable[[Event], None]) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise RuntimeError("the interpreter is closed: create another one")
            if self._running:
                raise RuntimeError("the interpreter runs a step already: one at a time")
            self._running = True
            if self._worker is None:
                self._worker = _Worker(self._imports, self._max_output, self._max_calls)
                self._finalizer = weakref.finalize(self, self._worker.stop)
                self._worker.workspace.set_tools(map(_known, self._tools))
                self._worker.set_variables(self._variables)
            self._printed = []
            self._clock = StepClock(self._timeout, _GRACE)
            self._limits = StepLimits(self._timeout)
            self._worker.start(next(self._steps), code, post)
        try:
            yield
        finally:
            self._running = False

    def _noted(self, event: Event) -> Event:
        if isinstance(event, Printed):
            self._printed.append(event.text)
        elif isinstance(event, ToolRequest):
            with self._lock:
                self._clock.stand()
        else:
            self._running = False
        return event

    def _judge(self) -> None:
        """Looks at the clock.

        Raises:
            SandboxError: The code goes on after its interrupt.
        """
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
