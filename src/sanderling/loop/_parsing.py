"""Finds the action in what a model wrote.

Models mark code in more ways than they are asked to: all the accepted marks are tried, a mark
inside a string literal is no mark, and a block that was never closed ends with the reply.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from sanderling.errors import AgentParsingError

MAX_BARE_CODE = 20_000
MAX_BARE_NESTING = 100


@dataclass(frozen=True, slots=True)
class CodeTags:
    """The marks around code that the model is asked for."""

    opening: str = "<code>"
    closing: str = "</code>"

    @property
    def stop_sequences(self) -> tuple[str, ...]:
        """Where the model shall stop: at the closing mark, unless that could be an opening one."""
        return () if self.closing in self.opening else (self.closing,)


DEFAULT_TAGS = CodeTags()
MARKDOWN_TAGS = CodeTags("```python", "```")
_FENCE = CodeTags("```", "```")
_ACCEPTED = (DEFAULT_TAGS, MARKDOWN_TAGS, CodeTags("```py", "```"), _FENCE)
_END_MARKS = ("<end_code>", "<end_action>")
_LANGUAGE = re.compile(r"[ \t]*(?:python3?|py)?[ \t]*(?=\n|$)", re.IGNORECASE)
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
    for accepted in (tags, *(other for other in _ACCEPTED if other != tags)):
        blocks = [block for block in _blocks(text, accepted) if block.text]
        if cut_off and blocks and not blocks[-1].closed:
            raise AgentParsingError("The code was cut off before its end.")
        if blocks:
            return "\n\n".join(_without_fence(block.text) for block in blocks)
    if not cut_off and _is_code(text):
        return text.strip()
    raise AgentParsingError(
        "Your reply holds no code to run. It was:\n"
        f"{_shortened(text)}\n"
        "Write your reasoning, then one block of Python between these marks:\n"
        f"{tags.opening}\n# your code\n{tags.closing}\n"
        f"If you have the answer already, give it in such a block:\n"
        f'{tags.opening}\nfinal_answer("the answer")\n{tags.closing}'
    )


def is_closed(text: str, tags: CodeTags) -> bool:
    """Tells whether every block of `text` that opens also closes."""
    return all(block.closed for block in _blocks(text, tags))


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    closed: bool


def _blocks(text: str, tags: CodeTags) -> list[_Block]:
    blocks = []
    position = text.find(tags.opening)
    while position != -1:
        start = position + len(tags.opening)
        if language := _LANGUAGE.match(text, start):
            start = language.end()
        end = _end_of_block(text, start, tags)
        if end is None:
            code = _without_half_a_mark(text[start:].strip("\n").rstrip(), tags)
            blocks.append(_Block(code, closed=False))
            break
        blocks.append(_Block(text[start : end[0]].strip("\n").rstrip(), closed=True))
        position = text.find(tags.opening, end[1])
    return blocks


def _end_of_block(text: str, start: int, tags: CodeTags) -> tuple[int, int] | None:
    """Returns where the closing mark begins and ends: the first one outside of a string literal."""
    for token in _tokens(tags.closing).finditer(text, start):
        if token.lastgroup == "mark":
            return token.span()
    # A stray quote can swallow the mark: then the plain first one is the better guess.
    found = text.find(tags.closing, start)
    return None if found == -1 else (found, found + len(tags.closing))


@lru_cache(maxsize=32)
def _tokens(closing: str) -> re.Pattern[str]:
    mark = "|".join(map(re.escape, (closing, *_END_MARKS)))
    return re.compile(
        rf"(?P<mark>{mark})"
        rf"|\#(?:(?!{mark})[^\n])*"
        r'|"""(?:[^"\\]|\\.|"(?!""))*"""'
        r"|'''(?:[^'\\]|\\.|'(?!''))*'''"
        r'|"(?:[^"\\\n]|\\.)*"'
        r"|'(?:[^'\\\n]|\\.)*'",
        re.DOTALL,
    )


def _without_fence(block: str) -> str:
    """Takes the code out of a markdown fence that was put inside of the marks."""
    if not block.startswith("```"):
        return block
    return "\n\n".join(inner.text for inner in _blocks(block, _FENCE))


def _without_half_a_mark(block: str, tags: CodeTags) -> str:
    """Drops the beginning of a closing mark at which the model was stopped."""
    for mark in (tags.closing, *_END_MARKS):
        for length in range(len(mark) - 1, 1, -1):
            if block.endswith(mark[:length]):
                return block[:-length].rstrip()
    return block


def _is_code(text: str) -> bool:
    nesting = sum(map(text.count, "([{"))
    if len(text) > MAX_BARE_CODE or nesting > MAX_BARE_NESTING:
        return False
    try:
        tree = ast.parse(text.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return any(isinstance(node, _ACTS) for node in ast.walk(tree))


def _shortened(text: str, length: int = 2_000) -> str:
    return (
        text if len(text) <= length else f"{text[:length]}… ({len(text) - length} more characters)"
    )
