"""FallbackModel: the next one where one fails."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest

from sanderling.errors import AgentGenerationError, RateLimitError
from sanderling.messages import ChatMessageStreamDelta, MessageLike
from sanderling.models import (
    MODEL_REGISTRY,
    FallbackModel,
    Model,
    ModelProfile,
    OpenAIModel,
    ScriptedModel,
    model_from_dict,
    model_to_dict,
)
from support.doors import Door, doors, streams

pytestmark = pytest.mark.usefixtures("ready")


def down(text: str = "down") -> AgentGenerationError:
    return RateLimitError(text, status=429, retryable=True)


@doors
def test_the_next_one_is_asked(door: Door) -> None:
    first, second = ScriptedModel([down(), "again"]), ScriptedModel(["I can"])
    both = FallbackModel([first, second])
    assert door.ask(both, stop_sequences=["x"]).text == "I can"
    assert second.requests[0].stop_sequences == ("x",)
    assert door.ask(both).text == "again"  # each request begins with the first


@doors
def test_all_fail(door: Door) -> None:
    both = FallbackModel([ScriptedModel([down("a is down")]), ScriptedModel([down("b is down")])])
    with pytest.raises(RateLimitError, match=r"All 2 models failed:\n.*a is down\n.*b is down"):
        door.ask(both)
    with pytest.raises(RateLimitError, match=r"^a is down$"):
        door.ask(FallbackModel([ScriptedModel([down("a is down")])]))


@doors
def test_a_mistake_in_the_code_is_no_reason(door: Door) -> None:
    second = ScriptedModel(["never"])
    with pytest.raises(KeyError):
        door.ask(FallbackModel([ScriptedModel([KeyError("bug")]), second]))
    assert second.requests == []


class Breaking(Model):
    def generate_stream(
        self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        yield ChatMessageStreamDelta("half")
        raise down()


@streams
def test_a_stream_that_began_is_not_given_up(door: Door) -> None:
    second = ScriptedModel(["never"])
    with pytest.raises(RateLimitError, match=r"^down$"):
        door.ask(FallbackModel([Breaking(), second]))
    assert second.requests == []


def test_it_speaks_as_the_first_one() -> None:
    profile = ModelProfile("p")
    both = FallbackModel([ScriptedModel(["a"], "first", profile), lambda messages: "b"])
    assert (both.model_id, both.profile) == ("first", profile)
    with pytest.raises(ValueError, match="at least one"):
        FallbackModel([])
    with pytest.raises(TypeError, match="a list of models"):
        FallbackModel(OpenAIModel("a"))  # type: ignore[arg-type]  # the mistake


def test_it_is_saved_with_all_of_them() -> None:
    made = FallbackModel([OpenAIModel("a", "http://localhost:1/v1"), OpenAIModel("b")])
    data = model_to_dict(made)
    with pytest.raises(ValueError, match=r"sets api_base, .* begins with 'models\.0\.'"):
        model_from_dict(data)
    loaded = model_from_dict(data, **{"models.0.api_base": "http://localhost:1/v1"})
    assert isinstance(loaded, FallbackModel)
    assert model_to_dict(loaded) == data
    assert [model.model_id for model in loaded.models] == ["a", "b"]


def test_each_of_them_is_given_its_secrets_again() -> None:
    within = FallbackModel([OpenAIModel("b", api_key="sk-b")])
    data = model_to_dict(FallbackModel([OpenAIModel("a", api_key="sk-a"), within]))
    assert "sk-" not in str(data)
    names = ["models.0.api_key", "models.1.models.0.api_key"]
    assert data["data"]["missing_secrets"] == names  # type: ignore[index,call-overload]
    loaded = model_from_dict(data, **dict(zip(names, ("sk-1", "sk-2"), strict=True)))
    assert isinstance(loaded, FallbackModel)
    first, second = loaded.models
    assert isinstance(first, OpenAIModel)
    assert isinstance(second, FallbackModel)
    assert isinstance(second.models[0], OpenAIModel)
    assert (first.client.api_key, second.models[0].client.api_key) == ("sk-1", "sk-2")
    assert model_to_dict(loaded) == data
    with pytest.warns(UserWarning, match="without its secrets") as told:
        model_from_dict(data, **{names[0]: "sk-1"})
    assert f"secrets: {names[1]}. Give" in str(told[0].message)


class Mine(Model):
    pass


def test_classes_of_users_are_registered() -> None:
    with pytest.raises(ValueError, match=r"MODEL_REGISTRY\['Mine'\] = Mine"):
        model_to_dict(Mine(model_id="m"))
    with pytest.raises(ValueError, match="no model class 'Mine'"):
        model_from_dict({"class": "Mine", "data": {}})
    MODEL_REGISTRY["Mine"] = Mine
    try:
        loaded = model_from_dict(model_to_dict(Mine(model_id="m")))
        assert isinstance(loaded, Mine)
        assert loaded.model_id == "m"
        assert "Mine" in MODEL_REGISTRY
    finally:
        del MODEL_REGISTRY["Mine"]


def test_the_registry_holds_models_only() -> None:
    assert MODEL_REGISTRY["OpenAIServerModel"] is OpenAIModel
    assert "ScriptedModel" not in MODEL_REGISTRY
    assert "as_model" not in MODEL_REGISTRY
    assert len(MODEL_REGISTRY) == len(list(MODEL_REGISTRY))
    with pytest.raises(TypeError, match="no subclass"):
        MODEL_REGISTRY["X"] = dict  # type: ignore[assignment]  # the mistake
    with pytest.raises(ValueError, match="another name"):
        MODEL_REGISTRY["OpenAIModel"] = Mine
    with pytest.raises(ValueError, match="a saved model is"):
        model_from_dict({"class": "os.system"})
