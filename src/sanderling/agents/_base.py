"""What all agents share: a definition that runs tasks, one after the other or many at once."""

from __future__ import annotations

import copy
import keyword
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, cast, overload

from sanderling._show import text_of
from sanderling.console import AgentLogger, LogLevel, RunPrinter
from sanderling.loop import Run, RunResult, RunStarted
from sanderling.memory import AgentMemory, SystemPromptStep, TaskStep
from sanderling.messages import ChatMessage, MessageRole
from sanderling.models import as_model
from sanderling.runtime import CallbackRegistry, Services
from sanderling.tools import FinalAnswerTool, as_tool

from ._conversation import Conversation
from ._course import Course
from ._prompts import PromptTemplates, checked_templates, load_templates, render

if TYPE_CHECKING:
    from types import TracebackType

    from sanderling.loop import Action, Event
    from sanderling.messages import ImageSource
    from sanderling.models import Model
    from sanderling.runtime import StepCallbacks
    from sanderling.sandbox import Interpreter
    from sanderling.tools import Tool

MAX_SHOWN_ARGUMENT = 1_000


class MultiStepAgent(ABC):
    """Solves tasks in steps: asks a model, does what it says, shows it what came of that.

    The agent is a definition. What a run changes (memory, variables, sandbox) belongs to the run:
    one agent may run many tasks at once. `memory` and `state` are those of the run started last.

    Args:
        tools: `Tool`s, or annotated functions with a docstring.
        model: A `Model`, or any callable from messages to a `ChatMessage`.
        prompt_templates: Replaces the agent's own prompts; see `PromptTemplates`.
        instructions: Added to the system prompt.
        max_steps: How many steps a run may take before it has to answer.
        verbosity_level: How much is printed; see `LogLevel`.
        step_callbacks: Called with each finished step; a list, or by class of step.
        final_answer_checks: Called with ``(answer, memory, agent=agent)``; what is false or raises
            sends the answer back to the model.
        name: Names the agent; an identifier.
        description: Says what it is good for.
        return_full_result: Makes `run` return a `RunResult` instead of the bare answer.
        logger: Prints; made from `verbosity_level` where it is not given.
        stream_outputs: Whether the model's text comes out while it is written.

    Raises:
        TypeError: The model or a tool is none.
        ValueError: Two tools have one name, or the agent's name is no identifier.
    """

    _templates_name: str
    max_tool_threads: int | None = None

    def __init__(
        self,
        tools: Sequence[Tool | Callable[..., Any]],
        model: Model | Callable[..., Any],
        prompt_templates: PromptTemplates | None = None,
        instructions: str | None = None,
        max_steps: int = 20,
        verbosity_level: LogLevel | int = LogLevel.INFO,
        step_callbacks: StepCallbacks | None = None,
        final_answer_checks: Sequence[Callable[..., Any]] | None = None,
        name: str | None = None,
        description: str | None = None,
        return_full_result: bool = False,
        logger: AgentLogger | None = None,
        stream_outputs: bool = False,
    ) -> None:
        if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
            raise ValueError(f"an agent's name must be a Python identifier, not {name!r}")
        if max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, not {max_steps}")
        self.model = as_model(model)
        self.tools = _by_name(tools)
        self.instructions = instructions
        self.max_steps = max_steps
        self.step_callbacks = CallbackRegistry(step_callbacks)
        self.final_answer_checks = list(final_answer_checks or ())
        self.name = name
        self.description = description
        self.return_full_result = return_full_result
        self.logger = logger or AgentLogger(level=LogLevel(verbosity_level))
        self.stream_outputs = stream_outputs
        self._profile = None if prompt_templates else self.model.profile
        self._templates = prompt_templates and self._checked(prompt_templates)
        self._conversation: Conversation | None = None

    @property
    def prompt_templates(self) -> PromptTemplates:
        """The prompts in use: those given, else those of the model's profile, else our own."""
        if self._templates is None:
            self._templates = copy.deepcopy(load_templates(self._templates_name))
            if (profile := self._profile) is not None:
                cast("dict[str, object]", self._templates).update(profile.prompts)
        return self._templates

    @prompt_templates.setter
    def prompt_templates(self, templates: PromptTemplates) -> None:
        self._templates = self._checked(templates)

    @property
    def memory(self) -> AgentMemory:
        """The memory of the conversation: readable before the first run."""
        return self._current.memory

    @property
    def state(self) -> dict[str, Any]:
        """The variables that came with the tasks of the conversation."""
        return self._current.state

    @property
    def system_prompt(self) -> str:
        """The system prompt as the next run will use it."""
        return self.initialize_system_prompt()

    @abstractmethod
    def initialize_system_prompt(self) -> str:
        """Renders the system prompt."""

    @abstractmethod
    def _action(self) -> Action:
        """Returns what a step does."""

    def _interpreter(self, conversation: Conversation) -> Interpreter:
        """Returns the sandbox of a conversation, opened if need be."""
        raise TypeError(f"{type(self).__name__} runs no code")

    @overload
    def run(
        self,
        task: str,
        stream: Literal[True],
        reset: bool = True,
        images: Sequence[ImageSource] | None = None,
        additional_args: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        return_full_result: bool | None = None,
    ) -> Generator[Event, None, None]: ...
    @overload
    def run(
        self,
        task: str,
        stream: Literal[False] = False,
        reset: bool = True,
        images: Sequence[ImageSource] | None = None,
        additional_args: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        return_full_result: bool | None = None,
    ) -> Any: ...
    def run(
        self,
        task: str,
        stream: bool = False,
        reset: bool = True,
        images: Sequence[ImageSource] | None = None,
        additional_args: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        return_full_result: bool | None = None,
    ) -> Any:
        """Runs a task in the calling thread.

        Args:
            task: What is to be done.
            stream: Return a generator of events instead, the last one a `FinalAnswerStep`.
            reset: Start from an empty memory and a fresh sandbox; otherwise go on where the last
                run of this agent ended.
            images: Shown to the model with the task: PIL images, bytes, paths, URLs.
            additional_args: Variables by name, told to the model and usable in its code.
            max_steps: Overrides that of the agent.
            return_full_result: Overrides that of the agent.

        Returns:
            The answer; a `RunResult` or a generator of events where one was asked for.

        Raises:
            ValueError: The task is empty.
            AgentGenerationError: The model could not be asked.
            SandboxUnavailable: This machine cannot enforce the walls around code.
        """
        course = self._begin(task, reset, images, additional_args, max_steps)
        if stream:
            return course.events()
        for _ in course.events():
            pass
        return self._returned(course, return_full_result)

    async def arun(
        self,
        task: str,
        reset: bool = True,
        images: Sequence[ImageSource] | None = None,
        additional_args: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        return_full_result: bool | None = None,
    ) -> Any:
        """Runs a task under asyncio; takes, returns and raises what `run` does."""
        course = self._begin(task, reset, images, additional_args, max_steps)
        async for _ in course.aevents():
            pass
        return self._returned(course, return_full_result)

    def astream(
        self,
        task: str,
        reset: bool = True,
        images: Sequence[ImageSource] | None = None,
        additional_args: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Runs a task under asyncio and yields its events, the last one a `FinalAnswerStep`."""
        return self._begin(task, reset, images, additional_args, max_steps).aevents()

    def cleanup(self) -> None:
        """Ends the sandbox of the conversation; a later run starts a new one."""
        if self._conversation is not None:
            self._conversation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cleanup()

    @property
    def _current(self) -> Conversation:
        if self._conversation is None:
            self._conversation = Conversation(AgentMemory(self.system_prompt))
        return self._conversation

    def _begin(
        self,
        task: str,
        reset: bool,
        images: Sequence[ImageSource] | None,
        additional_args: Mapping[str, Any] | None,
        max_steps: int | None,
    ) -> Course:
        if not isinstance(task, str):
            raise TypeError(f"a task is a text, not {type(task).__name__}")
        if not task.strip():
            raise ValueError("the task is empty: say what the agent is to do")
        conversation = self._conversation_for(reset)
        if additional_args:
            conversation.state.update(additional_args)
            task = f"{task}\n\n{_told(additional_args)}"
        conversation.memory.steps.append(TaskStep(task, list(images) if images else None))
        run = Run(task, conversation.memory, max_steps or self.max_steps, conversation.state)
        services = Services(
            run=run,
            model=self.model,
            tools=self.tools,
            interpreter=lambda: self._interpreter(conversation),
            callbacks=self.step_callbacks,
            checks=self.final_answer_checks,
            agent=self._bound_to(conversation),
        )
        model_id = getattr(self.model, "model_id", None)
        started = RunStarted(
            task=task,
            agent=self.name,
            model=" - ".join(filter(None, (type(self.model).__name__, model_id))),
            images=tuple(images or ()),
        )
        return Course(
            conversation,
            services,
            self._action(),
            self._forced_answer,
            started,
            self._printer() if self.logger.level > LogLevel.OFF else None,
            self._release,
            self.max_tool_threads,
        )

    def _conversation_for(self, reset: bool) -> Conversation:
        prompt = self.system_prompt
        if not reset and self._conversation is not None:
            memory = self._conversation.memory
            if memory.system_prompt.system_prompt != prompt:
                memory.system_prompt = SystemPromptStep(prompt)
            return self._conversation
        previous, self._conversation = self._conversation, Conversation(AgentMemory(prompt))
        if previous is not None and not previous.busy:
            previous.close()
        return self._conversation

    def _release(self, conversation: Conversation) -> None:
        """Keeps the sandbox of the conversation that the next run may go on with, and no other."""
        if conversation is not self._conversation:
            conversation.close()

    def _bound_to(self, conversation: Conversation) -> Callable[[], MultiStepAgent]:
        """Makes the agent that callbacks get to see: its memory is that of their own run."""

        def agent() -> MultiStepAgent:
            if self._conversation is conversation:
                return self
            bound = copy.copy(self)
            bound._conversation = conversation
            return bound

        return agent

    def _forced_answer(self, run: Run) -> list[ChatMessage]:
        templates = self.prompt_templates["final_answer"]
        before = render(templates["pre_messages"])
        after = render(templates["post_messages"], task=run.task)
        return [
            ChatMessage(MessageRole.SYSTEM, before),
            *run.memory.messages()[1:],
            ChatMessage(MessageRole.USER, after),
        ]

    def _printer(self) -> RunPrinter:
        return RunPrinter(self.logger)

    def _checked(self, templates: Mapping[str, Any]) -> PromptTemplates:
        return checked_templates(templates, load_templates(self._templates_name))

    def _returned(self, course: Course, return_full_result: bool | None) -> Any | RunResult:
        full = self.return_full_result if return_full_result is None else return_full_result
        return course.result if full else course.output


def _by_name(tools: Sequence[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    named: dict[str, Tool] = {}
    for tool in map(as_tool, tools):
        if tool.name in named:
            raise ValueError(f"two tools are called {tool.name!r}; give one of them another name")
        named[tool.name] = tool
    named.setdefault("final_answer", FinalAnswerTool())
    return named


def _told(arguments: Mapping[str, Any]) -> str:
    lines = []
    for name, value in arguments.items():
        shown = text_of(value, repr)
        if len(shown) > MAX_SHOWN_ARGUMENT:
            shown = f"{shown[:MAX_SHOWN_ARGUMENT]}… ({len(shown)} characters in all)"
        lines.append(f"{name} ({type(value).__name__}): {shown}")
    return "These values come with the task, as variables of the given names:\n" + "\n".join(lines)
