"""Stop sequences, without the provider's help."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator, Sequence
from dataclasses import replace

from sanderling.messages import ChatMessage, ChatMessageStreamDelta


def stops_of(stop_sequences: str | Sequence[str] | None) -> tuple[str, ...]:
    """Returns the stop sequences that can be heeded; one alone may be given without a list."""
    given = (stop_sequences,) if isinstance(stop_sequences, str) else stop_sequences or ()
    return tuple(stop for stop in given if stop)


class StopCutter:
    """Cuts a text that comes in pieces at the first stop sequence.

    What could be the beginning of a stop sequence is held back until that is known.

    Attributes:
        stopped: Whether a stop sequence came; what follows it is dropped.
    """

    def __init__(self, stop_sequences: Sequence[str]) -> None:
        self._stops = stops_of(stop_sequences)
        self._held = ""
        self.stopped = False

    def feed(self, piece: str) -> str:
        """Takes the next piece and returns what may be shown."""
        if self.stopped:
            return ""
        text = self._held + piece
        ends = [place for stop in self._stops if (place := text.find(stop)) != -1]
        if ends:
            self.stopped = True
            self._held = ""
            return text[: min(ends)]
        held = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def rest(self) -> str:
        """Returns what was held back, at the end of the text."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Returns how long a beginning of `stop` ends `text`."""
    for length in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0


def cut_at_stop(message: ChatMessage, stop_sequences: Sequence[str]) -> ChatMessage:
    """Returns the message, its text cut before the first stop sequence."""
    if not isinstance(message.content, str):
        return message
    cutter = StopCutter(stop_sequences)
    text = cutter.feed(message.content)
    return replace(message, content=text, finish_reason="stop") if cutter.stopped else message


def cut_stream(
    deltas: Iterable[ChatMessageStreamDelta], stop_sequences: Sequence[str]
) -> Iterator[ChatMessageStreamDelta]:
    """Yields the deltas, their text cut before the first stop sequence.

    The stream is read to its end, where the usage is.
    """
    if not stop_sequences:
        yield from deltas
        return
    cutter = StopCutter(stop_sequences)
    for delta in deltas:
        if (piece := _cut_delta(cutter, delta)) is not None:
            yield piece
    if rest := cutter.rest():
        yield ChatMessageStreamDelta(rest)


async def acut_stream(
    deltas: AsyncIterable[ChatMessageStreamDelta], stop_sequences: Sequence[str]
) -> AsyncGenerator[ChatMessageStreamDelta, None]:
    """Does what `cut_stream` does, under asyncio."""
    cutter = StopCutter(stop_sequences)
    async for delta in deltas:
        if (piece := _cut_delta(cutter, delta)) is not None:
            yield piece
    if rest := cutter.rest():
        yield ChatMessageStreamDelta(rest)


def _cut_delta(cutter: StopCutter, delta: ChatMessageStreamDelta) -> ChatMessageStreamDelta | None:
    content = cutter.feed(delta.content) if delta.content else delta.content
    finish_reason = "stop" if delta.finish_reason and cutter.stopped else delta.finish_reason
    cut = replace(delta, content=content or None, finish_reason=finish_reason)
    return None if cut == ChatMessageStreamDelta() else cut
