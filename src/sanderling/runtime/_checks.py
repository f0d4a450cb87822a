"""Final-answer checks, called with as much as they want to know."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sanderling.memory import AgentMemory


def call_check(
    check: Callable[..., Any], answer: object, memory: AgentMemory, agent: object
) -> Any:
    """Calls a check with the answer, and with the memory and ``agent=`` where it takes them.

    Returns:
        What the check returns; false means that the answer is refused.

    Raises:
        RuntimeError: The check raised GeneratorExit, which would end the run.
        Exception: It raised this.
    """
    try:
        parameters = inspect.signature(check).parameters.values()
    except ValueError:  # some callables written in C tell no signature
        return check(answer)
    positional = [
        one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    more = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    named = any(one.name == "agent" or one.kind is one.VAR_KEYWORD for one in parameters)
    takes = len([one for one in positional if one.name != "agent"])
    given = (answer, memory) if takes > 1 or more else (answer,)
    try:
        return check(*given, agent=agent) if named else check(*given)
    except GeneratorExit as error:
        raise RuntimeError("it raised GeneratorExit") from error
