"""The agent that acts by calling tools as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sanderling.console import RunPrinter
from sanderling.loop import ToolAction

from ._base import MultiStepAgent
from ._prompts import render

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sanderling.loop import Action
    from sanderling.models import Model
    from sanderling.tools import Tool

    from ._prompts import PromptTemplates


class ToolCallingAgent(MultiStepAgent):
    """Lets the model call tools by name, natively or as JSON in its text.

    Several calls in one reply are made at once.

    Args:
        tools: See `MultiStepAgent`, as for all arguments not listed here.
        model: See there.
        prompt_templates: See there.
        max_tool_threads: How many calls of one reply may run together in `run`.
    """

    _templates_name = "toolcalling_agent"

    def __init__(
        self,
        tools: Sequence[Tool | Callable[..., Any]],
        model: Model | Callable[..., Any],
        prompt_templates: PromptTemplates | None = None,
        max_tool_threads: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(tools, model, prompt_templates, **kwargs)
        self.max_tool_threads = max_tool_threads

    def initialize_system_prompt(self) -> str:
        """Renders the system prompt."""
        return render(
            self.prompt_templates["system_prompt"],
            tools=list(self.tools.values()),
            managed_agents=[],
            custom_instructions=self.instructions,
        )

    def _printer(self) -> RunPrinter:
        return RunPrinter(self.logger, code_marks=())

    def _action(self) -> Action:
        return ToolAction(
            tuple(self.tools),
            name_key=self.model.tool_name_key,
            arguments_key=self.model.tool_arguments_key,
            stream=self.stream_outputs,
        )
