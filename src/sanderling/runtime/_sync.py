"""Carries effects out in the calling thread."""

from __future__ import annotations

import contextvars
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
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

from ._services import Services, as_reply, tool_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from sanderling.sandbox import Interpreter

    from ._drivers import Performance


class Performer:
    """Performs the effects of one run; `perform` is what `drive` wants.

    Everything runs in the thread that drives, tools included, as long as one call is outstanding:
    what is bound to a thread (SQLite connections, browsers, GUIs) works. Calls that are asked for
    together run in a pool, with copies of the context variables.

    Args:
        services: What to use.
        max_threads: How many calls may run together; `None` leaves it to the pool.
    """

    def __init__(self, services: Services, max_threads: int | None = None) -> None:
        self._services = services
        self._max_threads = max_threads
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """Ends the pool; calls in progress are waited for."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def perform(self, effect: Effect) -> Performance:
        """Carries one effect out: yields events, returns the reply."""
        match effect:
            case Generate():
                return (yield from self._generate(effect))
            case ExecuteCode():
                return (yield from self._execute(effect))
            case CallTool():
                return self._call(effect)
            case Together():
                return self._together(effect)
            case CheckAnswer():
                return self._services.complaint(effect)
            case Notify():
                self._services.callbacks.callback(effect.step, self._services.agent())
                return None
            case Now():
                return time.time()
        raise TypeError(f"nobody knows how to carry out {effect!r}")

    def _generate(self, effect: Generate) -> Performance:
        model = self._services.model
        request = self._services.request(effect)
        try:
            if not effect.stream:
                return as_reply(model, model.generate(**request))
            deltas = []
            with closing(model.generate_stream(**request)) as stream:
                for delta in stream:
                    deltas.append(delta)
                    yield delta
            return agglomerate_stream_deltas(deltas)
        except Exception as error:
            raise self._services.generation_error(error) from error

    def _call(self, effect: CallTool) -> Any:
        tool, arguments = self._services.find(effect)
        try:
            return tool.invoke(arguments)
        except Exception as error:
            raise tool_failure(effect.name, error) from error

    def _outcome(self, effect: CallTool) -> Outcome:
        try:
            return Outcome(self._call(effect))
        except Exception as error:
            return Outcome(error=error)

    def _together(self, effect: Together) -> list[Outcome]:
        calls = [self._services.with_state(call) for call in effect.effects]
        if len(calls) == 1:
            return [self._outcome(calls[0])]
        return [future.result() for future in [self._submit(self._outcome, c) for c in calls]]

    def _execute(self, effect: ExecuteCode) -> Performance:
        interpreter = self._services.interpreter()
        waiting: list[Future[None]] = []
        execution = interpreter.execute(effect.code)
        with closing(execution):
            while True:
                try:
                    event = next(execution)
                except StopIteration as done:
                    result: CodeResult = done.value
                    break
                match event:
                    case Printed():
                        yield CodeOutputDelta(event.text)
                    case ToolRequest(alone=True):
                        self._answer(interpreter, event)
                    case ToolRequest():
                        waiting.append(self._submit(self._answer, interpreter, event))
        for future in waiting:
            future.result()
        return result

    def _answer(self, interpreter: Interpreter, request: ToolRequest) -> None:
        try:
            arguments = self._services.bound(request)
            value = self._call(CallTool(request.id, request.name, arguments))
        except Exception as error:
            interpreter.fail(request, str(error))
        else:
            interpreter.reply(request, value)

    def _submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._max_threads, thread_name_prefix="sanderling-tool")
        return self._pool.submit(contextvars.copy_context().run, function, *args)
