"""The agent that acts by calling tools as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sanderling._arguments import at_least_one
from sanderling.console import RunPrinter
from sanderling.loop import ToolAction
from sanderling.messages import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction
from sanderling.models import Model
from sanderling.tools.toolbox import TOOL_MAPPING

from ._agent import MultiStepAgent
from ._prompts import render

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from sanderling.loop import Action, Event
    from sanderling.memory import ActionStep
    from sanderling.tools import Tool

    from ._definition import ToolParser
    from ._prompts import PromptTemplates


class ToolCallingAgent(MultiStepAgent):
    """Lets the model call tools by name, natively or as JSON in its text.

    Several calls in one reply are made at once.

    Args:
        tools: See `MultiStepAgent`, as for all arguments not listed here.
        model: See there.
        prompt_templates: See there.
        max_tool_threads: How many calls of one reply may run together.

    Raises:
        ValueError: `max_tool_threads` is less than 1, or see there.
    """

    _calls_tools = True
    _saved = (*MultiStepAgent._saved, "max_tool_threads")

    def __init__(
        self,
        tools: Sequence[Tool | Callable[..., Any]],
        model: Model | Callable[..., Any],
        prompt_templates: PromptTemplates | None = None,
        planning_interval: int | None = None,
        stream_outputs: bool = False,
        max_tool_threads: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            tools,
            model,
            prompt_templates,
            planning_interval=planning_interval,
            stream_outputs=stream_outputs,
            **kwargs,
        )
        self.max_tool_threads = at_least_one("max_tool_threads", max_tool_threads)

    @property
    def tools_and_managed_agents(self) -> dict[str, Any]:
        """All that the model can call, by name."""
        return {**self.tools, **self.managed_agents}

    def initialize_system_prompt(self) -> str:
        """Renders the system prompt."""
        return render(self.prompt_templates["system_prompt"], **self._prompt_variables())

    def process_tool_calls(
        self, chat_message: ChatMessage, memory_step: ActionStep
    ) -> Generator[Event, None, None]:
        """Carries out the calls of a message, and writes what came of them into `memory_step`.

        Yields:
            The calls, and then what became of each.

        Raises:
            AgentParsingError: The message calls no tool.
            AgentExecutionError: A call failed.
        """
        return self._manual().play(chat_message, memory_step)

    def aprocess_tool_calls(
        self, chat_message: ChatMessage, memory_step: ActionStep
    ) -> AsyncGenerator[Event, None]:
        """Does what `process_tool_calls` does, under asyncio."""
        return self._manual().aplay(chat_message, memory_step)

    def _base_tools(self) -> list[Tool]:
        return [ready() for ready in TOOL_MAPPING.values()]

    def _printer(self) -> RunPrinter:
        return RunPrinter(self.logger, code_marks=())

    def _action(self) -> Action:
        return ToolAction(
            (*self.tools, *self._agent_tools),
            name_key=self.model.tool_name_key,
            arguments_key=self.model.tool_arguments_key,
            options={} if self.grammar is None else {"grammar": self.grammar},
            stream=self.stream_outputs,
            media={
                name: tool.output_type
                for name, tool in self.tools.items()
                if tool.output_type in ("image", "audio")
            },
            parse=_parser_of(self.model, self.tool_parser),
        )


def _parser_of(
    model: Model, tool_parser: ToolParser | None
) -> Callable[[ChatMessage], list[ChatMessageToolCall]] | None:
    """Returns what reads the calls of a reply: the agent's parser, the model's own, or nothing."""
    if tool_parser is not None:
        return lambda reply: _calls(tool_parser(reply.text))
    if type(model).parse_tool_calls is not Model.parse_tool_calls:
        return lambda reply: model.parse_tool_calls(reply).tool_calls or []
    return None


def _calls(read: Any) -> list[ChatMessageToolCall]:
    if isinstance(read, Sequence) and read and not isinstance(read[0], str):
        return [call for each in read for call in _calls(each)]
    if isinstance(read, ChatMessageToolCall):
        return [read]
    name, arguments = read[0], read[1] if len(read) > 1 else {}
    return [ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), id="")]
