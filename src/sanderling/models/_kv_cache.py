"""Keys and values of past conversations, for the next one that begins like one of them.

The history of a run only grows at its end: each step needs the model to read what is new only.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Generic, Protocol, TypeVar

# By how many tokens the end of a prompt may differ in the next one: it opens the reply, which a
# chat template may open otherwise when the reply is there.
_SLACK: Final = 16


class KeysAndValues(Protocol):
    """What is used of `transformers.Cache`."""

    @property
    def is_croppable(self) -> bool:
        """Whether its end can be taken away."""

    def get_seq_length(self) -> int:
        """Returns of how many tokens it holds keys and values."""

    def crop(self, tokens_to_remove: int, /) -> None:
        """Takes ``-tokens_to_remove`` tokens away; raises `RuntimeError` where they are lost."""


C = TypeVar("C", bound=KeysAndValues)


@dataclass(slots=True)
class _Kept(Generic[C]):
    tokens: list[int]
    prompt: int
    cache: C


class PrefixCaches(Generic[C]):
    """Keeps the caches of the last conversations; for one thread at a time.

    Args:
        most: How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[_Kept[C]] = []  # the last used is the last

    def take(self, prompt: Sequence[int]) -> tuple[C | None, int]:
        """Returns a cache that holds a beginning of the prompt, and how many tokens that is.

        The cache is the caller's, who gives it back with `keep`. It never holds the whole prompt:
        a model has to read one token to write the next.
        """
        best, length = None, 0
        for each in self._kept:
            if (common := _common(each.tokens, prompt[:-1])) > length:
                best, length = each, common
        if best is None:
            return None, 0
        goes_on = length >= best.prompt - _SLACK
        if goes_on or len(self._kept) >= self._most:
            self._kept.remove(best)
            cache = best.cache
        else:  # another conversation, which only begins alike: the older one may go on, too
            cache = copy.deepcopy(best.cache)
        try:
            cache.crop(length - len(best.tokens))
        except RuntimeError:  # a sliding window has moved on
            return None, 0
        return cache, length

    def keep(self, tokens: Sequence[int], prompt: int, cache: C) -> None:
        """Keeps a cache.

        Args:
            tokens: The conversation with the reply.
            prompt: How many of them were the conversation.
            cache: Of all of them, or all but the last.
        """
        length = cache.get_seq_length()
        if self._most < 1 or length > len(tokens) or not cache.is_croppable:
            return
        self._kept.append(_Kept(list(tokens[:length]), prompt, cache))
        del self._kept[: -self._most]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
