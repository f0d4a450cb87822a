"""The classes that a saved form may name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_OURS = __name__.partition(".")[0] + "."


class Registry(Generic[T]):
    """Classes by the names that saved forms give them.

    The library's own classes have their bare name. Any other has its module before it, so that two
    libraries can each have a ``SearchStep``. A class that is defined again, as in a notebook,
    replaces the one before.

    Args:
        load: Imports the library's class of a bare name; None where there is none.
    """

    def __init__(self, load: Callable[[str], type[T] | None] | None = None) -> None:
        self._classes: dict[str, type[T]] = {}
        self._load = load

    def add(self, kind: type[T]) -> None:
        """Adds a class, which forms may name from now on."""
        self._classes[name_of(kind)] = kind

    def find(self, name: object, base: type[T]) -> type[T]:
        """Returns the class of a name.

        Args:
            name: What the form says.
            base: The class that it must be, or be derived from.

        Raises:
            ValueError: There is no such class.
        """
        kind = self._classes.get(str(name))
        if kind is None and self._load is not None:
            kind = self._load(str(name))
        if kind is None or not issubclass(kind, base):
            raise ValueError(
                f"there is no {base.__name__} of the name {name!r:.80}. If it is a class of your "
                "own, import it first."
            )
        return kind


def name_of(kind: type) -> str:
    """Returns the name that forms give a class."""
    if kind.__module__.startswith(_OURS):
        return kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}"
