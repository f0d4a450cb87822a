"""What a model is made of, as data that may be saved: without secrets."""

from __future__ import annotations

import enum
import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sanderling.messages import JSONObject, JSONValue

_SECRET = re.compile(
    r"api[-_]?key|secret|passw|authorization|credential|cookie|(^|[-_])token$", re.I
)


class _Removal(enum.Enum):
    REMOVE_PARAMETER = enum.auto()

    def __repr__(self) -> str:
        return self.name


#: As the value of a model's keyword argument: leave that parameter out of the request.
REMOVE_PARAMETER: Final = _Removal.REMOVE_PARAMETER

# How REMOVE_PARAMETER is written in JSON.
_REMOVED = {"$": "REMOVE_PARAMETER"}


def saved(owner: str, settings: Mapping[str, object]) -> JSONObject:
    """Returns the JSON form of settings, without those that hold secrets.

    What has no JSON form, such as an HTTP client, is left out with a warning.
    """
    data: JSONObject = {}
    for name, value in settings.items():
        if _SECRET.search(name):
            continue
        try:
            data[name] = _json(value)
        except TypeError:
            warnings.warn(
                f"{name!r} of {owner} is a {type(value).__name__}, which has no JSON form: it is "
                "not saved. Give it again after loading.",
                stacklevel=3,
            )
    return data


def loaded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that `saved` wrote."""
    return {
        name: REMOVE_PARAMETER if value == _REMOVED else value for name, value in settings.items()
    }


def _json(value: object) -> JSONValue:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if value is REMOVE_PARAMETER:
        return _REMOVED
    if isinstance(value, Mapping):
        return {
            str(key): _json(item) for key, item in value.items() if not _SECRET.search(str(key))
        }
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    raise TypeError(type(value).__name__)
