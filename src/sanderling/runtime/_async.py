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

from ._children import ChildRunTool
from ._context import RunContext, as_reply, is_awaitable, tool_failure
from ._drivers import Done, adrive
from ._own_methods import own_call
from ._policies import CallHost, aunder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from sanderling.loop import Event
    from sanderling.messages import ChatMessage, ChatMessageStreamDelta
    from sanderling.sandbox import Interpreter

    from ._drivers import AsyncPerformance, AsyncWork


_AT_ONCE: AbstractAsyncContextManager[None] = nullcontext()

_NOT_BROKEN_OFF = (Now, Notify)  # callbacks are the caller's own


class AsyncEffectHandler:
    """Carries out the effects of one run; `handle` is what `adrive` wants.

    An async tool is awaited. A sync tool goes to a worker thread with the context variables copied,
    unless it is marked as bound to the loop's own thread.

    Args:
        context: What to use.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._scope = context.scope
        self._policies = context.all_policies
        self._policy_scope = context.policy_scope
        self._calls_directly = not self._policies and not context.has_own_calls

    def handle(self, effect: Effect) -> AsyncWork:
        """Carries one effect out, under the policies of the run, until that is cancelled.

        Returns:
            Where there may be events on the way, what yields them, and then the reply in a `Done`;
            else what is awaited for the reply.
        """
        if isinstance(effect, _NOT_BROKEN_OFF):
            return self._handle(effect)
        self._scope.check()
        return self._scope.aguarded(self._handle(effect))

    def _handle(self, effect: Effect) -> AsyncWork:
        return aunder(self._policies, self._policy_scope, self._carry_out, effect)

    def _carry_out(self, effect: Effect) -> AsyncWork:
        match effect:
            case Now():
                return _done(time.time())
            case CheckAnswer() | Notify() if self._context.is_settled(effect):
                return _done(None)
            case Generate(stream=True):
                return self._stream(effect)
            case Generate():
                return self._generate(effect)
            case ExecuteCode():
                return self._execute(effect)
            case CallTool() if self._context.has_own_calls:
                return adrive(own_call(self._context, effect), self._carry_out)
            case CallTool():
                return self._call_child(effect) if self._is_child(effect) else self._call(effect)
            case Together(effects=(call,)) if self._calls_directly and not self._is_child(call):
                return self._single(call)
            case Together():
                return self._together(effect)
            case CheckAnswer():
                return adrive(self._context.complaint(effect), self._carry_out)
            case Notify():
                return adrive(self._context.run_callbacks(effect), self._carry_out)
            case CallHost():
                return _call_host(effect)
        raise TypeError(f"there is no way to carry out {effect!r}")

    async def _generate(self, effect: Generate) -> ChatMessage:
        model = self._context.model
        messages, options = self._context.request(effect)
        try:
            with capture_warnings(self._context.settings.warned):
                return as_reply(model, await model.agenerate(messages, **options))
        except Exception as error:
            raise self._context.generation_error(error) from error

    async def _stream(self, effect: Generate) -> AsyncPerformance:
        model = self._context.model
        messages, options = self._context.request(effect)
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
                    yield self._context.asked_again(error, attempt)
                else:
                    yield Done(agglomerate_stream_deltas(deltas))
                    return
        except Exception as error:
            raise self._context.generation_error(error) from error

    async def _next(
        self, stream: AsyncGenerator[ChatMessageStreamDelta, None]
    ) -> ChatMessageStreamDelta | None:
        with capture_warnings(self._context.settings.warned):
            return await anext(stream, None)

    def _is_child(self, call: CallTool) -> bool:
        return isinstance(self._context.tools.get(call.name), ChildRunTool)

    async def _call(self, effect: CallTool) -> object:
        tool, arguments = self._context.find(effect)
        try:
            return await tool.ainvoke(arguments)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            raise tool_failure(effect.name, error) from error

    async def _call_child(self, effect: CallTool) -> AsyncPerformance:
        context = self._context
        tool, arguments = context.find(effect)
        if not isinstance(tool, ChildRunTool):
            raise TypeError(f"{tool.name!r} starts no run")
        try:
            async with aclosing(tool.start(arguments, context)) as run:
                async for event in run:
                    yield context.event_of_child(event, effect, run.path)
                yield Done(tool.report(run))
        except Exception as error:
            if context.is_ended_by(error):
                raise
            raise tool_failure(effect.name, error) from error

    async def _single(self, call: CallTool) -> list[Outcome]:
        try:
            return [Outcome(await self._call(self._context.with_state(call)))]
        except AgentStoppedError:
            raise
        except Exception as error:
            return [Outcome(error=error)]

    async def _together(self, effect: Together) -> AsyncPerformance:
        attempts = [
            adrive(self._context.attempt(self._context.with_state(call)), self._handle)
            for call in effect.effects
        ]
        if len(attempts) == 1:
            async with aclosing(attempts[0]) as attempt:
                async for piece in attempt:
                    yield Done([piece.value]) if isinstance(piece, Done) else piece
            return
        inbox: asyncio.Queue[Event | asyncio.Task[Outcome]] = asyncio.Queue()
        most = self._context.settings.max_tool_threads
        turn = _AT_ONCE if most is None else asyncio.Semaphore(most)
        tasks = [
            asyncio.create_task(_collected(attempt, inbox.put_nowait, turn)) for attempt in attempts
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
        interpreter = self._context.interpreter()
        with capture_warnings(self._context.settings.warned):
            await interpreter.aopen()
        answers: list[asyncio.Task[None]] = []
        events: deque[Event] = deque()
        result: CodeResult | None = None
        try:
            async with aclosing(interpreter.aexecute(effect.code)) as execution:
                async for event in execution:
                    while events:
                        yield events.popleft()
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
                            answers.append(asyncio.create_task(_collected(answer, events.append)))
                        case CodeResult():
                            result = event
        finally:
            await _cancelled(answers)
        for task in answers:
            if not task.cancelled():
                task.result()  # one that must end the run does so now
        for late_event in events:
            yield late_event
        yield Done(result)

    def _answer(self, interpreter: Interpreter, request: ToolRequest) -> AsyncPerformance:
        return adrive(self._context.answer(interpreter, request), self._handle)


async def _done(value: object) -> object:
    return value


def _is_cancelled() -> bool:
    """Returns whether the current task is cancelled, rather than one that a tool awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _call_host(effect: CallHost) -> object:
    function = effect.function
    blocks = effect.blocks and not inspect.iscoroutinefunction(function)
    value = await in_thread(function) if blocks else function()
    return await value if is_awaitable(value) else value


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
