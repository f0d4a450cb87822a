"""AzureOpenAIModel: where it gets what it needs, and the paths it asks."""

from __future__ import annotations

import pytest

from sanderling.errors import AgentGenerationError, ModelAccessError, UnknownModelError
from sanderling.models import AzureOpenAIModel, AzureOpenAIServerModel
from support.doors import HELLO, Door, doors
from support.openai_server import fails, says, serving, streams

VARIABLES = (
    "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
    "OPENAI_API_VERSION",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
)


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@doors
def test_the_deployment_is_in_the_path(door: Door) -> None:
    with serving(streams("a") if door.streamed else says("a")) as server:
        door.ask(AzureOpenAIServerModel("my-gpt", server.address, "k", "2024-10-21"))
    (request,) = server.requests
    assert request.path == "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
    assert request.headers["api-key"] == "k"


def test_everything_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(says("a")) as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.address)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "from-env")
        monkeypatch.setenv("OPENAI_API_VERSION", "2025-01-01")
        AzureOpenAIModel("d").generate(HELLO)
        monkeypatch.delenv("AZURE_OPENAI_API_KEY")
        monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "entra")
        AzureOpenAIModel("d").generate(HELLO)
    first, second = server.requests
    assert first.path.endswith("/deployments/d/chat/completions?api-version=2025-01-01")
    assert first.headers["api-key"] == "from-env"
    assert second.headers["authorization"] == "Bearer entra"


def test_a_token_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(says("a")) as server:
        model = AzureOpenAIModel(
            "d",
            server.address,
            api_version="v",
            client_kwargs={"azure_ad_token_provider": lambda: "made"},
        )
        model.generate(HELLO)
    assert server.requests[0].headers["authorization"] == "Bearer made"


def test_the_arguments_of_every_openai_model_count() -> None:
    with serving(says("a")) as server:
        base = f"{server.address}/proxy"
        AzureOpenAIModel(
            "d", api_key="k", api_version="v", api_base=base, organization="org", project="p"
        ).generate(HELLO)
    (request,) = server.requests
    assert request.path == "/proxy/deployments/d/chat/completions?api-version=v"
    assert request.headers["openai-organization"] == "org"
    assert request.headers["openai-project"] == "p"


def test_advice_is_about_azure() -> None:
    with (
        serving(fails(404, "Resource not found")) as server,
        pytest.raises(UnknownModelError, match="that azure_endpoint is") as caught,
    ):
        AzureOpenAIModel("d", server.address, "k", "v").generate(HELLO)
    assert "api_base" not in str(caught.value)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(AgentGenerationError, match=r"azure_endpoint.*AZURE_OPENAI_ENDPOINT"):
        AzureOpenAIModel("d", api_key="k", api_version="v").generate(HELLO)
    with pytest.raises(AgentGenerationError, match=r"api_version.*OPENAI_API_VERSION"):
        AzureOpenAIModel("d", "http://localhost:1", "k").generate(HELLO)
    with pytest.raises(ModelAccessError, match="AZURE_OPENAI_API_KEY"):
        AzureOpenAIModel("d", "http://localhost:1", api_version="v").generate(HELLO)
