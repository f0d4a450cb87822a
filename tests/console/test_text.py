from __future__ import annotations

import sys
import unicodedata

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
        ("pass\u200bword", "pass\\u200bword"),
        ("a\u200db \u200d🎉", "a\\u200db \\u200d🎉"),
        ("f\ufe0f ⚠\ufe0f\ufe0f", "f\\ufe0f ⚠\ufe0f\\ufe0f"),
        ("tag\U000e0100\U000e01ef", "tag\\U000e0100\\U000e01ef"),
        ("\u115f\u3164\uffa0\u034f\u2800", "\\u115f\\u3164\\uffa0\\u034f\\u2800"),
        ("soft\xad \ue000 \U000e0fff", "soft\\xad \\ue000 \\U000e0fff"),
        (
            "日本語\u3000🎉 👩\u200d👩\u200d👧 ⚠\ufe0f مرحبا",
            "日本語\u3000🎉 👩\u200d👩\u200d👧 ⚠\ufe0f مرحبا",
        ),
        (
            "👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 né\xa0e\u0301",
            "👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 né\xa0e\u0301",
        ),
    ],
)
def test_what_acts_is_shown_and_what_is_text_stays(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_what_the_output_cannot_express_is_escaped() -> None:
    assert visible("naïve 🎉", "latin-1") == "naïve \\U0001f389"
    assert visible("naïve", "ascii") == "na\\xefve"


# Default_Ignorable_Code_Point in Unicode's DerivedCoreProperties.txt, but for Cf and Cn.
IGNORABLE = {
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180F, 0x3164, 0xFFA0),
    *(*range(0x180B, 0x180E), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
}
JOINERS = {"\u200d", "\ufe0e", "\ufe0f"}


def is_invisible(char: str) -> bool:
    hidden = unicodedata.category(char) in {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
    return (hidden or ord(char) in IGNORABLE) and char not in "\t\n"


def test_no_character_is_shown_that_cannot_be_seen() -> None:
    shown = visible("a".join(map(chr, range(sys.maxunicode + 1))))
    shown.encode("utf-8")
    assert not [hex(ord(char)) for char in shown if is_invisible(char)]


@given(st.text(st.characters() | st.sampled_from("\u200d\ufe0e\ufe0f\u200b\x1b🎉👩🏽⚠")))
def test_only_a_symbol_is_followed_by_what_joins_symbols(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    for before, char in zip(" " + shown, shown, strict=False):
        if is_invisible(char):
            assert char in JOINERS
            joined = char == "\u200d" and before in {"🏽", *JOINERS}
            assert joined or unicodedata.category(before) == "So"
    assert visible(shown) == shown


def test_an_excerpt_keeps_both_ends_and_says_what_is_missing() -> None:
    short = excerpt("a" * 10 + "b" * 1_000_000 + "c" * 10, 20)
    assert short == f"{'a' * 10}\n… 1,000,000 characters are not shown …\n{'c' * 10}"
    assert excerpt("a" * 20, 20) == "a" * 20


def test_a_value_that_cannot_be_written_says_why() -> None:
    assert text_of(42) == "42"
    assert text_of(Hostile()).startswith("<Hostile that cannot be shown: RuntimeError: no")
    assert text_of(10**5000).startswith("<int that cannot be shown: ValueError: ")
