from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.attacks.field import Fields, fields
from sanderling.sandbox import probe

LAYERS = {layer.name: layer for layer in probe()}


@pytest.fixture(scope="session")
def attacked() -> Iterator[Fields]:
    """Attacked hosts: of this user and, as root, of one without privileges."""
    for layer in LAYERS.values():
        if layer.required and not layer.available:
            pytest.skip(layer.detail)
    with fields() as made:
        yield made


@pytest.fixture(scope="session")
def own_root() -> bool:
    """Whether this machine gives a process namespaces and a root of its own."""
    return "namespaces" in LAYERS and LAYERS["namespaces"].available
