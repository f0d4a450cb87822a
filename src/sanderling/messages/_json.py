"""The JSON forms, and reading messages as if they were dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JSONValue: TypeAlias = (
    "bool | int | float | str | Sequence[JSONValue] | Mapping[str, JSONValue] | None"
)
JSONObject: TypeAlias = "dict[str, JSONValue]"


class Readable:
    """Lets code written for dict messages read ours: ``message["content"]``."""

    __slots__ = ()
    __iter__ = None  # or a message that stands where a list of them is due would be read by index

    def __getitem__(self, key: str) -> object:
        try:
            return getattr(self, key)
        except AttributeError:
            raise KeyError(key) from None

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and hasattr(self, key)

    def get(self, key: str, default: object = None) -> object:
        """Returns the field called `key`, or `default`."""
        return getattr(self, key, default)
