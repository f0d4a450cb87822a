"""Stations of locked children, started once for all tests of the walls."""

import os
from collections.abc import Iterator

import pytest

from sanderling.sandbox.lockdown import probe
from support.locked import NOBODY, Station, station, why_not_as_nobody

LAYERS = {layer.name: layer for layer in probe()}


@pytest.fixture(scope="session", params=["this user", "nobody"])
def locked(request: pytest.FixtureRequest) -> Iterator[Station]:
    """A station of this user, and one of a user without any privilege."""
    for layer in LAYERS.values():
        if layer.required and not layer.available:
            pytest.skip(layer.detail)
    if request.param == "nobody" and (reason := why_not_as_nobody()):
        pytest.skip(reason)
    with station(os.getuid() if request.param == "this user" else NOBODY) as started:
        yield started


@pytest.fixture(scope="session", params=[False, True], ids=["host root", "own root"])
def namespaces(request: pytest.FixtureRequest) -> bool:
    """Whether the child gets namespaces and a root of its own."""
    return bool(request.param and request.getfixturevalue("own_root"))


@pytest.fixture(scope="session")
def own_root() -> bool:
    """True, where a process can have a root of its own."""
    layer = LAYERS.get("namespaces")
    if layer is None or not layer.available:
        pytest.skip(layer.detail if layer else "the walls are Linux's")
    return True
