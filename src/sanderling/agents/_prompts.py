"""Prompt templates: loaded from YAML once, rendered strictly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypedDict, cast

if TYPE_CHECKING:
    from jinja2 import Environment


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
        system_prompt: Opens every conversation.
        final_answer: For the answer at the limit of steps.
    """

    system_prompt: str
    final_answer: FinalAnswerPromptTemplate


@lru_cache
def load_templates(name: str) -> PromptTemplates:
    """Returns the templates of ``agents/prompts/<name>.yaml``."""
    from importlib import resources

    import yaml

    text = resources.files(__package__).joinpath("prompts", f"{name}.yaml").read_text("utf-8")
    return cast("PromptTemplates", yaml.safe_load(text))


def checked_templates(
    templates: Mapping[str, object], defaults: PromptTemplates
) -> PromptTemplates:
    """Returns the user's templates, if none is missing.

    Raises:
        ValueError: Keys are missing; the message names them all.
    """
    missing = [
        f"{key}.{inner}" if inner else key
        for key, default in defaults.items()
        for inner in (default if isinstance(default, dict) else [""])
        if key not in templates or (inner and inner not in cast("dict[str, str]", templates[key]))
    ]
    if missing:
        raise ValueError(
            f"prompt_templates lacks {', '.join(missing)}. Start from the agent's own ones: "
            "agent.prompt_templates is a dict that can be copied and changed."
        )
    return cast("PromptTemplates", dict(templates))


@lru_cache
def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(undefined=StrictUndefined)


def render(template: str, **variables: object) -> str:
    """Fills a template in.

    Raises:
        ValueError: The template is broken, or names a variable that it is not given.
    """
    from jinja2 import TemplateError

    try:
        return _environment().from_string(template).render(**variables)
    except TemplateError as error:
        known = ", ".join(variables) or "none"
        raise ValueError(
            f"a prompt template cannot be rendered: {error}. Its variables are: {known}."
        ) from error
