"""The thread that runs the code of one interpreter in this process, and the code's variables."""

from __future__ import annotations

import builtins
import ctypes
import itertools
import queue
import sys
import threading
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sanderling.sandbox import kernel
from sanderling.sandbox._clock import StepClock
from sanderling.sandbox._host_values import HostObject, HostValues
from sanderling.sandbox._interpreter import Printed, ToolRequest
from sanderling.sandbox._outcome import Fault, Finished, StepLimits

Event: TypeAlias = "Printed | ToolRequest | Finished"


@dataclass(slots=True, eq=False)
class Step:
    """One step, from the order to its end. What changes is guarded by the lock of the worker.

    Attributes:
        number: Which one.
        code: Python.
        post: Passes on what happens, from any thread.
        clock: Runs while the code does.
        limits: What it may take, for the words about its end.
        printed: What it has printed, as far as the driver has taken it.
        over: Whether the driver has its result.
        calls: The tool calls that wait for a reply, by id.
        calls_made: How many there were, answered ones included.
        final: The final answer, once it is given.
        started: Whether the thread has taken the step up.
        running: Whether the step has not ended.
        interrupted: Whether it was interrupted.
    """

    number: int
    code: str
    post: Callable[[Event], None]
    clock: StepClock
    limits: StepLimits
    printed: list[str] = field(default_factory=list)
    over: bool = False
    calls: dict[str, Call] = field(default_factory=dict)
    calls_made: int = 0
    final: tuple[object] | None = None
    started: bool = False
    running: bool = True
    interrupted: bool = False

    @property
    def logs(self) -> str:
        """What it has printed."""
        return "".join(self.printed)

    def refuse_calls(self, error: str) -> None:
        """Answers all calls that wait with an error."""
        while self.calls:
            _, call = self.calls.popitem()
            call.settle(None, kernel.ToolError(error))


class Call(kernel.Call):
    """A call that waits for its reply, in the thread that makes it."""

    def __init__(self, tool: kernel.ToolSpec, receive: Callable[[Call, object], object]) -> None:
        self.tool = tool
        self._receive = receive
        self._settled = threading.Event()
        self._value: object = None
        self._error: BaseException | None = None

    def settle(self, value: object, error: BaseException | None) -> None:
        """Wakes the thread that waits, with a value or an error."""
        self._value, self._error = value, error
        self._settled.set()

    def wait(self) -> object:
        """Blocks until the reply is here. See `kernel.Call.wait`."""
        self._settled.wait()
        if self._error is not None:
            raise self._error
        return self._receive(self, self._value)


class Worker:
    """Runs steps in a thread of its own, one after the other; the thread takes them from a queue.

    It does not know the interpreter, so that one that nobody uses any more ends, and this with it.

    Args:
        imports: What the code may import.
        max_output: Characters that a step may print.
        max_tool_calls: Tool calls that a step may make.
    """

    def __init__(self, imports: Sequence[str], max_output: int, max_tool_calls: int) -> None:
        self.lock = threading.RLock()
        self.step = Step(0, "", _ignore, StepClock(None, 0), StepLimits(None), running=False)
        self._max_calls = max_tool_calls
        self._steps: queue.SimpleQueue[Step | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._output = kernel.Output(lambda text: self.step.post(Printed(text)), max_output)
        self._workspace = kernel.Workspace(imports, self._begin, walls=False, print=self._print)
        self._values = HostValues()
        self._references = kernel.Values(self._begin, self._workspace.kept)
        self._serial = itertools.count(1)

    def set_tools(self, tools: Sequence[kernel.ToolSpec]) -> None:
        """Puts these tools in the place of those before."""
        self._workspace.set_tools(tools)

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables: the objects themselves, but for each `HostObject`."""
        self._workspace.namespace.update(
            {name: self._entering(value) for name, value in variables.items()}
        )

    def start(self, step: Step) -> None:
        """Has the thread run a step; starts the thread for the first one, and in a forked child.

        Raises:
            RuntimeError: The thread cannot be started.
        """
        self.step.refuse_calls("the step that made this call has ended")
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name="sanderling-code", daemon=True)
            self._thread.start()
        self.step = step
        self._steps.put(step)

    def interrupt(self) -> None:
        """Raises KeyboardInterrupt in the code, as soon as that executes the next instruction."""
        with self.lock:
            step = self.step
            if not step.running:
                return
            if step.started and not step.interrupted and self._thread is not None:
                _raise_keyboard_interrupt(self._thread)
            step.interrupted = True
            step.clock.interrupted()
            step.refuse_calls("the step was interrupted")

    def stop(self) -> None:
        """Ends the step in progress, and then the thread."""
        self.interrupt()
        self.step.refuse_calls("the interpreter was closed")
        self._steps.put(None)

    def abandon(self) -> None:
        """Leaves the thread to itself; it ends once its step does, if ever."""
        with self.lock:
            self.step.running, self.step.post = False, _ignore
        self.stop()

    def settle(self, call_id: str, value: object, error: BaseException | None) -> None:
        """Answers a call, from any thread; one that does not wait any more is left alone."""
        with self.lock:
            step = self.step
            call = step.calls.pop(call_id, None)
            if call is None:
                return
            if call.tool.final and error is None:
                step.final = step.final or (value,)
            call.settle(value, error)
            if not step.calls:
                step.clock.run()

    def _serve(self) -> None:
        while (step := self._steps.get()) is not None:
            finished = self._run(step)
            step.post(finished)
            step.post = _ignore  # it may hold an event loop
            del step, finished

    def _run(self, step: Step) -> Finished:
        value, text, fault, is_final = None, "", None, False
        try:
            try:
                self._begin_step(step)
                value = self._workspace.run(step.number, step.code)
                text = kernel.show(value)
                value = self._leaving(value)
            except kernel.FinalAnswer:
                is_final = True
            except BaseException as error:
                fault = Fault(**self._workspace.explain(error))
            self._end_step(step)
        except KeyboardInterrupt as error:  # it came after all that
            fault = Fault(**self._workspace.explain(error))
            self._end_step(step)
        self._output.write("" if is_final else self._workspace.note_on_tools())
        self._output.end_step()
        return Finished(value, text, fault, step.interrupted, threads=0)

    def _begin_step(self, step: Step) -> None:
        self._output.start_step()
        with self.lock:
            step.started = True
            if step.interrupted:
                raise KeyboardInterrupt

    def _end_step(self, step: Step) -> None:
        """Lets no interrupt come from here on.

        Raises:
            KeyboardInterrupt: One came just before; Python raises it when the lock is released.
        """
        with self.lock:
            step.running = False

    def _print(self, *args: object, file: Any = None, **options: Any) -> None:
        if file in (None, sys.stdout, sys.stderr):
            file = self._output
        builtins.print(*args, file=file, **options)

    @property
    def _is_here(self) -> bool:
        """Whether this is the thread of the code, rather than one that the code has started."""
        return self._thread is not None and threading.get_ident() == self._thread.ident

    def _begin(
        self,
        tool: kernel.ToolSpec,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        together: bool,
    ) -> kernel.Call:
        """Begins to call a tool; see `kernel.Begin`."""
        self._output.flush()
        name, method = tool.name, None
        if tool.on is not None:
            owner = self._values.find(tool.on)
            name, method = f"{type(owner.obj).__name__}.{name}", owner.member(name)
        arguments = tuple(map(self._leaving, args))
        keywords = {keyword: self._leaving(value) for keyword, value in kwargs.items()}
        alone = self._is_here and not together
        call = Call(tool, self._receive)
        with self.lock:
            step = self.step
            if not step.running:
                raise kernel.ToolError(f"{tool.name} was called after the step had ended")
            if step.calls_made == self._max_calls:
                raise kernel.ToolError(kernel.too_many_calls(tool.name, self._max_calls))
            step.calls_made += 1
            call_id = f"step_{step.number}_call_{next(self._serial)}"
            step.calls[call_id] = call
            step.clock.stand()
            step.post(ToolRequest(call_id, name, arguments, keywords, alone, method))
        return call

    def _receive(self, call: Call, value: object) -> object:
        """Returns what a call that succeeded returns in the code.

        Raises:
            FinalAnswer: It was the last one.
        """
        if call.tool.final:
            # With SystemExit, a thread ends in silence.
            raise kernel.FinalAnswer if self._is_here else SystemExit
        return self._entering(value)

    def _entering(self, value: object) -> object:
        """Puts a reference in the place of each `HostObject`: the code shall have no more of it."""

        def refer(part: object) -> object:
            if isinstance(part, HostObject):
                return self._references.reference(self._values.refer(part))
            return part

        return _each(value, refer)

    def _leaving(self, value: object) -> object:
        """Does the reverse."""

        def find(part: object) -> object:
            if isinstance(part, kernel.HostReference):
                return self._values.find(kernel.host_id(part)).obj
            return part

        return _each(value, find)


def _ignore(_: Event) -> None:
    """Passes nothing on: nobody waits for it."""


def _raise_keyboard_interrupt(thread: threading.Thread) -> None:
    # The only way to end code that does not return, without a process around it.
    ident, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)


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
