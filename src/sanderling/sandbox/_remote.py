"""An interpreter at the other end of a socket: one core for the sync and the asyncio form."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import os
import sys
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sanderling._daemons import DaemonPool
from sanderling.errors import SandboxError, SandboxUnavailable

from ._backend import Checked, FolderBackend
from ._exchange import Exchange, Settings
from ._interpreter import no_folder
from ._outcome import Finished
from ._resources import Resources
from ._session import Event, Ready
from ._snapshots import NO_SNAPSHOTS, CopyableBackend, Snapshot, Template, arrived, order

if TYPE_CHECKING:
    from ._backend import Backend, Link
    from ._interpreter import CodeResult, Printed, ToolRequest, ToolSpec
    from ._wire import Wire
    from ._work_files import WorkFiles

_TURN = 0.1  # seconds
_MOST_STARTING = 8  # in the background at once


@functools.lru_cache
def _starters(pid: int) -> DaemonPool:
    """The threads that start sandboxes of the process of a number, which is this one."""
    return DaemonPool(_MOST_STARTING, f"sanderling-starter-{pid}")


class RemoteInterpreter:
    """Drives a kernel over a socket. `Interpreter` says what its methods promise.

    Args:
        backend: Where the kernel runs.
        imports: What the code may import beside `BASE_BUILTIN_MODULES`.
        timeout_seconds: How long a step may run, tool calls not counted; None for no limit.
        cpu_seconds: How much processor time a step may take; None for no limit.
        max_output: Characters that a step may print.
        max_tool_calls: Tool calls that a step may make.
        on_imports: Is told which of `kernel.PRELOADABLE` a step was the first to load.
        restore_after_kill: Whether variables are what they were before a step that had to be
            killed, where the kernels of the backend can be copied.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        imports: Sequence[str] = (),
        timeout_seconds: float | None = 30,
        cpu_seconds: float | None = None,
        max_output: int = 50_000,
        max_tool_calls: int = 10_000,
        on_imports: Callable[[frozenset[str]], object] | None = None,
        restore_after_kill: bool = True,
    ) -> None:
        self._settings = Settings(
            imports=tuple(imports),
            timeout_seconds=timeout_seconds,
            cpu_seconds=cpu_seconds,
            max_output=max_output,
            max_tool_calls=max_tool_calls,
            on_imports=on_imports,
            restore_after_kill=restore_after_kill,
        )
        self._resources = Resources(backend)
        self._finalizer = weakref.finalize(self, self._resources.close)
        self._exchange = Exchange(self._resources, self._settings)
        self._work_files: WorkFiles | None = None

    def __repr__(self) -> str:
        state = "started" if self.layers else "not started"
        if self._resources.closed:
            state = "closed"
        return f"<Interpreter {self._resources.backend.name}, {state}>"

    @property
    def layers(self) -> Mapping[str, object]:
        """The walls in force; empty before the first step."""
        return self._exchange.layers

    @property
    def work_files(self) -> WorkFiles:
        """The files of the work folder. See `Interpreter.work_files`."""
        backend = self._resources.backend
        if sys.platform != "linux" or not isinstance(backend, FolderBackend):
            raise SandboxError(no_folder(backend.name))
        if self._work_files is None:
            from ._work_files import WorkFiles  # it is of Linux alone

            self._work_files = WorkFiles(backend)
        return self._work_files

    def set_tools(self, specs: Sequence[ToolSpec]) -> None:
        """Puts these tools in the place of those before, from the next step on."""
        self._exchange.set_tools(specs)

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables, from the next step on. See `Interpreter.set_variables`."""
        self._exchange.set_variables(variables)

    def reply(self, request: ToolRequest, value: object) -> None:
        """Answers a call, from any thread."""
        self._exchange.reply(request, value)

    def fail(self, request: ToolRequest, error: str, kind: str = "") -> None:
        """Makes a call raise in the sandbox, from any thread."""
        self._exchange.fail(request, error, kind)

    def interrupt(self) -> None:
        """Ends the step in progress, from any thread."""
        self._exchange.interrupt()

    # Starting

    def check(self) -> None:
        """Looks for what the sandbox needs, as far as that costs nothing; starts nothing.

        Raises:
            SandboxUnavailable: It is not there.
            MissingExtraError: A package is not installed.
        """
        backend = self._resources.backend
        if isinstance(backend, Checked):
            with self._starting():
                backend.check()

    def start_soon(self) -> None:
        """Starts the sandbox in the background, so that it is ready when there is code to run.

        What goes wrong is raised by the first step. A sandbox that starts within milliseconds is
        left for that.
        """
        resources = self._resources
        if resources.wire is None and resources.early is None and not resources.backend.is_warm:
            context = contextvars.copy_context()  # who listens to warnings
            starting = _starters(os.getpid()).submit(context.run, resources.backend.start)
            resources.early = starting

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
            early = self._resources.take_early()
            start = self._resources.backend.start if early is None else early.result
            wire = self._exchange.greet(start())
            with wire.driven():
                while not self._exchange.is_ready():
                    self._wait(wire)
            return wire

    async def _aopen(self) -> Wire:
        if self._resources.wire is not None:
            return self._resources.wire
        with self._starting():
            wire = self._exchange.greet(await self._astart())
            with wire.driven(asyncio.get_running_loop()):
                while not self._exchange.is_ready():
                    await self._await_turn(wire)
            return wire

    async def _astart(self) -> Link:
        early = self._resources.take_early()
        starting = asyncio.ensure_future(
            asyncio.to_thread(self._resources.backend.start)
            if early is None
            else asyncio.wrap_future(early)
        )
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
        if not self._resources.are_ours():
            raise RuntimeError(
                "the interpreter belongs to the process that this one was forked from: create "
                "another one here"
            )
        with self._exchange.lock:
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
            told = str(error).rstrip(".")
            raise SandboxUnavailable(f"The sandbox did not start: {told}. {ways_out}") from error
        except BaseException:
            self._resources.drop()
            raise

    # Running

    def execute(self, code: str) -> Generator[ToolRequest | Printed, None, CodeResult]:
        """Runs one step in the calling thread. See `Interpreter.execute`."""
        self._exchange.expect_step()
        return self._steps_of(code)

    def _steps_of(self, code: str) -> Generator[ToolRequest | Printed, None, CodeResult]:
        with self._claimed():
            wire = self._open()
            with wire.driven():
                try:
                    self._exchange.start_step(wire, code)
                    while True:
                        events = self._exchange.turn()
                        if events is None:
                            self._wait(wire)
                            continue
                        for event in events:
                            if isinstance(event, Finished):
                                return self._exchange.result(event)
                            if not isinstance(event, Ready):
                                yield event
                except SandboxError as error:
                    return self._exchange.lost(error)
                finally:
                    self._abandon(wire)

    async def aexecute(self, code: str) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
        """Runs one step under asyncio. See `Interpreter.aexecute`."""
        self._exchange.expect_step()
        with self._claimed():
            wire = await self._aopen()
            await self._asettle()
            with wire.driven(asyncio.get_running_loop()):
                result = None
                try:
                    self._exchange.start_step(wire, code)
                    while result is None:
                        events = self._exchange.turn()
                        if not events:
                            await self._rest(wire, events)
                            continue
                        for event in events:
                            if isinstance(event, Finished):
                                result = self._exchange.result(event)
                            elif not isinstance(event, Ready):
                                yield event
                except SandboxError as error:
                    result = self._exchange.lost(error)
                finally:
                    await self._aabandon(wire)
            yield result

    def _wait(self, wire: Wire) -> None:
        if self._exchange.paused:
            wire.wait_while(self._exchange.is_full, self._exchange.patience())
        else:
            wire.wait(self._exchange.patience())

    async def _await_turn(self, wire: Wire) -> None:
        await wire.await_turn(self._exchange.patience(), is_full=self._exchange.is_full())

    async def _rest(self, wire: Wire, events: list[Event] | None) -> None:
        if events is None:
            await self._await_turn(wire)
        else:
            await asyncio.sleep(0)  # there is more, but a flood must not keep the loop from others

    async def _asettle(self) -> None:
        """Waits for the copy that the last step left behind, off the loop."""
        checkpoint = self._resources.checkpoint
        if checkpoint.arriving is not None:
            await asyncio.to_thread(checkpoint.settle)

    def _abandon(self, wire: Wire) -> None:
        """Ends a step that nobody waits for any more; does nothing after one that has ended."""
        if not self._resources.are_ours():
            return  # the process that this one was forked from still waits
        self.interrupt()
        try:
            while self._exchange.running:
                events = self._exchange.turn()
                self._finish(events)
                if events is None:
                    self._wait(wire)
        except SandboxError as error:
            self._exchange.lost(error)

    async def _aabandon(self, wire: Wire) -> None:
        if not self._resources.are_ours():
            return
        self.interrupt()
        try:
            while self._exchange.running:
                events = self._exchange.turn()
                self._finish(events)
                if not events:
                    await self._rest(wire, events)
        except SandboxError as error:
            self._exchange.lost(error)
        except BaseException:  # cancelled a second time: no more patience
            self._exchange.lost(self._exchange.unstoppable())
            raise

    def _finish(self, events: list[Event] | None) -> None:
        for event in events or ():
            if isinstance(event, Finished):
                self._exchange.result(event)

    # Snapshots

    def snapshot(self) -> Snapshot:
        """Keeps the variables and files of now. See `SnapshotInterpreter.snapshot`."""
        with self._claimed():
            self._open()
            backend = self._copyable_backend()
            self._resources.snapshots.check_count()
            template = self._copy()
            try:
                files = backend.save_files()
            except BaseException:
                template.discard()
                raise
            made = Snapshot(template, self._exchange.variables, files, backend.forget_files)
            self._resources.snapshots.add(made)
            return made

    def restore(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot. See `SnapshotInterpreter.restore`."""
        with self._claimed():
            backend = self._copyable_backend()
            link, variables, files = self._resources.snapshots.use(snapshot)
            self._resources.checkpoint.close()
            self._resources.drop()
            self._exchange.variables = dict(variables)
            self._resources.checkpoint.begin(self._settings.restore_after_kill)
            self._exchange.go_on_with(link)
            self._exchange.rest_kernel()
            backend.put_back(files)

    def fork(self) -> RemoteInterpreter:
        """Makes a second interpreter like this one. See `SnapshotInterpreter.fork`."""
        with self._claimed():
            self._open()
            backend, folder = self._copyable_backend().branch()
            # The backend is of the kind of ours.
            made = RemoteInterpreter(backend, **vars(self._settings))  # type: ignore[arg-type]
            try:
                template = self._copy(folder)
                made._exchange.follow(self._exchange)
                link = template.start()
                made._resources.checkpoint.begin_with(template, self._settings.restore_after_kill)
                made._exchange.go_on_with(link)
                link.pause()
            except BaseException:
                made.close()
                raise
            return made

    def _copyable_backend(self) -> CopyableBackend:
        backend = self._resources.backend
        if not isinstance(backend, CopyableBackend):
            raise SandboxError(NO_SNAPSHOTS)
        return backend

    def _copy(self, folder: str | None = None) -> Template:
        wire, link = self._open(), self._resources.copyable
        if link is None or self._exchange.layers.get("snapshots") is not True:
            raise SandboxError(
                "This machine gives no snapshots: a process here is supervised by another one, as "
                "some containers do, and nobody else can decide when it may fork."
            )
        checkpoint = self._resources.checkpoint
        checkpoint.settle()
        link.resume()
        arriving = link.copy(pause=True)
        wire.send(order(folder))
        with wire.driven():
            while not wire.sent():
                wire.wait(_TURN)
        return arrived(arriving)

    # Ending

    def close(self) -> None:
        """Ends the sandbox and removes its work folder. May be called again."""
        self._finalizer()
        self._resources.close()

    async def aclose(self) -> None:
        """Does the same under asyncio."""
        await asyncio.to_thread(self.close)
