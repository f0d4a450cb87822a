from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling._show import text_of
from sanderling.console._text import excerpt, visible


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no \x1b[31mtext")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, tab\tand\nlines", "plain, tab\tand\nlines"),
        ("dos\r\nlines", "dos\nlines"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("over\rwritten", "over\\rwritten"),
        ("\x9b31m", "\\x9b31m"),
        ("nul\0", "nul\\x00"),
        ("user\u202enimda", "user\\u202enimda"),
        ("\u2066isolate\u2069", "\\u2066isolate\\u2069"),
        ("\ud800 alone", "\\ud800 alone"),
        ("hidden \U000e0041", "hidden \\U000e0041"),
        ("日本語 🎉 👩\u200d👩\u200d👧 مرحبا", "日本語 🎉 👩\u200d👩\u200d👧 مرحبا"),
    ],
)
def test_what_acts_is_shown_and_what_is_text_stays(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_what_the_output_cannot_express_is_escaped() -> None:
    assert visible("naïve 🎉", "latin-1") == "naïve \\U0001f389"
    assert visible("naïve", "ascii") == "na\\xefve"


@given(st.text(st.characters()))
def test_shown_text_can_always_be_encoded_and_holds_no_control(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert not {c for c in shown if ord(c) < 32 or 127 <= ord(c) < 160} - {"\n", "\t"}


def test_an_excerpt_keeps_both_ends_and_says_what_is_missing() -> None:
    short = excerpt("a" * 10 + "b" * 1_000_000 + "c" * 10, 20)
    assert short == f"{'a' * 10}\n… 1,000,000 characters are not shown …\n{'c' * 10}"
    assert excerpt("a" * 20, 20) == "a" * 20


def test_a_value_that_cannot_be_written_says_why() -> None:
    assert text_of(42) == "42"
    assert text_of(Hostile()).startswith("<Hostile that cannot be shown: RuntimeError: no")
    assert text_of(10**5000).startswith("<int that cannot be shown: ValueError: ")
