"""What an agent is: a model, tools, prompts and settings. What it does with them is elsewhere."""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Never, Self, TypeAlias, cast

from sanderling._arguments import at_least_one, require_callables, require_list
from sanderling.console import AgentLogger, LogLevel, RunPrinter
from sanderling.loop import AnswerType
from sanderling.memory import CallbackRegistry
from sanderling.messages import ChatMessage, MessageRole, calls_as_text
from sanderling.models import as_model
from sanderling.runtime import RunSettings, as_limits
from sanderling.tools import FinalAnswerTool

from ._agent_tool import agent_tools
from ._old_prompts import Described, check_says, old_tags
from ._planning import planning
from ._policies import run_policies, with_memory
from ._prompts import PromptTemplates, checked_templates, load_templates, render
from ._recall_tool import RecallTool
from ._serialization import AGENT_CLASSES, agent_form, agent_from
from ._validation import check_name, images_there, named_tools, refuse_unknown

if TYPE_CHECKING:
    from sanderling.loop import Action, Planning, RunState
    from sanderling.memory import ActionStep, AgentMemory, Compaction, StepCallbacks
    from sanderling.messages import ImageSource, JSONObject
    from sanderling.models import Model
    from sanderling.runtime import (
        ApprovalPolicy,
        FilePath,
        ManualControl,
        MessageProcessor,
        Policy,
        RunLimits,
        Sandbox,
        Session,
    )
    from sanderling.tools import Tool

    from ._agent import MultiStepAgent
    from ._managed_agent import ManagedAgent

ToolParser: TypeAlias = Callable[[str], Any]


class AgentDefinition(ABC):
    """All of an agent that no run changes. Its arguments are described at `MultiStepAgent`."""

    _templates_name = "toolcalling_agent"

    _saved: ClassVar[tuple[str, ...]] = (
        "max_steps",
        "verbosity_level",
        "planning_interval",
        "name",
        "description",
        "instructions",
        "provide_run_summary",
        "return_full_result",
        "stream_outputs",
        "tool_description_template",
        "grammar",
        "on_generation_error",
    )
    # What is saved as well, but only a program may choose, with what it is by itself.
    _by_argument: ClassVar[Mapping[str, object]] = MappingProxyType({})
    _python: ClassVar[tuple[str, ...]] = (
        "step_callbacks",
        "final_answer_checks",
        "limits",
        "approve",
        "policies",
        "history_processors",
        "tool_parser",
    )
    max_tool_threads: int | None = None
    keep_files: FilePath | None = None
    _calls_tools = False  # in its steps, that is, other than from code
    _writes_code = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        AGENT_CLASSES.add(cls)

    def __init__(
        self,
        tools: Sequence[Tool | Callable[..., Any]],
        model: Model | Callable[..., Any],
        prompt_templates: PromptTemplates | None = None,
        instructions: str | None = None,
        max_steps: int = 20,
        add_base_tools: bool = False,
        verbosity_level: LogLevel | int | str = LogLevel.INFO,
        managed_agents: Sequence[MultiStepAgent | ManagedAgent] | None = None,
        step_callbacks: StepCallbacks | None = None,
        planning_interval: int | None = None,
        name: str | None = None,
        description: str | None = None,
        provide_run_summary: bool = False,
        final_answer_checks: Sequence[Callable[..., Any]] | None = None,
        return_full_result: bool = False,
        logger: AgentLogger | None = None,
        stream_outputs: bool = False,
        *,
        system_prompt: str | None = None,
        tool_description_template: str | None = None,
        tool_parser: ToolParser | None = None,
        grammar: Mapping[str, Any] | str | None = None,
        output_type: Any = None,
        on_generation_error: Literal["raise", "record"] = "raise",
        limits: RunLimits | None = None,
        approve: ApprovalPolicy | None = None,
        policies: Sequence[Policy] = (),
        history_processors: Sequence[Compaction | MessageProcessor] = (),
        **unknown: Never,
    ) -> None:
        refuse_unknown(type(self).__name__, type(self).__mro__, unknown)
        if prompt_templates is not None and system_prompt is not None:
            raise ValueError("prompt_templates has a system prompt: leave out system_prompt")
        if on_generation_error not in ("raise", "record"):
            raise ValueError(
                f"on_generation_error is 'raise' or 'record', not {on_generation_error!r}"
            )
        at_least_one("max_steps", max_steps)
        self.model = model
        self.output_type = output_type
        schema = None if self._answer_type is None else self._answer_type.schema
        final_answer = FinalAnswerTool(schema)
        self.limits = as_limits(limits)
        self._policies = run_policies(approve, policies, history_processors)
        recall = [RecallTool()] if self._policies.compacts else []
        self.tools = named_tools(
            [*require_list("tools", tools), *recall],
            [*(self._base_tools() if add_base_tools else ()), final_answer],
        )
        self._agent_tools = agent_tools(managed_agents)
        if both := self.tools.keys() & self._agent_tools.keys():
            raise ValueError(
                f"a tool and a managed agent are both called {min(both)!r}; rename one of them"
            )
        self.instructions = instructions
        self.max_steps = max_steps
        self.step_callbacks = step_callbacks
        self.planning_interval = at_least_one("planning_interval", planning_interval)
        self.final_answer_checks = require_callables("final_answer_checks", final_answer_checks)
        self.name: str | None = check_name(name)
        self.description: str | None = description
        self.provide_run_summary = provide_run_summary
        self.return_full_result = return_full_result
        self.logger = logger or AgentLogger(level=verbosity_level)
        self.stream_outputs = stream_outputs
        self.tool_description_template = tool_description_template
        self.tool_parser = tool_parser
        self.grammar = grammar
        self.on_generation_error = on_generation_error
        own_prompts = prompt_templates is not None or system_prompt is not None
        self._profile = self.model.profile if self._writes_code and not own_prompts else None
        self._templates = None if prompt_templates is None else self._checked(prompt_templates)
        if system_prompt is not None:
            check_says(system_prompt, self._must_be_said())
            self.prompt_templates["system_prompt"] = system_prompt

    @functools.cached_property
    def _answer_type(self) -> AnswerType[Any] | None:
        return None if self.output_type is None else AnswerType.of(self.output_type)

    @property
    def model(self) -> Model:
        """Who is asked. Any callable from messages to a `ChatMessage` can be assigned as well."""
        return self._model

    @model.setter
    def model(self, model: Model | Callable[..., Any]) -> None:
        self._model = as_model(model)

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
    def step_callbacks(self) -> CallbackRegistry:
        """Who is told of finished steps. A list, or a dict by class of step, can be assigned."""
        return self._step_callbacks

    @step_callbacks.setter
    def step_callbacks(self, callbacks: StepCallbacks | None) -> None:
        self._step_callbacks = CallbackRegistry(callbacks)

    @property
    def managed_agents(self) -> Mapping[str, MultiStepAgent]:
        """The agents that this one may call, by name; they are given to the constructor."""
        return MappingProxyType({name: tool.agent for name, tool in self._agent_tools.items()})

    @property
    def approve(self) -> ApprovalPolicy | None:
        """What is asked before code is run and tools are called."""
        return self._policies.approve

    @property
    def policies(self) -> Sequence[Policy]:
        """What is around all that a run does."""
        return self._policies.policies

    @property
    def history_processors(self) -> Sequence[Compaction | MessageProcessor]:
        """What is done to the messages before each model call."""
        return self._policies.history_processors

    @property
    def verbosity_level(self) -> LogLevel:
        """How much is printed."""
        return LogLevel(self.logger.level)

    @property
    def system_prompt(self) -> str:
        """The system prompt as the next run will use it. It is made of its template each time.

        Raises:
            AttributeError: Something is assigned.
        """
        return self.initialize_system_prompt()

    @system_prompt.setter
    def system_prompt(self, prompt: str) -> Never:
        raise AttributeError(
            "the system prompt is made of its template for each run: set "
            "prompt_templates['system_prompt'], or make the agent with system_prompt= (a template) "
            "or instructions= (a text that is added)"
        )

    def __repr__(self) -> str:
        named = "" if self.name is None else f"name={self.name!r}, "
        return f"{type(self).__name__}({named}model={self.model!r}, tools={list(self.tools)})"

    @abstractmethod
    def initialize_system_prompt(self) -> str:
        """Renders the system prompt."""

    # What runs ask of it: see `sanderling.runtime.Definition`

    def check_inputs(
        self, images: Sequence[ImageSource] | None, variables: Mapping[str, Any] | None
    ) -> list[ImageSource]:
        """Checks what comes with a task; returns the images."""
        del variables
        return images_there(images)

    def run_settings(self, memory: AgentMemory) -> RunSettings:
        """Returns what a run needs that goes on with this memory."""
        interval = self.planning_interval
        return RunSettings(
            tools={**with_memory(self.tools, memory), **self._agent_tools},
            action=self._action(),
            forced_answer=self._forced_answer,
            planning=self._planning(interval or 1),
            is_planned=interval is not None,
            answer_type=self._answer_type,
            on_generation_error=self.on_generation_error,
            callbacks=self.step_callbacks,
            checks=self.final_answer_checks,
            policies=self._policies.inherited,
            own_policies=self._policies.own(memory),
            handler=self._printer() if self.logger.level > LogLevel.OFF else None,
            max_tool_threads=self.max_tool_threads,
            warned=partial(self.logger.log, style="yellow"),
            informed=partial(self.logger.log, style="dim"),
            has_own_step=self._has_own("step"),
            has_own_calls=self._calls_tools and self._has_own("execute_tool_call"),
        )

    def check_place(self, session: Session) -> None:
        """Looks for what a run will need, before a model is paid for."""
        del session  # who runs no code needs nothing

    def create_sandbox(self, memory: AgentMemory) -> Sandbox:
        """Makes the place where the code of a session runs.

        Raises:
            TypeError: The agent runs no code.
        """
        del memory
        raise TypeError(
            f"{type(self).__name__} runs no code, and has no work folder for files= and keep_files="
        )

    @abstractmethod
    def within(self, control: ManualControl | None) -> Self:
        """Returns the agent as a run hands it to its methods and callbacks."""

    @abstractmethod
    def _has_own(self, method: str) -> bool:
        """Tells whether a class of the user's has a method of its own, which runs go by."""

    def visualize(self) -> None:
        """Prints the agent as a tree: its model, its tools, and the agents it manages."""
        self.logger.visualize_agent_tree(self)

    def to_dict(self) -> JSONObject:
        """Returns the definition as JSON: `from_dict` makes an equal agent.

        Of tools there is what a model is told of them, and of an output type its JSON schema, by
        which the answers are checked then. What is Python (tools, callbacks, checks) and what is
        secret (keys of the model) is not there, and has to be given again.
        """
        schema = None if self._answer_type is None else self._answer_type.schema
        return {**agent_form(self), "output_type": schema}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **overrides: Any) -> Self:
        """Makes the agent that `to_dict` described.

        A form is like code: it chooses what the agent is told and which of the tools it has. What
        would weaken the walls or send a key elsewhere, it may not choose: `executor_type`,
        `executor_kwargs`, and what `Model.from_dict` names. The agents that it manages neither.

        Args:
            data: The form. It may name a class of your own that is derived from this one.
            **overrides: Arguments of the constructor, which win over the form: `tools` for it and
                for the agents it manages, and `model` likewise where it is given.

        Raises:
            ValueError: A class or a tool that the form names is not there, or the form sets what
                only an argument may.
        """
        return agent_from(cls, AgentDefinition, data, overrides)  # type: ignore[type-abstract]  # the form names the class

    def _base_tools(self) -> list[Tool]:
        """Returns what `add_base_tools` adds."""
        return []

    def _must_be_said(self) -> list[tuple[str, object]]:
        """Returns the variables that a system prompt of the user's must have, with their values."""
        return [("managed_agents", sorted(self.managed_agents))]

    def _prompt_variables(self) -> dict[str, Any]:
        """Returns what a system prompt may speak of, under today's names and the old ones."""
        tools: dict[str, Any] = dict(self.tools)
        if (form := self.tool_description_template) is not None:
            tools = {name: Described(tool, form) for name, tool in tools.items()}
        template = self.prompt_templates["system_prompt"]
        return {
            "tools": tools,
            "managed_agents": self._agent_tools,
            "custom_instructions": self.instructions,
            **old_tags(template, self.tools, self.managed_agents, form),
        }

    def _action(self) -> Action:
        """Returns what a step does, where the method `step` is as it was."""

        def act(run: RunState, step: ActionStep) -> Never:
            raise NotImplementedError(
                f"{type(self).__name__} does not say what a step does: give it a method "
                "step(self, memory_step), or derive it from CodeAgent or ToolCallingAgent"
            )

        return act

    def _planning(self, interval: int) -> Planning:
        return planning(
            interval,
            self.prompt_templates["planning"],
            self.tools,
            self._agent_tools,
            stream=self.stream_outputs,
        )

    def _forced_answer(self, run: RunState) -> list[ChatMessage]:
        templates = self.prompt_templates["final_answer"]
        before = render(templates["pre_messages"])
        after = render(templates["post_messages"], task=run.task)
        if run.answer_type is not None:
            after += (
                "\n\nGive the answer as JSON and nothing else: a value of this JSON schema: "
                f"{run.answer_type.schema_text}"
            )
        return [
            ChatMessage(MessageRole.SYSTEM, before),
            *calls_as_text(run.memory.messages()[1:]),
            ChatMessage(MessageRole.USER, after),
        ]

    def _printer(self) -> RunPrinter:
        return RunPrinter(self.logger)

    def _checked(self, templates: Mapping[str, Any]) -> PromptTemplates:
        return checked_templates(templates)
