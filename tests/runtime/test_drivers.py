"""Both drivers run one loop the same way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from sanderling.loop import Effect
from sanderling.runtime import Done, adrive, drive

Loop = Generator[Any, Any, Any]
Drive = Callable[[Loop], tuple[list[Any], Any]]


@dataclass(frozen=True)
class Ask(Effect):
    what: str


def _perform(effect: Effect) -> Generator[Any, None, Any]:
    if not isinstance(effect, Ask):
        raise TypeError("unknown")
    if effect.what == "fail":
        raise ConnectionError("down")
    yield f"asking {effect.what}"
    return effect.what.upper()


async def _aperform(effect: Effect) -> AsyncGenerator[Any, None]:
    performance = _perform(effect)
    while True:
        await asyncio.sleep(0)
        try:
            yield next(performance)
        except StopIteration as done:
            yield Done(done.value)
            return


def _sync(loop: Loop) -> tuple[list[Any], Any]:
    events: list[Any] = []
    driven = drive(loop, _perform)
    while True:
        try:
            events.append(next(driven))
        except StopIteration as done:
            return events, done.value


def _async(loop: Loop) -> tuple[list[Any], Any]:
    async def main() -> tuple[list[Any], Any]:
        events: list[Any] = [event async for event in adrive(loop, _aperform)]
        return events[:-1], events[-1].value

    return asyncio.run(main())


async def _reply(effect: Effect) -> Any:
    for _ in _perform(effect):
        await asyncio.sleep(0)
    return cast("Ask", effect).what.upper()


both = pytest.mark.parametrize("driver", [_sync, _async], ids=["drive", "adrive"])


@both
def test_effects_are_answered_and_events_come_out_in_order(driver: Drive) -> None:
    def loop() -> Loop:
        yield "start"
        answer = yield Ask("a")
        yield f"got {answer}"
        return answer

    assert driver(loop()) == (["start", "asking a", "got A"], "A")


@both
def test_an_error_of_an_effect_is_raised_where_the_loop_asked(driver: Drive) -> None:
    def loop() -> Loop:
        try:
            yield Ask("fail")
        except ConnectionError as error:
            yield f"caught {error}"
        return (yield Ask("b"))

    assert driver(loop()) == (["caught down", "asking b"], "B")


@both
def test_what_the_loop_does_not_catch_comes_out(driver: Drive) -> None:
    def loop() -> Loop:
        yield Ask("fail")

    with pytest.raises(ConnectionError, match="down"):
        driver(loop())


def test_what_tells_no_events_may_be_a_coroutine() -> None:
    def loop() -> Loop:
        try:
            yield Ask("fail")
        except ConnectionError as error:
            yield f"caught {error}"
        return (yield Ask("b"))

    async def main() -> list[Any]:
        return [event async for event in adrive(loop(), _reply)]

    assert asyncio.run(main()) == ["caught down", Done("B")]


def test_closing_the_driver_closes_the_loop() -> None:
    closed = []

    def loop() -> Loop:
        try:
            yield "one"
            yield "two"
        finally:
            closed.append(True)

    driven: Any = drive(loop(), _perform)
    assert next(driven) == "one"
    driven.close()
    assert closed == [True]

    async def main() -> None:
        adriven: Any = adrive(loop(), _aperform)
        assert await anext(adriven) == "one"
        await adriven.aclose()

    asyncio.run(main())
    assert closed == [True, True]


def test_cancelling_the_task_reaches_the_effect_and_closes_the_loop() -> None:
    seen = []

    async def stuck(effect: Effect) -> AsyncGenerator[Any, None]:
        try:
            yield "stuck"
            await asyncio.Event().wait()
        finally:
            seen.append("effect ended")

    def loop() -> Loop:
        try:
            yield Ask("x")
        finally:
            seen.append("loop ended")

    async def main() -> None:
        started = asyncio.Event()

        async def consume() -> None:
            async for _ in adrive(loop(), stuck):
                started.set()

        task = asyncio.create_task(consume())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.get_running_loop().shutdown_asyncgens()

    asyncio.run(main())
    assert seen == ["effect ended", "loop ended"]
