"""Copies of models: by the copy module, and by pickle."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sanderling.models import (
    AnthropicModel,
    FallbackModel,
    LlamaCppModel,
    Model,
    OpenAIModel,
    RecordingModel,
    ReplayModel,
    ScriptedModel,
    TransformersModel,
)
from support.doors import HELLO
from support.openai_server import says, serving


def pickled(model: Model) -> Model:
    again: Model = pickle.loads(pickle.dumps(model))
    return again


WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": pickled}
ways = pytest.mark.parametrize("copied", WAYS.values(), ids=WAYS)
Way = Callable[[Any], Any]


class Client:
    """A client that nothing can copy."""

    def __reduce__(self) -> Any:
        raise RuntimeError("a client was copied")


@ways
def test_a_copy_opens_a_client_of_its_own(copied: Way) -> None:
    with serving(says("one"), says("two"), says("three")) as server:
        model = OpenAIModel("m", server.url, "sk-test", requests_per_minute=6_000, retry=False)
        texts = [model.generate(HELLO).text]
        again = copied(model)
        texts += [again.generate(HELLO).text, copied(again).generate(HELLO).text]
    assert texts == ["one", "two", "three"]
    assert again.client is not model.client
    assert again.to_dict() == model.to_dict()
    keys = {request.headers["authorization"] for request in server.requests}
    assert keys == {"Bearer sk-test"}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_client_that_was_given_is_shared(copied: Way) -> None:
    model = OpenAIModel("m", client=Client())
    assert copied(model).client is model.client


def test_a_client_that_was_given_is_not_pickled() -> None:
    with pytest.raises(TypeError, match=r"client of yours cannot be pickled.*leave out client="):
        pickle.dumps(OpenAIModel("m", client=Client()))


@ways
@pytest.mark.parametrize(
    "model",
    [
        AnthropicModel("m", api_key="k"),
        FallbackModel([OpenAIModel("m", api_key="k"), OpenAIModel("n", api_key="k")]),
        TransformersModel("m", kv_caches=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_copy_has_the_same_settings(model: Model, copied: Way) -> None:
    assert copied(model).to_dict() == model.to_dict()


@ways
@pytest.mark.skipif(not LlamaCppModel.is_available(), reason="the embedded model is not installed")
def test_copies_share_the_engine_that_is_loaded(copied: Way) -> None:
    model = LlamaCppModel(max_tokens=1)
    text = model.generate(HELLO).text
    again = copied(model)
    assert again.generate(HELLO).text == text
    assert again._engine is model._engine


@ways
def test_a_script_goes_on_where_it_was(copied: Way, tmp_path: Path) -> None:
    script = ScriptedModel(["a", "b"])
    recording = RecordingModel(script, tmp_path / "log.jsonl")
    recording.generate(HELLO)
    assert copied(script).generate(HELLO).text == "b"
    assert copied(ReplayModel(recording.path)).generate(HELLO).text == "a"


def test_a_recording_is_of_one_process(tmp_path: Path) -> None:
    recording = RecordingModel(ScriptedModel(["a"]), tmp_path / "log.jsonl")
    copy.deepcopy(recording).generate(HELLO)
    assert ReplayModel(recording.path).generate(HELLO).text == "a"
    with pytest.raises(TypeError, match="cannot be pickled: two processes"):
        pickle.dumps(recording)
