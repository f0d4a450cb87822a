"""What a place where kernels run has to offer."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from ._limits import Limits, Usage


class Link(Protocol):
    """A kernel that runs somewhere."""

    @property
    def socket(self) -> socket.socket:
        """What leads to it."""

    def interrupt(self) -> None:
        """Sends SIGINT, or what does the same there."""

    def kill(self) -> str:
        """Ends the kernel; tells how it ended, such as ``"exit status 3"``."""


@runtime_checkable
class Checked(Protocol):
    """What can tell beforehand that nothing will start."""

    def check(self) -> None:
        """Looks for what it needs, as far as that costs nothing.

        Raises:
            SandboxUnavailable: It is not there.
            MissingExtraError: A package is not installed.
        """


@runtime_checkable
class LateInterrupts(Link, Protocol):
    """A kernel whose interrupts take a way of their own, and may come after its step has ended."""

    def await_interrupts(self) -> bool:
        """Waits until they have arrived; returns whether there were any since the last call."""


@runtime_checkable
class StartsEarly(Protocol):
    """What can be started before it is needed."""

    def start_soon(self) -> None:
        """Starts in the background."""


class Backend(Protocol):
    """Where the kernels of one interpreter run, one at a time."""

    @property
    def name(self) -> str:
        """The executor type."""

    @property
    def limits(self) -> Limits:
        """What a kernel may use up there."""

    @property
    def ways_out(self) -> str:
        """What somebody can do whose machine cannot start a kernel here."""

    @property
    def files_remain(self) -> bool:
        """Whether the work folder outlives the kernel."""

    @property
    def grace(self) -> float:
        """Seconds that a step has to stop when it is interrupted, before the kernel is killed."""

    @property
    def is_warm(self) -> bool:
        """Whether a kernel starts within milliseconds."""

    def start(self) -> Link:
        """Starts a kernel, in the place of the one before. It speaks up when it is locked.

        Raises:
            SandboxUnavailable: It cannot be started here.
        """

    def usage(self, link: Link) -> Usage:
        """Looks at what a kernel uses up, as far as that can be seen from here."""

    def close(self) -> None:
        """Ends the kernel and removes all that is left behind. May be called again."""


@runtime_checkable
class FolderBackend(Protocol):
    """A backend whose work folder is one of this machine."""

    @property
    def limits(self) -> Limits:
        """What a kernel may use up there."""

    def work_folder(self, *, make: bool) -> str | None:
        """Returns the work folder; None where there is none yet, and none is to be made.

        Raises:
            SandboxError: It is out of reach.
        """
