from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.sandbox import interpreter

if TYPE_CHECKING:
    from sanderling.sandbox import Interpreter


@pytest.fixture(scope="module", params=["local", "inprocess"])
def python(request: pytest.FixtureRequest) -> Iterator[Interpreter]:
    """One interpreter of each kind for the steps of a module; they share its variables."""
    with interpreter(request.param, timeout_seconds=10) as made:
        yield made
