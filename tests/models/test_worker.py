"""A thread of its own for a loaded model."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from sanderling.models._worker import Worker

Put = Callable[[int], None]


def test_items_come_out_in_order_and_errors_where_they_are_read() -> None:
    def work(put: Put) -> None:
        put(1)
        put(2)
        raise ValueError("three")

    stream = Worker("test").pump(work, threading.Event())
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(ValueError, match="three"):
        next(stream)


def test_all_is_done_in_one_thread() -> None:
    worker = Worker("test-worker")
    threads = {worker.call(threading.current_thread) for _ in range(3)}
    (thread,) = threads
    assert thread.name == "test-worker"
    assert thread is not threading.current_thread()


def test_closing_waits_for_the_end_of_what_has_begun() -> None:
    cancelled, ended = threading.Event(), threading.Event()

    def work(put: Put) -> None:
        put(1)
        cancelled.wait()
        ended.set()

    with closing(Worker("test").pump(work, cancelled)) as stream:
        assert next(stream) == 1
        assert not ended.is_set()
    assert ended.is_set()


def test_what_is_cancelled_before_its_turn_is_never_done() -> None:
    worker, free = Worker("test"), threading.Event()

    def wait(put: Put) -> None:
        put(1)
        free.wait()

    first = worker.pump(wait, free)
    assert next(first) == 1
    done: list[int] = []
    cancelled = threading.Event()
    reading = threading.Thread(
        target=lambda: list(worker.pump(lambda put: done.append(1), cancelled))
    )
    reading.start()
    cancelled.set()
    first.close()
    reading.join()
    assert done == []


def test_the_thread_ends_with_the_worker() -> None:
    worker = Worker("test")
    thread = worker.call(threading.current_thread)
    del worker
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_gets_a_thread_of_its_own() -> None:
    worker = Worker("test")
    assert worker.call(os.getpid) == os.getpid()
    child = os.fork()
    if child == 0:
        os._exit(0 if worker.call(os.getpid) == os.getpid() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
