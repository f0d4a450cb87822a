"""What agents answer to for programs written for earlier versions of smolagents."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, overload

from sanderling._show import quoted
from sanderling.console import Monitor
from sanderling.errors import AgentParsingError
from sanderling.memory import (
    ActionStep,
    AgentMemory,
    MemoryStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
)
from sanderling.messages import plain_messages

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage, ImageSource, JSONObject
    from sanderling.models import Model
    from sanderling.runtime import FinalText, ManualControl

    from ._prompts import PromptTemplates

AgentStepLog = MemoryStep
"""The base of all steps, as smolagents 1.4 called it."""


class Logs(MutableSequence[MemoryStep]):
    """The steps of a memory as one list, the system prompt first; a change here is one there.

    Args:
        memory: Where the steps are.
    """

    def __init__(self, memory: AgentMemory) -> None:
        self._memory = memory

    def _all(self) -> list[MemoryStep]:
        return [self._memory.system_prompt, *self._memory.steps]

    def _put(self, steps: list[MemoryStep]) -> None:
        if not steps or not isinstance(steps[0], SystemPromptStep):
            raise ValueError("the first of the logs is the system prompt, and stays there")
        self._memory.system_prompt, self._memory.steps[:] = steps[0], steps[1:]

    def __len__(self) -> int:
        return 1 + len(self._memory.steps)

    @overload
    def __getitem__(self, index: int) -> MemoryStep: ...
    @overload
    def __getitem__(self, index: slice) -> list[MemoryStep]: ...
    def __getitem__(self, index: int | slice) -> MemoryStep | list[MemoryStep]:
        return self._all()[index]

    @overload
    def __setitem__(self, index: int, value: MemoryStep) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[MemoryStep]) -> None: ...
    def __setitem__(self, index: int | slice, value: MemoryStep | Iterable[MemoryStep]) -> None:
        steps = self._all()
        steps[index] = value  # type: ignore[assignment, index]  # one for an int, many for a slice
        self._put(steps)

    def __delitem__(self, index: int | slice) -> None:
        steps = self._all()
        del steps[index]
        self._put(steps)

    def insert(self, index: int, value: MemoryStep) -> None:
        """Puts a step in front of the one at `index`."""
        steps = self._all()
        steps.insert(index, value)
        self._put(steps)

    def __repr__(self) -> str:
        return repr(self._all())


class OldNames(ABC):
    """Attributes and methods that have another name today, or are computed from memory."""

    model: Model

    @property
    @abstractmethod
    def memory(self) -> AgentMemory:
        """The memory of the conversation."""

    @property
    @abstractmethod
    def prompt_templates(self) -> PromptTemplates:
        """The prompts in use."""

    @property
    def task(self) -> str | None:
        """The task that was given last."""
        tasks = [step.task for step in self.memory.steps if isinstance(step, TaskStep)]
        return tasks[-1] if tasks else None

    @property
    def step_number(self) -> int:
        """The number of the last step; 0 before the first."""
        steps = [step for step in self.memory.steps if isinstance(step, ActionStep)]
        return (steps[-1].step_number or len(steps)) if steps else 0

    @property
    def input_messages(self) -> list[ChatMessage] | None:
        """What the model was sent in the last step."""
        for step in reversed(self.memory.steps):
            if isinstance(step, ActionStep) and step.model_input_messages is not None:
                return list(step.model_input_messages)
        return None

    @property
    def monitor(self) -> Monitor:
        """The sums over the steps in memory, as they are now."""
        monitor = Monitor()
        for step in self.memory.steps:
            if isinstance(step, ActionStep | PlanningStep):
                monitor.update_metrics(step)
        return monitor

    @property
    def logs(self) -> MutableSequence[MemoryStep]:
        """The system prompt and all steps; `memory` has them today."""
        _warn("agent.logs", "agent.memory.steps")
        return Logs(self.memory)

    @property
    def agent_name(self) -> str:
        """The name of the class; ``type(agent).__name__`` has it today."""
        _warn("agent.agent_name", "type(agent).__name__")
        return type(self).__name__

    @property
    def system_prompt_template(self) -> str:
        """The template of the system prompt; `prompt_templates` has it today."""
        _warn("agent.system_prompt_template", 'agent.prompt_templates["system_prompt"]')
        return self.prompt_templates["system_prompt"]

    def write_memory_to_messages(self, summary_mode: bool = False) -> Sequence[ChatMessage]:
        """Returns the memory as messages to the model.

        Args:
            summary_mode: Leave out what only the acting model needs: the system prompt, its
                reasoning, plans.
        """
        messages = self.memory.to_messages(summary_mode)
        return messages if self.model.takes_tool_messages else plain_messages(messages)

    def write_inner_memory_from_logs(self, summary_mode: bool = False) -> Sequence[ChatMessage]:
        """Does what `write_memory_to_messages` does."""
        _warn("agent.write_inner_memory_from_logs()", "agent.write_memory_to_messages()")
        return self.write_memory_to_messages(summary_mode)

    def get_succinct_logs(self) -> list[JSONObject]:
        """Returns the JSON form of the system prompt and all steps."""
        _warn("agent.get_succinct_logs()", "agent.memory.get_succinct_steps()")
        return [self.memory.system_prompt.dict(), *self.memory.get_succinct_steps()]

    @abstractmethod
    def _manual(self) -> ManualControl:
        """Returns what does things by hand in the session."""

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
        return self._manual().call_tool(tool_name, arguments)

    async def aexecute_tool_call(self, tool_name: str, arguments: dict[str, Any] | str) -> Any:
        """Does what `execute_tool_call` does, under asyncio."""
        return await self._manual().acall_tool(tool_name, arguments)

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
        self._manual().plan(task, step)

    async def aplanning_step(self, task: str, is_first_step: bool, step: int) -> None:
        """Does what `planning_step` does, under asyncio."""
        del is_first_step
        await self._manual().aplan(task, step)

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
        return self._manual().answer(task, images)

    async def aprovide_final_answer(
        self, task: str, images: Sequence[ImageSource] | None = None
    ) -> FinalText:
        """Does what `provide_final_answer` does, under asyncio."""
        return await self._manual().aanswer(task, images)

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


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=3)
