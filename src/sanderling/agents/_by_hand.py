"""An agent in the user's own hands: one step, one call, one answer at a time."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from sanderling._show import quoted
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
from sanderling.runtime import Done, adrive, drive, time_limit

from ._tracebacks import ShortTracebacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sanderling.console import RunPrinter
    from sanderling.loop import Action, Effect, Event, Planning, Run
    from sanderling.messages import ChatMessage, ImageSource, TokenUsage
    from sanderling.runtime import Services

    from ._conversation import Conversation
    from ._overrides import Lent

Loop = Generator[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Workbench:
    """What is needed to do something in a conversation.

    Attributes:
        conversation: Where.
        services: What effects are carried out with.
        action: What a step does.
        forced_answer: Makes the messages that ask for an answer from memory.
        planning: Makes plans.
        printer: Shows what happens, if anything is to be shown.
        seconds: How long one thing may take.
        lent: Where this is a method that a run goes by: what the run lends, which tells and checks
            what is done here.
    """

    conversation: Conversation
    services: Services
    action: Action
    forced_answer: Callable[[Run], list[ChatMessage]]
    planning: Planning
    printer: RunPrinter | None
    seconds: float | None
    lent: Lent | None = None


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


class ByHand(ABC):
    """Does by hand what a run does by itself; works in the conversation that `memory` shows."""

    @abstractmethod
    def _workbench(self) -> Workbench:
        """Returns what is needed to go on with the conversation."""

    def step(self, memory_step: ActionStep) -> Any:
        """Takes one step, and writes what came of it into `memory_step`.

        A run needs not have been started before. The step is not put into memory: append it, for
        the model to know of it. A mistake of the model is kept as ``memory_step.error``.

        A class of your own may define this method anew, and call this one or not: the runs of its
        agents take each step with it, in a worker thread under asyncio. They append the step, put
        an answer before the checks, and keep an `AgentError` that is raised on the step. What the
        method does without this class, such as asking ``self.model``, no policy and no limit sees.

        Args:
            memory_step: A new one, such as ``ActionStep(step_number=1)``.

        Returns:
            The answer, or `None` as long as there is none. (Where the answer itself is `None`,
            ``memory_step.is_final_answer`` tells.)

        Raises:
            AgentGenerationError: The model could not be asked.
            AgentLimitError: A limit was reached.
        """
        bench = self._workbench()
        return _carried_out(_one_step(bench, memory_step), bench)

    async def astep(self, memory_step: ActionStep) -> Any:
        """Does what `step` does, under asyncio."""
        bench = self._workbench()
        return await _acarried_out(_one_step(bench, memory_step), bench)

    def execute_tool_call(self, tool_name: str, arguments: dict[str, Any] | str) -> Any:
        """Calls a tool, or a managed agent, as the model would.

        A class of your own that is derived from `ToolCallingAgent` may define this method anew, and
        call this one or not: the calls of its model are made by it, in a worker thread under
        asyncio, several at once. Approval and limits come before.

        Args:
            tool_name: Its name.
            arguments: By parameter name, or the JSON text of that; a text, where there is one
                parameter. A text that is the name of a variable in `state` stands for its value.

        Raises:
            AgentToolCallError: There is no such tool, or the arguments do not fit it.
            AgentToolExecutionError: The tool raised.
        """
        bench = _calling(self._workbench())
        return _carried_out(_one_call(bench, tool_name, arguments), bench)

    async def aexecute_tool_call(self, tool_name: str, arguments: dict[str, Any] | str) -> Any:
        """Does what `execute_tool_call` does, under asyncio."""
        bench = _calling(self._workbench())
        return await _acarried_out(_one_call(bench, tool_name, arguments), bench)

    def planning_step(self, task: str, is_first_step: bool, step: int) -> None:
        """Has the model make a plan, and puts it into memory.

        Args:
            task: What the plan is for.
            is_first_step: Whether nothing has been done yet. (What is in memory tells that as well,
                and counts where it says otherwise.)
            step: The number of the step that comes next, from 1.

        Raises:
            AgentGenerationError: The model could not be asked.
        """
        del is_first_step
        bench = self._workbench()
        _carried_out(_one_plan(bench, task, step), bench)

    async def aplanning_step(self, task: str, is_first_step: bool, step: int) -> None:
        """Does what `planning_step` does, under asyncio."""
        del is_first_step
        bench = self._workbench()
        await _acarried_out(_one_plan(bench, task, step), bench)

    def extract_action(
        self,
        model_output: str | None = None,
        split_token: str = "",
        *,
        llm_output: str | None = None,
    ) -> tuple[str, str]:
        """Splits a reply into the reasoning and the action that follows `split_token`.

        Args:
            model_output: The reply.
            split_token: What stands before the action.
            llm_output: The reply, by the name that it had in smolagents 1.4.

        Raises:
            AgentParsingError: The token is not there.
            TypeError: There is no reply, or no token.
        """
        if model_output is None:
            model_output = llm_output
        if model_output is None or not split_token:
            raise TypeError("extract_action() takes a model_output and a split_token")
        rationale, found, action = model_output.rpartition(split_token)
        if not found:
            raise AgentParsingError(
                f"The reply has no {split_token!r} before its action. {quoted(model_output)}"
            )
        return rationale.rpartition(split_token)[2].strip(), action.strip()

    def provide_final_answer(
        self, task: str, images: Sequence[ImageSource] | None = None
    ) -> FinalText:
        """Has the model answer a task from what is in memory, without taking further steps.

        Args:
            task: What is to be answered.
            images: Shown to the model with the task.

        Returns:
            The answer, as a text that also has ``content`` and ``token_usage``. Where the model
            fails, what went wrong.
        """
        bench = self._workbench()
        text: FinalText = _carried_out(_one_answer(bench, task, images), bench)
        return text

    async def aprovide_final_answer(
        self, task: str, images: Sequence[ImageSource] | None = None
    ) -> FinalText:
        """Does what `provide_final_answer` does, under asyncio."""
        bench = self._workbench()
        text: FinalText = await _acarried_out(_one_answer(bench, task, images), bench)
        return text


def _one_step(bench: Workbench, step: ActionStep) -> Loop:
    run = bench.services.run
    in_run = bench.lent is not None
    if step.step_number is None:
        taken = [one.step_number or 0 for one in run.memory.steps if isinstance(one, ActionStep)]
        step.step_number = max(taken, default=0) + 1
    if not in_run:
        yield StepStarted(step.step_number)
    if step.timing is None:
        step.timing = Timing((yield Now()))
    answer = None
    try:
        action = bench.action(run, step)
        output = yield from (action if in_run else checked(run, action, step))
        if output.is_final_answer:
            answer = output.output
    except AgentError as error:
        if run.is_ended_by(error):
            raise
        step.error = error
    step.timing.end_time = yield Now()
    if not in_run:
        yield step
    return answer


def played(bench: Workbench, reply: ChatMessage, step: ActionStep) -> Generator[Event, None, None]:
    """Does what a reply says, as if the model had just given it; yields what happens."""
    from sanderling.runtime import Performer

    performer = Performer(bench.services)

    def perform(effect: Effect) -> Generator[Event, None, Any]:
        if isinstance(effect, Generate):
            return reply
        return (yield from performer.perform(effect))

    with _at_work(bench), performer:
        for event in drive(bench.action(bench.services.run, step), perform):
            if not isinstance(event, ModelReply):  # whoever calls this has it already
                yield event


async def aplayed(
    bench: Workbench, reply: ChatMessage, step: ActionStep
) -> AsyncGenerator[Event, None]:
    """Does what `played` does, under asyncio."""
    from sanderling.runtime import AsyncPerformer  # asyncio is slow to import

    performer = AsyncPerformer(bench.services)

    async def given() -> ChatMessage:
        return reply

    def perform(effect: Effect) -> Any:
        return given() if isinstance(effect, Generate) else performer.perform(effect)

    with _at_work(bench):
        loop = bench.action(bench.services.run, step)
        async with aclosing(adrive(loop, perform)) as events:
            async for event in events:
                if not isinstance(event, Done | ModelReply):  # as above
                    yield event


def _calling(bench: Workbench) -> Workbench:
    from ._overrides import without_methods

    return replace(bench, services=without_methods(bench.services))


def _one_call(bench: Workbench, name: str, arguments: dict[str, Any] | str) -> Loop:
    state = bench.services.run.state
    given = _named(arguments, state) if isinstance(arguments, str) else arguments
    outcome: Outcome
    key = bench.lent.call_id if bench.lent is not None else None
    (outcome,) = yield Together((CallTool(key or "by_hand", name, given),))
    if outcome.error is None:
        return outcome.value
    tool = bench.services.tools.get(name)
    if tool is None or not isinstance(outcome.error, AgentError):
        raise outcome.error
    raise type(outcome.error)(
        f"{outcome.error}\nThis is the tool: {tool.to_tool_calling_prompt()}"
    ) from outcome.error


def _named(text: str, state: Mapping[str, Any]) -> Any:
    """Returns the variable, or the object, that a text in the place of arguments stands for."""
    if text in state:
        return state[text]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _one_plan(bench: Workbench, task: str, step: int) -> Loop:
    with _task_of(bench.services.run, task) as run:
        yield from bench.planning(run, max(1, step))


@contextmanager
def _task_of(run: Run, task: str) -> Iterator[Run]:
    before, run.task = run.task, task
    try:
        yield run
    finally:
        run.task = before


def _one_answer(bench: Workbench, task: str, images: Sequence[ImageSource] | None) -> Loop:
    with _task_of(bench.services.run, task) as run:
        messages = bench.forced_answer(run)
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


def _carried_out(loop: Loop, bench: Workbench) -> Any:
    from sanderling.runtime import Performer

    with ShortTracebacks(), _at_work(bench), Performer(bench.services) as performer:
        events = drive(loop, performer.perform)
        with closing(events):
            while True:
                try:
                    _show(bench, next(events))
                except StopIteration as done:
                    return done.value


async def _acarried_out(loop: Loop, bench: Workbench) -> Any:
    from sanderling.runtime import AsyncPerformer  # asyncio is slow to import

    result = None
    with ShortTracebacks(), _at_work(bench):
        perform = AsyncPerformer(bench.services).perform
        async with aclosing(adrive(loop, perform)) as events:
            async for event in events:
                if isinstance(event, Done):
                    result = event.value
                else:
                    _show(bench, event)
    return result


def _show(bench: Workbench, event: Event) -> None:
    if bench.lent is not None:
        bench.lent.told.append(event)
    elif bench.printer is not None:
        bench.printer.show(event)


@contextmanager
def _at_work(bench: Workbench) -> Iterator[None]:
    if bench.lent is not None:
        yield  # the run is at work
        return
    bench.conversation.check_free()
    bench.conversation.busy = True
    try:
        with time_limit(bench.services.control, bench.seconds):
            yield
    finally:
        bench.conversation.busy = False
        if bench.printer is not None:
            bench.printer.close()
