"""Models whose files come from the Hub: from a stand-in of it, to a cache of the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.hub_server import hub
from support.tiny_gguf import saying_gguf
from support.tiny_model import saying_model

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")

TOKEN = "hf_not_to_be_shown"
PIECES = ["Hel", "lo", " wor", "ld!"]
SCRIPT = """
import json, sys
from sanderling.models import MODEL_REGISTRY
name, settings = sys.argv[1], json.loads(sys.argv[2])
try:
    model = MODEL_REGISTRY[name](**settings)
    print(model.generate([{"role": "user", "content": "Hello"}]).text)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def say(name: str, url: str, cache: Path, token: str = "", **settings: object) -> str:
    """Asks a model in a process of its own: the Hub's package reads its variables when imported."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    variables = {"HF_ENDPOINT": url, "HF_HOME": str(cache), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    if token:
        variables["HF_TOKEN"] = token
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, name, json.dumps(settings)],
        capture_output=True,
        text=True,
        env={**kept, **variables},
        timeout=55,
    )
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    return done.stdout.strip()


def test_a_gguf_file(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="gguf is not installed")
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    folder = tmp_path / "repository"
    folder.mkdir()
    saying_gguf(folder / "tiny.gguf", PIECES)
    cache, meant = tmp_path / "cache", {"repo_id": "me/tiny", "filename": "tiny.gguf"}
    with hub({"me/tiny": folder}, gated="me/tiny", token=TOKEN) as server:
        closed = say("LlamaCppModel", server.url, cache, **meant)
        assert closed.startswith("OSError: The Hub did not give tiny.gguf of me/tiny")
        assert "HF_TOKEN" in closed
        wrong = say("LlamaCppModel", server.url, cache, TOKEN, **{**meant, "filename": "x.gguf"})
        assert wrong.startswith("OSError: The Hub did not give x.gguf of me/tiny")
        assert say("LlamaCppModel", server.url, cache, TOKEN, **meant) == "Hello world!"
        assert say("LlamaCppModel", server.url, cache, TOKEN, **meant) == "Hello world!"
        assert server.downloaded == ["me/tiny/tiny.gguf"]
    # Nobody answers any more.
    assert say("LlamaCppModel", server.url, cache, TOKEN, **meant) == "Hello world!"


@pytest.mark.timeout(120)  # two processes, each of which imports torch
def test_a_repository_for_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("torch", reason="torch is not installed")
    folder = saying_model(tmp_path / "repository", PIECES)
    cache = tmp_path / "cache"
    with hub({"me/tiny": folder}, gated="me/tiny", token=TOKEN) as server:
        closed = say("TransformersModel", server.url, cache, model_id="me/tiny")
        assert closed.startswith("UnknownModelError: transformers cannot load 'me/tiny'")
        assert "HF_TOKEN" in closed
        said = say("TransformersModel", server.url, cache, TOKEN, model_id="me/tiny")
        assert said == "Hello world!"
        assert server.downloaded.count("me/tiny/model.safetensors") == 1
