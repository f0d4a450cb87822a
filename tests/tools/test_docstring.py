from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.tools._docstring import parse_docstring


def test_takes_a_google_docstring_apart() -> None:
    parsed = parse_docstring(
        """Finds trips.

        Cheap ones first.

        Args:
            city (str): Where to,
                with the country.
            days (Optional[tuple(int, int)], optional): How long.
            note: Mentions a time: 10:30 (local).

        Returns:
            list[str]: One line
            per trip.

        Raises:
            ValueError: Never.
        """
    )
    assert parsed.description == "Finds trips.\n\nCheap ones first."
    assert parsed.args == {
        "city": "Where to, with the country.",
        "days": "How long.",
        "note": "Mentions a time: 10:30 (local).",
    }
    assert parsed.returns == "list[str]: One line per trip."


@pytest.mark.parametrize("header", ["Returns:", "Return:", "Raises:", "Yields:"])
def test_the_next_section_ends_the_arguments(header: str) -> None:
    parsed = parse_docstring(
        f"Does.\n\nArgs:\n    x: The x.\n\n{header}\n    y: Not an argument.\n"
    )
    assert parsed.args == {"x": "The x."}


def test_unknown_sections_belong_to_the_description() -> None:
    parsed = parse_docstring("Does.\n\nArgs:\n    x: The x.\n\nExample:\n    does(1)\n")
    assert parsed.args == {"x": "The x."}
    assert "Example:\n    does(1)" in parsed.description


def test_an_argument_may_be_called_like_a_section() -> None:
    parsed = parse_docstring(
        "Does.\n\nArgs:\n    Returns: What it returns.\n    Raises: How often.\n"
    )
    assert parsed.args == {"Returns": "What it returns.", "Raises": "How often."}


def test_prose_that_starts_like_a_header_is_prose() -> None:
    assert (
        parse_docstring("Args: a comedy\nin two acts.").description
        == "Args: a comedy\nin two acts."
    )


def test_the_result_may_stand_on_the_line_of_its_header() -> None:
    assert (
        parse_docstring("Does.\n\nReturns: The sum.\n    All of it.").returns
        == "The sum. All of it."
    )


def test_sections_may_be_indented_deeper_than_the_description() -> None:
    parsed = parse_docstring(
        "\n    Does.\n        Args:\n            x: The x.\n        Returns:\n            It.\n"
    )
    assert (parsed.description, parsed.args, parsed.returns) == ("Does.", {"x": "The x."}, "It.")


def test_blank_lines_do_not_end_a_section() -> None:
    parsed = parse_docstring("Does.\n\nArgs:\n\n    x: The x.\n\n    y: The y.\n")
    assert parsed.args == {"x": "The x.", "y": "The y."}


_words = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9,. ()'-]{0,40}", fullmatch=True).map(
    lambda text: " ".join(text.split())
)
_names = st.from_regex(r"[a-z_][a-z0-9_]{0,12}", fullmatch=True)
_types = st.sampled_from(["", " (int)", " (dict[str, int])", " (Optional[str], optional)"])


@given(
    summary=_words,
    arguments=st.dictionaries(_names, st.tuples(_types, st.lists(_words, min_size=1)), max_size=5),
    returns=st.lists(_words, max_size=3),
    indent=st.integers(0, 8),
    step=st.integers(1, 4),
)
def test_finds_whatever_was_written(
    summary: str,
    arguments: dict[str, tuple[str, list[str]]],
    returns: list[str],
    indent: int,
    step: int,
) -> None:
    one, two = " " * step, " " * (2 * step)
    lines = [summary, "", "Args:"]
    for name, (kind, texts) in arguments.items():
        lines.append(f"{one}{name}{kind}: {texts[0]}")
        lines += [two + text for text in texts[1:]]
    if returns:
        lines += ["", "Returns:", *(one + text for text in returns)]
    parsed = parse_docstring(textwrap.indent("\n".join(lines), " " * indent))
    assert parsed.description == summary
    assert parsed.args == {name: " ".join(texts) for name, (_, texts) in arguments.items()}
    assert parsed.returns == " ".join(returns)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    parsed = parse_docstring(text)
    assert all(name.isidentifier() or name.isalnum() or "_" in name for name in parsed.args)


@given(st.text(alphabet=" \n\tArgs:Returnx()", max_size=200))
def test_hostile_docstrings_take_no_time(text: str) -> None:
    parse_docstring("Args:\n" + text * 20)
