"""How the time of something grows with what it is given."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_FACTOR = 8


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Fails where eight times as much takes much more than eight times as long.

    Args:
        work: Is called with a size; a quadratic one would take 64 times as long.
        size: Of the smaller try. The larger one has a second at least.
    """
    work(size)  # what is made once is made now
    gc.collect()
    gc.disable()  # or the objects of all other tests are looked through
    try:
        small, large = _seconds(work, size), _seconds(work, _FACTOR * size)
    finally:
        gc.enable()
    assert large < 3 * _FACTOR * max(small, 0.05), f"{small:.3f} s, then {large:.3f} s"


def _seconds(work: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    work(size)
    return time.process_time() - began
