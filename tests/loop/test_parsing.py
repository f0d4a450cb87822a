from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.errors import AgentParsingError
from sanderling.loop import CodeTags, extract_code
from sanderling.loop._parsing import without_thinking
from support.growth import assert_linear

TAGS = CodeTags()


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("Thought.\n<code>\nprint(1)\n</code>", "print(1)"),
        ("<code>print(1)</code> and more prose", "print(1)"),
        ("Thought.\n```python\nprint(1)\n```", "print(1)"),
        ("Thought.\n```py\nprint(1)\n```<end_code>", "print(1)"),
        ("Thought.\n```\nprint(1)\n```", "print(1)"),
        ("<code>\n```python\nprint(1)\n```\n</code>", "print(1)"),
        ("<code>\nprint(1)\n<end_code>", "print(1)"),
        ("<code>\nprint(1)", "print(1)"),
        ("<code>\nprint(1)\n</co", "print(1)"),
        ("<code>\na = 1\n</code>\nthen\n<code>\nb = a\n</code>", "a = 1\n\nb = a"),
        ("<code>\nx = '</code>'\nprint(x)\n</code>", "x = '</code>'\nprint(x)"),
        ('<code>\nx = """\n</code>\n"""\n</code>', 'x = """\n</code>\n"""'),
        ("<code>\nx = 1  # it's </code>", "x = 1  # it's"),
        ("<code>\nif x:\n    y()\n</code>", "if x:\n    y()"),
        ("<code>\n    if x:\n        y()\n</code>", "if x:\n    y()"),
        ("1. First\n   ```python\n   f()\n   ```", "f()"),
        ("<code>\r\nf()\r\ng()\r\n</code>", "f()\r\ng()"),
        ("```\nprint(1)\n```", "print(1)"),
        ("```Python3\nprint(1)\n```", "print(1)"),
        ("```tool_code\nprint(1)\n```", "print(1)"),
        ("```python print(1)```", "print(1)"),
        ("``` python\nprint(1)\n```", "print(1)"),
        ("```json\n{}\n```\nso\n```python\nprint(1)\n```", "print(1)"),
        ("```bash\nls\n```\n<code>print(1)</code>", "print(1)"),
        ("<code python>no</code><code>print(1)</code>", "print(1)"),
        ("<python>\nprint(1)\n</python>", "print(1)"),
        ("<tool_code>print(1)</tool_code>", "print(1)"),
        ('<code>\nx = "```"\n```\n</code>', 'x = "```"\n```'),
        ('```python\nx = "```"  # \' \nf(x)\n```', 'x = "```"  # \' \nf(x)'),
        ("<code>don't</code>\n<code>can't</code>", "don't\n\ncan't"),
        ("I write in `<code>` marks:\n<code>\nf()\n</code>", "f()"),
        ("<code>\nhtml = '<code>'\nf(html)\n</code>", "html = '<code>'\nf(html)"),
        ("final_answer(42)", "final_answer(42)"),
        ("import math\nmath.pi", "import math\nmath.pi"),
    ],
)
def test_code_is_found_in_every_accepted_mark(reply: str, code: str) -> None:
    assert extract_code(reply, TAGS) == code


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "```bash\nls\n```",
        '```json\n{"a": 1}\n```',
        "```sql\nselect 1",
        "The answer is 42.",
        "42",
        "Yes",
        "<code>\n</code>",
        '{"a": 1}',
        "(" * 300 + ")" * 300,
    ],
)
def test_prose_is_answered_with_the_form_that_is_wanted(reply: str) -> None:
    with pytest.raises(AgentParsingError) as caught:
        extract_code(reply, TAGS)
    assert "<code>\nfinal_answer(" in str(caught.value)
    assert reply[:100] in str(caught.value)


def test_the_marks_that_were_asked_for_come_first() -> None:
    reply = "[PY]\nprint('```')\n[/PY]\n```python\nno()\n```"
    assert extract_code(reply, CodeTags("[PY]", "[/PY]")) == "print('```')"


@pytest.mark.parametrize(
    "reply", ["<code>\nprint(1", "```python\nprint(1)\nprint(", "<code>a()</code><code>b(", "f(1)"]
)
def test_half_a_block_is_not_run_when_the_reply_was_cut_off(reply: str) -> None:
    with pytest.raises(AgentParsingError):
        extract_code(reply, TAGS, cut_off=True)


def test_a_whole_block_is_run_even_when_the_reply_was_cut_off_after_it() -> None:
    assert extract_code("<code>f(1)</code> and then I w", TAGS, cut_off=True) == "f(1)"


strings = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20)


@given(strings, st.sampled_from([TAGS, CodeTags("```python", "```"), CodeTags("[a*", "*b]")]))
def test_a_block_comes_out_as_it_went_in(text: str, tags: CodeTags) -> None:
    code = f"x = {text!r}\nprint(x)"
    assert extract_code(f"Thinking.\n{tags.opening}\n{code}\n{tags.closing}", tags) == code


@given(st.text(st.sampled_from("<code/>`'\"#\\\n x=1py"), max_size=60), st.booleans())
def test_any_reply_gives_code_or_a_correction(reply: str, cut_off: bool) -> None:
    with suppress(AgentParsingError):
        assert extract_code(reply, TAGS, cut_off=cut_off).strip()


@pytest.mark.parametrize(
    ("reply", "rest"),
    [
        ("<think>so</think>\n<code>f()</code>", "<code>f()</code>"),
        ("\n<Thinking>\n<code>no()</code>\n</Thinking> yes", "yes"),
        ("so I think\n</think>\n<code>f()</code>", "<code>f()</code>"),
        ("<code>no()</code></think><code>f()</code>", "<code>f()</code>"),
        ("<code>x = '</think>'</code>", "<code>x = '</think>'</code>"),
        ("<think>never ends <code>f()</code>", ""),
        ("<reasoning>a</think>b</reasoning>c", "c"),
        ("nothing of the kind", "nothing of the kind"),
    ],
)
def test_thinking_is_taken_away(reply: str, rest: str) -> None:
    assert without_thinking(reply) == rest


@given(st.text(st.sampled_from("<>/codethink`\n ab"), max_size=80))
def test_what_is_left_of_thinking_is_the_end_of_the_reply(reply: str) -> None:
    assert reply.endswith(without_thinking(reply))


@pytest.mark.parametrize("unit", ['\\"', '\\"""', "```\\", '"""\\```', "</code\n'", "<code>'"])
def test_a_hostile_reply_is_read_in_time_that_grows_with_its_length(unit: str) -> None:
    with suppress(AgentParsingError):
        extract_code("<code>" + unit * 50_000, TAGS)


@given(strings, strings, st.booleans())
def test_several_blocks_and_thinking_around_them(one: str, two: str, thinks: bool) -> None:
    blocks = [f"a = {one!r}", f"b = {two!r}"]
    reply = "".join(f"say\n<code>\n{block}\n</code>\n" for block in blocks)
    if thinks:
        reply = f"<think>\n```python\nno()\n```\n</think>\n{reply}"
    assert extract_code(without_thinking(reply), TAGS) == "\n\n".join(blocks)


@given(strings)
def test_a_block_that_the_stop_sequence_ended_is_whole(text: str) -> None:
    code = f"x = {text!r}\nprint(x)"
    assert extract_code(f"Go.\n<code>\n{code}\n", TAGS) == code


@pytest.mark.parametrize("blank", [" ", "\t", " \n"])
@pytest.mark.parametrize("opening", ["<code>", "```", "```python", ""])
@pytest.mark.parametrize("end", ["", "x", "</code>", "```"])
def test_blanks_take_time_in_proportion(opening: str, blank: str, end: str) -> None:
    def read(size: int) -> None:
        with suppress(AgentParsingError):
            extract_code(opening + blank * size + end, TAGS)

    assert_linear(read, 10_000)
