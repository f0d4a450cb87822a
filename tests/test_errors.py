"""The text of errors, whatever it quotes."""

from __future__ import annotations

import pytest

from sanderling.errors import AgentError, InterpreterError, RateLimitError

HOSTILE = "ValueError: \x1b]0;owned\x07\x9b31m user\u202enimda\n\tline 2: naïve 日本語 🎉"
SHOWN = "ValueError: \\x1b]0;owned\\x07\\x9b31m user\\u202enimda\n\tline 2: naïve 日本語 🎉"


@pytest.mark.parametrize("kind", [AgentError, RateLimitError, InterpreterError])
def test_no_message_steers_the_terminal(kind: type[AgentError | InterpreterError]) -> None:
    error = kind(HOSTILE)
    assert str(error) == error.message == error.dict()["message"] == SHOWN
    assert str(kind.from_dict(error.dict())) == SHOWN


def test_a_message_may_be_given_as_an_error() -> None:
    assert str(AgentError(KeyError("x"))) == "'x'"  # type: ignore[arg-type]  # as smolagents allows
