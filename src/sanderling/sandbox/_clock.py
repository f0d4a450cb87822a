"""How long a step may take, and what happens when it takes longer. Pure: it is told the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["wait", "interrupt", "kill"]

# A poll never lasts longer, so that an interrupt from another thread is noticed.
LONGEST_WAIT = 0.5


class StepClock:
    """Measures the time of one step, in seconds. It stands still while a tool call is outstanding.

    Args:
        allowed: How long the step may run; None for as long as it likes.
        grace: How long the code may go on after an interrupt.
        now: The clock.
    """

    def __init__(
        self, allowed: float | None, grace: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._allowed = allowed
        self._grace = grace
        self._now = now
        self._used = 0.0
        self._since: float | None = now()
        self._kill_at: float | None = None

    def run(self) -> None:
        """Goes on."""
        if self._since is None:
            self._since = self._now()

    def stand(self) -> None:
        """Stands still."""
        if self._since is not None:
            self._used += self._now() - self._since
            self._since = None

    def interrupted(self) -> None:
        """Takes note that the code was interrupted; the first time counts."""
        if self._kill_at is None:
            self._kill_at = self._now() + self._grace

    def left(self) -> float:
        """Returns the seconds until the next decision."""
        if self._kill_at is not None:
            return self._kill_at - self._now()
        if self._allowed is None:
            return LONGEST_WAIT
        since = self._since  # another thread may stop the clock just now
        running = 0.0 if since is None else self._now() - since
        return self._allowed - self._used - running

    def verdict(self) -> Verdict:
        """Returns what is to be done now."""
        if self.left() > 0:
            return "wait"
        return "interrupt" if self._kill_at is None else "kill"

    def patience(self) -> float:
        """Returns how long to wait for bytes before asking for a verdict again."""
        if self._since is None and self._kill_at is None:
            return LONGEST_WAIT  # a reply may start the clock at any moment
        return min(max(self.left(), 0.0), LONGEST_WAIT)
