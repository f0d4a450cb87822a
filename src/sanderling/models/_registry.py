"""Model classes by name, for what was saved as data: nothing is imported by a name in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from ._base import Model

if TYPE_CHECKING:
    from sanderling.messages import JSONObject


class ModelRegistry(MutableMapping[str, type[Model]]):
    """The model classes of Sanderling, and yours: ``MODEL_REGISTRY["Mine"] = Mine``.

    Those of Sanderling are imported when they are asked for.
    """

    def __init__(self) -> None:
        self._added: dict[str, type[Model]] = {}

    def __getitem__(self, name: str) -> type[Model]:
        if name in self._added:
            return self._added[name]
        if name in _own_names():
            from sanderling import models

            found: type[Model] = getattr(models, name)
            return found
        raise KeyError(name)

    def __setitem__(self, name: str, kind: type[Model]) -> None:
        if not issubclass(kind, Model):
            raise TypeError(f"{kind!r} is no subclass of sanderling.models.Model")
        if name in _own_names():
            raise ValueError(f"{name} is a class of Sanderling: choose another name")
        self._added[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._added[name]

    def __iter__(self) -> Iterator[str]:
        yield from sorted({*_own_names(), *self._added})

    def __len__(self) -> int:
        return len({*_own_names(), *self._added})


#: The classes that `model_from_dict` knows.
MODEL_REGISTRY = ModelRegistry()


def model_to_dict(model: Model) -> JSONObject:
    """Returns a model as data: ``{"class": its name, "data": what its to_dict returns}``.

    Raises:
        ValueError: Its class is not in `MODEL_REGISTRY`, so it could not be loaded.
    """
    name = type(model).__name__
    if MODEL_REGISTRY.get(name) is not type(model):
        raise ValueError(
            f"the model class {name} is not registered, so what is saved could not be loaded: "
            f"MODEL_REGISTRY[{name!r}] = {name}, where it is saved and where it is loaded"
        )
    return {"class": name, "data": model.to_dict()}


def model_from_dict(data: Mapping[str, Any], **given: Any) -> Model:
    """Makes the model that `model_to_dict` described.

    Args:
        data: What `model_to_dict` returned.
        **given: Arguments that are added, or win: the secrets, above all.

    Raises:
        ValueError: The class is not in `MODEL_REGISTRY`, or the data is of another form.
    """
    name, settings = data.get("class"), data.get("data")
    if not isinstance(name, str) or not isinstance(settings, Mapping):
        raise ValueError('a saved model is {"class": its name, "data": {...}}')
    kind = MODEL_REGISTRY.get(name)
    if kind is None:
        raise ValueError(
            f"there is no model class {name!r}. If it is one of yours: MODEL_REGISTRY[{name!r}] = "
            f"{name} before loading. There is: {', '.join(MODEL_REGISTRY)}"
        )
    return kind.from_dict(settings, **given)


def _own_names() -> list[str]:
    from sanderling import models

    return [name for name in dir(models) if name.endswith("Model") and name not in _ABSTRACT]


_ABSTRACT = ("Model", "ApiModel", "CallableModel", "RecordingModel", "ReplayModel", "ScriptedModel")
