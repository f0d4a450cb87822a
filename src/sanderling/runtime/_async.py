"""Carries effects out under asyncio."""

from __future__ import annotations

import asyncio
import inspect
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

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

from ._drivers import Done
from ._services import Services, as_reply, tool_failure

if TYPE_CHECKING:
    from sanderling.sandbox import Interpreter

    from ._drivers import AsyncPerformance


class AsyncPerformer:
    """Performs the effects of one run; `perform` is what `adrive` wants.

    An async tool is awaited. A sync tool goes to a worker thread with the context variables copied,
    unless it is marked as bound to the loop's own thread.

    Args:
        services: What to use.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    async def perform(self, effect: Effect) -> AsyncPerformance:
        """Carries one effect out: yields events, then the reply in a `Done`."""
        match effect:
            case Generate():
                async with aclosing(self._generate(effect)) as performance:
                    async for piece in performance:
                        yield piece
            case ExecuteCode():
                async with aclosing(self._execute(effect)) as performance:
                    async for piece in performance:
                        yield piece
            case CallTool():
                yield Done(await self._call(effect))
            case Together():
                calls = [self._services.with_state(call) for call in effect.effects]
                yield Done(await asyncio.gather(*map(self._outcome, calls)))
            case CheckAnswer():
                yield Done(self._services.complaint(effect))
            case Notify():
                for said in self._services.callbacks.callback(effect.step, self._services.agent()):
                    if inspect.isawaitable(said):
                        await said
                yield Done(None)
            case Now():
                yield Done(time.time())
            case _:
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

    async def _call(self, effect: CallTool) -> Any:
        tool, arguments = self._services.find(effect)
        try:
            return await tool.ainvoke(arguments)
        except Exception as error:
            raise tool_failure(effect.name, error) from error

    async def _outcome(self, effect: CallTool) -> Outcome:
        try:
            return Outcome(await self._call(effect))
        except Exception as error:
            return Outcome(error=error)

    async def _execute(self, effect: ExecuteCode) -> AsyncPerformance:
        interpreter = self._services.interpreter()
        answers: list[asyncio.Task[None]] = []
        try:
            async with aclosing(interpreter.aexecute(effect.code)) as execution:
                async for event in execution:
                    match event:
                        case Printed():
                            yield CodeOutputDelta(event.text)
                        case ToolRequest():
                            answer = self._answer(interpreter, event)
                            answers.append(asyncio.create_task(answer))
                        case CodeResult():
                            yield Done(event)
        finally:
            for task in answers:
                task.cancel()
            await asyncio.gather(*answers, return_exceptions=True)

    async def _answer(self, interpreter: Interpreter, request: ToolRequest) -> None:
        try:
            arguments = self._services.bound(request)
            value = await self._call(CallTool(request.id, request.name, arguments))
        except Exception as error:
            interpreter.fail(request, str(error))
        else:
            interpreter.reply(request, value)
