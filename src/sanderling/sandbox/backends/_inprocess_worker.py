"""What runs the code in this process: its variables, and one step after the other."""

from __future__ import annotations

import builtins
import contextlib
import contextvars
import ctypes
import functools
import itertools
import sys
import threading
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from sanderling.sandbox import kernel
from sanderling.sandbox._clock import StepClock
from sanderling.sandbox._host_values import HostObject, HostValues
from sanderling.sandbox._interpreter import CallElsewhere, InlineCalls, Printed, ToolRequest
from sanderling.sandbox._outcome import Fault, Finished
from sanderling.sandbox._texts import failure

from ._step_threads import StepThreads, shared_threads

Event: TypeAlias = "Printed | ToolRequest | Finished"


@dataclass(slots=True, eq=False)
class Step:
    """One step, from the order to its end.

    Attributes:
        number: Which one.
        code: Python.
        post: Is told what happens, in the thread of the code.
        clock: Runs while the code does.
        inline: Which calls the thread of the code carries out itself.
        thread: That thread; None before it has begun.
        running: Whether the step has not ended.
        interrupted: Whether it was interrupted.
        calling: Whether its thread carries a call out.
        left: Whether it ended without its thread, which still carries a call out.
    """

    number: int
    code: str
    post: Callable[[Event], None]
    clock: StepClock
    inline: InlineCalls | None = None
    thread: int | None = None
    running: bool = True
    interrupted: bool = False
    calling: bool = False
    left: bool = False


class Call(kernel.Call):
    """A call that waits for its reply."""

    def __init__(self, tool: kernel.ToolSpec, worker: Worker) -> None:
        self.tool = tool
        self.answered = threading.Event()
        self.value: object = None
        self.error: tuple[str, str] | None = None  # the text, and the builtin class
        self._worker = worker

    def wait(self) -> object:
        """Blocks until the reply is here. See `kernel.Call.wait`."""
        with self._worker.waiting():
            self.answered.wait()
        if self.error is not None:
            raise kernel.tool_error(*self.error)
        return self._worker.answer(self.tool, self.value)


class _InlineCall(kernel.Call):
    """A call that the thread of the code carries out as soon as that waits for it."""

    def __init__(
        self,
        tool: kernel.ToolSpec,
        request: ToolRequest,
        work: Callable[[], object],
        worker: Worker,
    ) -> None:
        self._tool = tool
        self._request = request
        self._work = work
        self._worker = worker

    def wait(self) -> object:
        problem = None
        try:
            with self._worker.calling():
                value = self._work()
        except CallElsewhere as told:
            rest = told.rest
        except Exception as error:
            problem = failure(error)
        else:
            return self._worker.answer(self._tool, value)
        if problem is not None:
            raise kernel.tool_error(*problem)
        return self._worker.ask(self._tool, replace(self._request, rest=rest)).wait()


class _Settled(BaseException):
    """Raised in a thread by itself, to have no other such exception under way."""


class Worker:
    """Runs the code of one interpreter, and has its variables. It knows nothing of the interpreter.

    Args:
        imports: What the code may import.
        max_output: Characters that a step may print.
        max_tool_calls: Tool calls that a step may make.
        lock: Of the clocks, and of what is under way.
    """

    def __init__(
        self, imports: Sequence[str], max_output: int, max_tool_calls: int, lock: threading.RLock
    ) -> None:
        self._max_calls = self._calls_left = max_tool_calls
        self._output = kernel.Output(lambda text: self._step.post(Printed(text)), max_output)
        self._workspace = kernel.Workspace(imports, self._begin, walls=False, print=self._print)
        self._values = HostValues()
        self._references = kernel.Values(self._begin, self._workspace.kept)
        self.calls: dict[str, Call] = {}
        self.final: tuple[object] | None = None
        self._lock = lock
        self._step = Step(0, "", _nobody, StepClock(None, 0.0), running=False)
        self._left: set[int] = set()  # threads whose step ended without them
        self._serial = itertools.count(1)
        self._context = contextvars.Context()
        # What it imports, or is given, may be bound to a thread: as a connection to SQLite is.
        self._own_threads = StepThreads(1) if imports else None

    def set_tools(self, tools: Sequence[kernel.ToolSpec]) -> None:
        """Puts these tools in the place of those before."""
        self._workspace.set_tools(tools)

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables: the objects themselves, but for each `HostObject`."""
        if variables and self._own_threads is None:
            self._own_threads = StepThreads(1)
        self._workspace.namespace.update(
            {name: self._entering(value) for name, value in variables.items()}
        )

    @property
    def _threads(self) -> StepThreads:
        return self._own_threads or shared_threads()

    def start(self, step: Step) -> None:
        """Starts a step."""
        self.refuse_calls("the step that made this call has ended")
        self._step, self.final = step, None
        self._calls_left = self._max_calls
        step.clock.stand()
        self._threads.run(functools.partial(self._carry_out, step))

    @property
    def has_begun(self) -> bool:
        """Whether a thread has taken up the last step."""
        return self._step.thread is not None

    def hurry(self) -> None:
        """Says that the step should have begun."""
        self._threads.hurry()

    def stop(self) -> None:
        """Frees the thread once it is idle, and leaves it alone if it never is."""
        step = self._step
        with self._lock:
            step.post = _nobody
            step.running = step.running and step.thread is not None
        self.refuse_calls("the interpreter was closed")
        if self._own_threads is not None:
            self._own_threads.close()

    def interrupt(self) -> None:
        """Raises KeyboardInterrupt in the code, as soon as that executes the next instruction.

        While its thread carries out a call, which is not the code's, the step ends without it.
        """
        ended = False
        with self._lock:
            step = self._step
            if step.running and not step.interrupted:
                step.interrupted = True
                if step.thread is None:
                    ended = True
                elif step.calling:
                    ended = True
                    self._leave(step, step.thread)
                else:
                    _raise_in_thread(step.thread, KeyboardInterrupt)
                step.running = not ended
        self.refuse_calls("the step was interrupted")
        if ended:
            self._output.end_step()
            step.post(Finished(None, "", None, interrupted=True, threads=0))

    def _leave(self, step: Step, thread: int) -> None:
        step.left = True
        self._left.add(thread)
        self._context = self._context.copy()  # that thread is still in it
        if self._own_threads is not None:
            self._own_threads.close()
            self._own_threads = StepThreads(1)

    def refuse_calls(self, error: str) -> None:
        """Answers all calls that wait with an error."""
        while self.calls:
            _, call = self.calls.popitem()
            call.error = (error, "")
            call.answered.set()

    def _carry_out(self, step: Step) -> None:
        finished = self._context.run(self._run, step)
        if step.left and step.thread is not None:
            self._left.discard(step.thread)
        elif finished is not None:
            step.post(finished)

    def _run(self, step: Step) -> Finished | None:
        value, text, fault, is_final = None, "", None, False
        try:
            try:
                with self._lock:
                    if not step.running:
                        return None  # it was ended before
                    step.thread = threading.get_ident()
                    step.clock.run()
                self._output.start_step()
                value = self._workspace.run(step.number, step.code)
                text = kernel.show(value)
                value = self._leaving(value)
            except kernel.FinalAnswer:
                is_final = True
            except BaseException as error:
                fault = Fault(**self._workspace.explain(error))
        except KeyboardInterrupt as error:  # it came just after another error
            fault = Fault(**self._workspace.explain(error))
        with self._lock:
            step.running = False
        if step.interrupted:
            _settle()
        if not step.left:
            self._output.write("" if is_final else self._workspace.note_on_tools())
            self._output.end_step()
        return Finished(value, text, fault, step.interrupted, threads=0)

    def _print(self, *args: object, file: Any = None, **options: Any) -> None:
        if file in (None, sys.stdout, sys.stderr):
            if threading.get_ident() in self._left:
                return
            file = self._output
        builtins.print(*args, file=file, **options)

    @property
    def _is_here(self) -> bool:
        """Whether this is the thread of the code, rather than one that it has started."""
        return threading.get_ident() == self._step.thread

    def _begin(
        self,
        tool: kernel.ToolSpec,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        together: bool,
    ) -> kernel.Call:
        step = self._step
        if threading.get_ident() in self._left:
            raise KeyboardInterrupt
        self._output.flush()
        if not step.running:
            raise kernel.ToolError(f"{tool.name} was called after the step had ended")
        with self._lock:
            if not self._calls_left:
                raise kernel.ToolError(kernel.too_many_calls(tool.name, self._max_calls))
            self._calls_left -= 1
        alone = self._is_here and not together
        key = f"step_{step.number}_call_{next(self._serial)}"
        name, method = tool.name, None
        if tool.on is not None:
            owner = self._values.find(tool.on)
            name, method = f"{type(owner.obj).__name__}.{name}", owner.member(name)
        left = tuple(map(self._leaving, args))
        named = {name: self._leaving(value) for name, value in kwargs.items()}
        request = ToolRequest(key, name, left, named, alone, method)
        if alone and step.inline is not None and not step.interrupted:
            work = step.inline(request)
            if work is not None:
                return _InlineCall(tool, request, work, self)
        return self.ask(tool, request)

    def ask(self, tool: kernel.ToolSpec, request: ToolRequest) -> Call:
        """Tells the driver of a call."""
        call = self.calls[request.id] = Call(tool, self)
        self._step.post(request)
        return call

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        """Takes note that the thread of the code is not the code's meanwhile.

        Raises:
            KeyboardInterrupt: The step was interrupted before, or has ended meanwhile.
        """
        step = self._step
        with self._lock:
            if step.interrupted:
                raise KeyboardInterrupt
            step.calling = True
            step.clock.stand()
        try:
            yield
        finally:
            with self._lock:
                step.calling = False
                if not self.calls:
                    step.clock.run()
            if step.left:
                raise KeyboardInterrupt

    def waiting(self) -> contextlib.AbstractContextManager[None]:
        """Takes note that the calling thread has nothing to do meanwhile."""
        return self._threads.waiting() if self._is_here else contextlib.nullcontext()

    def answer(self, tool: kernel.ToolSpec, value: object) -> object:
        """Returns what a call that succeeded returns in the code.

        Raises:
            FinalAnswer: It was the last one.
        """
        if tool.final:
            with self._lock:
                self.final = self.final or (value,)
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
        def find(part: object) -> object:
            if isinstance(part, kernel.HostReference):
                return self._values.find(kernel.host_id(part)).obj
            return part

        return _each(value, find)


def _nobody(_: Event) -> None:
    """Hears what nobody waits for."""


def _raise_in_thread(ident: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(error))


def _settle() -> None:
    """Returns once no KeyboardInterrupt is under way to this thread.

    It is not taken back, for then Python 3.11 would go on to look for it, in all threads: this
    makes them slower, and stops one that is traced or profiled for ever.
    """
    while True:
        try:
            _raise_in_thread(threading.get_ident(), _Settled)  # in the place of the other
            while True:
                pass
        except KeyboardInterrupt:
            continue
        except _Settled:
            return


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
