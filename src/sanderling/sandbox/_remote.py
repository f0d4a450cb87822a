"""An interpreter at the other end of a socket: one core for the sync and the asyncio form."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
import weakref
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from sanderling.errors import (
    InterpreterError,
    SandboxCrashed,
    SandboxError,
    SandboxUnavailable,
)

from . import kernel
from ._clock import StepClock
from ._interpreter import CodeResult, Printed, ToolRequest, ToolSpec
from ._outcome import Finished, StepLimits, final_result
from ._session import Event, Ready, Session
from ._wire import Wire

START = 30.0
_READS = 16  # that may bring nothing, before others get their turn


class Link(Protocol):
    """A kernel that runs somewhere."""

    @property
    def socket(self) -> socket.socket:
        """What leads to it."""

    def interrupt(self) -> None:
        """Sends SIGINT, or what does the same there."""

    def kill(self) -> str:
        """Ends the kernel; tells how it ended, such as ``"exit status 3"``."""


class Backend(Protocol):
    """Where the kernels of one interpreter run, one at a time."""

    @property
    def ways_out(self) -> str:
        """What somebody can do whose machine cannot start a kernel here."""

    @property
    def files_remain(self) -> bool:
        """Whether the work folder outlives the kernel."""

    @property
    def grace(self) -> float:
        """Seconds that a step has to stop when it is interrupted, before the kernel is killed."""

    def start(self) -> Link:
        """Starts a kernel, in the place of the one before. It speaks up when it is locked.

        Raises:
            SandboxUnavailable: It cannot be started here.
        """

    def close(self) -> None:
        """Ends the kernel and removes all that is left behind. May be called again."""


class _Resources:
    """What must not outlive the interpreter; apart from it, so that a finalizer can hold it."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.link: Link | None = None
        self.wire: Wire | None = None
        self.busy = False
        self.closed = False

    def drop(self) -> str:
        """Ends the kernel, if there is one; tells how it ended."""
        link, wire = self.link, self.wire
        self.link = self.wire = None
        story = "" if link is None else link.kill()
        if wire is not None:
            wire.close()
        return story

    def release(self) -> None:
        self.busy = False
        if self.closed:
            self.drop()

    def close(self) -> None:
        self.closed = True
        if not self.busy:
            self.drop()
        self.backend.close()  # a step in progress sees its kernel die, and ends


class RemoteInterpreter:
    """Drives a kernel over a socket. `Interpreter` says what its methods promise.

    Args:
        backend: Where the kernel runs.
        imports: What the code may import beside `BASE_BUILTIN_MODULES`.
        timeout_seconds: How long a step may run, tool calls not counted; None for no limit.
        max_output: Characters that a step may print.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        imports: Sequence[str] = (),
        timeout_seconds: float | None = 30,
        max_output: int = 50_000,
    ) -> None:
        self._imports = tuple(imports)
        self._timeout = timeout_seconds
        self._max_output = max_output
        self._resources = _Resources(backend)
        self._finalizer = weakref.finalize(self, self._resources.close)
        self._lock = threading.RLock()  # of the session and the clock
        self._session = Session()
        self._clock = StepClock(None, backend.grace)
        self._tools: tuple[ToolSpec, ...] = ()
        self._variables: dict[str, object] = {}
        self._layers: Mapping[str, object] = MappingProxyType({})
        self._steps = itertools.count(1)
        self._limits = StepLimits(timeout_seconds)

    @property
    def layers(self) -> Mapping[str, object]:
        """The walls in force; empty before the first step."""
        return self._layers

    def set_tools(self, specs: Sequence[ToolSpec]) -> None:
        """Puts these tools in the place of those before, from the next step on."""
        self._tools = tuple(specs)
        if self._resources.wire is not None:
            self._resources.wire.send(self._session.tools(self._tools))

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables, from the next step on.

        Raises:
            CodecError: A value cannot enter the sandbox.
        """
        buffers = self._session.variables(variables)
        self._variables.update(variables)
        if self._resources.wire is not None:
            self._resources.wire.send(buffers)

    def reply(self, request: ToolRequest, value: object) -> None:
        """Answers a call, from any thread."""
        with self._lock:
            buffers = self._session.reply(request, value)
            self._watch_clock()
        self._say(buffers)

    def fail(self, request: ToolRequest, error: str) -> None:
        """Makes a call raise in the sandbox, from any thread."""
        with self._lock:
            buffers = self._session.fail(request, error)
            self._watch_clock()
        self._say(buffers)

    def interrupt(self) -> None:
        """Ends the step in progress, from any thread."""
        with self._lock:
            link = self._resources.link
            if link is None or not self._session.running:
                return
            self._clock.interrupted()
            buffers = self._session.interrupt()
            link.interrupt()
        self._say(buffers)

    def _say(self, buffers: list[bytes | bytearray | memoryview]) -> None:
        wire = self._resources.wire
        if wire is not None and buffers:
            wire.send(buffers)

    def _watch_clock(self) -> None:
        if self._session.waiting:
            self._clock.stand()
        else:
            self._clock.run()

    # Starting

    def open(self) -> None:
        """Starts the sandbox now rather than with the first step.

        Raises:
            SandboxUnavailable: It cannot be started, or not be locked.
        """
        with self._claimed():
            self._open()

    async def aopen(self) -> None:
        """Does the same under asyncio."""
        with self._claimed():
            await self._aopen()

    def _open(self) -> Wire:
        if self._resources.wire is not None:
            return self._resources.wire
        with self._starting():
            wire = self._greet(self._resources.backend.start())
            with wire.driven():
                while not self._is_ready():
                    wire.wait(self._clock.patience())
            return wire

    async def _aopen(self) -> Wire:
        if self._resources.wire is not None:
            return self._resources.wire
        with self._starting():
            wire = self._greet(await self._astart())
            with wire.driven(asyncio.get_running_loop()):
                while not self._is_ready():
                    await wire.await_bytes(self._clock.patience())
            return wire

    async def _astart(self) -> Link:
        starting = asyncio.ensure_future(asyncio.to_thread(self._resources.backend.start))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(SandboxUnavailable):
                link = await starting
                link.kill()
                link.socket.close()
            raise

    @contextlib.contextmanager
    def _claimed(self) -> Iterator[None]:
        with self._lock:
            if self._resources.closed:
                raise RuntimeError("the interpreter is closed: create another one")
            if self._resources.busy:
                raise RuntimeError("the interpreter runs a step already: one at a time")
            self._resources.busy = True
        try:
            yield
        finally:
            self._resources.release()

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        try:
            yield
        except SandboxError as error:
            self._resources.drop()
            ways_out = self._resources.backend.ways_out
            raise SandboxUnavailable(f"The sandbox did not start: {error} {ways_out}") from error
        except BaseException:
            self._resources.drop()
            raise

    def _greet(self, link: Link) -> Wire:
        wire = Wire(link.socket)
        self._resources.link, self._resources.wire = link, wire
        self._session = Session(max_output=self._max_output)
        self._clock = StepClock(START, 0.0)
        wire.send(self._session.hello(self._imports))
        wire.send(self._session.tools(self._tools))
        if self._variables:
            wire.send(self._session.variables(self._variables))
        return wire

    def _is_ready(self) -> bool:
        for event in self._pull() or ():
            if isinstance(event, Ready):
                self._layers = event.layers
                return True
        if self._clock.left() <= 0:
            raise SandboxUnavailable(f"nothing was heard of it for {START:g} s.")
        return False

    # Running

    def execute(self, code: str) -> Generator[ToolRequest | Printed, None, CodeResult]:
        """Runs one step in the calling thread. See `Interpreter.execute`."""
        with self._claimed():
            wire = self._open()
            with wire.driven():
                try:
                    self._start_step(wire, code)
                    while True:
                        events = self._turn()
                        if events is None:
                            wire.wait(self._clock.patience())
                            continue
                        for event in events:
                            if isinstance(event, Finished):
                                return self._result(event)
                            if not isinstance(event, Ready):
                                yield event
                except SandboxError as error:
                    return self._lost(error)
                finally:
                    self._abandon(wire)

    async def aexecute(self, code: str) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
        """Runs one step under asyncio. See `Interpreter.aexecute`."""
        with self._claimed():
            wire = await self._aopen()
            with wire.driven(asyncio.get_running_loop()):
                result = None
                try:
                    self._start_step(wire, code)
                    while result is None:
                        events = self._turn()
                        if not events:
                            await self._rest(wire, events)
                            continue
                        for event in events:
                            if isinstance(event, Finished):
                                result = self._result(event)
                            elif not isinstance(event, Ready):
                                yield event
                except SandboxError as error:
                    result = self._lost(error)
                finally:
                    await self._aabandon(wire)
            yield result

    async def _rest(self, wire: Wire, events: list[Event] | None) -> None:
        if events is None:
            await wire.await_bytes(self._clock.patience())
        else:
            await asyncio.sleep(0)  # there is more, but a flood must not keep the loop from others

    def _start_step(self, wire: Wire, code: str) -> None:
        with self._lock:
            try:
                buffers = self._session.execute(next(self._steps), code)
            except kernel.CodecError as error:
                raise InterpreterError(f"the code cannot enter the sandbox: {error}") from error
            self._clock = StepClock(self._timeout, self._resources.backend.grace)
            self._limits = StepLimits(self._timeout)
        wire.send(buffers)

    def _turn(self) -> list[Event] | None:
        """Reads what has come, and looks at the clock where nothing of interest has.

        Returns:
            None where there is nothing to read; an empty list where there is, but it says nothing:
            half a frame, or a flood of frames that nobody asked for.

        Raises:
            SandboxError: The kernel broke the protocol, died, or had to be killed.
        """
        events = self._pull()
        # A flood of frames that say something is looked at like one of frames that say nothing.
        if not any(isinstance(event, Finished) for event in events or ()):
            verdict = self._clock.verdict()
            if verdict == "interrupt":
                self._limits.overdue = True
                self.interrupt()
            elif verdict == "kill":
                raise self._limits.unstoppable(self._gone())
        return events

    def _pull(self) -> list[Event] | None:
        wire = self._resources.wire
        if wire is None:
            raise SandboxCrashed("The interpreter was closed while it ran the code.")
        with self._lock:
            for _ in range(_READS):
                count = wire.receive(self._session.space())
                if count is None:
                    return None
                if count == 0:
                    story = self._resources.drop()
                    raise SandboxCrashed(f"The interpreter died ({story}). {self._gone()}")
                events = self._session.advance(count)
                if events:
                    self._watch_clock()
                    return events
            return []

    def _abandon(self, wire: Wire) -> None:
        """Ends a step that nobody waits for any more; does nothing after one that has ended."""
        self.interrupt()
        try:
            while self._session.running:
                if self._turn() is None:
                    wire.wait(self._clock.patience())
        except SandboxError as error:
            self._lost(error)

    async def _aabandon(self, wire: Wire) -> None:
        self.interrupt()
        try:
            while self._session.running:
                if not (events := self._turn()):
                    await self._rest(wire, events)
        except SandboxError as error:
            self._lost(error)
        except BaseException:  # cancelled a second time: no more patience
            self._lost(self._limits.unstoppable(self._gone()))
            raise

    # Results

    def _result(self, finished: Finished) -> CodeResult:
        session = self._session
        if session.final is not None:
            return final_result(session.final[0], session.logs, finished.threads)
        return self._limits.result(finished, session.logs)

    def _lost(self, error: SandboxError) -> CodeResult:
        """Ends the kernel after a fault that it cannot go on from."""
        self._resources.drop()
        session, self._session = self._session, Session()
        if session.final is not None:
            return final_result(session.final[0], session.logs)
        error.logs = session.logs
        return CodeResult(logs=session.logs, error=error)

    def _gone(self) -> str:
        remain = self._resources.backend.files_remain
        files = "files in the work folder remain." if remain else "so is the work folder."
        return f"The interpreter was restarted: all variables of earlier steps are gone; {files}"

    # Ending

    def close(self) -> None:
        """Ends the sandbox and removes its work folder. May be called again."""
        self._finalizer()
        self._resources.close()

    async def aclose(self) -> None:
        """Does the same under asyncio."""
        await asyncio.to_thread(self.close)
