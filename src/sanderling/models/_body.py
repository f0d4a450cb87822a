"""Bounds of what is read from a server before a provider's package makes objects of it.

A package needs a thousand times the memory of a body that is nothing but ``{},{},{}``, and seconds
for each megabyte of it. So it is not the bytes alone that are counted.
"""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Final, NamedTuple, Self

from sanderling.errors import AgentGenerationError

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")


_COUNTED: Final = ("bytes", "objects", "items", "lines")


class _Counts(NamedTuple):
    size: int = 0
    objects: int = 0
    items: int = 0
    lines: int = 0

    @classmethod
    def of(cls, body: bytes) -> Self:
        return cls(
            len(body),
            body.count(b"{") + body.count(b"["),
            body.count(b","),
            body.count(b"\n") + body.count(b"\r"),
        )

    def plus(self, other: Self, sign: int = 1) -> Self:
        return type(self)(*(one + sign * more for one, more in zip(self, other, strict=True)))

    def check(self, limits: _Counts) -> None:
        for name, count, limit in zip(_COUNTED, self, limits, strict=True):
            if count > limit:
                raise AgentGenerationError(
                    f"The server sent more than an answer may have: {limit:,} {name}. No model "
                    "writes that much. Check the address of the server."
                )


# Twenty times what the longest replies of today have. Text that holds braces and commas counts too.
_ANSWER: Final = _Counts(size=2**24, objects=50_000, items=300_000, lines=2**24)
_EVENT: Final = _ANSWER._replace(lines=2_000)  # some packages join the lines of an event one by one
_STREAM: Final = _Counts(size=2**28, objects=4_000_000, items=8_000_000, lines=4_000_000)


class BodyBounds:
    """Counts what comes of one answer.

    Args:
        streamed: Whether it is a stream of server-sent events; all of it is one object otherwise.
    """

    def __init__(self, streamed: bool) -> None:
        self._streamed = streamed
        self._all = self._event = _Counts()
        self._tail = b""  # where a blank line may have begun

    def add(self, chunk: bytes) -> bytes:
        """Returns the next bytes.

        Raises:
            AgentGenerationError: There are too many.
        """
        self._all = self._all.plus(_Counts.of(chunk))
        self._all.check(_STREAM if self._streamed else _ANSWER)
        if self._streamed:
            self._add_to_events(chunk)
        return chunk

    def _add_to_events(self, chunk: bytes) -> None:
        rest, *later = _BLANK_LINE.split(self._tail + chunk)
        counted = _Counts.of(self._tail)
        self._event = self._event.plus(counted, -1).plus(_Counts.of(rest))
        self._event.check(_EVENT)
        if later:
            *whole, rest = later
            for event in whole:
                if len(event) > min(_EVENT):
                    _Counts.of(event).check(_EVENT)
            self._event = _Counts.of(rest)
            self._event.check(_EVENT)
        self._tail = rest[-3:]


# Of others a few bytes may become gigabytes at once.
_ENCODINGS: Final = ("gzip", "deflate")


def with_http_client(arguments: Mapping[str, Any], make: Callable[[], object]) -> dict[str, Any]:
    """Returns the arguments of a package's client, with an HTTP client where they have none."""
    if arguments.get("http_client") is not None:
        return dict(arguments)
    return {**arguments, "http_client": make()}


def client_options(*hooks: Callable[[Any], None]) -> dict[str, Any]:
    """Returns the arguments of an HTTP client (of httpx or httpx2) that bound its answers.

    Args:
        *hooks: What else is called with each answer, before it is read.
    """
    return {
        "headers": {"Accept-Encoding": ", ".join(_ENCODINGS)},
        "event_hooks": {"response": [*hooks, _bound]},
    }


def async_client_options(*hooks: Callable[[Any], None]) -> dict[str, Any]:
    """Does what `client_options` does, for a client under asyncio."""

    async def called(response: Any) -> None:
        for hook in (*hooks, _bound):
            hook(response)

    return {**client_options(), "event_hooks": {"response": [called]}}


def _bound(response: Any) -> None:
    """Bounds what can be read of a response of httpx or httpx2.

    Raises:
        AgentGenerationError: It is compressed in a way that was not asked for.
    """
    encodings = {each.strip() for each in response.headers.get("content-encoding", "").split(",")}
    if others := encodings - {*_ENCODINGS, "identity", ""}:
        raise AgentGenerationError(
            f"The server compressed its answer with {', '.join(sorted(others))!r:.80}, which it "
            "was not asked for."
        )
    response.__class__ = _bounded(type(response))  # type: ignore[arg-type]  # a class is hashable


@functools.cache
def _bounded(kind: type) -> type:
    """Returns a class of responses that count what is read of them."""
    base: Any = kind

    class BoundedResponse(base):  # type: ignore[misc]  # of httpx or httpx2, whichever is used
        _is_read_whole = False

        def read(self) -> bytes:
            self._is_read_whole = True
            body: bytes = super().read()
            return body

        async def aread(self) -> bytes:
            self._is_read_whole = True
            body: bytes = await super().aread()
            return body

        def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
            bounds = BodyBounds(not self._is_read_whole)
            yield from map(bounds.add, super().iter_bytes(chunk_size))

        async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
            bounds = BodyBounds(not self._is_read_whole)
            async with aclosing(super().aiter_bytes(chunk_size)) as chunks:
                async for chunk in chunks:
                    yield bounds.add(chunk)

    return BoundedResponse
