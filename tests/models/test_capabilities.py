"""The table of what models can do."""

from __future__ import annotations

from typing import Any

import pytest

from sanderling.models import InferenceClientModel, OpenAIModel
from sanderling.models._cache_marks import with_cache_marks
from sanderling.models._capabilities import PROVIDERS, capabilities_of

pytestmark = pytest.mark.usefixtures("ready")


@pytest.mark.parametrize(
    ("model_id", "held"),
    [
        ("claude-3-5-haiku-20241022", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-opus-4-0", False),
        ("claude-opus-4-1-20250805", True),
        ("claude-haiku-4-5", True),
        ("claude-sonnet-5", True),
    ],
)
def test_the_first_models_of_anthropic_cannot_be_held_to_a_schema(
    model_id: str, held: bool
) -> None:
    assert capabilities_of("anthropic", model_id).json_schema == held


@pytest.mark.parametrize("name", ["o3", "openai/o3", "o4-mini", "gpt-5-2025-08-07", "xai/grok-4"])
def test_models_that_refuse_stop(name: str) -> None:
    assert not capabilities_of("openai", name).stop
    assert not OpenAIModel(name).supports_stop_parameter


@pytest.mark.parametrize("name", ["o3-mini", "gpt-4o", "my-o3", "", None])
def test_models_that_take_stop(name: str | None) -> None:
    assert capabilities_of("openai", name).stop


def test_a_detail_falls_back_to_its_provider() -> None:
    assert capabilities_of("hub:novita", "m") == PROVIDERS["hub"]
    assert capabilities_of("nobody", "m") == PROVIDERS[""]


def test_what_the_user_says_wins() -> None:
    assert OpenAIModel("gpt-5", capabilities={"stop": True}).supports_stop_parameter
    with pytest.raises(ValueError, match="no capability stops"):
        OpenAIModel("gpt-5", capabilities={"stops": True})


def test_openrouter_passes_marks_on_to_anthropic() -> None:
    url = "https://openrouter.ai/api/v1"
    assert OpenAIModel("anthropic/claude-sonnet-4.5", url).capabilities.cache_marks
    assert not OpenAIModel("anthropic/claude-sonnet-4.5").capabilities.cache_marks
    assert not OpenAIModel("openai/gpt-5", url).capabilities.cache_marks
    assert not InferenceClientModel("anthropic/claude").capabilities.cache_marks


def test_marks_leave_what_was_given_alone() -> None:
    given: list[dict[str, Any]] = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "t", "tool_call_id": "1"},
    ]
    before = repr(given)
    marked = with_cache_marks(given)
    assert repr(given) == before
    mark = {"cache_control": {"type": "ephemeral"}}
    assert marked[0]["content"] == [{"type": "text", "text": "s", **mark}]
    assert marked[1:3] == given[1:3]
    assert marked[3]["content"] == [{"type": "text", "text": "t", **mark}]
    assert with_cache_marks([]) == []
