"""Weights are large: what is loaded in the same way is loaded once, for as long as it is used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

_loaded: WeakValueDictionary[tuple[type, str], object] = WeakValueDictionary()
_loading = threading.Lock()


def shared(kind: type[T], key: str, load: Callable[[], T]) -> T:
    """Returns the object of this kind and key, loaded if nobody uses it yet."""
    with _loading:
        found = _loaded.get((kind, key))
        if isinstance(found, kind):
            return found
        made = load()
        _loaded[kind, key] = made
        return made
