"""What providers and models can do, as data: one table instead of conditions all over the room."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model behind a provider can do; what it cannot, is done here where possible.

    Attributes:
        stop: It ends its reply at stop sequences. Otherwise the reply is cut here.
        max_stops: How many stop sequences it takes; the others are cut here.
        tools: It takes tools. Otherwise none are sent: the prompt of the agent describes them, and
            calls are read from the text of the reply.
        tool_choice: It can be told that it must call a tool.
        json_schema: It writes JSON of a given schema. Otherwise it is told the schema in words, and
            asked again where the reply does not fit.
        images: It sees images. Otherwise a conversation that holds one is not sent.
        image_urls: It fetches images from the web itself.
        cache_marks: It caches only up to marks in the request (Anthropic's ``cache_control``).
    """

    stop: bool = True
    max_stops: int | None = None
    tools: bool = True
    tool_choice: bool = True
    json_schema: bool = True
    images: bool = True
    image_urls: bool = True
    cache_marks: bool = False


# By the `provider` of a model class; "provider:detail" before "provider".
PROVIDERS: Final[Mapping[str, Capabilities]] = {
    "": Capabilities(),
    # OpenAI takes no more than four stop sequences in one request.
    "openai": Capabilities(max_stops=4),
    "openai:openrouter": Capabilities(max_stops=4),
    "azure": Capabilities(max_stops=4),
    # Each inference provider is another server: these two are known to heed a schema.
    "hub": Capabilities(max_stops=4, json_schema=False),
    "hub:cerebras": Capabilities(max_stops=4),
    "hub:fireworks-ai": Capabilities(max_stops=4),
    "hub:endpoint": Capabilities(max_stops=4),
    "litellm": Capabilities(max_stops=4),
    "anthropic": Capabilities(cache_marks=True),
    "gemini": Capabilities(max_stops=5, image_urls=False),
    # The models behind Bedrock differ: what only some can is told below, by their names.
    "bedrock": Capabilities(max_stops=4, tool_choice=False, json_schema=False, image_urls=False),
    "llamacpp": Capabilities(images=False),
    # Models in this process get their tools through the chat template, where that shows them.
    "transformers": Capabilities(tool_choice=False, json_schema=False, image_urls=False),
    "vllm": Capabilities(tool_choice=False, images=False, image_urls=False),
    "mlx": Capabilities(tool_choice=False, json_schema=False, images=False, image_urls=False),
}


@dataclass(frozen=True, slots=True)
class _Exception:
    """What is otherwise for models of a name.

    Attributes:
        providers: The providers this holds for; all, if empty.
        name: Matches the whole name of the model, in lower case.
        short: Whether a provider's prefix ("openai/o3") is left out before matching.
        but: What differs.
    """

    name: re.Pattern[str]
    but: Mapping[str, Any]
    providers: tuple[str, ...] = ()
    short: bool = True


_EXCEPTIONS: Final = (
    # Reasoning models answer a request that has `stop` with status 400. A name may have a date
    # ("gpt-5-2025-08-07"). o3-mini takes `stop`.
    _Exception(re.compile(r"o3(?!-mini)([-.:].*)?|o4([-.:].*)?|gpt-5([-.:].*)?"), {"stop": False}),
    _Exception(re.compile(r"grok-(3-mini|4|code).*"), {"stop": False}),
    # These routes lead to Anthropic's models, whose cache wants marks.
    _Exception(
        re.compile(r"anthropic/.*|claude.*|(bedrock|vertex_ai)/.*claude.*"),
        {"cache_marks": True},
        ("litellm", "openai:openrouter"),
        short=False,
    ),
    # https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html and
    # https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolChoice.html. A name
    # may have a region before it ("us.anthropic.claude-…"), or be an ARN.
    _Exception(
        re.compile(r".*(anthropic\.claude|amazon\.nova).*"),
        {"cache_marks": True, "tool_choice": True},
        ("bedrock",),
        short=False,
    ),
    _Exception(
        re.compile(r".*mistral\.mistral-large.*"), {"tool_choice": True}, ("bedrock",), short=False
    ),
    _Exception(re.compile(r".*meta\.llama.*"), {"stop": False}, ("bedrock",), short=False),
    # Before them, Anthropic's models could not be held to a schema.
    _Exception(
        re.compile(r"claude-(3|(opus|sonnet)-4(-0|-2025\d*)?$).*"),
        {"json_schema": False},
        ("anthropic",),
    ),
    # Ollama's own API through LiteLLM: no tool_choice.
    _Exception(re.compile(r"ollama(_chat)?/.*"), {"tool_choice": False}, ("litellm",), short=False),
)

_NAMES: Final = tuple(field.name for field in fields(Capabilities))


def capabilities_of(
    provider: str, model_id: str | None, given: Mapping[str, Any] | None = None
) -> Capabilities:
    """Returns what a model can do.

    Args:
        provider: A key of `PROVIDERS`; of ``"provider:detail"`` the part before the colon counts
            where the whole is not in the table.
        model_id: The provider's name of the model.
        given: What the user says; it wins.

    Raises:
        ValueError: `given` names something else than a field of `Capabilities`.
    """
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"capabilities is a dict of names and values, not {given!r:.80}")
    if unknown := sorted(set(given or ()) - set(_NAMES)):
        raise ValueError(
            f"there is no capability {', '.join(unknown)}; there is: {', '.join(_NAMES)}"
        )
    known = PROVIDERS.get(provider) or PROVIDERS.get(provider.partition(":")[0]) or PROVIDERS[""]
    name = (model_id or "").lower()
    changes: dict[str, Any] = {}
    for exception in _EXCEPTIONS:
        asked = name.rpartition("/")[2] if exception.short else name
        if exception.providers and provider not in exception.providers:
            continue
        if exception.name.fullmatch(asked):
            changes.update(exception.but)
    return replace(known, **{**changes, **(given or {})})


def common_capabilities(several: Sequence[Capabilities]) -> Capabilities:
    """Returns what each of several models can do."""
    stops = [each.max_stops for each in several if each.max_stops is not None]
    able = {
        name: all(getattr(each, name) for each in several) for name in _NAMES if name != "max_stops"
    }
    return Capabilities(max_stops=min(stops, default=None), **able)
