"""The pool of threads that nobody has to wait for."""

from __future__ import annotations

import threading

import pytest

from sanderling._daemons import DaemonPool


def test_calls_run_together_in_few_threads() -> None:
    pool = DaemonPool(2, "test")
    together = threading.Barrier(2)
    futures = [pool.submit(together.wait, 20) for _ in range(6)]
    assert sorted(future.result(20) for future in futures) == [0, 0, 0, 1, 1, 1]
    pool.shutdown()
    assert not [each for each in threading.enumerate() if each.name.startswith("test_")]


def test_an_idle_thread_is_used_again() -> None:
    pool = DaemonPool(9, "test")
    names = {pool.submit(lambda: threading.current_thread().name).result(20) for _ in range(1)}
    for _ in range(50):
        names.add(pool.submit(lambda: threading.current_thread().name).result(20))
    assert len(names) < 9
    pool.shutdown()


def test_errors_come_back_and_calls_that_have_not_begun_are_dropped() -> None:
    pool = DaemonPool(1, "test")
    begun, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        go_on.wait(20)
        raise SystemExit(3)

    first, second = pool.submit(hold), pool.submit(hold)
    assert begun.wait(20)
    pool.shutdown(wait=False, cancel_futures=True)
    go_on.set()
    with pytest.raises(SystemExit):
        first.result(20)
    assert second.cancelled()
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(hold)
