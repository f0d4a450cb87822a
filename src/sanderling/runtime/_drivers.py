"""The two drivers of a loop. Each carries effects out until the loop returns."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import aclosing
from dataclasses import dataclass
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling.loop import Effect, Event

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Performance: TypeAlias = Generator[Event, None, Any]
Work: TypeAlias = "Performance | Done"
AsyncPerformance: TypeAlias = AsyncGenerator["Event | Done", None]
AsyncWork: TypeAlias = Coroutine[Any, Any, Any] | AsyncPerformance
Handle: TypeAlias = Callable[[Effect], Work]
AsyncHandle: TypeAlias = Callable[[Effect], AsyncWork]


@dataclass(frozen=True, slots=True)
class Done:
    """The reply to an effect that has been carried out.

    A handler returns it in the place of a generator where nothing happens on the way. It is also
    the last item of an asynchronous generator: what a plain one would return.
    """

    value: Any


def tells_events(work: AsyncWork) -> TypeIs[AsyncPerformance]:
    """Returns whether work yields events and then its `Done`, or is awaited for the reply alone."""
    return isinstance(work, AsyncGeneratorType)


def drive(
    loop: Generator[Effect | Event, Any, Any], handle: Handle, *, close: bool = True
) -> Performance:
    """Runs a loop to its end in the calling thread.

    Args:
        loop: Yields effects and events.
        handle: Carries one effect out: returns the reply in a `Done`, or a generator that yields
            the events on the way and returns the reply.
        close: Whether the loop is closed with this generator. One that is not can be driven on by
            another driver, once it has yielded an event of its own.

    Yields:
        The events of the loop and of its effects, in order.

    Returns:
        What the loop returns. An error of an effect is raised inside the loop, at the place that
        asked for the effect; the loop decides what it means.
    """
    reply: Any = None
    error: BaseException | None = None
    try:
        while True:
            try:
                item = loop.send(reply) if error is None else loop.throw(error)
            except StopIteration as done:
                return done.value
            reply = error = None
            if isinstance(item, Effect):
                try:
                    work = handle(item)
                    reply = work.value if isinstance(work, Done) else (yield from work)
                except (Exception, SystemExit) as caught:
                    error = caught
            else:
                yield item
    finally:
        if close:
            loop.close()


async def adrive(
    loop: Generator[Effect | Event, Any, Any], handle: AsyncHandle, *, close: bool = True
) -> AsyncPerformance:
    """Runs a loop to its end under asyncio: `drive` with awaiting, its result in a last `Done`.

    Args:
        loop: Yields effects and events.
        handle: Carries one effect out: a coroutine returns the reply; where there are events on
            the way, an asynchronous generator yields them, and the reply in a last `Done`.
        close: Whether the loop is closed with this generator.
    """
    reply: Any = None
    error: BaseException | None = None
    try:
        while True:
            try:
                item = loop.send(reply) if error is None else loop.throw(error)
            except StopIteration as done:
                yield Done(done.value)
                return
            reply = error = None
            if not isinstance(item, Effect):
                yield item
                continue
            try:
                work = handle(item)
                if not tells_events(work):
                    reply = await work
                    continue
                async with aclosing(work):
                    async for piece in work:
                        if isinstance(piece, Done):
                            reply = piece.value
                        else:
                            yield piece
            except (Exception, SystemExit) as caught:
                error = caught
    finally:
        if close:
            loop.close()
