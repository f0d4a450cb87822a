from __future__ import annotations

from sanderling._show import text_of
from support.failures import UnwritableError


def test_what_cannot_be_written_says_why() -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert text_of(Odd()) == "<Odd that cannot be shown: RuntimeError: no>"
    assert "cannot be shown: ValueError" in text_of(10**5_000)
    assert text_of(UnwritableError()) == "<UnwritableError that cannot be shown: UnwritableError>"
