"""The files of one run: those that come with its task, and those that its code has written."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from sanderling import sandbox
from sanderling._arguments import require_list
from sanderling.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sanderling.sandbox import Incoming, WorkFile

    from ._session import Session

FilePath = str | os.PathLike[str]
_MOST_NAMED = 5


class RunFiles:
    """Takes files into a run and out of it.

    Args:
        session: That of the run.
        files: Paths of what is to be there.
        keep: The folder that gets what the code has written.

    Raises:
        OSError: A file is not there or may not be read, or the folder cannot be made.
        SandboxError: The sandbox has no files that can be reached.
        TypeError: The files are no list of paths, or the folder is no path.
        ValueError: The files are too large or too many, or two have one name.
    """

    def __init__(
        self,
        session: Session,
        files: Sequence[FilePath] | None,
        keep: FilePath | None,
    ) -> None:
        self._session = session
        self.inform: Callable[[str], object] | None = None
        """Called with what the user should know."""
        self.are_awaited = files is not None
        """Whether files are still to be brought."""
        self._is_gathered = False
        self._incoming: Incoming | None = None
        self._keep = None if keep is None else keep_folder(keep)
        self.written: tuple[WorkFile, ...] = ()
        """What the code has written, once the run has ended."""
        if files is not None or self._keep is not None:
            self._incoming = sandbox.incoming_files(require_list("files", files))
            session.interpreter().work_files.check(self._incoming)
        if self._keep is not None:
            self._keep.mkdir(parents=True, exist_ok=True)

    @property
    def described(self) -> str:
        """What the model is told of the files that come with the task."""
        return self._incoming.described() if self._incoming and self._incoming.entries else ""

    @property
    def has_work(self) -> bool:
        """Whether files are copied, which takes a while."""
        return self._incoming is not None

    def bring(self) -> None:
        """Puts the files that come with the task where the code finds them."""
        self.are_awaited = False
        if self._incoming is not None:
            self._session.interpreter().work_files.bring(self._incoming)

    def gather(self) -> None:
        """Looks, once, what the code has written; keeps it, and tells the user."""
        if self._is_gathered:
            return
        self._is_gathered = True
        line = self._gathered()
        if line and self.inform is not None:
            self.inform(line)

    def _gathered(self) -> str:
        if (interpreter := self._session.open_interpreter) is None:
            return ""
        try:
            self.written = interpreter.work_files.written()
        except SandboxError:  # it has no files that can be reached: no run with `keep` begins then
            return ""
        if not self.written:
            return ""
        if self._keep is not None:
            return self._kept(self._keep)
        return (
            f"{_counted(self.written)} left in the sandbox, and end{_s(self.written)} with it: "
            f'{_named(self.written)}. run(..., keep_files="folder") keeps what the code writes.'
        )

    def _kept(self, folder: Path) -> str:
        try:
            failures = sandbox.keep_files(self.written, folder)
        except OSError as error:
            failures = [str(error)]
        if failures:
            # The answer is there all the same, so this is no error of the run.
            told = "; ".join(failures[:_MOST_NAMED])
            warnings.warn(
                f"files of the code could not be kept in {str(folder)!r}: {told}",
                RuntimeWarning,
                stacklevel=2,
            )
            return ""
        return f"{_counted(self.written)} kept in {folder}: {_named(self.written)}."


def keep_folder(keep: object) -> Path:
    """Returns the folder that keeps files.

    Raises:
        TypeError: It is no path.
        NotADirectoryError: It is there, and is no folder.
    """
    if not isinstance(keep, str | os.PathLike) or not os.fspath(keep):
        raise TypeError(f"keep_files is the path of a folder, not {keep!r}")
    path = Path(keep)
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(20, "keep_files is a folder, and this is none", str(path))
    return path


def _counted(files: Sequence[WorkFile]) -> str:
    return "1 file is" if len(files) == 1 else f"{len(files):,} files are"


def _s(files: Sequence[WorkFile]) -> str:
    return "s" if len(files) == 1 else ""


def _named(files: Sequence[WorkFile]) -> str:
    names = [file.name for file in files[:_MOST_NAMED]]
    more = len(files) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")
