"""A view of the messages that the model was sent, which costs nothing to keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage


class History(Sequence["ChatMessage"]):
    """The first `length` messages of a list that only ever grows.

    Every step of a run was sent the messages of the step before and a few more. Keeping a view
    instead of a copy makes a run's memory linear in its length.
    """

    __slots__ = ("_length", "_messages")

    def __init__(self, messages: list[ChatMessage], length: int | None = None) -> None:
        self._messages = messages
        self._length = len(messages) if length is None else length

    def first(self, length: int) -> History:
        """Returns a view of the first `length` messages, or of all where there are fewer."""
        return History(self._messages, max(0, min(length, self._length)))

    def shared_with(self, other: Sequence[ChatMessage]) -> int:
        """Counts the messages, the very same objects, at the beginning of both."""
        if isinstance(other, History) and other._messages is self._messages:
            return min(self._length, other._length)
        shared = 0
        for one, another in zip(self, other, strict=False):
            if one is not another:
                break
            shared += 1
        return shared

    def __iter__(self) -> Iterator[ChatMessage]:
        return islice(self._messages, self._length)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> ChatMessage: ...
    @overload
    def __getitem__(self, index: slice) -> list[ChatMessage]: ...
    def __getitem__(self, index: int | slice) -> ChatMessage | list[ChatMessage]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if step > 0:
                return self._messages[start:stop:step]
            return self._messages[: self._length][index]
        if not -self._length <= index < self._length:
            raise IndexError(f"message {index} of {self._length}")
        return self._messages[index % self._length]

    def __add__(self, more: Sequence[ChatMessage]) -> list[ChatMessage]:
        return [*self[:], *more]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self[:] == list(other)

    __hash__ = None  # type: ignore[assignment]  # equal to lists, so as unhashable as they are

    def __repr__(self) -> str:
        return f"History({self[:]!r})"
