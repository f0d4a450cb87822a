"""Carries effects out under asyncio."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from sanderling._bridge import in_thread
from sanderling.errors import AgentStoppedError
from sanderling.loop import (
    CallTool,
    CheckAnswer,
    CodeOutputDelta,
    Effect,
    ExecuteCode,
    Generate,
    Notify,
    Now,
    Outcome,
    Together,
)
from sanderling.messages import agglomerate_stream_deltas
from sanderling.sandbox import CodeResult, Printed, ToolRequest

from ._delegates import Delegate
from ._drivers import Done, adrive
from ._inline import execution_of
from ._policies import Consult, aunder
from ._services import Services, as_reply, tool_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from sanderling.loop import Event
    from sanderling.sandbox import Interpreter

    from ._drivers import AsyncPerformance


class AsyncPerformer:
    """Performs the effects of one run; `perform` is what `adrive` wants.

    An async tool is awaited. A sync tool goes to a worker thread with the context variables copied,
    unless it is marked as bound to the loop's own thread.

    Args:
        services: What to use.

    Attributes:
        perform: Carries one effect out, under the policies of the run, until that is stopped:
            yields events, then the reply in a `Done`.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._perform = aunder(services.all_policies, services.scope, self._carry_out)
        self.perform = services.control.aguard(self._perform)

    def _carry_out(self, effect: Effect) -> AsyncPerformance:
        match effect:
            case Generate():
                return self._generate(effect)
            case ExecuteCode():
                return self._execute(effect)
            case CallTool():
                return self._call(effect)
            case Together():
                return self._together(effect)
            case CheckAnswer() | Notify() if self._services.is_settled(effect):
                return _done(None)
            case CheckAnswer():
                return adrive(self._services.complaint(effect), self._carry_out)
            case Notify():
                return adrive(self._services.told(effect), self._carry_out)
            case Consult():
                return _consult(effect)
            case Now():
                return _done(time.time())
        raise TypeError(f"nobody knows how to carry out {effect!r}")

    async def _generate(self, effect: Generate) -> AsyncPerformance:
        model = self._services.model
        request = self._services.request(effect)
        try:
            if not effect.stream:
                yield Done(as_reply(model, await model.agenerate(**request)))
                return
            deltas = []
            async with aclosing(model.agenerate_stream(**request)) as stream:
                async for delta in stream:
                    deltas.append(delta)
                    yield delta
            yield Done(agglomerate_stream_deltas(deltas))
        except Exception as error:
            raise self._services.generation_error(error) from error

    async def _call(self, effect: CallTool) -> AsyncPerformance:
        services = self._services
        tool, arguments = services.find(effect)
        try:
            if not isinstance(tool, Delegate):
                yield Done(await tool.ainvoke(arguments))
                return
            errand = tool.begin(arguments, services)
            try:
                async with aclosing(errand.aevents()) as events:
                    async for event in events:
                        yield services.nested(event, effect, errand.path)
            finally:
                services.spend(errand.usage)
            yield Done(errand.report())
        except Exception as error:
            raise tool_failure(effect.name, error) from error

    async def _outcome(self, effect: CallTool) -> AsyncPerformance:
        try:
            async with aclosing(self._perform(effect)) as performance:
                async for piece in performance:
                    yield Done(Outcome(piece.value)) if isinstance(piece, Done) else piece
        except AgentStoppedError:
            raise
        except Exception as error:
            yield Done(Outcome(error=error))

    async def _together(self, effect: Together) -> AsyncPerformance:
        calls = [self._services.with_state(call) for call in effect.effects]
        if len(calls) == 1:
            async with aclosing(self._outcome(calls[0])) as performance:
                async for piece in performance:
                    yield Done([piece.value]) if isinstance(piece, Done) else piece
            return
        inbox: asyncio.Queue[Event | asyncio.Task[Outcome]] = asyncio.Queue()
        tasks = [
            asyncio.create_task(_collected(self._outcome(call), inbox.put_nowait)) for call in calls
        ]
        for task in tasks:
            task.add_done_callback(inbox.put_nowait)
        try:
            missing = len(tasks)
            while missing:
                item = await inbox.get()
                if isinstance(item, asyncio.Task):
                    item.result()  # one that must end the run does so now
                    missing -= 1
                else:
                    yield item
        finally:
            await _cancelled(tasks)
        yield Done([task.result() for task in tasks])

    async def _execute(self, effect: ExecuteCode) -> AsyncPerformance:
        interpreter = self._services.interpreter()
        answers: list[asyncio.Task[None]] = []
        told: deque[Event] = deque()
        result: CodeResult | None = None
        try:
            async with aclosing(execution_of(effect, interpreter, self._services)) as execution:
                async for event in execution:
                    while told:
                        yield told.popleft()
                    match event:
                        case Printed():
                            yield CodeOutputDelta(event.text)
                        case ToolRequest(alone=True):
                            async with aclosing(self._answer(interpreter, event)) as answer:
                                async for piece in answer:
                                    if not isinstance(piece, Done):
                                        yield piece
                        case ToolRequest():
                            answer = self._answer(interpreter, event)
                            answers.append(asyncio.create_task(_collected(answer, told.append)))
                        case CodeResult():
                            result = event
        finally:
            await _cancelled(answers)
        for task in answers:
            if not task.cancelled():
                task.result()  # one that must end the run does so now
        for told_event in told:
            yield told_event
        yield Done(result)

    async def _answer(self, interpreter: Interpreter, request: ToolRequest) -> AsyncPerformance:
        try:
            async with aclosing(self._perform(self._services.bound(request))) as performance:
                async for piece in performance:
                    if isinstance(piece, Done):
                        interpreter.reply(request, piece.value)
                    else:
                        yield piece
        except AgentStoppedError as error:
            interpreter.fail(request, str(error))
            if not request.alone:
                interpreter.interrupt()  # another task drives: the code has to be told
            raise
        except Exception as error:
            interpreter.fail(request, str(error))


async def _done(value: object) -> AsyncPerformance:
    yield Done(value)


async def _consult(effect: Consult) -> AsyncPerformance:
    function = effect.function
    blocks = effect.blocks and not inspect.iscoroutinefunction(function)
    value = await in_thread(function) if blocks else function()
    yield Done(await value if inspect.isawaitable(value) else value)


async def _collected(performance: AsyncPerformance, tell: Callable[[Event], object]) -> Any:
    """Carries a performance out in a task of its own; its events go to `tell`."""
    value = None
    async with aclosing(performance):
        async for piece in performance:
            if isinstance(piece, Done):
                value = piece.value
            else:
                tell(piece)
    return value


async def _cancelled(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancels the tasks that still run, and waits until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
