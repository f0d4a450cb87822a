"""What could be used is told by name, and no key's value is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sanderling.models import MODEL_REGISTRY, ModelSource, survey_models
from sanderling.models._choice import list_models


def nobody(url: str) -> list[str]:
    raise OSError(url)


def surveyed(
    environment: dict[str, str], probe: Callable[[str], list[str]] = nobody
) -> dict[str, ModelSource]:
    found = survey_models({"HF_HOME": "/nowhere", **environment}, probe)
    return {each.name: each for each in found}


def usable(environment: dict[str, str]) -> dict[str, str]:
    return {
        name: each.detail
        for name, each in surveyed(environment).items()
        if each.usable and "installed" not in each.detail
    }


def test_keys_are_told_by_the_names_of_their_variables() -> None:
    found = usable({"HF_TOKEN": "secret", "OPENAI_BASE_URL": "http://user:secret@host/v1"})
    del found["embedded model"]
    assert found == {
        "Hugging Face Inference Providers": "HF_TOKEN is set",
        "the Hub's providers, by its client": "HF_TOKEN is set",
        "a server of your own": "OPENAI_BASE_URL is set",
    }


def test_an_empty_variable_is_not_set() -> None:
    groq = surveyed({"GROQ_API_KEY": ""})["Groq"]
    assert (groq.usable, groq.detail) == (False, "GROQ_API_KEY is not set")
    assert groq.todo == "export GROQ_API_KEY=…"


def test_bedrock_needs_a_secret_and_a_region() -> None:
    half = surveyed({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})["Amazon Bedrock"]
    assert (half.usable, half.todo) == (False, "export AWS_REGION=…")
    assert surveyed({"AWS_PROFILE": "mine"})["Amazon Bedrock"].usable
    whole = {"AWS_BEARER_TOKEN_BEDROCK": "t", "AWS_DEFAULT_REGION": "eu-west-1"}
    assert surveyed(whole)["Amazon Bedrock"].usable


def test_of_some_variables_one_is_enough_and_of_others_all_are_needed() -> None:
    given = {"AZURE_OPENAI_ENDPOINT": "https://secret.example", "AZURE_OPENAI_AD_TOKEN": "secret"}
    azure = surveyed(given)["Azure"]
    assert (azure.usable, azure.detail) == (False, "OPENAI_API_VERSION is not set")
    azure = surveyed({**given, "OPENAI_API_VERSION": "1"})["Azure"]
    assert azure.usable
    assert azure.detail.endswith("OPENAI_API_VERSION, AZURE_OPENAI_AD_TOKEN are set")


def test_a_saved_token_will_do_for_the_hub(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    hub = surveyed({"HF_HOME": str(tmp_path)})["the Hub's providers, by its client"]
    assert (hub.usable, hub.detail) == (True, "a token is saved (hf auth login)")


def test_a_local_server_tells_its_models() -> None:
    asked = []

    def server(url: str) -> list[str]:
        asked.append(url)
        return ['first"', "x" * 100, "third", "fourth"]

    found = surveyed({"OLLAMA_HOST": "127.0.0.1:5"}, server)
    assert asked == [f"http://127.0.0.1:{port}/v1" for port in (5, 1234, 8000, 8080)]
    ollama = found["Ollama"]
    assert ollama.usable
    assert ollama.detail == f'4 models at {asked[0]}: first", {"x" * 60}, third, …'
    assert ollama.todo == f'OpenAIModel("first\\"", api_base="{asked[0]}")'
    silent = surveyed({})["LM Studio"]
    assert (silent.usable, silent.todo) == (False, "lms server start")
    empty = surveyed({}, lambda url: [])["Ollama"]
    assert (empty.usable, empty.detail) == (False, "no model at http://127.0.0.1:11434/v1")


def test_without_packages_nothing_is_usable_and_each_names_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sanderling.models._survey.is_installed", lambda name: False)
    found = surveyed({"GROQ_API_KEY": "secret"}, lambda url: ["m"])
    assert not any(each.usable for each in found.values())
    assert all("pip install" in each.todo for each in found.values())
    groq = found["Groq"]
    assert groq.detail == "openai is not installed; GROQ_API_KEY is set"
    assert groq.todo == "pip install 'sanderling[openai]'"
    assert found["Mistral"].todo == "pip install 'sanderling[openai]' && export MISTRAL_API_KEY=…"


def test_every_model_class_has_its_row() -> None:
    rows = {each.model for each in surveyed({}).values()}
    others = {"FallbackModel", "HfApiModel", "LiteLLMRouterModel"}
    assert {name for name in MODEL_REGISTRY if not name.endswith("ServerModel")} <= rows | others


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that is not one of models."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [b"220 mail ready\r\n", b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 200_000],
    ids=["another protocol", "nested too deep"],
)
def test_a_server_of_another_kind_is_nobody(answer: bytes) -> None:
    with answering(answer) as url, pytest.raises(OSError, match="no list of models"):
        list_models(url)
