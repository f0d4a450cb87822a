"""Prompt templates: loaded from YAML once, checked, rendered strictly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict, cast

if TYPE_CHECKING:
    from jinja2 import Environment, Template


class PlanningPromptTemplate(TypedDict):
    """How the model is asked for a plan.

    With the keys that speak of facts, it is first asked for those, in a request of their own.

    Attributes:
        initial_plan: Asks for the first plan; knows ``task``, ``tools``, ``managed_agents`` and,
            where facts were asked for, ``answer_facts``.
        update_plan_pre_messages: Said before the history when a new plan is wanted; knows ``task``.
        update_plan_post_messages: Said after it; knows ``task``, ``tools``, ``managed_agents``,
            ``remaining_steps`` and, where facts were asked for, ``facts_update``.
        initial_facts: Asks for facts before the first plan; knows ``task``.
        update_facts_pre_messages: Said before the history when facts are asked for again.
        update_facts_post_messages: Said after it.
    """

    initial_plan: str
    update_plan_pre_messages: str
    update_plan_post_messages: str
    initial_facts: NotRequired[str]
    update_facts_pre_messages: NotRequired[str]
    update_facts_post_messages: NotRequired[str]


class ManagedAgentPromptTemplate(TypedDict):
    """How an agent is spoken to by the one that manages it.

    Attributes:
        task: Its task; knows ``name`` and ``task``.
        report: What the manager is told of its answer; knows ``name`` and ``final_answer``.
    """

    task: str
    report: str


class FinalAnswerPromptTemplate(TypedDict):
    """What a model is told that has to answer when the steps are used up.

    Attributes:
        pre_messages: Said before the history.
        post_messages: Said after it; knows ``task``.
    """

    pre_messages: str
    post_messages: str


class PromptTemplates(TypedDict):
    """The prompts of an agent, each a Jinja template.

    Attributes:
        system_prompt: Opens every conversation; knows ``tools`` and ``managed_agents`` (dicts by
            name), ``custom_instructions``, and for an agent that writes code
            ``authorized_imports``, ``code_block_opening_tag``, ``code_block_closing_tag``,
            ``has_parallel`` (whether code can call `parallel`) and ``is_shut_off`` (whether it
            surely has no network and no files of the machine).
        planning: For plans.
        managed_agent: For an agent that works for another one.
        final_answer: For the answer at the limit of steps.
    """

    system_prompt: str
    planning: PlanningPromptTemplate
    managed_agent: ManagedAgentPromptTemplate
    final_answer: FinalAnswerPromptTemplate


EMPTY_PROMPT_TEMPLATES: Final[PromptTemplates] = {
    "system_prompt": "",
    "planning": {
        "initial_plan": "",
        "update_plan_pre_messages": "",
        "update_plan_post_messages": "",
    },
    "managed_agent": {"task": "", "report": ""},
    "final_answer": {"pre_messages": "", "post_messages": ""},
}
"""Every template that is needed, with nothing in it."""

_FACTS = ("initial_facts", "update_facts_pre_messages", "update_facts_post_messages")


@lru_cache
def load_templates(name: str) -> PromptTemplates:
    """Returns the templates of ``agents/prompts/<name>.yaml``, on top of those it extends."""
    from importlib import resources

    import yaml

    text = resources.files(__package__).joinpath("prompts", f"{name}.yaml").read_text("utf-8")
    templates: dict[str, Any] = yaml.safe_load(text)
    base = templates.pop("extends", None)
    return cast("PromptTemplates", templates if base is None else load_templates(base) | templates)


def load_texts(name: str) -> dict[str, str]:
    """Returns the texts of ``agents/prompts/<name>.yaml`` by their keys, joined by a dot."""
    texts: dict[str, str] = {}
    for key, value in load_templates(name).items():
        if isinstance(value, Mapping):
            texts |= {f"{key}.{inner}": text for inner, text in value.items()}
        else:
            texts[key] = cast("str", value)
    return texts


def checked_templates(templates: object) -> PromptTemplates:
    """Returns the user's templates, if none is missing.

    Raises:
        TypeError: It is no dict.
        ValueError: Keys are missing, or are no text; the message names them all.
    """
    if not isinstance(templates, Mapping):
        raise TypeError(f"prompt_templates is a dict, not a {type(templates).__name__}")
    wrong: list[str] = []
    for key, default in EMPTY_PROMPT_TEMPLATES.items():
        if isinstance(default, Mapping):
            section = templates.get(key)
            inner = section if isinstance(section, Mapping) else {}
            needed = {*default, *(_FACTS if key == "planning" and _FACTS[0] in inner else ())}
            wrong += [
                f"{key}.{name}" for name in sorted(needed) if not isinstance(inner.get(name), str)
            ]
        elif not isinstance(templates.get(key), str):
            wrong.append(key)
    if wrong:
        raise ValueError(
            f"prompt_templates lacks {', '.join(wrong)}. Start from the agent's own ones: "
            "agent.prompt_templates is a dict that can be copied and changed."
        )
    return cast("PromptTemplates", dict(templates))


def render(template: str, **variables: object) -> str:
    """Fills a template in.

    Raises:
        ValueError: The template is broken, or names a variable that it is not given.
    """
    from jinja2 import TemplateError

    try:
        return _compiled(template).render(**variables)
    except TemplateError as error:
        known = ", ".join(variables) or "none"
        raise ValueError(
            f"a prompt template cannot be rendered: {error}. Its variables are: {known}."
        ) from error


@lru_cache
def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(undefined=StrictUndefined)


@lru_cache(maxsize=128)
def _compiled(template: str) -> Template:
    return _environment().from_string(template)
