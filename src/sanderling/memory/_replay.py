"""Shows a run that is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from sanderling import sandbox

from ._steps import ActionStep, FinalAnswerStep, PlanningStep, TaskStep

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage

    from ._memory import AgentMemory

_CODE_TOOL = "python_interpreter"


class Page(Protocol):
    """What a run is shown on; `sanderling.console.AgentLogger` is one."""

    def step_title(self, number: int) -> str:
        """Returns how the step of a number, counted from 1, is called."""

    def log_rule(self, title: str, level: int = ...) -> None:
        """Shows a heading."""

    def log_markdown(self, content: str, title: str | None = ..., level: int = ...) -> None:
        """Shows a text below a title."""

    def log_code(self, title: str, content: str, level: int = ...) -> None:
        """Shows code below a title."""

    def log_error(self, error_message: str) -> None:
        """Shows an error."""

    def log_messages(self, messages: Sequence[ChatMessage], level: int = ...) -> None:
        """Shows messages with their roles."""


def replay(memory: AgentMemory, page: Page, detailed: bool) -> None:
    """Shows every step of a memory, whatever the level of the page but `OFF`."""
    if detailed:
        page.log_markdown(memory.system_prompt.system_prompt, title="System prompt", level=0)
    for step in memory.steps:
        match step:
            case TaskStep():
                page.log_markdown(step.task, title="New task", level=0)
            case PlanningStep():
                page.log_rule("Plan", level=0)
                _show_sent(step, page, detailed)
                if step.facts:
                    page.log_markdown(step.facts, title="Facts", level=0)
                page.log_markdown(step.plan, title="Plan" if step.facts else None, level=0)
            case ActionStep():
                number = step.step_number
                page.log_rule("Step" if number is None else page.step_title(number), level=0)
                _show_sent(step, page, detailed)
                _show_action(step, page)
            case FinalAnswerStep():
                page.log_markdown(sandbox.safe_str(step.output), title="Final answer", level=0)
            case _:
                page.log_rule(type(step).__name__, level=0)
                page.log_messages(step.to_messages(), level=0)


def _show_sent(step: ActionStep | PlanningStep, page: Page, detailed: bool) -> None:
    if detailed and step.model_input_messages:
        page.log_messages(list(step.model_input_messages), level=0)


def _show_action(step: ActionStep, page: Page) -> None:
    if step.model_output:
        page.log_markdown(step.model_output, title="Output message of the LLM:", level=0)
    for call in step.tool_calls or ():
        if call.name == _CODE_TOOL and isinstance(call.arguments, str):
            page.log_code("Executing this code:", call.arguments, level=0)
        else:
            text = f"{call.name!r} with arguments: {sandbox.safe_str(call.arguments)}"
            page.log_markdown(text, title="Calling tool:", level=0)
    if step.observations:
        page.log_markdown(step.observations, title="Observations:", level=0)
    if step.observations_images:
        page.log_markdown(f"{len(step.observations_images)} image(s)", title="Images:", level=0)
    if step.error is not None:
        page.log_error(f"Error: {step.error}")
    if step.is_final_answer:
        page.log_markdown(sandbox.safe_str(step.action_output), title="Final answer", level=0)
