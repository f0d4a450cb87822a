"""Carries effects out under asyncio."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import time
from collections import deque
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import TYPE_CHECKING, Any

from sanderling._bridge import in_thread
from sanderling._warn import capture_warnings
from sanderling.errors import AgentGenerationError, AgentStoppedError
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
from ._policies import Consult, aunder
from ._services import Services, as_reply, tool_failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from sanderling.loop import Event
    from sanderling.messages import ChatMessage, ChatMessageStreamDelta
    from sanderling.sandbox import Interpreter

    from ._drivers import AsyncPerformance, AsyncWork


_AT_ONCE: AbstractAsyncContextManager[None] = nullcontext()


class AsyncPerformer:
    """Performs the effects of one run; `perform` is what `adrive` wants.

    An async tool is awaited. A sync tool goes to a worker thread with the context variables copied,
    unless it is marked as bound to the loop's own thread.

    Args:
        services: What to use.
        max_calls: How many calls of one reply may run together; all of them by default.
    """

    def __init__(self, services: Services, max_calls: int | None = None) -> None:
        self._services = services
        self._policies = services.all_policies
        self._scope = services.scope
        self._max_calls = max_calls

    def perform(self, effect: Effect) -> AsyncWork:
        """Carries one effect out, under the policies of the run, until that is stopped.

        Returns:
            Where there may be events on the way, what yields them, and then the reply in a `Done`;
            else what is awaited for the reply.
        """
        return self._services.control.aguard(self._perform, effect)

    def _perform(self, effect: Effect) -> AsyncWork:
        return aunder(self._policies, self._scope, self._carry_out, effect)

    def _carry_out(self, effect: Effect) -> AsyncWork:
        match effect:
            case Now():
                return _done(time.time())
            case CheckAnswer() | Notify() if self._services.is_settled(effect):
                return _done(None)
            case Generate(stream=True):
                return self._stream(effect)
            case Generate():
                return self._generate(effect)
            case ExecuteCode():
                return self._execute(effect)
            case CallTool():
                delegate = self._delegate(effect)
                return self._call(effect) if delegate is None else self._errand(delegate, effect)
            case Together(effects=(call,)) if not self._policies and self._delegate(call) is None:
                return self._alone(call)
            case Together():
                return self._together(effect)
            case CheckAnswer():
                return adrive(self._services.complaint(effect), self._carry_out)
            case Notify():
                return adrive(self._services.told(effect), self._carry_out)
            case Consult():
                return _consult(effect)
        raise TypeError(f"nobody knows how to carry out {effect!r}")

    async def _generate(self, effect: Generate) -> ChatMessage:
        model = self._services.model
        messages, options = self._services.request(effect)
        try:
            with capture_warnings(self._services.warned):
                return as_reply(model, await model.agenerate(messages, **options))
        except Exception as error:
            raise self._services.generation_error(error) from error

    async def _stream(self, effect: Generate) -> AsyncPerformance:
        model = self._services.model
        messages, options = self._services.request(effect)
        try:
            for attempt in itertools.count(1):
                deltas: list[ChatMessageStreamDelta] = []
                try:
                    async with aclosing(model.agenerate_stream(messages, **options)) as stream:
                        while (delta := await self._next(stream)) is not None:
                            deltas.append(delta)
                            yield delta
                except AgentGenerationError as error:
                    if not deltas:  # the model has asked again as often as it may
                        raise
                    yield self._services.asked_again(error, attempt)
                else:
                    yield Done(agglomerate_stream_deltas(deltas))
                    return
        except Exception as error:
            raise self._services.generation_error(error) from error

    async def _next(
        self, stream: AsyncGenerator[ChatMessageStreamDelta, None]
    ) -> ChatMessageStreamDelta | None:
        with capture_warnings(self._services.warned):
            return await anext(stream, None)

    def _delegate(self, call: CallTool) -> Delegate | None:
        tool = self._services.tools.get(call.name)
        return tool if isinstance(tool, Delegate) else None

    async def _call(self, effect: CallTool) -> object:
        tool, arguments = self._services.find(effect)
        try:
            return await tool.ainvoke(arguments)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            raise tool_failure(effect.name, error) from error

    async def _errand(self, delegate: Delegate, effect: CallTool) -> AsyncPerformance:
        services = self._services
        _, arguments = services.find(effect)
        try:
            errand = delegate.begin(arguments, services)
            try:
                async with aclosing(errand.aevents()) as events:
                    async for event in events:
                        yield services.nested(event, effect, errand.path)
            finally:
                services.spend(errand.usage)
            yield Done(errand.report())
        except Exception as error:
            if services.is_ended_by(error):
                raise
            raise tool_failure(effect.name, error) from error

    async def _alone(self, call: CallTool) -> list[Outcome]:
        try:
            return [Outcome(await self._call(self._services.with_state(call)))]
        except AgentStoppedError:
            raise
        except Exception as error:
            return [Outcome(error=error)]

    async def _together(self, effect: Together) -> AsyncPerformance:
        attempts = [
            adrive(self._services.attempt(self._services.with_state(call)), self._perform)
            for call in effect.effects
        ]
        if len(attempts) == 1:
            async with aclosing(attempts[0]) as attempt:
                async for piece in attempt:
                    yield Done([piece.value]) if isinstance(piece, Done) else piece
            return
        inbox: asyncio.Queue[Event | asyncio.Task[Outcome]] = asyncio.Queue()
        turn = _AT_ONCE if self._max_calls is None else asyncio.Semaphore(self._max_calls)
        tasks = [asyncio.create_task(_collected(one, inbox.put_nowait, turn)) for one in attempts]
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
        with capture_warnings(self._services.warned):
            await interpreter.aopen()
        answers: list[asyncio.Task[None]] = []
        told: deque[Event] = deque()
        result: CodeResult | None = None
        try:
            async with aclosing(interpreter.aexecute(effect.code)) as execution:
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

    def _answer(self, interpreter: Interpreter, request: ToolRequest) -> AsyncPerformance:
        return adrive(self._services.answer(interpreter, request), self._perform)


async def _done(value: object) -> object:
    return value


def _is_cancelled() -> bool:
    """Returns whether the current task is cancelled, rather than one that a tool awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _consult(effect: Consult) -> object:
    function = effect.function
    blocks = effect.blocks and not inspect.iscoroutinefunction(function)
    value = await in_thread(function) if blocks else function()
    return await value if inspect.isawaitable(value) else value


async def _collected(
    performance: AsyncPerformance,
    tell: Callable[[Event], object],
    turn: AbstractAsyncContextManager[Any] = _AT_ONCE,
) -> Any:
    """Carries a performance out in a task of its own, when it is its turn; tells its events."""
    value = None
    async with turn, aclosing(performance):
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
