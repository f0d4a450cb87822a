"""What copies of a model do not copy."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Generic, Never, Self, TypeVar

T = TypeVar("T")


class OwnLock:
    """A lock that every copy of its owner has anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[OwnLock], tuple[()]]:
        return OwnLock, ()


class Shared(Generic[T]):
    """What all copies of its owner have together, and what no other process can have.

    Args:
        value: The thing.
        refusal: What to say when it is to be pickled.
    """

    def __init__(self, value: T, refusal: str) -> None:
        self.value = value
        self._refusal = refusal

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> Never:
        raise TypeError(self._refusal)
