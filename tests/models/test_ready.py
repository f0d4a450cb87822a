"""A model that cannot be asked is refused when it is made, not when a run asks it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sanderling.errors import MissingExtraError, ModelAccessError
from sanderling.messages import ChatMessage, MessageRole
from sanderling.models import (
    AmazonBedrockModel,
    AnthropicModel,
    AzureOpenAIModel,
    GeminiModel,
    InferenceClientModel,
    LiteLLMModel,
    MLXModel,
    Model,
    OpenAIModel,
    TransformersModel,
    VLLMModel,
    model_from_dict,
    model_to_dict,
)

HELLO = [ChatMessage(MessageRole.USER, "Hello")]
_PREFIXES = ("ANTHROPIC_", "AZURE_", "GEMINI_", "GOOGLE_", "HF_", "HUGGING", "OPENAI_")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith(_PREFIXES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("make", "package"),
    [
        (lambda: OpenAIModel("m", api_key="k"), "openai"),
        (lambda: AzureOpenAIModel("m", api_key="k"), "openai"),
        (lambda: AnthropicModel("m", "k"), "anthropic"),
        (lambda: GeminiModel("m", "k"), "google.genai"),
        (lambda: InferenceClientModel("m", token="k"), "huggingface_hub"),
        (lambda: AmazonBedrockModel("m"), "boto3"),
        (lambda: LiteLLMModel("m"), "litellm"),
        (lambda: TransformersModel("m"), "transformers"),
        (lambda: VLLMModel("m"), "vllm"),
        (lambda: MLXModel("m"), "mlx_lm"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_missing_package_is_told(
    make: Callable[[], Model], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*pip install 'sanderling\["):
        make()


@pytest.mark.parametrize(
    ("make", "variable"),
    [
        (lambda: OpenAIModel("gpt-5"), "OPENAI_API_KEY"),
        (lambda: AnthropicModel("m"), "ANTHROPIC_API_KEY"),
        (lambda: GeminiModel("m"), "GEMINI_API_KEY"),
        (lambda: InferenceClientModel(), "HF_TOKEN"),
        (
            lambda: AzureOpenAIModel("m", "https://x.openai.azure.com", api_version="1"),
            "AZURE_OPENAI_API_KEY",
        ),
        (lambda: AzureOpenAIModel("m", api_key="k"), "AZURE_OPENAI_ENDPOINT"),
    ],
    ids=["openai", "anthropic", "gemini", "hub", "azure", "azure's address"],
)
def test_a_missing_key_is_told(make: Callable[[], Model], variable: str) -> None:
    with pytest.raises(Exception, match=variable) as caught:
        make()
    assert type(caught.value).__name__ in ("ModelAccessError", "AgentGenerationError")


def test_a_server_of_yours_may_need_no_key() -> None:
    OpenAIModel("m", "http://localhost:1/v1")
    InferenceClientModel(base_url="http://localhost:1/v1")


def test_a_saved_token_of_the_hub_is_a_key(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_saved\n")
    InferenceClientModel()


@pytest.mark.parametrize(
    "make",
    [
        lambda client: OpenAIModel("m", client=client),
        lambda client: AnthropicModel("m", client=client),
        lambda client: GeminiModel("m", client=client),
        lambda client: InferenceClientModel("m", client=client),
    ],
    ids=["openai", "anthropic", "gemini", "hub"],
)
def test_with_a_client_of_yours_nothing_is_looked_for(make: Callable[[Any], Model]) -> None:
    make(object())


def test_a_model_of_a_saved_form_is_made_without_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    data = model_to_dict(OpenAIModel("gpt-5", api_key="sk-own"))
    with pytest.warns(UserWarning, match="api_key"):
        model = model_from_dict(data)
    with pytest.raises(ModelAccessError, match="There is no key"):
        model.generate(HELLO)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    OpenAIModel("gpt-5")
