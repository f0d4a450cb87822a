"""The copy of a kernel from before a step, in case the step must be killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sanderling.errors import SandboxError, SandboxUnavailable

from ._snapshots import Arriving, CopyableLink, Pages, Template, arrived, order

if TYPE_CHECKING:
    from ._session import Buffers

SHARE, SAVED = 0.01, 0.005  # of the time; seconds
PAUSE = 0.2  # seconds between two steps, where each has its copy whatever that costs
LATEST = 10.0  # seconds after a copy, where there may be another one whatever that costs
_FAULT = 2.5e-6  # seconds to copy a page that is written to, measured in a virtual machine


class Pace:
    """Keeps the time that copies take below a `SHARE` of all time, where steps are in a hurry.

    A copy takes milliseconds, or more of a large process. Where a model writes the code, it is
    there before the next step. A program that runs one step right after another would wait for
    little else, and each step would be slower than the code is. What was not spent is saved up, to
    `SAVED`: it is enough for a copy or two. No debt is larger than what `LATEST` seconds earn.

    Args:
        now: The clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._saved = SAVED
        self._at = self._ended = now()
        self._paused = 0.0

    def step_ends(self) -> None:
        """Takes note that a pause begins."""
        self._ended = self._now()

    def step_begins(self) -> None:
        """Takes note that the pause is over."""
        self._paused = self._now() - self._ended

    def allows(self) -> bool:
        """Returns whether a copy may be made now."""
        now = self._now()
        self._saved = min(SAVED, self._saved + (now - self._at) * SHARE)
        self._at = now
        return self._saved > 0 or self._paused >= PAUSE

    def spent(self, seconds: float) -> None:
        """Takes note of what a copy took."""
        self._saved = max(self._saved - seconds, -SHARE * LATEST)


class Checkpoint:
    """The copy from before the step in progress, of one kernel after the other.

    It is made after the step before, or else when a step begins. Where steps follow one another so
    fast that `Pace` does not allow one for each, it may be older: `behind` tells.

    Between steps the kernel is paused, so that threads which the code left behind cost nothing.
    """

    def __init__(self) -> None:
        self.wanted = False
        self.behind = 0
        """How many steps have ended since the copy was made."""
        self._pace = Pace()
        self._stale = False  # whether variables were set since
        self._arriving: Arriving | None = None
        self._copy: Template | None = None
        self._before: Pages | None = None  # what the kernel had when its copy was asked for
        self._untouched = False  # whether a new kernel is as good as a copy

    def begin(self, wanted: bool) -> None:
        """Takes note of a new kernel, which has run nothing yet."""
        self.drop()
        self.wanted = self._untouched = wanted

    def begin_with(self, template: Template, wanted: bool) -> None:
        """Keeps the template that a new kernel was made of, which has run nothing since."""
        self.begin(False)
        self.wanted = wanted
        if wanted:
            self._copy = template
        else:
            template.discard()

    def variables_set(self) -> None:
        """Takes note that variables were set since the last step."""
        self._stale = not self._untouched

    @property
    def arriving(self) -> Arriving | None:
        """The copy that `before_step` would wait for."""
        return self._arriving

    def after_step(self, link: CopyableLink, say: Callable[[Buffers], None]) -> None:
        """Pauses a kernel, and has it copied before, in the time that nobody waits for it."""
        self._untouched = False
        self.behind += 1
        self._pace.step_ends()
        self._count_faults(link)
        if self.wanted and self._may_ask():
            self._ask(link, say, pause=True)
        else:
            link.pause()

    def before_step(self, link: CopyableLink, say: Callable[[Buffers], None]) -> None:
        """Lets a kernel go on."""
        self._pace.step_begins()
        self.settle()
        link.resume()
        if self.wanted and (self._stale or (self.behind and self._may_ask())):
            self._ask(link, say, pause=False)

    def _may_ask(self) -> bool:
        return (self._copy is None and self._arriving is None) or self._pace.allows()

    def settle(self) -> None:
        """Waits for the copy that was asked for, if one was."""
        arriving, self._arriving = self._arriving, None
        if arriving is not None:
            started = time.monotonic()
            try:
                self._copy = arrived(arriving)
            except SandboxError:
                self._copy = None  # the next kill says that there is none
            self._pace.spent(time.monotonic() - started)

    def _count_faults(self, link: CopyableLink) -> None:
        """Takes note of what the last copy cost the first step after it.

        What either of the two changes of the memory that they share is copied first, page by page.
        """
        before, self._before = self._before, None
        if before is not None:
            after = link.pages()
            new = max(0, after.resident - before.resident)
            shared = min(after.faults - before.faults - new, before.resident)
            self._pace.spent(max(0, shared) * _FAULT)

    def holds(self) -> bool:
        """Whether what was before the step can be had back."""
        self.settle()
        return self._untouched or (self._copy is not None and self._copy.alive())

    def templates(self) -> list[Template]:
        """Returns the copy, if there is one."""
        return [] if self._copy is None else [self._copy]

    def restore(self) -> CopyableLink | None:
        """Makes a kernel of the copy, which stays; None if there is no copy any more."""
        self.settle()
        self._before = None
        if self._copy is None:
            return None
        try:
            link = self._copy.start()
        except SandboxUnavailable:
            self.drop()
            return None
        self.behind = 0
        return link

    def drop(self) -> None:
        """Ends the copy."""
        self.settle()
        self._stale = False
        self._before = None
        self.behind = 0
        if self._copy is not None:
            self._copy.discard()
            self._copy = None

    def close(self) -> None:
        """Ends the copy, and waits for its end."""
        self.settle()
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.kill()

    def _ask(self, link: CopyableLink, say: Callable[[Buffers], None], *, pause: bool) -> None:
        self.drop()
        self._before = link.pages()
        try:
            self._arriving = link.copy(pause=pause)
        except SandboxUnavailable:
            return  # the kernel has ended, as the next step will find
        say(order())
