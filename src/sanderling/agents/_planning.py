"""Makes the messages that ask for a plan, from the templates of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sanderling.loop import Planning
from sanderling.memory import TaskStep
from sanderling.messages import ChatMessage, ContentPart, ImagePart, MessageRole, TextPart

from ._prompts import render

if TYPE_CHECKING:
    from sanderling.loop import PlanRequest, RunState
    from sanderling.tools import Tool

    from ._prompts import PlanningPromptTemplate


def planning(
    interval: int,
    templates: PlanningPromptTemplate,
    tools: Mapping[str, Tool],
    managed_agents: Mapping[str, Any],
    *,
    stream: bool = False,
) -> Planning:
    """Returns how an agent plans.

    Args:
        interval: Steps from one plan to the next.
        templates: With those that ask for facts, a plan takes two requests; otherwise one.
        tools: What the plan may count on, by name.
        managed_agents: Who it may count on, by name.
        stream: Whether the model's text comes out while it is written.

    Raises:
        ValueError: The interval is not at least 1.
    """
    resources = {"tools": tools, "managed_agents": managed_agents}

    def plan(run: RunState, request: PlanRequest) -> list[ChatMessage]:
        known = {"task": run.task, **resources}
        if request.is_first:
            text = render(templates["initial_plan"], answer_facts=request.facts, **known)
            return [_asked(run, text)]
        return _around(
            run,
            render(templates["update_plan_pre_messages"], task=run.task),
            render(
                templates["update_plan_post_messages"],
                remaining_steps=request.remaining_steps,
                facts_update=request.facts,
                **known,
            ),
        )

    def facts(run: RunState, request: PlanRequest) -> list[ChatMessage]:
        if request.is_first:
            return [_asked(run, render(templates["initial_facts"], task=run.task))]
        return _around(
            run,
            render(templates["update_facts_pre_messages"], task=run.task),
            render(templates["update_facts_post_messages"], task=run.task),
        )

    return Planning(interval, plan, facts if "initial_facts" in templates else None, stream)


def _asked(run: RunState, text: str) -> ChatMessage:
    """Returns the question that stands alone, with the images of the task."""
    task = run.memory.steps[-1] if run.memory.steps else None
    images = task.task_images if isinstance(task, TaskStep) else None
    parts: list[ContentPart] = [TextPart(text), *map(ImagePart, images or ())]
    return ChatMessage(MessageRole.USER, parts)


def _around(run: RunState, before: str, after: str) -> list[ChatMessage]:
    """Puts what happened so far between two texts, in short: without plans and reasoning."""
    history = [
        message for step in run.memory.steps for message in step.to_messages(summary_mode=True)
    ]
    return [
        ChatMessage(MessageRole.SYSTEM, [TextPart(before)]),
        *history,
        ChatMessage(MessageRole.USER, [TextPart(after)]),
    ]
