"""An interpreter whose tools are plain functions of this process."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, TypeAlias

from sanderling._bridge import in_thread, wait_for
from sanderling._daemons import DaemonPool

from ._interpreter import CodeResult, Interpreter, Printed, ToolRequest, ToolSpec
from ._texts import failure

if TYPE_CHECKING:
    from ._work_files import WorkFiles

Function: TypeAlias = Callable[..., object]
_Errors: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]
_TOGETHER = 32  # calls that are carried out at once


def spec_of(name: str, function: Function) -> ToolSpec:
    """Describes a function, or an object that is called and tells its signature and purpose."""
    signature = getattr(function, "signature", None)
    if isinstance(signature, inspect.Signature):
        return ToolSpec.of(name, signature, str(getattr(function, "description", "")))
    return ToolSpec.of(name, function, inspect.getdoc(function) or "")


class ServingInterpreter:
    """Answers the calls of some functions, and leaves those of other tools to whoever drives it.

    Args:
        interpreter: Runs the code. `Interpreter` says what the methods promise.
        functions: By the name that the code calls them by.
        members: Whether calls of the members of a `HostObject` are answered as well.
    """

    def __init__(
        self, interpreter: Interpreter, functions: Mapping[str, Function], *, members: bool
    ) -> None:
        self._interpreter = interpreter
        self._functions = dict(functions)
        self._members = members
        self.set_tools(())

    def over(self, interpreter: Interpreter) -> ServingInterpreter:
        """Returns one that answers the same calls of another interpreter."""
        return ServingInterpreter(interpreter, self._functions, members=self._members)

    @property
    def layers(self) -> Mapping[str, object]:
        """The walls in force."""
        return self._interpreter.layers

    @property
    def work_files(self) -> WorkFiles:
        """The files of the work folder."""
        return self._interpreter.work_files

    def open(self) -> None:
        """Starts the sandbox."""
        self._interpreter.open()

    async def aopen(self) -> None:
        """Starts the sandbox under asyncio."""
        await self._interpreter.aopen()

    def set_tools(self, specs: Sequence[ToolSpec]) -> None:
        """Puts these tools beside the functions, in the place of those before."""
        own = [spec_of(name, function) for name, function in self._functions.items()]
        self._interpreter.set_tools([*own, *specs])

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables."""
        self._interpreter.set_variables(variables)

    def execute(self, code: str) -> Generator[ToolRequest | Printed, None, CodeResult]:
        """Runs one step in the calling thread, functions included unless they come together."""
        pool: DaemonPool | None = None
        answers: list[Future[None]] = []
        execution = self._interpreter.execute(code)
        waits = True
        try:
            with closing(execution):
                while True:
                    event = next(execution)
                    if not isinstance(event, ToolRequest) or self._function(event) is None:
                        yield event
                    elif event.alone:
                        self._answer(event)
                    else:
                        pool = pool or DaemonPool(_TOGETHER, "sanderling-function")
                        context = contextvars.copy_context()
                        answers.append(pool.submit(context.run, self._answer, event))
        except StopIteration as done:
            result: CodeResult = done.value
            return result
        except KeyboardInterrupt:
            waits = False  # the functions under way cannot be ended
            raise
        finally:
            if pool is not None:
                pool.shutdown(waits, cancel_futures=True)  # the step is over: no more of them begin
            for answer in answers:
                if waits and not answer.cancelled():
                    answer.result()

    async def aexecute(self, code: str) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
        """Runs one step under asyncio, functions in threads."""
        answers: list[asyncio.Task[None]] = []
        try:
            async with aclosing(self._interpreter.aexecute(code)) as execution:
                async for event in execution:
                    if isinstance(event, ToolRequest) and self._function(event) is not None:
                        answers.append(asyncio.create_task(self._aanswer(event)))
                    else:
                        yield event
        finally:
            for task in answers:
                task.cancel()
            await asyncio.gather(*answers, return_exceptions=True)

    async def _aanswer(self, request: ToolRequest) -> None:
        await in_thread(lambda: self._answer(request, failures=BaseException))

    def _function(self, request: ToolRequest) -> Function | None:
        if request.method is not None:
            return request.method if self._members else None
        return self._functions.get(request.name)

    def _answer(
        self, request: ToolRequest, failures: _Errors = (Exception, SystemExit, GeneratorExit)
    ) -> None:
        """Calls a function, and gives the code what it returns, or an error.

        Args:
            request: The call.
            failures: What is an error of the function alone. Anything else that it raises, such as
                KeyboardInterrupt, ends the step, and is raised here as well.
        """
        function = self._function(request)
        if function is None:
            self._interpreter.fail(request, f"there is no tool {request.name!r}")
            return
        try:
            value = function(*request.args, **request.kwargs)
            if inspect.iscoroutine(value):
                value = wait_for(value)
        except failures as error:
            self._interpreter.fail(request, *failure(error))
        except BaseException as error:
            self._interpreter.fail(request, *failure(error))
            if not request.alone:
                self._interpreter.interrupt()  # whoever drives the code does not wait for this call
            raise
        else:
            self._interpreter.reply(request, value)

    def reply(self, request: ToolRequest, value: object) -> None:
        """Answers a call of another tool."""
        self._interpreter.reply(request, value)

    def fail(self, request: ToolRequest, error: str, kind: str = "") -> None:
        """Makes a call of another tool raise."""
        self._interpreter.fail(request, error, kind)

    def interrupt(self) -> None:
        """Ends the step in progress."""
        self._interpreter.interrupt()

    def close(self) -> None:
        """Ends the sandbox."""
        self._interpreter.close()

    async def aclose(self) -> None:
        """Ends the sandbox under asyncio."""
        await self._interpreter.aclose()
