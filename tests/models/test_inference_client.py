"""InferenceClientModel: the Hub's router, its providers, and endpoints of one's own."""

from __future__ import annotations

import json

import pytest

from sanderling.errors import AgentGenerationError, ModelAccessError, UnknownModelError
from sanderling.models import HfApiModel, InferenceClientModel
from support.doors import HELLO, Door, doors
from support.openai_server import fails, says, serving, streams
from support.scripted_http import Answer, ScriptedServer

MAPPING = {
    "id": "org/model",
    "inferenceProviderMapping": {
        "together": {"providerId": "Their-Name", "status": "live", "task": "conversational"}
    },
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Hub:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hub")))
    return Hub(monkeypatch)


class Hub:
    """Lets the package take a server of ours for the Hub: its addresses are constants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", "/nonexistent/token")

    def at(self, server: ScriptedServer) -> None:
        change = self._monkeypatch.setattr
        template = f"{server.address}/{{provider}}"
        change("huggingface_hub.constants.INFERENCE_PROXY_TEMPLATE", template)
        change("huggingface_hub.constants.ENDPOINT", server.address)
        from huggingface_hub.inference import _providers

        change(_providers.CONVERSATIONAL_AUTO_ROUTER, "base_url", server.address)


@doors
def test_the_router_chooses_a_provider(hub: Hub, door: Door) -> None:
    with serving(streams("a") if door.streamed else says("a")) as server:
        hub.at(server)
        model = HfApiModel("org/model", token="hf_secret", bill_to="my-org")
        assert door.ask(model, temperature=0.1, min_p=0.2).text == "a"
    request = server.requests[-1]  # the package asks the Hub for other things before, once
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer hf_secret"
    assert request.headers["x-hf-bill-to"] == "my-org"
    assert (request.body["model"], request.body["temperature"]) == ("org/model", 0.1)
    assert request.body["min_p"] == 0.2  # the package does not know this one


def test_a_provider_has_names_of_its_own(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_env")
    with serving(Answer(json.dumps(MAPPING)), says("a")) as server:
        hub.at(server)
        reply = InferenceClientModel("org/model", provider="together").generate(HELLO)
    assert reply.text == "a"
    assert server.requests[0].path.startswith("/api/models/org/model")
    assert server.requests[1].path == "/together/v1/chat/completions"
    assert server.requests[1].body["model"] == "Their-Name"
    assert server.requests[1].headers["authorization"] == "Bearer hf_env"


@doors
def test_without_a_token(hub: Hub, door: Door) -> None:
    with pytest.raises(ModelAccessError, match="Set the environment variable HF_TOKEN"):
        door.ask(InferenceClientModel("org/model"))


def test_an_endpoint_needs_none(hub: Hub) -> None:
    with serving(says("a")) as server:
        InferenceClientModel(base_url=server.url).generate(HELLO)
    assert "authorization" not in server.requests[0].headers


def test_an_unknown_model_and_an_unknown_provider(hub: Hub) -> None:
    with serving(fails(404, "no such model")) as server:
        hub.at(server)
        with pytest.raises(UnknownModelError, match="no such model"):
            InferenceClientModel("org/none", token="hf_x").generate(HELLO)
        with pytest.raises(AgentGenerationError, match="nowhere"):
            InferenceClientModel("org/none", provider="nowhere", token="hf_x").generate(HELLO)


def test_arguments_that_contradict_each_other() -> None:
    with pytest.raises(ValueError, match="token and api_key"):
        InferenceClientModel(token="a", api_key="b")
    with pytest.raises(ValueError, match="base_url"):
        InferenceClientModel(provider="together", base_url="http://localhost:1")


@pytest.mark.usefixtures("ready")
def test_only_some_providers_can_be_held_to_a_schema() -> None:
    assert InferenceClientModel(provider="cerebras").capabilities.json_schema
    assert not InferenceClientModel(provider="novita").capabilities.json_schema
    assert not InferenceClientModel().capabilities.json_schema
    assert InferenceClientModel(base_url="http://localhost:1").capabilities.json_schema
