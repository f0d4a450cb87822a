"""Carries effects out in the calling thread."""

from __future__ import annotations

import contextvars
import time
from collections import deque
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

from sanderling._daemons import DaemonPool
from sanderling._warn import capture_warnings
from sanderling.errors import AgentInterruptedError, AgentStoppedError
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
from sanderling.sandbox import CodeResult, Printed, ToolRequest

from ._children import ChildRunTool
from ._context import RunContext, as_coroutine, is_awaitable, tool_failure
from ._drivers import Done, drive
from ._model_calls import ModelCalls
from ._own_methods import own_call
from ._policies import CallHost, under

if TYPE_CHECKING:
    from collections.abc import Callable

    from sanderling.loop import Event
    from sanderling.sandbox import Interpreter

    from ._drivers import Performance, Work


_MOST_THREADS = 32

_NOT_BROKEN_OFF = (Now, Notify)  # callbacks are the caller's own


class EffectHandler:
    """Carries out the effects of one run; `handle` is what `drive` wants.

    Tools run in the thread that drives, as long as one call is outstanding: what is bound to a
    thread (SQLite connections, browsers, GUIs) works. Calls that are asked for together run in a
    pool, with copies of the context variables. The model is asked beside that thread, so that the
    wait for it can end at any time: in one thread all along, or on the private event loop where it
    is a client of a server.

    Args:
        context: What to use.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._scope = context.scope
        self._policies = context.all_policies
        self._policy_scope = context.policy_scope
        self._calls_directly = not self._policies and not context.has_own_calls
        self._model_calls = ModelCalls(context)
        self._pool: DaemonPool | None = None

    def handle(self, effect: Effect) -> Work:
        """Carries one effect out, under the policies of the run, until that is cancelled."""
        if isinstance(effect, _NOT_BROKEN_OFF):
            return self._within_policies(effect)
        scope = self._scope
        scope.check()
        try:
            # This is the way to the model: one call less than by `_within_policies`.
            work = self._within_policies(effect) if self._policies else self._carry_out(effect)
        except Exception:
            scope.check()  # whatever it was, it comes from being cancelled
            raise
        if not isinstance(work, Done):
            return scope.guarded(work)
        scope.check()
        return work

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None and not issubclass(kind, Exception | GeneratorExit):
            # Ctrl-C: whatever the calls in the pool have begun, such as other runs, ends as well.
            self._scope.cancel(AgentInterruptedError("The run was interrupted."))
        self.close()

    def close(self) -> None:
        """Ends the threads; calls in progress are waited for, unless the run was cancelled.

        Then those that cannot be ended are left behind, in threads that nobody waits for.
        """
        self._model_calls.close()
        if self._pool is not None:
            self._pool.shutdown(wait=not self._scope.cancelled, cancel_futures=True)
            self._pool = None

    def _within_policies(self, effect: Effect) -> Work:
        return under(self._policies, self._policy_scope, self._carry_out, effect)

    def _carry_out(self, effect: Effect) -> Work:
        match effect:
            case Generate(stream=True):
                return self._model_calls.stream(effect)
            case Generate():
                return Done(self._model_calls.generate(effect))
            case Together(effects=(call,)) if self._calls_directly and not self._is_child(call):
                return Done([self._outcome(self._context.with_state(call))])
            case Together():
                return self._together(effect)
            case ExecuteCode():
                return self._execute(effect)
            case CallTool() if self._context.has_own_calls:
                return drive(own_call(self._context, effect), self._carry_out)
            case CallTool():
                if self._is_child(effect):
                    return self._call_child(effect)
                return Done(self._call(effect))
            case CheckAnswer() | Notify() if self._context.is_settled(effect):
                return Done(None)
            case CheckAnswer():
                return drive(self._context.complaint(effect), self._carry_out)
            case Notify():
                return drive(self._context.run_callbacks(effect), _call_back)
            case CallHost():
                return Done(self._finished(effect.function))
            case Now():
                return Done(time.time())
        raise TypeError(f"there is no way to carry out {effect!r}")

    def _is_child(self, call: CallTool) -> bool:
        return isinstance(self._context.tools.get(call.name), ChildRunTool)

    def _outcome(self, call: CallTool) -> Outcome:
        try:
            return Outcome(self._call(call))
        except AgentStoppedError:
            raise
        except Exception as error:
            return Outcome(error=error)

    def _call(self, effect: CallTool) -> object:
        tool, arguments = self._context.find(effect)
        try:
            return self._finished(partial(tool.begin, arguments), tool.name)
        except (Exception, SystemExit, GeneratorExit) as error:
            if isinstance(error, Exception) and self._context.is_ended_by(error):
                raise
            raise tool_failure(effect.name, error) from error

    def _call_child(self, effect: CallTool) -> Performance:
        context = self._context
        tool, arguments = context.find(effect)
        if not isinstance(tool, ChildRunTool):
            raise TypeError(f"{tool.name!r} starts no run")
        try:
            with closing(tool.start(arguments, context)) as run:
                for event in run:
                    yield context.event_of_child(event, effect, run.path)
                return tool.report(run)
        except Exception as error:
            if context.is_ended_by(error):
                raise
            raise tool_failure(effect.name, error) from error

    def _finished(self, function: Callable[[], object], name: str = "") -> object:
        """Calls what may block, and waits for what it returns if that is awaitable."""

        def warn() -> None:
            self._context.warn_of_waiting(name)

        self._scope.add(warn)
        try:
            value = function()
        finally:
            self._scope.remove(warn)
        if not is_awaitable(value):
            return value
        from sanderling._bridge import start

        return self._scope.result_of(start(as_coroutine(value)))

    def _together(self, effect: Together) -> Performance:
        calls = [self._context.with_state(call) for call in effect.effects]
        if len(calls) == 1:
            return [(yield from self._attempt(calls[0]))]
        inbox: SimpleQueue[Event | Future[Outcome] | None] = SimpleQueue()
        with self._scope.on_cancel(lambda: inbox.put(None)):
            attempts = [self._attempt(call) for call in calls]
            futures = [self._submit(self._collected, attempt, inbox.put) for attempt in attempts]
            for future in futures:
                future.add_done_callback(inbox.put)
            missing = len(futures)
            while missing:
                item = inbox.get()
                self._scope.check()
                if isinstance(item, Future):
                    item.result()  # one that must end the run does so now
                    missing -= 1
                elif item is not None:
                    yield item
        return [future.result() for future in futures]

    def _execute(self, effect: ExecuteCode) -> Performance:
        interpreter = self._context.interpreter()
        waiting: list[Future[None]] = []
        events: deque[Event] = deque()
        with (
            closing(interpreter.execute(effect.code)) as execution,
            self._scope.on_cancel(interpreter.interrupt),
        ):
            with capture_warnings(self._context.settings.warned):
                interpreter.open()
            while True:
                try:
                    event = next(execution)
                except StopIteration as done:
                    result: CodeResult = done.value
                    break
                while events:
                    yield events.popleft()
                match event:
                    case Printed():
                        yield CodeOutputDelta(event.text)
                    case ToolRequest(alone=True):
                        yield from self._answer(interpreter, event)
                    case ToolRequest():
                        answer = self._answer(interpreter, event)
                        waiting.append(self._submit(self._collected, answer, events.append))
        # The step is over: nobody waits for calls that have not begun.
        for future in [future for future in waiting if not future.cancel()]:
            future.result()
        yield from events
        return result

    def _attempt(self, call: CallTool) -> Performance:
        return drive(self._context.attempt(call), self._within_policies)

    def _answer(self, interpreter: Interpreter, request: ToolRequest) -> Performance:
        return drive(self._context.answer(interpreter, request), self._within_policies)

    def _collected(self, performance: Performance, tell: Callable[[Event], object]) -> Any:
        """Carries a performance out in a thread of the pool; its events go to `tell`."""
        guarded = self._scope.guarded(performance)
        while True:
            try:
                event = next(guarded)
            except StopIteration as done:
                return done.value
            tell(event)

    def _submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        if self._pool is None:
            most = self._context.settings.max_tool_threads or _MOST_THREADS
            self._pool = DaemonPool(most, "sanderling-tool")
        return self._pool.submit(contextvars.copy_context().run, function, *args)


def _call_back(effect: Effect) -> Done:
    """Carries out what calls the callbacks of a step."""
    if not isinstance(effect, CallHost):
        raise TypeError(f"callbacks ask for nothing but to be called, not for {effect!r}")
    value = effect.function()
    if not is_awaitable(value):
        return Done(value)
    from sanderling._bridge import wait_for

    return Done(wait_for(as_coroutine(value)))
