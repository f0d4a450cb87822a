"""Finds the code in what a model wrote.

Models mark code in more ways than they are asked to: all the accepted marks are tried, a mark
inside a string literal is no mark, and a block that was never closed ends with the reply.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from textwrap import dedent

from sanderling._show import quoted
from sanderling.errors import AgentParsingError

MAX_BARE_CODE = 20_000
MAX_BARE_NESTING = 100


@dataclass(frozen=True, slots=True)
class CodeTags:
    """The marks around code that the model is asked for.

    Raises:
        ValueError: A mark is empty.
    """

    opening: str = "<code>"
    closing: str = "</code>"

    def __post_init__(self) -> None:
        if not self.opening.strip() or not self.closing.strip():
            raise ValueError(f"the marks around code cannot be empty: {self}")

    @property
    def stop_sequences(self) -> tuple[str, ...]:
        """Where the model shall stop: at the closing mark, unless that could be an opening one."""
        return () if self.closing in self.opening else (self.closing,)


DEFAULT_TAGS = CodeTags()
MARKDOWN_TAGS = CodeTags("```python", "```")
_FENCE = "```"
_TAGS = ("code", "python", "tool_code", "execute")
_ACCEPTED = (DEFAULT_TAGS, MARKDOWN_TAGS, *(CodeTags(f"<{tag}>", f"</{tag}>") for tag in _TAGS[1:]))
_END_MARKS = ("<end_code>", "<end_action>")
_PYTHON = r"(?:python3?|py3?|ipython|tool_code)(?!\w)"
_LANGUAGE = re.compile(rf"[ \t]*(?:{_PYTHON}[ \t]*)?(?=\n|$)", re.IGNORECASE)
_FENCE_OPENING = re.compile(
    rf"```[ \t]*(?:{_PYTHON}[ \t]*|(?P<other>[a-z][\w+.#-]*)[ \t]*(?=\n|$)|(?=\n|$))?",
    re.IGNORECASE,
)
_THINKING = re.compile(
    r"\s*<(think|thinking|thought|thoughts|reasoning|reflection)>", re.IGNORECASE
)
_THOUGHT = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_ACTS = (ast.Call, ast.Assign, ast.Import, ast.ImportFrom)


def extract_code(text: str, tags: CodeTags, *, cut_off: bool = False) -> str:
    """Returns the Python code of a reply, its blocks joined by a blank line.

    Args:
        text: The reply.
        tags: The marks that the model was asked for. Where they are absent, the other accepted
            ones count: ``<code>``, markdown fences, ``<end_code>``; and at last the bare reply,
            where it is Python that does something.
        cut_off: The model ran out of tokens: a block that was not closed is half a block.

    Raises:
        AgentParsingError: There is no code; the message shows the model how to write it.
    """
    code = find_code(text, tags, cut_off=cut_off)
    if code is None:
        raise AgentParsingError(
            f"Your reply holds no code to run. {quoted(text)}\n"
            "Write your reasoning, then one block of Python between these marks:\n"
            f"{tags.opening}\n# your code\n{tags.closing}\n"
            f"If you have the answer already, give it in such a block:\n"
            f'{tags.opening}\nfinal_answer("the answer")\n{tags.closing}'
        )
    return code


def find_code(text: str, tags: CodeTags, *, cut_off: bool = False) -> str | None:
    """Returns what `extract_code` does, and `None` where there is no code.

    Raises:
        AgentParsingError: The reply was cut off in the middle of the code.
    """
    for accepted in (tags, *(other for other in _ACCEPTED if other != tags)):
        blocks = [block for block in _blocks(text, accepted) if block.text]
        if cut_off and blocks and not blocks[-1].closed:
            raise AgentParsingError("The code was cut off before its end.")
        if blocks:
            return "\n\n".join(_without_fence(block.text) for block in blocks)
    return text.strip() if not cut_off and _is_code(text) else None


def is_closed(text: str, tags: CodeTags) -> bool:
    """Tells whether every block of `text` that opens also closes."""
    return all(block.closed for block in _blocks(text, tags))


def without_thinking(text: str) -> str:
    """Returns a reply without the thinking that some models write in tags before it.

    Where the chat template has written the opening tag, the reply has the closing one only.
    """
    if opening := _THINKING.match(text):
        closing = re.compile(rf"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        return "" if closing is None else text[closing.end() :].lstrip()
    closing = _THOUGHT.search(text)
    if closing is None:
        return text
    before, after = text[: closing.start()], text[closing.end() :]
    # Code may speak of the tag, too; what follows thinking is an answer of its own.
    is_thinking = _has_marks(after) or not _has_marks(before)
    return after.lstrip() if is_thinking else text


def _has_marks(text: str) -> bool:
    return _FENCE in text or any(f"<{tag}>" in text for tag in _TAGS)


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    closed: bool


def _blocks(text: str, tags: CodeTags) -> list[_Block]:
    blocks = []
    opening = _opening(tags.opening)
    found = opening.search(text)
    has_sound_quotes = True
    while found is not None:
        start = found.end()
        if found.groupdict().get("other"):  # a block of another language
            end = text.find(_FENCE, start)
            found = None if end == -1 else opening.search(text, end + len(_FENCE))
            continue
        if language := _LANGUAGE.match(text, start):
            start = language.end()
        span = _end_of_block(text, start, tags) if has_sound_quotes else None
        if span is None:
            # A stray quote can swallow the mark: then the plain first one is the better guess,
            # from here on, or a reply full of them would be read again for each.
            has_sound_quotes = False
            span = _span(text.find(tags.closing, start), tags.closing)
        if span is None:
            code = without_half_a_mark(text[start:], tags)
            blocks.append(_Block(_as_block(code), closed=False))
            break
        start = _without_prose(text, start, span[0], tags.opening)
        blocks.append(_Block(_as_block(text[start : span[0]]), closed=True))
        found = opening.search(text, span[1])
    return blocks


def _as_block(text: str) -> str:
    """Returns code without the space around it, nor the indentation of the list it stood in."""
    text = text.strip("\r\n").rstrip()
    return dedent(text) if text[:1] in (" ", "\t") else text


@lru_cache(maxsize=32)
def _opening(mark: str) -> re.Pattern[str]:
    return _FENCE_OPENING if mark.startswith(_FENCE) else re.compile(re.escape(mark))


def _end_of_block(text: str, start: int, tags: CodeTags) -> tuple[int, int] | None:
    """Returns where the closing mark begins and ends: the first one outside of a string literal."""
    for token in _tokens(tags.closing).finditer(text, start):
        if token.lastgroup == "mark":
            return token.span()
    return None


def _span(start: int, mark: str) -> tuple[int, int] | None:
    return None if start == -1 else (start, start + len(mark))


@lru_cache(maxsize=32)
def _tokens(closing: str) -> re.Pattern[str]:
    mark = "|".join(map(re.escape, (closing, *_END_MARKS)))
    return re.compile(
        rf"(?P<mark>{mark})"
        rf"|\#(?:(?!{mark})[^\n])*"
        r'|"""(?:[^"\\]|\\.|"(?!""))*"""'
        r"|'''(?:[^'\\]|\\.|'(?!''))*'''"
        r'|"(?:[^"\\\n]|\\.)*"'
        r"|'(?:[^'\\\n]|\\.)*'"
        r"|\\.",  # or every quote of a long row of escaped ones is tried as the start of a string
        re.DOTALL,
    )


def _without_prose(text: str, start: int, end: int, opening: str) -> int:
    """Returns where a block begins that opens once more: the first mark may stand in a sentence."""
    again = text.rfind(opening, start, end)
    if again == -1 or _parsed(text[start:end]) is not None:
        return start
    return again + len(opening)


def _without_fence(block: str) -> str:
    """Takes the code out of a markdown fence that was put inside of the marks."""
    if not block.startswith(_FENCE):
        return block
    return "\n\n".join(inner.text for inner in _blocks(block, MARKDOWN_TAGS)) or block


def without_half_a_mark(text: str, tags: CodeTags) -> str:
    """Drops the beginning of a closing mark at which the model stopped; code never ends so."""
    written = text.rstrip()
    for mark in (tags.closing, *_END_MARKS):
        if mark[0] not in "<`":
            continue
        for length in range(len(mark) - 1, 1, -1):
            if written.endswith(mark[:length]):
                return written[:-length]
    return text


def _is_code(text: str) -> bool:
    tree = _parsed(text)
    return tree is not None and any(isinstance(node, _ACTS) for node in ast.walk(tree))


def _parsed(text: str) -> ast.Module | None:
    """Returns the syntax tree of a text that is Python, of a size that is safe to parse here."""
    nesting = sum(map(text.count, "([{"))
    if len(text) > MAX_BARE_CODE or nesting > MAX_BARE_NESTING:
        return None
    try:
        return ast.parse(text.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
