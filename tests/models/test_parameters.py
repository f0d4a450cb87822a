"""Parameters that no request has are refused before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sanderling.messages import ChatMessage, MessageRole
from sanderling.models import (
    REMOVE_PARAMETER,
    AmazonBedrockModel,
    AnthropicModel,
    AzureOpenAIModel,
    GeminiModel,
    InferenceClientModel,
    LiteLLMModel,
    Model,
    OpenAIModel,
)
from support.openai_server import says, serving

pytestmark = pytest.mark.usefixtures("ready")

HELLO = [ChatMessage(MessageRole.USER, "Hello")]


def test_base_url_is_api_base() -> None:
    with serving(says("x")) as server:
        OpenAIModel("m", base_url=server.url, api_key="sk-test").generate(HELLO)
    (request,) = server.requests
    assert "base_url" not in request.body


def test_base_url_is_api_base_on_azure_and_for_litellm() -> None:
    assert AzureOpenAIModel("m", base_url="http://localhost:1").api_base == "http://localhost:1"
    assert LiteLLMModel("openai/m", base_url="http://localhost:1").api_base == "http://localhost:1"


@pytest.mark.parametrize("model", [OpenAIModel, LiteLLMModel])
def test_two_names_of_one_address(model: Callable[..., Model]) -> None:
    with pytest.raises(ValueError, match="two names of one address"):
        model("m", api_base="http://localhost:1", base_url="http://localhost:2")


@pytest.mark.parametrize(
    ("model", "name", "close"),
    [
        (OpenAIModel, "apikey", "api_key"),
        (OpenAIModel, "max_token", "max_tokens"),
        (OpenAIModel, "requests_per_minutes", "requests_per_minute"),
        (AzureOpenAIModel, "azure_endpont", "azure_endpoint"),
        (InferenceClientModel, "api_base", "base_url"),
        (AnthropicModel, "api_base", "base_url"),
        (AnthropicModel, "temprature", "temperature"),
        (GeminiModel, "max_token", "max_tokens"),
        (AmazonBedrockModel, "max_token", "max_tokens"),
        (LiteLLMModel, "apikey", "api_key"),
    ],
)
def test_a_misspelled_argument_is_refused_with_the_close_one(
    model: Callable[..., Model], name: str, close: str
) -> None:
    with pytest.raises(TypeError, match=f"no parameter '{name}'. Did you mean '{close}'"):
        model(model_id="m", **{name: "sk-own-value"})
    with pytest.raises(TypeError) as caught:
        model(model_id="m", **{name: "sk-own-value"})
    assert "sk-own" not in str(caught.value)


@pytest.mark.parametrize("model", [OpenAIModel, InferenceClientModel, AnthropicModel, GeminiModel])
def test_an_unknown_argument_says_where_those_of_a_server_go(model: Callable[..., Model]) -> None:
    with pytest.raises(TypeError, match=r"extra_body=\{'xyzzy': ...\}"):
        model(model_id="m", xyzzy=1)


def test_an_unknown_parameter_of_a_call_is_not_sent() -> None:
    with serving(says("x")) as server:
        model = OpenAIModel("m", server.url, "sk-test")
        with pytest.raises(TypeError, match="Did you mean 'temperature'"):
            model.generate(HELLO, temperatur=1)
    assert server.requests == []


def test_extra_body_is_sent() -> None:
    with serving(says("x")) as server:
        extra: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
        OpenAIModel("m", server.url, "sk-test", extra_body=extra).generate(HELLO)
    assert server.requests[0].body["chat_template_kwargs"] == {"enable_thinking": False}


def test_models_of_other_makers_have_parameters_of_their_own() -> None:
    assert AmazonBedrockModel("m", anthropic_beta=["x"]).kwargs == {"anthropic_beta": ["x"]}
    assert LiteLLMModel("ollama/m", mirostat=1).kwargs == {"mirostat": 1}


def test_a_removed_parameter_may_have_any_name() -> None:
    OpenAIModel("m", xyzzy=REMOVE_PARAMETER)
