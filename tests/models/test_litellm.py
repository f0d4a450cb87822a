"""LiteLLM's models, and our OpenAIModel against LiteLLM's own server, which we did not write.

These run in an environment of their own, since LiteLLM wants an older `openai`: install
``litellm[proxy]``, pytest, pytest-timeout, hypothesis and Sanderling there, and run this file and
the conformance scenarios with ``-k LiteLLM``.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sanderling.errors import (
    AgentGenerationError,
    MissingExtraError,
    ModelAccessError,
    RateLimitError,
)
from sanderling.models import Capabilities, LiteLLMModel, LiteLLMRouterModel, OpenAIModel
from support.dialects.dialect import require
from support.doors import HELLO, Door, doors
from support.openai_server import fails, serving

CONFIG = """
model_list:
  - model_name: mock
    litellm_params:
      model: openai/any
      api_key: none
      mock_response: Hello from the proxy
  - model_name: busy
    litellm_params:
      model: openai/any
      api_key: none
      mock_response: litellm.RateLimitError
general_settings:
  master_key: sk-proxy
litellm_settings:
  num_retries: 0
"""


@pytest.mark.usefixtures("ready")
def test_without_a_model_id_it_warns() -> None:
    with pytest.warns(FutureWarning, match="without a model_id"):
        model = LiteLLMModel()
    assert model.model_id.startswith("anthropic/")


@pytest.mark.usefixtures("ready")
def test_texts_only_where_that_is_known() -> None:
    assert LiteLLMModel("ollama/llama3.2").flatten_messages_as_text
    assert not LiteLLMModel("openai/gpt-4o").flatten_messages_as_text
    assert not LiteLLMModel("ollama/llava", flatten_messages_as_text=False).flatten_messages_as_text


@pytest.mark.usefixtures("ready")
def test_what_leads_to_anthropic_gets_cache_marks() -> None:
    assert LiteLLMModel("anthropic/claude-sonnet-4-5").capabilities.cache_marks
    assert LiteLLMModel("bedrock/us.anthropic.claude-sonnet-4").capabilities.cache_marks
    assert not LiteLLMModel("openai/gpt-4o").capabilities.cache_marks


@pytest.mark.usefixtures("ready")
def test_a_router_knows_its_deployments() -> None:
    deployments = [{"model_name": "a", "litellm_params": {"model": "openai/x", "api_key": "sk"}}]
    with pytest.raises(ValueError, match=r"no deployment .* 'b'; there is: a"):
        LiteLLMRouterModel("b", deployments)
    data = LiteLLMRouterModel("a", deployments).to_dict()
    assert "'sk'" not in str(data)
    assert data["missing_secrets"] == ["model_list.0.litellm_params.api_key"]


def deployment(model: str, **parameters: object) -> dict[str, object]:
    return {"model_name": "a", "litellm_params": {"model": model, **parameters}}


@pytest.mark.usefixtures("ready")
def test_a_router_can_do_what_all_its_deployments_can() -> None:
    def abilities(*models: str) -> Capabilities:
        return LiteLLMRouterModel("a", [deployment(each) for each in models]).capabilities

    assert abilities("openai/gpt-4o").stop
    assert not abilities("openai/gpt-4o", "openai/o3").stop
    assert abilities("anthropic/claude-sonnet-4-5").cache_marks
    assert not abilities("anthropic/claude-sonnet-4-5", "openai/gpt-4o").cache_marks
    assert LiteLLMRouterModel("a", [deployment("ollama/llama3.2")]).flatten_messages_as_text


@doors
def test_the_retries_of_a_router_are_ours(door: Door) -> None:
    require("litellm")
    with serving(fails(503, "busy", retry_after="0")) as server:
        there = deployment("openai/x", api_base=server.url, api_key="sk")
        model = LiteLLMRouterModel("a", [there], client_kwargs={"num_retries": 1})
        with pytest.raises(AgentGenerationError, match="asked 2 times"):
            door.ask(model)
    assert len(server.requests) == 2


@doors
def test_what_the_package_refuses_by_itself_is_explained(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("litellm")
    for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(AgentGenerationError, match=r"REMOVE_PARAMETER.*temperature"):
        door.ask(LiteLLMModel("openai/o3", api_key="sk", temperature=0.1))
    for model_id in ("openai/gpt-4o", "gemini/gemini-2.5-flash"):
        with pytest.raises(ModelAccessError, match="There is no key for LiteLLM"):
            door.ask(LiteLLMModel(model_id))


def test_a_missing_package_names_the_command() -> None:
    script = (
        "import sys; sys.modules['litellm'] = None\n"
        "from sanderling.models import LiteLLMModel\n"
        "LiteLLMModel('openai/x').generate([])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert MissingExtraError.__name__ in done.stderr
    assert "pip install 'sanderling[litellm]'" in done.stderr


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """LiteLLM's server, with mock replies; its start takes many seconds."""
    require("litellm")
    folder = tmp_path_factory.mktemp("proxy")
    config = folder / "config.yaml"
    config.write_text(CONFIG)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = Path(sys.executable).parent / "litellm"
    arguments = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [str(command), *arguments, "--telemetry", "False"], stdout=log, stderr=log, cwd=folder
        )
    try:
        address = f"http://127.0.0.1:{port}"
        while not _alive(address):
            if process.poll() is not None:
                pytest.fail(f"the proxy ended: {(folder / 'log').read_text()[-2000:]}")
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
        yield f"{address}/v1"
    finally:
        process.terminate()
        process.wait(20)


def _alive(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health/liveliness", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


@pytest.mark.timeout(180)
@doors
def test_the_proxy_answers(proxy: str, door: Door) -> None:
    reply = door.ask(OpenAIModel("mock", proxy, "sk-proxy", retry=False))
    assert reply.text == "Hello from the proxy"
    assert reply.finish_reason == "stop"
    assert reply.token_usage is not None
    assert reply.token_usage.input_tokens > 0
    assert reply.token_usage.output_tokens > 0


@doors
def test_the_proxy_refuses(proxy: str, door: Door) -> None:
    # Without a database of keys the proxy calls a wrong one a bad request.
    with pytest.raises(AgentGenerationError, match="No connected db") as caught:
        door.ask(OpenAIModel("mock", proxy, "sk-wrong", retry=False))
    assert caught.value.status == 400
    with pytest.raises(RateLimitError) as busy:
        door.ask(OpenAIModel("busy", proxy, "sk-proxy", retry=False))
    assert busy.value.retryable


def test_litellm_asks_its_own_proxy(proxy: str) -> None:
    model = LiteLLMModel("litellm_proxy/mock", proxy, "sk-proxy", retry=False)
    assert model.generate(HELLO).text == "Hello from the proxy"
