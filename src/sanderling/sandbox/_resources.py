"""What one interpreter holds that must not outlive it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._backend import LateInterrupts
from ._checkpoint import Checkpoint
from ._snapshots import CopyableLink, Snapshots

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ._backend import Backend, Link
    from ._wire import Wire


class Resources:
    """A kernel, its copies and its backend; apart from the interpreter, for a finalizer to hold."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._owner = os.getpid()
        self.link: Link | None = None
        self.copyable: CopyableLink | None = None
        """The kernel, if it is of a kind that can be copied and paused."""
        self.signalled: LateInterrupts | None = None
        """The kernel, if it is of a kind that interrupts may reach late."""
        self.wire: Wire | None = None
        self.checkpoint = Checkpoint()
        self.snapshots = Snapshots()
        self.early: Future[Link] | None = None
        """A kernel that is being started before it is needed."""
        self.busy = False
        self.closed = False

    def are_ours(self) -> bool:
        """Whether this process made them; a fork of that one only shares the descriptors."""
        return self._owner == os.getpid()

    def hold(self, link: Link, wire: Wire) -> None:
        """Takes a kernel."""
        self.link, self.wire = link, wire
        self.copyable = link if isinstance(link, CopyableLink) else None
        self.signalled = link if isinstance(link, LateInterrupts) else None

    def take_early(self) -> Future[Link] | None:
        """Returns the kernel that is being started; from here on it is the caller's."""
        early, self.early = self.early, None
        return early

    def memory_bytes(self, most: int) -> int | None:
        """Returns the memory that the kernel uses with its copies.

        The copy from before a step is given up where they would use more than `most`. It is None
        where there are no copies: then the system itself keeps the limit.
        """
        snapshots = self.snapshots.templates()
        for templates in ([*snapshots, *self.checkpoint.templates()], snapshots):
            if self.copyable is None or not templates:
                return None
            used = sum(each.resident_bytes() for each in (self.copyable, *templates))
            if used > most:  # with what they share counted for each of them
                used = sum(each.proportional_bytes() for each in (self.copyable, *templates))
            if used <= most:
                return used
            self.checkpoint.drop()
        return used

    def drop(self) -> str:
        """Ends the kernel, if there is one; tells how it ended."""
        link, wire = self.link, self.wire
        self.link = self.copyable = self.signalled = self.wire = None
        story = "" if link is None else link.kill()
        if wire is not None:
            wire.close()
        return story

    def release(self) -> None:
        """Takes note that no step is in progress any more."""
        self.busy = False
        if self.closed:
            self._end()

    def close(self) -> None:
        """Ends all of it. May be called again. In a fork of its host it does nothing."""
        if not self.are_ours():
            return
        self.closed = True
        if not self.busy:
            self._end()
        elif self.link is not None:
            self.link.kill()  # a step in progress sees its kernel die, and ends
        self.backend.close()
        if (early := self.take_early()) is not None and not early.cancel():
            early.add_done_callback(_hang_up)

    def _end(self) -> None:
        self.drop()  # first: a copy that it would not make is not waited for then
        self.checkpoint.close()
        self.snapshots.close()


def _hang_up(early: Future[Link]) -> None:
    """Closes the socket of a kernel that its backend has ended."""
    if early.exception() is None:
        early.result().socket.close()
