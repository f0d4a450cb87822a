"""Thoughts that a model in this process writes into its text, kept apart from the answer.

Reasoning models think between ``<think>`` and ``</think>`` before they answer; some chat templates
write the first mark themselves, at the end of the prompt.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Final

from sanderling.messages import ChatMessageStreamDelta

from ._stop import StopCutter

#: How many tokens at the end of a prompt have the opening mark, if it is there.
LAST_TOKENS: Final = 16

_OPENING: Final = "<think>"
_CLOSING: Final = "</think>"


def opens_thinking(prompt: str) -> bool:
    """Tells whether a prompt ends with the mark that thinking begins."""
    return prompt.rstrip().endswith(_OPENING)


def split_thinking(
    deltas: Iterable[ChatMessageStreamDelta], opened: bool
) -> Generator[ChatMessageStreamDelta, None, None]:
    """Yields the deltas of a reply, what is thought in them moved to ``reasoning``.

    Args:
        deltas: Of one reply; only text at its very beginning, or after `opened`, is thinking.
        opened: Whether the prompt began it.
    """
    reader = _Reader(opened)
    for delta in deltas:
        thought, said = reader.feed(delta.content or "")
        if delta.finish_reason is not None:
            more_thought, more_said = reader.rest()
            thought, said = thought + more_thought, said + more_said
        split = replace(delta, content=said or None, reasoning=thought or delta.reasoning)
        if split != ChatMessageStreamDelta():
            yield split


class _Reader:
    def __init__(self, opened: bool) -> None:
        self._closing: StopCutter | None = StopCutter([_CLOSING]) if opened else None
        self._head: str | None = None if opened else ""  # what may be the opening mark
        self._start: list[str] = []  # the same as it came, with the blanks before it
        self._end = ""  # of what is thought: the closing mark may have begun there
        self._trims = False  # whether blanks are still left out

    def feed(self, text: str) -> tuple[str, str]:
        """Returns what of the text is thought, and what is said."""
        if self._head is not None:
            self._start.append(text)
            head = self._head + text if self._head else text.lstrip()
            if _OPENING.startswith(head):
                self._head = head
                return "", ""  # not to be told yet
            self._head = None
            if not head.startswith(_OPENING):
                return "", self._rest_of_start()
            self._closing, text = StopCutter([_CLOSING]), head.removeprefix(_OPENING)
            self._start.clear()
        if self._closing is None:
            return "", self._trimmed(text)
        thought = self._closing.feed(text)
        text = self._end + text
        if not self._closing.stopped:
            self._end = text[1 - len(_CLOSING) :]
            return thought, ""
        self._closing, self._trims = None, True
        return thought, self._trimmed(text.partition(_CLOSING)[2])

    def rest(self) -> tuple[str, str]:
        """Returns what was held back, at the end of the reply."""
        self._head = None
        thought = self._closing.rest() if self._closing is not None else ""
        return thought, self._rest_of_start()

    def _rest_of_start(self) -> str:
        start = "".join(self._start)
        self._start.clear()
        return start

    def _trimmed(self, text: str) -> str:
        """Leaves out the blanks between the thoughts and the answer."""
        if self._trims:
            text = text.lstrip()
            self._trims = not text
        return text
