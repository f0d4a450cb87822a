"""Agents that other agents call: by name, from code and from JSON calls, in every sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sanderling import sandbox
from sanderling._arguments import require_list
from sanderling.errors import AgentToolCallError
from sanderling.messages import ImagePart
from sanderling.runtime import ChildRunTool

from ._managed_agent import ManagedAgent
from ._prompts import render

if TYPE_CHECKING:
    from sanderling.memory import AgentMemory
    from sanderling.runtime import Run, RunContext

    from ._agent import MultiStepAgent

MAX_SUMMARY_MESSAGE = 1_000
"""Characters of a message that a summary of the work keeps."""

_ADDRESSES = ("https://", "http://", "data:image/")


class AgentTool(ChildRunTool):
    """An agent as something that can be called.

    Each call is a run of its own, with a memory and a sandbox of its own: the agent is only its
    definition, so several managers, and several calls at once, can share it.

    Args:
        agent: Needs a name and a description.
        additional_prompting: Added to each task.

    Raises:
        ValueError: The agent has no name or no description.
    """

    inputs = {
        "task": {
            "type": "string",
            "description": "What is to be done, in full sentences, with all that has to be known.",
        },
        "additional_args": {
            "type": "object",
            "nullable": True,
            "description": "Values to work with, by name; they become variables of the agent.",
        },
        "images": {
            "type": "array",
            "nullable": True,
            "description": "Images to look at.",
        },
    }
    output_type = "any"

    def __init__(self, agent: MultiStepAgent, additional_prompting: str | None = None) -> None:
        if not agent.name or not agent.description:
            raise ValueError(
                f"a managed agent needs a name and a description, by which its manager knows it; "
                f"this {type(agent).__name__} has "
                f"name={agent.name!r}, description={agent.description!r}"
            )
        self.agent = agent
        self.name = agent.name
        self.description = agent.description
        self._additional_prompting = additional_prompting

    def forward(
        self,
        task: str,
        additional_args: dict[str, Any] | None = None,
        images: list[Any] | None = None,
    ) -> object:
        """Runs the agent in the calling thread and returns its report."""
        return self.agent(task, additional_args=additional_args, images=images)

    @property
    def code_signature(self) -> Signature:
        """The arguments as code may write them: the task may be called ``request`` as well."""
        declared = self.signature
        task, *others = declared.parameters.values()
        rest = Parameter("other", Parameter.VAR_KEYWORD)
        return declared.replace(parameters=[task.replace(default=""), *others, rest])

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Names the positional arguments of a call that code made. See `Tool.bind`."""
        return super().bind(args, _with_task(kwargs))

    def validate_arguments(self, arguments: object) -> dict[str, object]:
        """Returns arguments that `start` can be called with. See `Tool.validate_arguments`."""
        if isinstance(arguments, Mapping):
            arguments = _with_task(arguments)
        elif isinstance(arguments, str):
            arguments = {"task": arguments}
        return super().validate_arguments(arguments)

    def take_arguments(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Returns arguments that `start` can be called with. See `Tool.take_arguments`."""
        return self.validate_arguments(arguments)

    def start(self, arguments: Mapping[str, Any], caller: RunContext) -> Run:
        """Returns a run of the agent for one call. See `ChildRunTool.start`."""
        task = arguments["task"]
        if self._additional_prompting:
            task = f"{task}\n\n{self._additional_prompting}"
        state, values = caller.state.state, arguments.get("additional_args") or {}
        if not isinstance(values, Mapping):
            raise AgentToolCallError(
                f"The values for {self.name!r} are a dict by name, not a {type(values).__name__}."
            )
        return caller.run.start_child(
            self.agent,
            format_task(self.agent, task),
            images=[_shown(_looked_up(image, state)) for image in arguments.get("images") or ()],
            variables={name: _looked_up(value, state) for name, value in values.items()},
            caller=caller,
        )

    def report(self, run: Run) -> object:
        """Returns what the manager is told."""
        return format_answer(self.agent, run.output, run.memory)


def agent_tools(agents: object) -> dict[str, AgentTool]:
    """Returns what makes agents callable, by their names.

    Args:
        agents: A list of agents, or a dict with them as values.

    Raises:
        TypeError: Something is no agent.
        ValueError: One has no name or no description, or two have one name.
    """
    named: dict[str, AgentTool] = {}
    for agent in _as_agents(agents):
        tool = AgentTool(agent)
        if tool.name in named:
            raise ValueError(f"two managed agents are called {tool.name!r}; rename one of them")
        named[tool.name] = tool
    return named


def _as_agents(agents: object) -> list[MultiStepAgent]:
    """Returns managed agents, those of the old kind as what they stand for."""
    values = list(agents.values()) if isinstance(agents, Mapping) else agents
    made = [
        agent.as_agent() if isinstance(agent, ManagedAgent) else agent
        for agent in require_list("managed_agents", values)
    ]
    for agent in made:
        if not hasattr(agent, "run"):
            raise TypeError(f"a managed agent must be an agent, not {type(agent).__name__}")
    return made


def format_task(agent: MultiStepAgent, task: str) -> str:
    """Returns a task as a managed agent is told it."""
    return render(agent.prompt_templates["managed_agent"]["task"], name=agent.name, task=task)


def format_answer(agent: MultiStepAgent, answer: object, memory: AgentMemory) -> object:
    """Returns what the caller of a managed agent is told.

    Texts, numbers, and nothing at all come back within the report that the prompts describe. Any
    other value comes back as it is, so that code can go on with it; except where a summary of the
    work is wanted, which only a text can hold.
    """
    plain = answer is None or isinstance(answer, str | bool | int | float)
    if not plain and not agent.provide_run_summary:
        return answer
    template = agent.prompt_templates["managed_agent"]["report"]
    text = render(template, name=agent.name, final_answer=sandbox.safe_str(answer))
    if not agent.provide_run_summary:
        return text
    work = "\n---\n".join(
        _beginning(message.text)
        for step in memory.steps
        for message in step.to_messages(summary_mode=True)
    )
    return f"{text}\n\n<summary_of_work>\n{work}\n</summary_of_work>"


def _beginning(text: str) -> str:
    cut = len(text) - MAX_SUMMARY_MESSAGE
    return text if cut <= 0 else f"{text[:MAX_SUMMARY_MESSAGE]}… ({cut} more characters)"


def _with_task(arguments: Mapping[Any, Any]) -> Mapping[Any, Any]:
    if "request" in arguments and "task" not in arguments:
        return {("task" if key == "request" else key): arguments[key] for key in arguments}
    return arguments


def _shown(image: Any) -> ImagePart:
    """Returns an image that a model hands on; a path of this machine is none, for it chose it."""
    if not isinstance(image, Path) and (not isinstance(image, str) or image.startswith(_ADDRESSES)):
        part = ImagePart(image)
        with suppress(ValueError):
            part.dict()  # reads it
            return part
    raise AgentToolCallError(
        f"{sandbox.safe_repr(image):.200} is no image that can be handed on. Give images as "
        "variables, or as http(s) or data: URLs; files are not read."
    )


def _looked_up(value: Any, state: Mapping[str, Any]) -> Any:
    """Returns the variable that a JSON call names, which cannot hold the value itself."""
    return state[value] if isinstance(value, str) and value in state else value
