"""What could be used is told by name, and no key's value is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sanderling.models import survey_models
from sanderling.models._choice import list_models


def nobody(url: str) -> list[str]:
    raise OSError(url)


def usable(environment: dict[str, str]) -> dict[str, str]:
    found = survey_models(environment, nobody)
    return {each.name: each.detail for each in found if each.usable}


def test_keys_are_told_by_the_names_of_their_variables() -> None:
    found = usable({"HF_TOKEN": "secret", "OPENAI_BASE_URL": "http://user:secret@host/v1"})
    del found["embedded model"]
    assert found == {
        "Hugging Face Inference Providers": "HF_TOKEN is set",
        "a server of your own": "OPENAI_BASE_URL is set",
    }


def test_an_empty_variable_is_not_set() -> None:
    assert "Groq" not in usable({"GROQ_API_KEY": ""})


def test_a_local_server_tells_its_models() -> None:
    asked = []

    def server(url: str) -> list[str]:
        asked.append(url)
        return ["first", "x" * 100, "third", "fourth"]

    (ollama,) = [
        each
        for each in survey_models({"OLLAMA_HOST": "127.0.0.1:5"}, server)
        if each.name == "Ollama"
    ]
    assert asked == ["http://127.0.0.1:5/v1"]
    assert ollama.usable
    assert ollama.detail == f"4 models at {asked[0]}: first, {'x' * 60}, third, …"


def test_without_the_client_only_the_embedded_model_is_usable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = survey_models({"HF_TOKEN": "secret"}, lambda url: ["m"])
    assert not any(each.usable for each in found)
    told = [each.detail for each in found if "HF_TOKEN" in each.detail]
    assert told == ["HF_TOKEN is set; pip install 'sanderling[openai]'"]


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
