"""Which kept keys and values are taken for a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from sanderling.models._kv_cache import PrefixCaches


class Tokens:
    """Keys and values that are the tokens themselves."""

    def __init__(self, tokens: Sequence[int] = (), window: int | None = None) -> None:
        self.tokens = list(tokens)
        self.window = window
        self.is_croppable = True

    def get_seq_length(self) -> int:
        return len(self.tokens)

    def crop(self, tokens_to_remove: int) -> None:
        if tokens_to_remove and self.window is not None and len(self.tokens) > self.window:
            raise RuntimeError("lost")
        del self.tokens[len(self.tokens) + tokens_to_remove :]


def write(caches: PrefixCaches[Tokens], prompt: list[int], reply: list[int]) -> int:
    """Does what a model does; returns how much of the prompt it did not read."""
    cache, known = caches.take(prompt)
    cache = cache or Tokens()
    assert cache.tokens == prompt[:known]
    assert known < len(prompt)
    cache.tokens += [*prompt[known:], *reply[:-1]]
    caches.keep([*prompt, *reply], len(prompt), cache)
    return known


TEXTS = st.lists(st.integers(0, 2), min_size=1, max_size=40)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=12), st.integers(0, 3))
def test_what_is_taken_is_a_beginning_of_the_prompt(
    course: list[tuple[list[int], list[int]]], most: int
) -> None:
    caches: PrefixCaches[Tokens] = PrefixCaches(most)
    for prompt, reply in course:
        known = write(caches, prompt, reply)
        assert most or not known


def test_runs_that_begin_alike_keep_what_they_have() -> None:
    caches: PrefixCaches[Tokens] = PrefixCaches(2)
    system = [0] * 50
    one, other = system + [1] * 30, system + [2] * 30
    assert write(caches, one, [3]) == 0
    assert write(caches, other, [4]) == 50
    assert write(caches, [*one, 3, 5], [6]) == 80
    assert write(caches, [*other, 4, 5], [6]) == 80
    # A third one takes the place of the one that was asked longest ago.
    assert write(caches, system + [7] * 30, [8]) == 50
    assert write(caches, [*other, 4, 5, 6], [6]) > 80


def test_what_is_lost_is_read_again() -> None:
    caches: PrefixCaches[Tokens] = PrefixCaches(1)
    caches.keep([1] * 20, 20, Tokens([1] * 20, window=8))
    assert caches.take([1] * 10 + [2] * 5) == (None, 0)
    unable = Tokens([1] * 20)
    unable.is_croppable = False
    caches.keep([1] * 20, 20, unable)
    assert caches.take([1] * 30) == (None, 0)
