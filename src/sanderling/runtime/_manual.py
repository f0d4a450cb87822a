"""A run in the user's own hands: one step, one call, one plan, one answer at a time."""

from __future__ import annotations

import json
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, aclosing, closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from sanderling.errors import AgentError, AgentGenerationError, AgentParsingError
from sanderling.loop import (
    CallTool,
    Generate,
    ModelReply,
    Now,
    Outcome,
    StepStarted,
    Together,
    answer_in,
    checked,
)
from sanderling.memory import ActionStep
from sanderling.messages import ImagePart, TextPart, Timing

from ._drivers import Done, adrive, drive
from ._limits import time_limit
from ._tracebacks import ShortTracebacks

if TYPE_CHECKING:
    from sanderling.loop import Effect, Event, RunState
    from sanderling.messages import ChatMessage, ImageSource, TokenUsage

    from ._context import RunContext
    from ._drivers import Work
    from ._run import Run

Loop: TypeAlias = Generator[Any, Any, Any]
Show: TypeAlias = "Callable[[Event], object]"


@contextmanager
def alone_in_session(context: RunContext, seconds: float | None) -> Iterator[Show]:
    """Has the session while something is done by hand, outside of the events of a run.

    Args:
        context: What effects are carried out with.
        seconds: How long it may take.
    """
    run, handler = context.run, context.settings.handler
    run.session.claim(run)
    if handler is not None:
        handler.count(run.memory.steps)
    try:
        with time_limit(context.scope, seconds):
            yield _ignore if handler is None else handler.show
    finally:
        run.session.release()
        if handler is not None:
            handler.close()


def _ignore(event: Event) -> None:
    """Shows nothing."""


class FinalText(str):
    """A model's answer: the text, which also has the message's parts.

    Attributes:
        message: The reply; `None` where the model could not be asked.
    """

    __slots__ = ("message",)
    message: ChatMessage | None

    def __new__(cls, text: str, message: ChatMessage | None = None) -> Self:
        """Makes the text of a message."""
        made = super().__new__(cls, text)
        made.message = message
        return made

    @property
    def content(self) -> str:
        """The text."""
        return str(self)

    @property
    def token_usage(self) -> TokenUsage | None:
        """What it cost."""
        return None if self.message is None else self.message.token_usage


class ManualControl:
    """Does by hand what a run does by itself: takes a step, calls a tool, makes a plan, answers.

    Each method has a twin for asyncio, whose name begins with ``a``.

    Args:
        context: What effects are carried out with.
        hold: Entered around each thing that is done; gives what is told of the events.
    """

    def __init__(
        self, context: RunContext, hold: Callable[[], AbstractContextManager[Show]] | None = None
    ) -> None:
        self._context = context
        self._hold = self._nested if hold is None else hold

    @property
    def run(self) -> Run:
        """The run in which things are done."""
        return self._context.run

    def step(self, step: ActionStep) -> Any:
        """Takes one step, which is not put into memory; returns the answer or None."""
        return self._carry_out(self._one_step(step))

    def astep(self, step: ActionStep) -> Coroutine[Any, Any, Any]:
        """Does what `step` does, under asyncio."""
        return self._acarry_out(self._one_step(step))

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> Any:
        """Calls a tool or a managed agent as the model would."""
        return self._carry_out(self._one_call(name, arguments), self._calling)

    def acall_tool(self, name: str, arguments: Mapping[str, Any] | str) -> Coroutine[Any, Any, Any]:
        """Does what `call_tool` does, under asyncio."""
        return self._acarry_out(self._one_call(name, arguments), self._calling)

    def plan(self, task: str, step_number: int) -> None:
        """Has the model make a plan before the step of that number, and puts it into memory."""
        self._carry_out(self._one_plan(task, step_number))

    async def aplan(self, task: str, step_number: int) -> None:
        """Does what `plan` does, under asyncio."""
        await self._acarry_out(self._one_plan(task, step_number))

    def answer(self, task: str, images: Sequence[ImageSource] | None = None) -> FinalText:
        """Has the model answer a task from what is in memory."""
        text: FinalText = self._carry_out(self._one_answer(task, images))
        return text

    async def aanswer(self, task: str, images: Sequence[ImageSource] | None = None) -> FinalText:
        """Does what `answer` does, under asyncio."""
        text: FinalText = await self._acarry_out(self._one_answer(task, images))
        return text

    def play(self, reply: ChatMessage, step: ActionStep) -> Generator[Event, None, None]:
        """Does what a reply says, as if the model had just given it; yields what happens."""
        from ._sync import EffectHandler  # slow to import

        with self._hold(), EffectHandler(self._context) as handler:

            def handle(effect: Effect) -> Work:
                return Done(reply) if isinstance(effect, Generate) else handler.handle(effect)

            for event in drive(self._action(step), handle):
                if not isinstance(event, ModelReply):  # whoever calls this has it already
                    yield event

    async def aplay(self, reply: ChatMessage, step: ActionStep) -> AsyncGenerator[Event, None]:
        """Does what `play` does, under asyncio."""
        from ._async import AsyncEffectHandler  # asyncio is slow to import

        handler = AsyncEffectHandler(self._context)

        async def given() -> ChatMessage:
            return reply

        def handle(effect: Effect) -> Any:
            return given() if isinstance(effect, Generate) else handler.handle(effect)

        with self._hold():
            async with aclosing(adrive(self._action(step), handle)) as events:
                async for event in events:
                    if not isinstance(event, Done | ModelReply):  # as above
                        yield event

    @contextmanager
    def _nested(self) -> Iterator[Show]:
        """Leaves events to the run, which is at work and waits for the method that this is in."""
        context = self._context
        if context.events is None:
            context.events = []
        yield context.events.append

    @property
    def _calling(self) -> RunContext:
        """The context of calls, which no method of the agent makes in turn."""
        return replace(self._context, has_own_calls=False)

    def _carry_out(self, loop: Loop, context: RunContext | None = None) -> Any:
        from ._sync import EffectHandler  # slow to import

        with (
            ShortTracebacks(),
            self._hold() as show,
            EffectHandler(context or self._context) as handler,
            closing(drive(loop, handler.handle)) as events,
        ):
            while True:
                try:
                    show(next(events))
                except StopIteration as done:
                    return done.value

    async def _acarry_out(self, loop: Loop, context: RunContext | None = None) -> Any:
        from ._async import AsyncEffectHandler  # asyncio is slow to import

        result = None
        with ShortTracebacks(), self._hold() as show:
            handle = AsyncEffectHandler(context or self._context).handle
            async with aclosing(adrive(loop, handle)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        result = event.value
                    else:
                        show(event)
        return result

    @property
    def _is_nested(self) -> bool:
        return self._context.events is not None

    def _action(self, step: ActionStep) -> Loop:
        return self._context.settings.action(self._context.state, step)

    def _one_step(self, step: ActionStep) -> Loop:
        run = self._context.state
        if step.step_number is None:
            steps = (past for past in run.memory.steps if isinstance(past, ActionStep))
            numbers = [past.step_number or 0 for past in steps]
            step.step_number = max(numbers, default=0) + 1
        if not self._is_nested:
            yield StepStarted(step.step_number)
        if step.timing is None:
            step.timing = Timing((yield Now()))
        answer = None
        try:
            action = self._action(step)
            output = yield from (action if self._is_nested else checked(run, action, step))
            if output.is_final_answer:
                answer = output.output
        except AgentError as error:
            if run.is_ended_by(error):
                raise
            step.error = error
        step.timing.end_time = yield Now()
        if not self._is_nested:
            yield step
        return answer

    def _one_call(self, name: str, arguments: Mapping[str, Any] | str) -> Loop:
        context = self._context
        if isinstance(arguments, str):
            arguments = _named(arguments, context.state.state)
        outcome: Outcome
        (outcome,) = yield Together((CallTool(context.call_id or "by_hand", name, arguments),))
        if outcome.error is None:
            return outcome.value
        tool = context.tools.get(name)
        if tool is None or not isinstance(outcome.error, AgentError):
            raise outcome.error
        raise type(outcome.error)(
            f"{outcome.error}\nThis is the tool: {tool.to_tool_calling_prompt()}"
        ) from outcome.error

    def _one_plan(self, task: str, step_number: int) -> Loop:
        with self._task(task) as run:
            yield from self._context.settings.planning(run, max(1, step_number))

    def _one_answer(self, task: str, images: Sequence[ImageSource] | None) -> Loop:
        with self._task(task) as run:
            messages = self._context.settings.forced_answer(run)
        if images:
            last = messages[-1]
            last.content = [TextPart(last.text), *map(ImagePart, images)]
        try:
            reply: ChatMessage = yield Generate(messages)
        except AgentGenerationError as error:
            return FinalText(f"The model could not give an answer: {error}")
        try:
            return FinalText(answer_in(reply), reply)
        except AgentParsingError as error:
            return FinalText(str(error), reply)

    @contextmanager
    def _task(self, task: str) -> Iterator[RunState]:
        run = self._context.state
        before, run.task = run.task, task
        try:
            yield run
        finally:
            run.task = before


def _named(text: str, state: Mapping[str, Any]) -> Any:
    """Returns the variable, or the object, that a text in the place of arguments stands for."""
    if text in state:
        return state[text]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
