from __future__ import annotations

from typing import Any

import pytest

from sanderling.memory import AgentMemory
from sanderling.runtime._context import call_check

MEMORY = AgentMemory("system")


class Callable:
    def __call__(self, answer: Any, memory: AgentMemory) -> Any:
        return answer, memory


@pytest.mark.parametrize(
    ("check", "given"),
    [
        (lambda answer: (answer,), (1,)),
        (lambda answer, memory: (answer, memory), (1, MEMORY)),
        (lambda answer, memory, agent: (answer, memory, agent), (1, MEMORY, "me")),
        (lambda answer, agent=None: (answer, agent), (1, "me")),
        (lambda answer, memory, *, agent: (answer, memory, agent), (1, MEMORY, "me")),
        (lambda *args, **kwargs: (*args, kwargs), (1, MEMORY, {"agent": "me"})),
        (lambda answer, **kwargs: (answer, kwargs), (1, {"agent": "me"})),
        (Callable(), (1, MEMORY)),
    ],
)
def test_a_check_gets_what_it_has_parameters_for(check: Any, given: Any) -> None:
    assert call_check(check, 1, MEMORY, "me") == given


def test_a_check_without_a_signature_gets_the_answer() -> None:
    assert call_check(bool, 1, MEMORY, "me") is True
