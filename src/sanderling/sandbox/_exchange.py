"""What the host and one kernel after the other say to each other, without the waiting."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from sanderling.errors import (
    InterpreterError,
    SandboxCrashed,
    SandboxError,
    SandboxLimitExceeded,
    SandboxUnavailable,
    SandboxViolation,
)

from . import kernel
from ._clock import StepClock
from ._host_values import HostValues
from ._interpreter import CodeResult, ToolRequest, ToolSpec
from ._limits import LOOKS_EVERY, StepWatch, Usage
from ._outcome import Finished, StepLimits, final_result
from ._session import Event, Ready, Session
from ._wire import Wire

if TYPE_CHECKING:
    from ._backend import Link
    from ._resources import Resources
    from ._snapshots import CopyableLink

START = 30.0
MOST_ARGUMENTS = 32 << 20
"""Bytes of the calls under way, beside those of one frame."""
_READS = 16  # that may bring nothing, before others get their turn


@dataclass(frozen=True)
class Settings:
    """How an interpreter runs code: the arguments of `RemoteInterpreter`."""

    imports: tuple[str, ...]
    timeout_seconds: float | None
    cpu_seconds: float | None
    max_output: int
    max_tool_calls: int
    on_imports: Callable[[frozenset[str]], object] | None
    restore_after_kill: bool


class Exchange:
    """Starts, steps, watches, ends and replaces kernels; who drives it waits where it says so.

    Args:
        resources: The kernel, and what belongs to it.
        settings: How it runs code.
    """

    def __init__(self, resources: Resources, settings: Settings) -> None:
        self._resources = resources
        self._settings = settings
        self.lock = threading.RLock()
        """Of the session and the clock."""
        self.layers: Mapping[str, object] = MappingProxyType({})
        """The walls in force; empty before the first kernel is ready."""
        self.variables: dict[str, object] = {}
        """What was set from outside, which a new kernel gets as well."""
        self._tools: tuple[ToolSpec, ...] = ()
        self._values = HostValues()
        self._session = self._new_session()
        self._clock = StepClock(None, 0.0)
        self._watch = self._new_watch()
        self._limits = StepLimits(settings.timeout_seconds)
        self.paused = False
        """Whether nothing was to be read when that was last looked at: see `is_full`."""
        self._steps = itertools.count(1)
        self._interrupts = 0  # that the step was sent
        self._is_interrupted_early = False
        self._late = False  # whether one of them may reach the kernel after the step

    def follow(self, other: Exchange) -> None:
        """Takes over what a copy of the other's kernel knows already."""
        self._tools, self.variables = other._tools, dict(other.variables)
        self.layers, self._values = other.layers, other._values

    @property
    def running(self) -> bool:
        """Whether a step is in progress."""
        return self._session.running

    def set_tools(self, specs: Sequence[ToolSpec]) -> None:
        """Puts these tools in the place of those before, from the next step on."""
        self._tools = tuple(specs)
        if self._resources.wire is not None:
            self._resources.wire.send(self._session.tools(self._tools))

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables, from the next step on. See `Interpreter.set_variables`."""
        buffers = self._session.variables(variables)
        self.variables.update(variables)
        self._resources.checkpoint.variables_set()
        if self._resources.wire is not None:
            self._resources.wire.send(buffers)

    def reply(self, request: ToolRequest, value: object) -> None:
        """Answers a call, from any thread."""
        with self.lock:
            buffers = self._session.reply(request, value)
            self._watch_clock()
        self._say(buffers)

    def fail(self, request: ToolRequest, error: str, kind: str = "") -> None:
        """Makes a call raise in the sandbox, from any thread."""
        with self.lock:
            buffers = self._session.fail(request, error, kind)
            self._watch_clock()
        self._say(buffers)

    def expect_step(self) -> None:
        """Prepares for a step: an interrupt from now on ends it, even before its code begins."""
        with self.lock:
            self._is_interrupted_early = False

    def interrupt(self) -> None:
        """Ends the step in progress, from any thread."""
        with self.lock:
            link = self._resources.link
            if link is None or not self._session.running:
                self._is_interrupted_early = True
                return
            self._clock.interrupted()
            self._interrupts += 1
            buffers = self._session.interrupt()
            link.interrupt()
        self._say(buffers)

    def _say(self, buffers: list[bytes | bytearray | memoryview]) -> None:
        wire = self._resources.wire
        if wire is not None and buffers:
            wire.send(buffers)

    def _watch_clock(self) -> None:
        if self._session.calls:
            self._clock.stand()
        else:
            self._clock.run()

    # Starting

    def greet(self, link: Link) -> Wire:
        """Says hello to a new kernel, and what it must know."""
        wire = Wire(link.socket)
        self._resources.hold(link, wire)
        self._late = False
        self._session = self._new_session()
        self._clock = StepClock(START, 0.0)
        self._watch = self._new_watch()
        limits = self._resources.backend.limits.known()
        wire.send(self._session.hello(self._settings.imports, limits))
        wire.send(self._session.tools(self._tools))
        if self.variables:
            wire.send(self._session.variables(self.variables))
        return wire

    def _new_session(self, *, ready: bool = False) -> Session:
        calls, output = self._settings.max_tool_calls, self._settings.max_output
        return Session(calls, output, ready=ready, values=self._values)

    def is_ready(self) -> bool:
        """Reads what a new kernel has said so far; returns whether its walls stand.

        Raises:
            SandboxError: They do not, or nothing was heard of it for too long.
        """
        for event in self._pull() or ():
            if isinstance(event, Ready):
                name = self._resources.backend.name
                self.layers = MappingProxyType({"executor": name, **event.layers})
                can_be_copied = event.layers.get("snapshots") is True
                self._resources.checkpoint.begin(
                    self._settings.restore_after_kill and can_be_copied
                )
                return True
        if self._clock.left() <= 0:
            raise SandboxUnavailable(f"nothing was heard of it for {START:g} s.")
        return False

    # Running

    def start_step(self, wire: Wire, code: str) -> None:
        """Sends the code of one step.

        Raises:
            SandboxLimitExceeded: No step may run any more.
            InterpreterError: It is no text that can be sent.
        """
        signalled = self._resources.signalled
        late = signalled is not None and signalled.await_interrupts()
        with self.lock:
            try:
                forget = self._late or late
                buffers = self._session.execute(next(self._steps), code, forget=forget)
            except kernel.CodecError as error:
                raise InterpreterError(f"the code cannot enter the sandbox: {error}") from error
            if refusal := self._watch.start_step():
                raise SandboxLimitExceeded(refusal)
            self._clock = StepClock(self._settings.timeout_seconds, self._resources.backend.grace)
            self._limits = StepLimits(self._settings.timeout_seconds)
            self._interrupts, self._late = 0, False
        copyable = self._resources.copyable
        if copyable is not None:
            self._resources.checkpoint.before_step(copyable, wire.send)
        wire.send(buffers)
        if self._is_interrupted_early:
            self.interrupt()

    def _new_watch(self) -> StepWatch:
        backend = self._resources.backend
        return StepWatch(self._look, backend.limits, self._settings.cpu_seconds)

    def _look(self) -> Usage:
        resources = self._resources
        if resources.link is None:
            return Usage()
        most = resources.backend.limits.memory_bytes
        used = None if most is None else resources.memory_bytes(most)
        return replace(resources.backend.usage(resources.link), memory_bytes=used)

    def is_full(self) -> bool:
        """Returns whether nothing more is read for now: what the kernel asks for costs memory here.

        A call counts until the kernel has taken the reply. A kernel of ours takes replies before it
        makes more calls; only forged calls can make this last.
        """
        session, wire = self._session, self._resources.wire
        unsent = 0 if wire is None else wire.unsent
        return session.calls + unsent > kernel.MOST_CALLS or session.argument_bytes > MOST_ARGUMENTS

    def patience(self) -> float:
        """Returns how long to wait for bytes."""
        patience = self._clock.patience()
        return min(patience, LOOKS_EVERY) if self._watch.needed else patience

    def turn(self) -> list[Event] | None:
        """Reads what has come, and looks at the clock where nothing of interest has.

        Returns:
            None where there is nothing to read; an empty list where there is, but it says nothing:
            half a frame, or a flood of frames that nobody asked for.

        Raises:
            SandboxError: The kernel broke the protocol, died, or had to be killed.
        """
        events = self._pull()
        ended = any(isinstance(event, Finished) for event in events or ())
        excess = self._watch.excess(ended=ended)
        if excess is not None and (excess.final or self._limits.excess is None):
            self._limits.excess = excess
            if excess.final:
                raise self.unstoppable()
            self.interrupt()
        # A flood of frames that say something is looked at like one of frames that say nothing.
        if not ended:
            verdict = self._clock.verdict()
            if verdict == "interrupt":
                self._limits.is_overdue()
                self.interrupt()
            elif verdict == "kill":
                raise self.unstoppable()
        return events

    def _pull(self) -> list[Event] | None:
        wire = self._resources.wire
        if wire is None:
            raise SandboxCrashed("The interpreter was closed while it ran the code.")
        with self.lock:
            if self.paused and self.is_full():
                return None
            self.paused = False
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
                    self.paused = self.is_full()
                    return events
            return []

    # Results

    def result(self, finished: Finished) -> CodeResult:
        """Ends a step whose end the kernel told."""
        session = self._session
        self._late = self._interrupts > finished.interrupted
        self.rest_kernel()
        if finished.imported and self._settings.on_imports is not None:
            self._settings.on_imports(finished.imported)
        if session.final is not None:
            answer, text = session.final
            return final_result(answer, session.logs, finished.threads, text)
        return self._limits.result(finished, session.logs)

    def lost(self, error: SandboxError) -> CodeResult:
        """Ends the kernel after a fault that it cannot go on from."""
        session, self._session = self._session, self._new_session()
        self._resources.drop()
        checkpoint = self._resources.checkpoint
        if isinstance(error, SandboxViolation):
            checkpoint.drop()  # one that broke the protocol may have been at it before
        elif not self._resources.closed and (copy := checkpoint.restore()) is not None:
            self.go_on_with(copy)
            copy.pause()
        if session.final is not None:
            answer, text = session.final
            return final_result(answer, session.logs, text=text)
        error.logs = session.logs
        return CodeResult(logs=session.logs, error=error)

    def unstoppable(self) -> SandboxError:
        """Returns the error of a step that did not stop when it was told to."""
        return self._limits.unstoppable(self._gone())

    def _gone(self) -> str:
        checkpoint = self._resources.checkpoint
        if checkpoint.holds():
            before = "this step"
            if checkpoint.behind:
                before = (
                    f"the last {checkpoint.behind + 1} steps, this one included, which followed "
                    "one another too fast to keep what they were before each"
                )
            return (
                f"The interpreter was restored: variables are what they were before {before}; "
                "files in the work folder remain as the code left them."
            )
        remain = self._resources.backend.files_remain
        files = "files in the work folder remain." if remain else "so is the work folder."
        return f"The interpreter was restarted: all variables of earlier steps are gone; {files}"

    def go_on_with(self, link: CopyableLink) -> None:
        """Puts a copy in the place of the kernel."""
        wire = Wire(link.socket)
        with self.lock:
            self._resources.hold(link, wire)
            self._late = False
            self._session = self._new_session(ready=True)
        wire.send(self._session.tools(self._tools))

    def rest_kernel(self) -> None:
        """Pauses the kernel, and has it copied before."""
        link, wire = self._resources.copyable, self._resources.wire
        if link is not None and wire is not None:
            self._resources.checkpoint.after_step(link, wire.send)
