"""The two kinds of step: act by writing Python, or by calling tools as JSON."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling._show import text_of
from sanderling.errors import (
    AgentExecutionError,
    AgentParsingError,
    AgentToolExecutionError,
)
from sanderling.memory import ActionStep, ToolCall
from sanderling.models import parse_json_tool_calls, read_arguments

from ._effects import CallTool, Effect, ExecuteCode, Generate, Outcome, Together
from ._events import ActionOutput, Event, ToolOutput
from ._parsing import DEFAULT_TAGS, CodeTags, extract_code, is_closed

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage
    from sanderling.sandbox import CodeResult

    from ._run import Run

Acting: TypeAlias = Generator[Effect | Event, Any, ActionOutput]
Action: TypeAlias = "Callable[[Run, ActionStep], Acting]"

FINAL_ANSWER = "final_answer"
MAX_OBSERVATION = 20_000
_STOPS = ("Observation:", "Calling tools:")


@dataclass(frozen=True, slots=True)
class CodeAction:
    """Asks for code and runs it.

    Attributes:
        tags: The marks that the model is asked to put around code.
        stop_sequences: Where the model shall stop, beside the closing mark.
        options: Further keyword arguments for the model, such as a grammar.
        stream: Whether the model's text comes out while it is written.
    """

    tags: CodeTags = DEFAULT_TAGS
    stop_sequences: tuple[str, ...] = _STOPS
    options: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False

    def __call__(self, run: Run, step: ActionStep) -> Acting:
        """Takes one step."""
        reply = yield from _ask(
            run,
            step,
            stop_sequences=(*self.stop_sequences, *self.tags.stop_sequences),
            options=self.options,
            stream=self.stream,
        )
        cut_off = reply.finish_reason == "length"
        text = reply.text
        if not cut_off and not is_closed(text, self.tags):
            # The stop sequence took the mark away; without it the model unlearns to write it.
            text += self.tags.closing
        step.model_output = text
        try:
            step.code_action = extract_code(text, self.tags, cut_off=cut_off)
        except AgentParsingError:
            if cut_off:
                raise _cut_off(reply) from None
            raise
        call = ToolCall("python_interpreter", step.code_action, f"call_{step.step_number}")
        step.tool_calls = [call]
        yield call
        result: CodeResult = yield ExecuteCode(step.code_action)
        if result.logs:
            step.observations = f"Execution logs:\n{shorten(result.logs.rstrip())}"
        if result.error is not None:
            raise AgentExecutionError(str(result.error)) from result.error
        step.action_output = result.output
        step.is_final_answer = result.is_final_answer
        last = f"Last output from code snippet:\n{shorten(result.text)}"
        step.observations = "\n".join(filter(None, (step.observations, last)))
        return ActionOutput(result.output, result.is_final_answer)


@dataclass(frozen=True, slots=True)
class ToolAction:
    """Asks for tool calls and makes them.

    Attributes:
        tools: Names of the tools that the model is offered.
        name_key: Where a call that the model wrote into its text has the name of the tool.
        arguments_key: Where it has the arguments.
        stop_sequences: Where the model shall stop.
        options: Further keyword arguments for the model.
        stream: Whether the model's text comes out while it is written.
    """

    tools: tuple[str, ...]
    name_key: str = "name"
    arguments_key: str = "arguments"
    stop_sequences: tuple[str, ...] = _STOPS
    options: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False

    def __call__(self, run: Run, step: ActionStep) -> Acting:
        """Takes one step."""
        reply = yield from _ask(
            run,
            step,
            stop_sequences=self.stop_sequences,
            tools=self.tools,
            options=self.options,
            stream=self.stream,
        )
        step.model_output = reply.text
        calls = step.tool_calls = self._calls(reply, step.step_number)
        yield from calls
        postponed = [call for call in calls if call.name == FINAL_ANSWER and len(calls) > 1]
        made = [call for call in calls if call not in postponed]
        outcomes: list[Outcome] = yield Together(
            tuple(CallTool(call.id, call.name, call.arguments) for call in made)
        )
        lines = []
        for call, outcome in zip(made, outcomes, strict=True):
            said = shorten(text_of(outcome.value if outcome.error is None else outcome.error))
            final = call.name == FINAL_ANSWER and outcome.error is None
            lines.append(said if len(calls) == 1 else f"{call.name} ({call.id}): {said}")
            yield ToolOutput(call.id, outcome.value, said, final, call)
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if len(calls) == 1:
            if errors:
                raise errors[0]
            step.is_final_answer = calls[0].name == FINAL_ANSWER
            step.action_output = outcomes[0].value
        if postponed:
            lines.append(
                f"{FINAL_ANSWER} was not carried out, because it came together with other calls: "
                "read their results first, then call it alone."
            )
        step.observations = "\n".join(lines)
        if errors:
            raise AgentToolExecutionError(
                f"{len(errors)} of {len(made)} calls failed; the others' results are kept."
            )
        if len(calls) > 1:
            step.action_output = [outcome.value for outcome in outcomes]
        return ActionOutput(step.action_output, step.is_final_answer)

    def _calls(self, reply: ChatMessage, number: int | None) -> list[ToolCall]:
        try:
            wanted = reply.tool_calls or parse_json_tool_calls(
                reply.text, self.name_key, self.arguments_key
            )
        except AgentParsingError:
            if reply.finish_reason == "length":
                raise _cut_off(reply) from None
            raise
        calls: dict[str, ToolCall] = {}
        for place, call in enumerate(wanted, 1):
            key = call.id if call.id and call.id not in calls else f"call_{number}_{place}"
            calls[key] = ToolCall(call.function.name, read_arguments(call), key)
        return list(calls.values())


def _ask(run: Run, step: ActionStep, **request: Any) -> Generator[Effect, Any, ChatMessage]:
    history = run.memory.messages()
    step.model_input_messages = history
    reply: ChatMessage = yield Generate(history, **request)
    run.count(reply)
    step.model_output_message = reply
    step.token_usage = reply.token_usage
    return reply


def _cut_off(reply: ChatMessage) -> AgentParsingError:
    used = f" ({reply.token_usage.output_tokens} tokens)" if reply.token_usage else ""
    return AgentParsingError(
        f"Your reply was cut off at the model's output limit{used} before the action was complete, "
        "so nothing was run. Write less: shorter reasoning, and the work in smaller steps. "
        "(For the operator: finish_reason=length; raise the model's max_tokens.)"
    )


def shorten(text: str, length: int = MAX_OBSERVATION) -> str:
    """Cuts the middle out of a long text, and says how much was cut."""
    if len(text) <= length:
        return text
    half = length // 2
    cut = len(text) - 2 * half
    return f"{text[:half]}\n… {cut} characters cut out here; print less at a time …\n{text[-half:]}"
