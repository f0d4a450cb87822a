"""The old way to make an agent one that others can call."""

from __future__ import annotations

import copy
import re
import warnings
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ._agent import MultiStepAgent
    from ._prompts import PromptTemplates


_BRACED = re.compile(r"(?<!\{)\{(name|task)\}(?!\})")


class ManagedAgent:
    """An agent with a name and a description, as smolagents 1.4 had it.

    Today an agent has both itself: ``CodeAgent(..., name=..., description=...)``.

    Args:
        agent: Who does the work. It stays as it is.
        name: What the manager calls it by.
        description: What it is good for.
        additional_prompting: Added to each task.
        provide_run_summary: Whether the manager gets what was done on the way as well.
        managed_agent_prompt: Replaces the template that the task is put into. In it ``{{name}}``
            and ``{{task}}`` stand for the two, and so do ``{name}`` and ``{task}``.
    """

    inputs = {"request": {"type": "string", "description": "What the agent shall do, in full."}}
    output_type = "string"

    def __init__(
        self,
        agent: MultiStepAgent,
        name: str,
        description: str,
        additional_prompting: str | None = None,
        provide_run_summary: bool = False,
        managed_agent_prompt: str | None = None,
    ) -> None:
        warnings.warn(
            "ManagedAgent is now the agent itself: give it name= and description=",
            DeprecationWarning,
            stacklevel=2,
        )
        self.agent = agent
        self.name = name
        self.description = description
        self.additional_prompting = additional_prompting
        self.provide_run_summary = provide_run_summary
        self.managed_agent_prompt = managed_agent_prompt

    def as_agent(self) -> MultiStepAgent:
        """Returns a copy of the agent's definition with this name, description and prompt."""
        from ._validation import check_name

        agent = copy.copy(self.agent)
        agent._own = None
        agent.name = check_name(self.name)
        agent.description = self.description
        agent.provide_run_summary = self.provide_run_summary
        if self.managed_agent_prompt or self.additional_prompting:
            templates = cast("dict[str, Any]", copy.deepcopy(agent.prompt_templates))
            managed = templates["managed_agent"]
            own = self.managed_agent_prompt
            task = _BRACED.sub(r"{{ \1 }}", own) if own else managed["task"]
            managed["task"] = "\n".join(filter(None, (task, self.additional_prompting)))
            agent.prompt_templates = cast("PromptTemplates", templates)
        return agent

    def write_full_task(self, task: str) -> str:
        """Returns the task as the agent is given it."""
        from ._prompts import render

        agent = self.as_agent()
        templates = cast("dict[str, Any]", agent.prompt_templates)
        return render(templates["managed_agent"]["task"], name=agent.name, task=task)

    def __call__(self, request: str, **kwargs: Any) -> Any:
        """Has the request carried out."""
        return self.as_agent()(request, **kwargs)
