"""The step of an agent that acts by calling tools."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sanderling import sandbox
from sanderling._show import quoted, text_of
from sanderling.errors import (
    AgentError,
    AgentParsingError,
    AgentToolExecutionError,
    MissingExtraError,
)
from sanderling.memory import ActionStep, ToolCall, joined_observations
from sanderling.models import parse_json_tool_calls, read_arguments
from sanderling.tools.agent_types import handle_agent_output_types, media_of

from ._actions import STOPS, Acting, ask, cut_off, shorten
from ._channels import without_marks
from ._code_reply import FINAL_ANSWER
from ._effects import CallTool, Effect, Outcome, Together
from ._events import ActionOutput, Event, ToolOutput
from ._parsing import without_thinking

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage, ChatMessageToolCall

    from ._state import RunState

POSTPONED = (
    f"{FINAL_ANSWER} was not carried out, because it came together with calls whose results you "
    "have not seen yet: read them, then call it alone."
)
SUPERFLUOUS = f"{FINAL_ANSWER} was not carried out: only the first one of a turn counts."
_FILES = {"image": "image{}.png", "audio": "audio{}.mp3"}


@dataclass(frozen=True, slots=True)
class ToolAction:
    """Asks for tool calls and makes them, those of one reply together.

    A ``final_answer`` among other calls comes last. It waits for another turn if one of the others
    failed or returned something: then it was given before its author could have read that.

    Attributes:
        tools: Names of the tools that the model is offered.
        name_key: Where a call that the model wrote into its text has the name of the tool.
        arguments_key: Where it has the arguments.
        stop_sequences: Where the model shall stop.
        options: Further keyword arguments for the model.
        stream: Whether the model's text comes out while it is written.
        media: The tools that return an image or audio, by name, and which of the two.
        parse: Reads the calls of a reply that has no native ones, in the place of our own reading.
    """

    tools: tuple[str, ...]
    name_key: str = "name"
    arguments_key: str = "arguments"
    stop_sequences: tuple[str, ...] = STOPS
    options: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    media: Mapping[str, str] = field(default_factory=dict)
    parse: Callable[[ChatMessage], list[ChatMessageToolCall]] | None = None

    def __call__(self, run: RunState, step: ActionStep) -> Acting:
        """Takes one step."""
        reply = yield from ask(
            run,
            step,
            stop_sequences=self.stop_sequences,
            tools=self.tools,
            options=self.options,
            stream=self.stream,
        )
        reply = without_marks(reply)
        step.model_output = without_thinking(reply.text)
        calls = step.tool_calls = self._calls(reply, step)
        yield from calls
        answers = [call for call in calls if call.name == FINAL_ANSWER]
        others = [call for call in calls if call.name != FINAL_ANSWER]
        turn = _Turn(run, self.media)
        yield from turn.make(others)
        if answers and not turn.has_news:
            yield from turn.make(answers[:1])
        refused = SUPERFLUOUS if turn.answer else POSTPONED
        said = [turn.said.get(call.id, refused) for call in calls]
        step.observations = joined_observations(calls, said)
        step.tool_responses = said if len(calls) > 1 else None
        if turn.errors and len(calls) == 1:
            step.observations = None
            raise turn.errors[0]
        if turn.errors:
            raise AgentToolExecutionError(
                f"{len(turn.errors)} of {len(turn.said)} calls failed; the others' results are "
                "kept."
            )
        step.is_final_answer = turn.answer is not None
        values = list(turn.values.values())
        if turn.answer is not None:
            step.action_output = turn.answer.value
        else:
            step.action_output = values[0] if len(calls) == 1 else values
        return ActionOutput(step.action_output, step.is_final_answer)

    def _calls(self, reply: ChatMessage, step: ActionStep) -> list[ToolCall]:
        try:
            wanted = reply.tool_calls or self._written_calls(reply, step.model_output or "")
        except AgentParsingError:
            if reply.finish_reason == "length":
                raise cut_off(reply) from None
            raise
        calls: dict[str, ToolCall] = {}
        for place, call in enumerate(wanted, 1):
            arguments = read_arguments(call)
            unreadable = isinstance(arguments, str) or not call.function.name
            if reply.finish_reason == "length" and unreadable:
                raise cut_off(reply)
            if not call.function.name:  # in a history, providers refuse it
                raise AgentParsingError(
                    f"Call {place} of your reply does not name a tool, so nothing was called. Its "
                    f"arguments were: {text_of(arguments):.500}\n"
                    f"Call one of these by its name: {', '.join(self.tools)}"
                )
            key = call.id or f"call_{step.step_number}_{place}"
            while key in calls:
                key += f"_{place}"
            calls[key] = ToolCall(call.function.name, arguments, key)
        return list(calls.values())

    def _written_calls(self, reply: ChatMessage, text: str) -> list[ChatMessageToolCall]:
        if self.parse is None:
            return parse_json_tool_calls(text, self.name_key, self.arguments_key)
        try:
            calls = self.parse(reply)
        except AgentError:
            raise
        except Exception as error:
            raise AgentParsingError(
                f"Your reply cannot be read as a tool call: {sandbox.described(error)}"
            ) from error
        if not calls:
            raise AgentParsingError(f"Your reply calls no tool. {quoted(text)}")
        return calls


class _Turn:
    """The calls of one reply, as far as they are made.

    Attributes:
        said: What the model is told of each, by id.
        values: What those returned that did not fail, by id.
        errors: What the others raised.
        answer: The outcome of ``final_answer``, if it was carried out.
        has_news: Whether there is something that the model has not seen when it made the calls.
    """

    def __init__(self, run: RunState, media: Mapping[str, str]) -> None:
        self._run = run
        self._media = media
        self.said: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.errors: list[Exception] = []
        self.answer: Outcome | None = None
        self.has_news = False

    def make(self, calls: Sequence[ToolCall]) -> Generator[Effect | Event, Any, None]:
        """Makes calls together and tells what came of them, in their order."""
        if not calls:
            return
        outcomes: list[Outcome] = yield Together(
            tuple(CallTool(call.id, call.name, call.arguments) for call in calls)
        )
        for call, given in zip(calls, outcomes, strict=True):
            outcome = self._as_media(call, given)
            final = call.name == FINAL_ANSWER and outcome.error is None
            self.has_news |= outcome.value is not None or outcome.error is not None
            said = self.said[call.id] = self._told(outcome, keep=not final)
            if outcome.error is not None:
                self.errors.append(outcome.error)
            else:
                self.values[call.id] = outcome.value
            if final:
                self.answer = outcome
            yield ToolOutput(call.id, outcome.value, said, final, call)

    def _as_media(self, call: ToolCall, outcome: Outcome) -> Outcome:
        """Returns what a tool gave as the image or audio that it declares."""
        kind = self._media.get(call.name)
        if kind is None or outcome.error is not None:
            return outcome
        try:
            return Outcome(handle_agent_output_types(outcome.value, kind))
        except MissingExtraError:
            raise
        except Exception as error:  # what decoders raise at broken data has no common base
            why = sandbox.error_text(error)
            what = f"The tool {call.name!r} did not return the {kind} that it should: {why}"
            return Outcome(error=AgentToolExecutionError(what))

    def _told(self, outcome: Outcome, *, keep: bool) -> str:
        if outcome.error is not None:
            return shorten(sandbox.safe_str(outcome.error))
        kind = media_of(outcome.value) if keep else None
        if kind is None:
            return shorten(sandbox.safe_str(outcome.value))
        name = _free_name(_FILES[kind], self._run.state)
        self._run.state[name] = outcome.value
        return f"The {kind} is kept as '{name}': give that name as an argument to pass it on."


def _free_name(pattern: str, taken: Mapping[str, Any]) -> str:
    number = 1
    while (name := pattern.format("" if number == 1 else f"_{number}")) in taken:
        number += 1
    return name
