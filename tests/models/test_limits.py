"""Limits on requests hold across threads and tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sanderling.models._limits import RequestLimits


class Time:
    def __init__(self) -> None:
        self.now = 50.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def asleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def test_requests_keep_their_distance() -> None:
    time = Time()
    limits = RequestLimits(30, None, lambda: time.now, time.sleep, time.asleep)

    async def ask() -> None:
        async with limits.arequest():
            pass

    with limits.request():
        pass
    asyncio.run(ask())
    with limits.request():
        pass
    assert time.waits == [2, 4]
    time.now += 100
    with limits.request():
        pass
    assert time.waits == [2, 4]


class Count:
    """Counts who is in."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = self.total = 0

    def enter(self) -> None:
        with self.lock:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)

    def leave(self) -> None:
        with self.lock:
            self.now -= 1


def test_no_more_at_once_from_threads_and_tasks() -> None:
    limits, count = RequestLimits(at_once=3), Count()

    def block() -> None:
        with limits.request():
            count.enter()
            threading.Event().wait(0.001)
            count.leave()

    async def wait() -> None:
        async with limits.arequest():
            count.enter()
            await asyncio.sleep(0.001)
            count.leave()

    async def many() -> None:
        await asyncio.gather(*(wait() for _ in range(40)))

    with ThreadPoolExecutor(10) as pool:
        loops = [pool.submit(asyncio.run, many()) for _ in range(2)]
        blocks = [pool.submit(block) for _ in range(40)]
        for future in (*loops, *blocks):
            future.result()
    assert (count.total, count.now) == (120, 0)
    assert 1 < count.most <= 3


def test_who_gives_up_waiting_leaves_no_gap() -> None:
    limits = RequestLimits(at_once=1)

    async def main() -> None:
        async def ask() -> str:
            async with limits.arequest():
                return "in"

        async with limits.arequest():
            waiting = [asyncio.create_task(ask()) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.sleep(0)
        assert await asyncio.gather(*waiting[1:]) == ["in", "in"]
        # Cancelled in the same step in which the turn comes.
        async with limits.arequest():
            late = asyncio.create_task(ask())
            await asyncio.sleep(0)
        late.cancel()
        assert await asyncio.wait_for(ask(), 10) == "in"

    asyncio.run(main())


def test_a_failing_request_gives_its_place_back() -> None:
    limits = RequestLimits(at_once=1)
    for _ in range(3):
        with pytest.raises(KeyError), limits.request():
            raise KeyError


def test_a_stream_holds_its_place_until_it_is_closed() -> None:
    limits = RequestLimits(at_once=1)

    def stream() -> Iterator[int]:
        with limits.request():
            yield 1

    first = stream()
    next(first)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(lambda: next(stream()))
        assert not second.done()
        first.close()  # type: ignore[attr-defined]  # it is a generator
        assert second.result(10) == 1


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_positive(limit: int) -> None:
    with pytest.raises(ValueError, match="requests_per_minute is more than 0"):
        RequestLimits(limit)
    with pytest.raises(ValueError, match="max_concurrent_requests is more than 0"):
        RequestLimits(at_once=limit)
