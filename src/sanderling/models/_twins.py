"""Streams that only one of the two worlds offers, for the other one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import TypeVar

from sanderling._bridge import in_thread, wait_for

T = TypeVar("T")

_END = object()


def iterate(stream: AsyncIterator[T]) -> Generator[T, None, None]:
    """Reads an asynchronous stream from code without an event loop."""

    async def advance() -> T | object:
        return await anext(stream, _END)

    async def close() -> None:
        if (aclose := getattr(stream, "aclose", None)) is not None:
            await aclose()

    try:
        while (item := wait_for(advance())) is not _END:
            yield item  # type: ignore[misc]  # a T, since it is not the end
    finally:
        wait_for(close())


async def aiterate(stream: Iterator[T]) -> AsyncGenerator[T, None]:
    """Reads a blocking stream, in worker threads, from an event loop.

    When the reader is cancelled the stream is closed as soon as its next item has come: a thread
    that waits cannot be interrupted.
    """
    reading = threading.Lock()

    def advance() -> T | object:
        with reading:
            return next(stream, _END)

    def close() -> None:
        with reading:
            if (closing := getattr(stream, "close", None)) is not None:
                closing()

    reader: asyncio.Task[T | object] | None = None
    try:
        while True:
            reader = asyncio.create_task(in_thread(advance))
            item = await asyncio.shield(reader)
            if item is _END:
                break
            yield item  # type: ignore[misc]  # a T, since it is not the end
    finally:
        if reader is None or reader.done():
            await in_thread(close)
        else:
            reader.add_done_callback(_forget_outcome)
            threading.Thread(target=close, name="sanderling-close").start()


def _forget_outcome(task: asyncio.Task[T]) -> None:
    if not task.cancelled():
        task.exception()  # nobody waits for it any more: do not report it as lost
