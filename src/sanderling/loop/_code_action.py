"""The step of an agent that acts by writing Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sanderling.errors import AgentExecutionError, AgentParsingError
from sanderling.memory import ActionStep, ToolCall

from ._actions import MAX_LOGS, STOPS, Acting, ask, cut_off, shorten
from ._code_reply import STRUCTURED_REPLY, CodeReply
from ._effects import ExecuteCode
from ._events import ActionOutput
from ._parsing import DEFAULT_TAGS, CodeTags

if TYPE_CHECKING:
    from sanderling.sandbox import CodeResult

    from ._state import RunState


@dataclass(frozen=True, slots=True)
class CodeAction:
    """Asks for code and runs it.

    Attributes:
        tags: The marks that the model is asked to put around code.
        stop_sequences: Where the model shall stop, beside the closing mark.
        options: Further keyword arguments for the model, such as a grammar.
        stream: Whether the model's text comes out while it is written.
        structured: Whether the model is made to reply with a JSON object of thought and code.
        max_logs: How many characters of what the code printed are told; None for all that the
            sandbox has let through.
    """

    tags: CodeTags = DEFAULT_TAGS
    stop_sequences: tuple[str, ...] = STOPS
    options: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    structured: bool = False
    max_logs: int | None = MAX_LOGS

    def __call__(self, run: RunState, step: ActionStep) -> Acting:
        """Takes one step."""
        reply = yield from ask(run, step, stream=self.stream, **self._request())
        read = CodeReply.of(reply, self.tags, structured=self.structured)
        step.model_output = read.text
        try:
            code = step.code_action = read.code(self.tags, structured=self.structured)
        except AgentParsingError:
            if read.cut_off:
                raise cut_off(reply) from None
            raise
        call = ToolCall("python_interpreter", code, f"call_{step.step_number}")
        step.tool_calls = [call]
        yield call
        result: CodeResult = yield ExecuteCode(code)
        if result.logs:
            step.observations = f"Execution logs:\n{shorten(result.logs.rstrip(), self.max_logs)}"
        if result.error is not None:
            hint = self._hint(read, str(result.error))
            raise AgentExecutionError(f"{result.error}{hint}") from result.error
        step.action_output = result.output
        step.is_final_answer = result.is_final_answer
        last = f"Last output from code snippet:\n{shorten(result.text)}"
        step.observations = "\n".join(filter(None, (step.observations, last)))
        return ActionOutput(result.output, result.is_final_answer)

    def _hint(self, read: CodeReply, error: str) -> str:
        """Returns what to add to an error that the model cannot understand by itself."""
        marks = [mark for mark in self._stops if len(mark) > 2]
        if not marks or not read.was_stopped or "unterminated" not in error:
            return ""
        named, last = ", ".join(map(repr, marks)), marks[-1]
        return (
            f"\nYour reply ended where it first held one of these: {named}. They end it wherever "
            "they stand. Where a string has to hold one of them, put it together from two pieces, "
            f"such as {last[:-2]!r} + {last[-2:]!r}."
        )

    @property
    def _stops(self) -> tuple[str, ...]:
        return (*self.stop_sequences, *self.tags.stop_sequences)

    def _request(self) -> dict[str, Any]:
        if self.structured:
            # A stop sequence inside the JSON would leave half an object.
            return {"options": {"response_format": STRUCTURED_REPLY, **self.options}}
        return {"stop_sequences": self._stops, "options": self.options}
