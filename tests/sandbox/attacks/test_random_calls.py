"""Code that calls the system at random harms its own process, and nothing else.

``SANDERLING_FUZZ_CALLS`` says how many calls are made in all. A failure names its seeds.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sandbox.attacks.field import Fields

CALLS = int(os.environ.get("SANDERLING_FUZZ_CALLS", "20000"))
SEED = 20_261_122


@pytest.mark.timeout(60 + CALLS // 100)
@pytest.mark.parametrize("namespaces", [True, False], ids=["with namespaces", "without"])
def test_system_calls_at_random_harm_nothing_else(attacked: Fields, namespaces: bool) -> None:
    fields = attacked.users if namespaces else attacked.without_namespaces
    count = CALLS // (2 * len(fields))
    for place, (user, field) in enumerate(fields.items()):
        answer = field.make_calls(SEED + (2 * place + namespaces) * CALLS, count)
        assert (answer["damage"], user) == ([], user)
        assert "found a secret" not in answer["ends"], answer
        assert answer["made"] >= count, answer
        for result in ("success", "Operation not permitted", "Bad address"):
            assert answer["results"][result] > count // 200, answer
