"""Keys and addresses are checked when a model is made, and no error shows a key."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from sanderling import CodeAgent
from sanderling.errors import AgentGenerationError, ModelAccessError
from sanderling.messages import ChatMessage, MessageRole
from sanderling.models import (
    AnthropicModel,
    AzureOpenAIModel,
    GeminiModel,
    InferenceClientModel,
    LiteLLMModel,
    LiteLLMRouterModel,
    Model,
    OpenAIModel,
)
from sanderling.models._choice import choose_model
from support.openai_server import says, serving

HELLO = [ChatMessage(MessageRole.USER, "Hello")]
WITH_KEYS = [
    OpenAIModel,
    AzureOpenAIModel,
    InferenceClientModel,
    AnthropicModel,
    GeminiModel,
    LiteLLMModel,
]


def test_white_space_around_a_key_is_not_sent() -> None:
    with serving(says("x")) as server:
        OpenAIModel("m", server.url, " sk-SECRET\n").generate(HELLO)
    assert server.requests[0].headers["authorization"] == "Bearer sk-SECRET"


def test_white_space_around_a_key_of_the_environment_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRET\n")
    with serving(says("x")) as server:
        OpenAIModel("m", server.url).generate(HELLO)
    assert server.requests[0].headers["authorization"] == "Bearer sk-SECRET"


@pytest.mark.parametrize("model", WITH_KEYS)
@pytest.mark.parametrize("key", ["sk-SECRET\nsk-OTHER", "sk-SECRET\x00", "sk-SECRÉT", "sk-SECRET…"])
def test_a_key_that_cannot_be_a_header_is_refused(model: Callable[..., Model], key: str) -> None:
    with pytest.raises(ValueError, match="api_key cannot be sent in a header") as caught:
        model(model_id="m", api_key=key)
    assert "SECR" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("model", WITH_KEYS)
def test_an_empty_key_is_refused(model: Callable[..., Model]) -> None:
    with pytest.raises(ValueError, match="api_key is empty"):
        model(model_id="m", api_key=" \n")


def test_keys_within_client_kwargs_are_checked() -> None:
    model = OpenAIModel("m", client_kwargs={"api_key": "sk-SECRET\n"})
    assert model.client_kwargs == {"api_key": "sk-SECRET"}
    with pytest.raises(ValueError, match="api_key in client_kwargs cannot be sent"):
        OpenAIModel("m", client_kwargs={"api_key": "sk\nSECRET"})
    deployment = {"model_name": "a", "litellm_params": {"api_key": "sk\nSECRET"}}
    with pytest.raises(ValueError, match="api_key in litellm_params cannot be sent"):
        LiteLLMRouterModel("a", [deployment])


@pytest.mark.parametrize(
    ("variable", "model"),
    [
        ("OPENAI_API_KEY", lambda: OpenAIModel("m", "http://127.0.0.1:1")),
        ("ANTHROPIC_API_KEY", lambda: AnthropicModel("m", base_url="http://127.0.0.1:1")),
        ("GEMINI_API_KEY", lambda: GeminiModel("m", base_url="http://127.0.0.1:1")),
        (
            "AZURE_OPENAI_API_KEY",
            lambda: AzureOpenAIModel("m", "http://127.0.0.1:1", api_version="v"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_key_of_the_environment_is_refused_and_not_shown(
    variable: str, model: Callable[[], Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "sk-SECRET\nsk-OTHER")
    with pytest.raises(ModelAccessError, match=f"{variable} cannot be sent") as caught:
        model().generate(HELLO)
    shown = "".join(traceback.format_exception(caught.value))
    assert "SECRET" not in shown
    assert "sk-OTHER" not in shown


@pytest.mark.parametrize(
    "settings",
    [
        {"client_kwargs": {"default_headers": {"Password": "hunter2hunter2\n"}}},
        {"extra_headers": {"Gate": "hunter2hunter2'\n"}},
        {"organization": "hunter2hunter2\n"},
        {"api_key": lambda: "hunter2hunter2\n"},
    ],
    ids=["headers of the client", "headers of requests", "organization", "key of a function"],
)
def test_a_header_that_cannot_be_sent_is_told_at_once_and_not_shown(
    settings: dict[str, Any],
) -> None:
    with serving(says("x")) as server:
        model = OpenAIModel("m", server.url, **{"api_key": "k", **settings})
        with pytest.raises(AgentGenerationError, match=r"header .* cannot be sent") as caught:
            model.generate(HELLO)
    assert not caught.value.retryable
    error: BaseException | None = caught.value
    while error is not None:
        assert "hunter2" not in f"{error} {error!r}"
        error = error.__cause__ or error.__context__


def test_a_key_is_a_text() -> None:
    with pytest.raises(TypeError, match=r"api_key is a text, not bytes: decode\(\) it"):
        OpenAIModel("m", api_key=b"k")  # type: ignore[arg-type]  # that is the point


def test_a_manager_is_not_told_the_key_of_its_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OpenAIModel("m", "http://127.0.0.1:1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRET\nsk-OTHER")
    helper = CodeAgent([], model, name="helper", description="Helps.")
    heard: list[Any] = []

    def manager(messages: list[ChatMessage]) -> str:
        heard.extend(message.dict() for message in messages)
        if len(heard) < 4:
            return "<code>print(helper(task='x'))</code>"
        return "<code>final_answer(1)</code>"

    CodeAgent([], manager, managed_agents=[helper], max_steps=3).run("x")
    assert "OPENAI_API_KEY" in str(heard)
    assert "SECRET" not in str(heard)


@pytest.mark.parametrize("address", ["localhost:8000", "localhost:8000/v1", "ftp://host", "//host"])
@pytest.mark.parametrize(
    ("model", "name"),
    [
        (OpenAIModel, "api_base"),
        (OpenAIModel, "base_url"),
        (AzureOpenAIModel, "azure_endpoint"),
        (InferenceClientModel, "base_url"),
        (AnthropicModel, "base_url"),
        (GeminiModel, "base_url"),
        (LiteLLMModel, "api_base"),
    ],
)
def test_an_address_without_http_is_refused(
    model: Callable[..., Model], name: str, address: str
) -> None:
    with pytest.raises(ValueError, match=f"{name} must begin with http:// or https://"):
        model(model_id="m", **{name: address})


def test_an_address_within_client_kwargs_is_checked() -> None:
    with pytest.raises(ValueError, match="base_url in client_kwargs must begin with"):
        AnthropicModel("m", client_kwargs={"base_url": "localhost:8000"})


def test_an_address_of_the_environment_without_http_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000")
    with pytest.raises(ValueError, match="OPENAI_BASE_URL must begin with http:// or https://"):
        OpenAIModel("m")


def test_an_address_of_the_command_line_without_http_is_refused() -> None:
    with pytest.raises(ValueError, match="api_base must begin with http:// or https://"):
        choose_model(model_id="m", api_base="localhost:8000", environment={})


def test_the_password_in_a_bad_address_is_not_shown() -> None:
    with pytest.raises(ValueError, match="must begin with") as caught:
        OpenAIModel("m", "user:hunter22@localhost:8000?key=hunter33")
    assert "hunter" not in str(caught.value)
