"""Shows a run in the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sanderling import sandbox
from sanderling.loop import (
    CodeOutputDelta,
    ModelReply,
    PlanningStarted,
    ReplyBrokenOff,
    RunStarted,
    StepStarted,
)
from sanderling.memory import ActionStep, FinalAnswerStep, PlanningStep, ToolCall
from sanderling.messages import ChatMessageStreamDelta

from ._live import LiveReply, LiveText
from ._logger import MAX_BLOCK, YELLOW_HEX, LogLevel
from ._monitor import Monitor, titled
from ._text import excerpt

if TYPE_CHECKING:
    from sanderling.loop import Event
    from sanderling.memory import MemoryStep

    from ._logger import AgentLogger

MAX_VALUE = 2_000
"""Characters of a value on the way to the answer that are shown."""

CODE_MARKS = ("<code>", "```")
_CODE_TOOL = "python_interpreter"
_MODEL_TEXT = "Output message of the LLM:"
_LOGS, _VALUE = "Execution logs:\n", "Last output from code snippet:\n"
_REFUSED_IMPORT = re.compile(r"Import of (\S{1,100}) is not allowed")


class RunPrinter:
    """Prints the events of one run as they come.

    Args:
        logger: Where to, and how much.
        code_marks: What the code in a reply may begin with. From there on a streamed reply waits to
            be shown as code.
    """

    def __init__(self, logger: AgentLogger, code_marks: Sequence[str] = CODE_MARKS) -> None:
        self._logger = logger
        self._monitor = Monitor(logger=logger)
        self._agent: str | None = None
        self._code_marks = code_marks
        self._reply: LiveReply | None = None
        self._logs: LiveText | None = None
        self._plans = False
        self._reply_was_streamed = False
        self._logs_were_streamed = False
        self._answered = False

    def show(self, event: Event) -> None:
        """Prints what there is to say about an event."""
        match event:
            case ChatMessageStreamDelta():
                if event.content and self._logger.shows(LogLevel.INFO):
                    self._show_reply(event.content)
            case ReplyBrokenOff():
                self.close()
                self._reply_was_streamed = False
                self._logger.log(f"The reply broke off: {event.reason}", style="yellow")
                self._logger.log("It is asked for again.", style="yellow")
            case CodeOutputDelta():
                if event.text and self._logger.shows(LogLevel.INFO):
                    self._show_printed(event.text)
            case ModelReply():
                if (text := event.text.strip()) and not self._reply_was_streamed:
                    self._logger.log_markdown(text, _MODEL_TEXT, LogLevel.DEBUG)
            case ToolCall():
                self._show_call(event)
            case RunStarted():
                self._agent = event.agent
                self._logger.log_task(event.task, event.model, event.agent)
            case PlanningStarted():
                self._plans, self._reply_was_streamed = True, False
                title = "Initial plan" if event.is_first else "Updated plan"
                self._logger.log_rule(titled(title, self._agent))
            case PlanningStep():
                self.close()
                with self._logger.together():
                    self._show_plan(event)
            case StepStarted():
                self._plans = self._reply_was_streamed = self._logs_were_streamed = False
                title = self._logger.step_title(event.step_number)
                self._logger.log_rule(titled(title, self._agent))
            case ActionStep():
                self.close()
                with self._logger.together():
                    self._show_outcome(event)
            case FinalAnswerStep():
                self.close()
                if not self._answered:
                    self._show_answer(event.output)

    def count(self, steps: Iterable[MemoryStep]) -> None:
        """Takes the tokens of steps that are in memory already for the run's."""
        for step in steps:
            if isinstance(step, ActionStep | PlanningStep):
                self._monitor.count(step)

    def close(self) -> None:
        """Ends the line that is being written; to be called when a run breaks off."""
        if self._reply is not None:
            self._reply.close(code_is_shown=False)
            self._reply = None
        if self._logs is not None:
            self._logs.close()
            self._logs = None

    def _show_reply(self, text: str) -> None:
        if self._reply is None:
            debug = self._logger.shows(LogLevel.DEBUG)
            if debug:
                self._logger.log_markdown("", title=_MODEL_TEXT)
            whole = debug or self._plans
            self._reply = LiveReply(self._logger, () if whole else self._code_marks)
            self._reply_was_streamed = True
        self._reply.write(text)

    def _show_printed(self, text: str) -> None:
        if self._logs is None:
            self._logs = LiveText(self._logger, by="pieces", title=_LOGS.rstrip())
            self._logs_were_streamed = True
        self._logs.write(text)

    def _show_call(self, call: ToolCall) -> None:
        is_code = call.name == _CODE_TOOL and isinstance(call.arguments, str)
        if self._reply is not None:
            self._reply.close(code_is_shown=is_code)
            self._reply = None
        if is_code:
            self._logger.log_code("Executing this code:", call.arguments)
        elif self._logger.shows(LogLevel.INFO):
            from rich.panel import Panel

            arguments = excerpt(sandbox.safe_str(call.arguments), MAX_VALUE)
            text = f"Calling tool: {call.name!r} with arguments: {arguments}"
            self._logger.log(Panel(self._logger.plain(text)))

    def _show_plan(self, step: PlanningStep) -> None:
        if not self._reply_was_streamed:
            for text in filter(None, (step.facts, step.plan)):
                self._logger.log(excerpt(text, MAX_BLOCK))
        self._monitor.update_metrics(step, self._agent)

    def _show_outcome(self, step: ActionStep) -> None:
        observations = step.observations or ""
        if step.code_action is not None:
            logs = observations.rpartition(_VALUE)[0] or observations
            if logs.startswith(_LOGS) and not self._logs_were_streamed:
                self._logger.log(_LOGS.rstrip(), style="bold")
                text = excerpt(logs.removeprefix(_LOGS).rstrip(), MAX_BLOCK)
                self._logger.log_indented(text, first=True)
        elif observations and not step.is_final_answer:
            self._logger.log_indented(f"Observations: {excerpt(observations, MAX_BLOCK)}")
        if step.error is not None:
            self._show_error(str(step.error))
        if step.is_final_answer:  # with an error as well, where it was forced at the last step
            self._show_answer(step.action_output)
        elif step.error is None and step.code_action is not None:
            value = excerpt(sandbox.safe_str(step.action_output), MAX_VALUE)
            self._logger.log_indented(f"Out: {value}")
        self._monitor.update_metrics(step, self._agent)

    def _show_answer(self, answer: object) -> None:
        text = excerpt(sandbox.safe_str(answer), MAX_BLOCK)
        title = self._logger.answer_title
        self._logger.log(f"{title}: {text}", style=f"bold {YELLOW_HEX}")
        self._answered = True

    def _show_error(self, message: str) -> None:
        gap = "\n" if "\n" in message else " "
        self._logger.log_error(f"Error:{gap}{message}")
        if refused := _REFUSED_IMPORT.search(message):
            module = refused[1]
            self._logger.log_error(
                f"To allow this import, create the agent with additional_authorized_imports="
                f"[{module!r}] (on the command line: --imports {module})."
            )
