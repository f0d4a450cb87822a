"""Model profiles: how to talk to a model that the ordinary prompts do not suit, as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sanderling.messages import JSONObject

_FIELDS = ("name", "prompts", "grammar", "stop_sequences", "code_block_tags", "options")


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How a `CodeAgent` talks to one kind of model, where its user says nothing else.

    Attributes:
        name: Names the profile.
        prompts: Templates that replace the agent's own, by their key in ``prompt_templates``.
        grammar: What a reply with a code action may look like, in the GBNF of llama.cpp
            (https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md). A template with
            the variables of the system prompt.
        stop_sequences: Where a reply with a code action ends.
        code_block_tags: The marks around code.
        options: Further keyword arguments of `Model.generate`.
    """

    name: str
    prompts: Mapping[str, Any] = field(default_factory=dict)
    grammar: str | None = None
    stop_sequences: tuple[str, ...] = ()
    code_block_tags: tuple[str, str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def dict(self) -> JSONObject:
        """Returns the JSON form."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelProfile:
        """Loads what `dict` wrote, or the same keys from a YAML file.

        Raises:
            ValueError: A key is not known, or a value is not of its kind.
        """
        if unknown := sorted(set(data) - set(_FIELDS)):
            raise ValueError(
                f"a model profile has no {', '.join(unknown)}; its keys are {', '.join(_FIELDS)}"
            )
        tags = data.get("code_block_tags")
        return cls(
            name=_text(data.get("name"), "name"),
            prompts=dict(data.get("prompts") or {}),
            grammar=None if data.get("grammar") is None else _text(data["grammar"], "grammar"),
            stop_sequences=_texts(data.get("stop_sequences") or (), "stop_sequences"),
            code_block_tags=None if tags is None else _pair(tags),
            options=dict(data.get("options") or {}),
        )

    @classmethod
    def load(cls, name: str) -> ModelProfile:
        """Returns the profile of that name among those that come with Sanderling.

        Raises:
            ValueError: There is none of that name.
        """
        return _load(name)


def as_profile(profile: ModelProfile | Mapping[str, Any] | str | None) -> ModelProfile | None:
    """Accepts a profile, its JSON form, or the name of one that comes with Sanderling."""
    if profile is None or isinstance(profile, ModelProfile):
        return profile
    if isinstance(profile, str):
        return ModelProfile.load(profile)
    if not isinstance(profile, Mapping):
        raise TypeError(f"profile is a ModelProfile, or the name of one, not {profile!r:.80}")
    return ModelProfile.from_dict(profile)


def profile_setting(profile: ModelProfile | None) -> JSONObject | str | None:
    """Returns what `as_profile` makes the profile of again: a name, where that says it all."""
    if profile is None:
        return None
    ours = profile.name in _files() and profile == _load(profile.name)
    return profile.name if ours else profile.dict()


def _files() -> dict[str, Traversable]:
    folder = resources.files(__package__).joinpath("profiles")
    return {file.name.removesuffix(".yaml"): file for file in folder.iterdir()}


@lru_cache
def _load(name: str) -> ModelProfile:
    import yaml

    files = _files()
    if name not in files:
        raise ValueError(
            f"there is no model profile {name!r}; there is: {', '.join(sorted(files))}"
        )
    return ModelProfile.from_dict({"name": name, **yaml.safe_load(files[name].read_text("utf-8"))})


def _text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key} of a model profile is a text, not {value!r:.80}")
    return value


def _texts(value: object, key: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{key} of a model profile is a list of texts, not {value!r:.80}")
    return tuple(_text(item, key) for item in value)


def _pair(value: object) -> tuple[str, str]:
    texts = _texts(value, "code_block_tags")
    if len(texts) != 2:
        raise ValueError(f"code_block_tags are two texts, not {len(texts)}")
    return texts[0], texts[1]
