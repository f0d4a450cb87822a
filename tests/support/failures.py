"""What tools and checks raise, other than errors that are easy to report."""

from __future__ import annotations


class UnwritableError(Exception):
    """Has no text: asking for one raises, and asking why raises again."""

    def __str__(self) -> str:
        raise self


class Leave(BaseException):
    """Ends what runs in its thread, as KeyboardInterrupt does."""


FAILURES = [
    LookupError("no such row"),
    KeyError(10**5_000),
    UnwritableError(),
    SystemExit("usage: search [-h]"),
    SystemExit(),
    GeneratorExit(),
]
