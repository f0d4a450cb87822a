"""Which settings a saved model may choose, and who gets a key."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from sanderling.errors import AgentGenerationError
from sanderling.messages import ChatMessage, MessageRole
from sanderling.models import (
    MODEL_REGISTRY,
    AnthropicModel,
    InferenceClientModel,
    Model,
    OpenAIModel,
)
from support.openai_server import says, serving

HELLO = [ChatMessage(MessageRole.USER, "Hello")]
STRANGER = "http://127.0.0.1:9/v1"
OWN_KEYS = (
    "OPENAI_API_KEY",
    "HF_TOKEN",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "GEMINI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OWN_KEYS:
        monkeypatch.setenv(name, "sk-of-the-environment")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("OpenAIModel", {"api_base": STRANGER}),
        ("OpenAIModel", {"client_kwargs": {"base_url": STRANGER}}),
        ("AzureOpenAIModel", {"azure_endpoint": STRANGER}),
        ("AnthropicModel", {"base_url": STRANGER}),
        ("GeminiModel", {"base_url": STRANGER}),
        ("GeminiModel", {"http_options": {"base_url": STRANGER}}),
        ("InferenceClientModel", {"base_url": STRANGER}),
        ("InferenceClientModel", {"model_id": STRANGER}),
        ("AmazonBedrockModel", {"client_kwargs": {"endpoint_url": STRANGER}}),
        ("LiteLLMModel", {"api_base": STRANGER}),
        ("LiteLLMModel", {"base_url": STRANGER}),
        ("TransformersModel", {"trust_remote_code": True}),
        ("TransformersModel", {"model_kwargs": {"trust_remote_code": True}}),
        ("TransformersModel", {"custom_generate": "stranger/code"}),
        ("MLXModel", {"trust_remote_code": True}),
        ("VLLMModel", {"model_kwargs": {"worker_cls": "stranger.Worker"}}),
    ],
)
def test_no_address_and_no_code_comes_from_a_form(name: str, settings: dict[str, Any]) -> None:
    (setting,) = settings
    kind: type[Model] = MODEL_REGISTRY[name]
    with pytest.raises(ValueError, match=rf"{name} sets {setting}, which only your program"):
        kind.from_dict({"model_id": "m", **settings})
    loaded = kind.from_dict({"model_id": "m", **settings}, **settings)
    assert str(settings[setting]) in str(loaded.to_dict())


def test_the_key_of_the_environment_goes_to_no_address_of_a_form() -> None:
    with serving(says("Hello")) as server:
        form = {"model_id": "m", "api_base": server.url}
        OpenAIModel.from_dict(form, api_key="theirs").generate(HELLO)
        OpenAIModel.from_dict(form, api_base=server.url).generate(HELLO)
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer theirs", "Bearer sk-of-the-environment"]


@pytest.mark.parametrize("kind", [OpenAIModel, AnthropicModel, InferenceClientModel])
def test_a_key_that_is_passed_is_the_only_one_that_is_sent(kind: type[Model]) -> None:
    with serving(says("Hello")) as server:
        name = "api_base" if kind is OpenAIModel else "base_url"
        form = {"model_id": "m", name: server.url, "retry": False}
        model = kind.from_dict(form, api_key="theirs")
        with suppress(AgentGenerationError):  # not all speak what this server does
            model.generate(HELLO)
    (request,) = server.requests
    assert "theirs" in str(request.headers)
    assert "sk-of-the-environment" not in str(request.headers)


def test_with_azure_a_key_is_not_enough() -> None:
    form = {"model_id": "m", "azure_endpoint": STRANGER}
    kind = MODEL_REGISTRY["AzureOpenAIModel"]
    with pytest.raises(ValueError, match="sets azure_endpoint"):
        kind.from_dict(form, api_key="theirs")
