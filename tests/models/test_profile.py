"""Model profiles."""

from __future__ import annotations

from typing import Any, cast

import pytest

from sanderling.models import ModelProfile, OpenAIModel

pytestmark = pytest.mark.usefixtures("ready")


def test_the_small_profile_loads_and_loads_back() -> None:
    small = ModelProfile.load("small")
    assert small.name == "small"
    assert small.grammar is not None
    assert "final_answer" in small.prompts["system_prompt"]
    assert ModelProfile.from_dict(small.dict()) == small
    assert ModelProfile.load("small") is small


def test_a_model_saves_our_profiles_by_name() -> None:
    assert OpenAIModel("m", profile="small").to_dict()["profile"] == "small"
    mine = {**ModelProfile.load("small").dict(), "stop_sequences": ["x"]}
    saved = OpenAIModel("m", profile=mine).to_dict()["profile"]
    assert ModelProfile.from_dict(cast("dict[str, Any]", saved)).stop_sequences == ("x",)


def test_an_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'\.\./secret'; there is: .*small"):
        ModelProfile.load("../secret")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"name": "x", "promtps": {}}, "no promtps; its keys are name, prompts"),
        ({}, "name of a model profile is a text"),
        ({"name": "x", "grammar": 3}, "grammar"),
        ({"name": "x", "stop_sequences": "abc"}, "list of texts"),
        ({"name": "x", "code_block_tags": ["a"]}, "two texts"),
    ],
)
def test_mistakes_are_named(data: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ModelProfile.from_dict(data)
