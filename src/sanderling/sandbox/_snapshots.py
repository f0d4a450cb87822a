"""Copies of a kernel, and the snapshots that are made of them.

A copy is a template: a process with the variables as they were, which has run nothing since and
never will. Processes like it are made when it is put to use. It takes no processor time, and of
memory what the kernel has changed since: that much it costs to keep one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, runtime_checkable

from sanderling.errors import SandboxError, SandboxUnavailable

from . import kernel
from ._interpreter import Interpreter

if TYPE_CHECKING:
    import socket

    from ._session import Buffers

NO_SNAPSHOTS = (
    'This kind of executor has no snapshots and forks: executor_type="local" and '
    "LocalPythonExecutor have them."
)
MOST_SNAPSHOTS = 8
_PATIENCE = 15.0  # seconds; that of the fork server is shorter


class Measured(Protocol):
    """A process that takes memory."""

    def resident_bytes(self) -> int:
        """Returns the memory that it uses; 0 once it has ended."""

    def proportional_bytes(self) -> int:
        """Returns the memory that it uses, of what is shared its share; this takes longer."""


class Template(Measured, Protocol):
    """A copy of a kernel that has run nothing."""

    def start(self) -> CopyableLink:
        """Makes a kernel that goes on from where the copy was made; the template stays.

        Raises:
            SandboxUnavailable: The system refused, or the template has ended.
        """

    def alive(self) -> bool:
        """Whether it has not ended."""

    def kill(self) -> str:
        """Ends it; tells how it ended."""

    def discard(self) -> None:
        """Ends it without waiting for its end."""


class Arriving(Protocol):
    """A template that was ordered."""

    def result(self, seconds: float) -> Template | None:
        """Returns the template, once it is there; None if it never will be.

        Raises:
            TimeoutError: It has not come within this time.
            SandboxUnavailable: The system refused.
        """

    def close(self) -> None:
        """Forgets it."""


class Pages(NamedTuple):
    """The memory of a process, in pages."""

    faults: int
    """How often it needed one that was not there, or that it has to share no longer."""
    resident: int
    """How many it has."""


@runtime_checkable
class CopyableLink(Measured, Protocol):
    """A kernel that can be copied, and paused."""

    @property
    def socket(self) -> socket.socket:
        """What leads to it."""

    def interrupt(self) -> None:
        """Sends SIGINT."""

    def kill(self) -> str:
        """Ends the kernel; tells how it ended."""

    def discard(self) -> None:
        """Ends the kernel without a look at how it does, and closes its socket."""

    def alive(self) -> bool:
        """Whether it has not ended."""

    def pages(self) -> Pages:
        """Looks at the memory of the kernel; zeros once it has ended."""

    def pause(self) -> None:
        """Stops all of its threads, until `resume`."""

    def resume(self) -> None:
        """Lets it go on."""

    def copy(self, *, pause: bool) -> Arriving:
        """Orders a copy; the kernel must be told then (`order`).

        Args:
            pause: Whether the kernel is paused afterwards.

        Raises:
            SandboxUnavailable: The kernel has ended.
        """


@runtime_checkable
class CopyableBackend(Protocol):
    """A backend whose kernels can be copied, with the files of their work folder."""

    def save_files(self) -> str | None:
        """Copies the files to where no sandbox reaches them; returns their name, if they have one.

        Raises:
            SandboxError: They are too many.
        """

    def put_back(self, saved: str | None) -> None:
        """Makes the work folder hold what was saved."""

    def forget_files(self, saved: str | None) -> None:
        """Removes what was saved."""

    def branch(self) -> tuple[CopyableBackend, str | None]:
        """Returns a backend for a fork, and the folder it works in, if that is another one."""


@runtime_checkable
class SnapshotInterpreter(Interpreter, Protocol):
    """An interpreter that can be copied, if its backend can be."""

    def snapshot(self) -> Snapshot:
        """Keeps the variables, and the files of the work folder, as they are now.

        Threads that the code left running are not in it. With a work folder in memory
        (``workdir_in_memory``) the files are not either. A file that the code holds open, or a
        database, is to be opened again: what is restored still holds the one from before.

        Raises:
            SandboxError: This kind of sandbox has no snapshots, there are too many of them, or
                there are too many files.
            RuntimeError: A step runs, or the interpreter is closed.
        """

    def restore(self, snapshot: Snapshot) -> None:
        """Makes variables and files what they were, as often as you like.

        Numbers at random go on from a new seed: what is tried again does not try the same. (A
        generator that the code made itself is a variable like others.)

        Raises:
            SandboxError: The snapshot is closed, or of another interpreter.
            RuntimeError: A step runs, or the interpreter is closed.
        """

    def fork(self) -> SnapshotInterpreter:
        """Makes a second interpreter with the same variables, and a copy of the work folder.

        From here on the two go their own ways, and each is closed by itself. The code of one can
        reach the files of the other by their path: they are branches of the same work, and no
        walls stand between them.

        Raises:
            SandboxError: As for `snapshot`.
            RuntimeError: A step runs, or the interpreter is closed.
        """


def order(folder: str | None = None) -> Buffers:
    """Returns what tells a kernel to make the copy that was asked for."""
    return kernel.pack("fork", {"folder": folder})


def arrived(arriving: Arriving) -> Template:
    """Waits for a copy.

    Raises:
        SandboxError: There is none.
    """
    try:
        template = arriving.result(_PATIENCE)
    except TimeoutError as error:
        raise SandboxUnavailable("The sandbox did not make a copy of itself in time.") from error
    if template is None:
        raise SandboxUnavailable("The sandbox ended before it was copied.")
    return template


class _Kept:
    """What a snapshot holds; apart from it, so that a finalizer can hold it."""

    def __init__(self, template: Template, forget_files: Callable[[], None]) -> None:
        self.template: Template | None = template
        self.forget_files = forget_files

    def close(self) -> None:
        template, self.template = self.template, None
        if template is not None:
            template.kill()
            self.forget_files()


class Snapshot:
    """The variables and files of an interpreter at one time; `Interpreter.snapshot` makes it.

    It is a process that waits, and a copy of the work folder. Both end with `close`, with the
    interpreter, and with this process.
    """

    def __init__(
        self,
        template: Template,
        variables: Mapping[str, object],
        files: str | None,
        forget_files: Callable[[str | None], None],
    ) -> None:
        self._variables = dict(variables)
        self._files = files
        self._kept = _Kept(template, lambda: forget_files(files))
        self._finalizer = weakref.finalize(self, self._kept.close)

    @property
    def closed(self) -> bool:
        """Whether it can no longer be restored."""
        return self._kept.template is None

    def close(self) -> None:
        """Forgets all of it. May be called again."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Snapshots:
    """The snapshots of one interpreter."""

    def __init__(self) -> None:
        self._all: weakref.WeakSet[Snapshot] = weakref.WeakSet()

    def check_count(self) -> None:
        """Checks that one more may be made.

        Raises:
            SandboxError: There are too many.
        """
        if len(self.templates()) >= MOST_SNAPSHOTS:
            raise SandboxError(
                f"There are {MOST_SNAPSHOTS} snapshots of this interpreter already, which is as "
                "many as there may be: close one."
            )

    def add(self, snapshot: Snapshot) -> None:
        """Keeps count of a new one."""
        self._all.add(snapshot)

    def use(self, snapshot: Snapshot) -> tuple[CopyableLink, Mapping[str, object], str | None]:
        """Makes a kernel of a snapshot, which stays what it is.

        Returns:
            The kernel, the variables that were set from outside, and the name of the files.

        Raises:
            SandboxError: It is not of this interpreter, is closed, or has ended.
        """
        if snapshot not in self._all:
            raise SandboxError("The snapshot is not of this interpreter.")
        template = snapshot._kept.template
        if template is None:
            raise SandboxError("The snapshot is closed.")
        try:
            return template.start(), snapshot._variables, snapshot._files
        except SandboxUnavailable as error:
            raise SandboxError(f"The snapshot is lost: {error}") from error

    def templates(self) -> list[Template]:
        """Returns the copies of those that are not closed."""
        kept = [each._kept.template for each in self._all]
        return [template for template in kept if template is not None]

    def close(self) -> None:
        """Closes them all."""
        for each in list(self._all):
            each.close()
