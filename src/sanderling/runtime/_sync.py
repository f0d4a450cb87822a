"""Carries effects out in the calling thread."""

from __future__ import annotations

import contextvars
import inspect
import itertools
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import closing
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

from sanderling._daemons import DaemonPool
from sanderling._warn import capture_warnings
from sanderling.errors import AgentGenerationError, AgentInterruptedError
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

from ._control import CAN_BREAK, listen
from ._delegates import Delegate
from ._drivers import drive
from ._policies import Consult, under
from ._services import Services, as_reply, invoked, tool_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sanderling.loop import Event
    from sanderling.messages import ChatMessage, ChatMessageStreamDelta
    from sanderling.sandbox import Interpreter

    from ._drivers import Performance


_MOST_THREADS = 32


class Performer:
    """Performs the effects of one run; `perform` is what `drive` wants.

    Everything runs in the thread that drives, tools included, as long as one call is outstanding:
    what is bound to a thread (SQLite connections, browsers, GUIs) works. Calls that are asked for
    together run in a pool, with copies of the context variables.

    Args:
        services: What to use.
        max_threads: How many calls may run together; 32 by default.
    """

    def __init__(self, services: Services, max_threads: int | None = None) -> None:
        self._services = services
        self._max_threads = max_threads
        self._pool: DaemonPool | None = None
        self._control = services.control
        self._policies = services.all_policies
        self._scope = services.scope
        listen()

    def perform(self, effect: Effect) -> Performance:
        """Carries one effect out, under the policies of the run, until that is stopped.

        Yields:
            The events on the way.

        Returns:
            The reply.
        """
        return self._control.guard(self._perform, effect)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None and not issubclass(kind, Exception | GeneratorExit):
            # Ctrl-C: whatever the calls in the pool have begun, such as other runs, ends as well.
            self._control.stop(AgentInterruptedError("The run was interrupted."))
        self.close()

    def close(self) -> None:
        """Ends the pool; calls in progress are waited for, unless the run was stopped.

        Then those that cannot be ended are left behind, in threads that nobody waits for.
        """
        if self._pool is not None:
            self._pool.shutdown(wait=not self._control.stopped, cancel_futures=True)
            self._pool = None

    def _perform(self, effect: Effect) -> Performance:
        return under(self._policies, self._scope, self._carry_out, effect)

    def _carry_out(self, effect: Effect) -> Performance:
        match effect:
            case Generate():
                return (yield from self._generate(effect))
            case ExecuteCode():
                return (yield from self._execute(effect))
            case CallTool():
                return (yield from self._call(effect))
            case Together():
                return (yield from self._together(effect))
            case CheckAnswer() | Notify() if self._services.is_settled(effect):
                return None
            case CheckAnswer():
                return (yield from drive(self._services.complaint(effect), self._carry_out))
            case Notify():
                # Callbacks are the caller's own: they are not broken off.
                return (yield from drive(self._services.told(effect), _told))
            case Consult():
                return self._control.call(lambda: _finished(effect.function()))
            case Now():
                return time.time()
        raise TypeError(f"nobody knows how to carry out {effect!r}")

    def _generate(self, effect: Generate) -> Performance:
        messages, options = self._services.request(effect)
        try:
            if not effect.stream:
                with capture_warnings(self._services.warned):
                    return self._reply(messages, options)
            for attempt in itertools.count(1):
                deltas: list[ChatMessageStreamDelta] = []
                try:
                    with closing(self._stream(messages, options)) as stream:
                        while (delta := self._next(stream)) is not None:
                            deltas.append(delta)
                            yield delta
                    return agglomerate_stream_deltas(deltas)
                except AgentGenerationError as error:
                    if not deltas:  # the model has asked again as often as it may
                        raise
                    yield self._services.asked_again(error, attempt)
        except Exception as error:
            raise self._services.generation_error(error) from error

    def _reply(self, messages: Sequence[ChatMessage], options: dict[str, Any]) -> ChatMessage:
        model = self._services.model
        if _breakable():
            return as_reply(model, self._control.call(lambda: model.generate(messages, **options)))
        from sanderling._bridge import wait_for

        reply = self._control.call(lambda: wait_for(model.agenerate(messages, **options)))
        return as_reply(model, reply)

    def _stream(self, messages: Sequence[ChatMessage], options: dict[str, Any]) -> Any:
        model = self._services.model
        if _breakable():
            return model.generate_stream(messages, **options)
        from sanderling.models._twins import iterate

        deltas: Iterator[ChatMessageStreamDelta] = iterate(
            model.agenerate_stream(messages, **options)
        )
        return deltas

    def _next(self, stream: Any) -> Any:
        with capture_warnings(self._services.warned):
            return self._control.call(lambda: next(stream, None))

    def _call(self, effect: CallTool) -> Performance:
        services = self._services
        tool, arguments = services.find(effect)
        try:
            if not isinstance(tool, Delegate):
                return self._control.call(lambda: invoked(tool, arguments))
            errand = tool.begin(arguments, services)
            try:
                with closing(errand.events()) as events:
                    for event in events:
                        yield services.nested(event, effect, errand.path)
            finally:
                services.spend(errand.usage)
            return errand.report()
        except Exception as error:
            if services.is_ended_by(error):
                raise
            raise tool_failure(effect.name, error) from error

    def _together(self, effect: Together) -> Performance:
        calls = [self._services.with_state(call) for call in effect.effects]
        if len(calls) == 1:
            return [(yield from self._attempt(calls[0]))]
        inbox: SimpleQueue[Event | Future[Outcome] | None] = SimpleQueue()
        with self._control.waking(lambda: inbox.put(None)):
            attempts = [self._attempt(call) for call in calls]
            futures = [self._submit(self._collected, one, inbox.put) for one in attempts]
            for future in futures:
                future.add_done_callback(inbox.put)
            missing = len(futures)
            while missing:
                item = inbox.get()
                self._control.check()
                if isinstance(item, Future):
                    item.result()  # one that must end the run does so now
                    missing -= 1
                elif item is not None:
                    yield item
        return [future.result() for future in futures]

    def _execute(self, effect: ExecuteCode) -> Performance:
        interpreter = self._services.interpreter()
        with capture_warnings(self._services.warned):
            interpreter.open()
        waiting: list[Future[None]] = []
        told: deque[Event] = deque()
        with (
            self._control.waking(interpreter.interrupt),
            closing(interpreter.execute(effect.code)) as execution,
        ):
            while True:
                try:
                    event = next(execution)
                except StopIteration as done:
                    result: CodeResult = done.value
                    break
                while told:
                    yield told.popleft()
                match event:
                    case Printed():
                        yield CodeOutputDelta(event.text)
                    case ToolRequest(alone=True):
                        yield from self._answer(interpreter, event)
                    case ToolRequest():
                        answer = self._answer(interpreter, event)
                        waiting.append(self._submit(self._collected, answer, told.append))
        # The step is over: nobody waits for calls that have not begun.
        for future in [future for future in waiting if not future.cancel()]:
            future.result()
        yield from told
        return result

    def _attempt(self, call: CallTool) -> Performance:
        return drive(self._services.attempt(call), self._perform)

    def _answer(self, interpreter: Interpreter, request: ToolRequest) -> Performance:
        return drive(self._services.answer(interpreter, request), self._perform)

    def _collected(self, performance: Performance, tell: Callable[[Event], object]) -> Any:
        """Carries a performance out in a thread of the pool; its events go to `tell`."""
        driven = self._control.driven(performance)
        while True:
            try:
                event = next(driven)
            except StopIteration as done:
                return done.value
            tell(event)

    def _submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        if self._pool is None:
            self._pool = DaemonPool(self._max_threads or _MOST_THREADS, "sanderling-tool")
        return self._pool.submit(contextvars.copy_context().run, function, *args)


def _breakable() -> bool:
    """Returns whether a stopped run can break off whatever this thread waits for.

    Where it cannot, models are asked through the private event loop, where they can be cancelled.
    """
    return CAN_BREAK and threading.current_thread() is threading.main_thread()


def _told(effect: Effect) -> Performance:
    """Carries out what tells callbacks of a step."""
    yield from ()
    if not isinstance(effect, Consult):
        raise TypeError(f"callbacks ask for nothing but to be called, not for {effect!r}")
    return _finished(effect.function())


def _finished(value: Any) -> Any:
    if not inspect.isawaitable(value):
        return value
    from sanderling._bridge import wait_for

    async def finish() -> Any:
        return await value

    return wait_for(finish())
