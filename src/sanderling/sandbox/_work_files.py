"""The files of a work folder, as the host puts them there and reads what code has written.

Code may be at work in the folder, and all in it is hostile: names, sizes, links. So nothing is
opened by a path. Each folder is opened from the one that holds it, no link is followed, and what is
opened is looked at before it is read.
"""

from __future__ import annotations

import contextlib
import itertools
import mimetypes
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sanderling.errors import SandboxError

from ._workdir import measure

if TYPE_CHECKING:
    from ._backend import FolderBackend
    from ._incoming import Incoming

MOST_LISTED = 1_000
"""Files that are listed at most."""
_MOST_ENTRIES = 20_000  # that are looked at
_DEEPEST = 20  # folders within folders
_PIECE = 1 << 20
_UNKNOWN = "application/octet-stream"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class WorkFile:
    """A file that code has written into its work folder.

    It can be read as long as the sandbox lives: until the agent's next run with ``reset=True``,
    its `cleanup`, or the end of this process.

    Attributes:
        name: Its path within the work folder, with ``/`` between the parts.
        size: In bytes, when the run ended.
        type: The media type that its name stands for, such as ``"text/csv"``.
    """

    name: str
    size: int
    type: str
    _folder: str = field(repr=False)
    _most_bytes: int = field(repr=False)

    def read(self) -> bytes:
        """Returns what is in it now.

        Raises:
            SandboxError: It is gone, is no file any more, or is larger than a work folder may be.
        """
        with self._opened() as file:
            return b"".join(_pieces(file, self._size_of(file)))

    def save_to(self, path: str | os.PathLike[str]) -> Path:
        """Writes what is in it now to a file of the host's, in the place of one that is there.

        Args:
            path: The file; or a folder, in which it gets its own name.

        Returns:
            The path of the file.

        Raises:
            SandboxError: As for `read`.
            OSError: The file cannot be written.
        """
        target = Path(path)
        if target.is_dir():
            target /= self.name.rpartition("/")[2]
        with contextlib.ExitStack() as stack:
            # The folder is the user's own, and may well be a link.
            parent = os.open(target.parent, _FOLDER & ~os.O_NOFOLLOW)
            stack.callback(os.close, parent)
            self._copy_to(parent, target.name)
        return target

    def dict(self) -> dict[str, str | int]:
        """Returns what is known of it as JSON."""
        return {"name": self.name, "size": self.size, "type": self.type}

    def _copy_to(self, folder: int, name: str) -> None:
        with self._opened() as file, _replaced(folder, name) as target:
            for piece in _pieces(file, self._size_of(file)):
                _write_all(target, piece)

    def _size_of(self, file: int) -> int:
        size = os.fstat(file).st_size
        if size > self._most_bytes:
            raise SandboxError(
                f"The file {self.name!r} has {size:,} bytes by now, more than the "
                f"{self._most_bytes:,} of a whole work folder."
            )
        return size

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        *folders, name = self.name.split("/")
        with contextlib.ExitStack() as stack:
            try:
                folder = _opened(stack, self._folder, None)
                if os.fstat(folder).st_uid != os.geteuid():
                    raise FileNotFoundError
                for one in folders:
                    folder = _opened(stack, one, folder)
                file = os.open(name, _FILE, dir_fd=folder)
                stack.callback(os.close, file)
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise FileNotFoundError
            except OSError as error:
                raise SandboxError(
                    f"The file {self.name!r} is not there any more: files end with the sandbox, "
                    "and code may remove them. keep_files= of run() keeps them."
                ) from error
            yield file


class WorkFiles:
    """The files of one interpreter.

    Args:
        backend: Has the folder.
    """

    def __init__(self, backend: FolderBackend) -> None:
        self._backend = backend
        self._brought: dict[str, tuple[int, int]] = {}  # size and time of what `bring` has put here

    def check(self, files: Incoming) -> None:
        """Makes sure that the folder can be reached, and takes these files.

        Raises:
            ValueError: They are too large, or too many.
            SandboxError: The folder is out of reach.
        """
        limits, folder = self._backend.limits, self._backend.work_folder(make=False)
        most_bytes, most_files = limits.workdir_bytes, limits.workdir_files
        used, count = (0, 0) if folder is None else measure(folder, most_files or _MOST_ENTRIES)
        if most_bytes is not None and used + files.size > most_bytes:
            also = f", beside {used:,} that it holds already" if used else ""
            raise ValueError(
                f"files= come to {files.size:,} bytes{also}; the work folder takes {most_bytes:,}. "
                'Allow more with executor_kwargs={"workdir_bytes": ...}'
            )
        if most_files is not None and count + len(files.entries) > most_files:
            raise ValueError(
                f"files= come to {len(files.entries):,} files and folders; the work folder takes "
                f'{most_files:,}. Allow more with executor_kwargs={{"workdir_files": ...}}'
            )

    def bring(self, files: Incoming) -> None:
        """Copies files into the folder, in the place of those that have their names.

        Raises:
            SandboxError: Code has put a folder in the place of a file.
            OSError: One cannot be read, or there is no room.
        """
        if not files.entries:
            return
        with contextlib.ExitStack() as stack:
            top = _opened(stack, self._backend.work_folder(make=True) or "", None)
            for entry in files.entries:
                *folders, name = entry.name.split("/")
                with contextlib.ExitStack() as inner:
                    folder = top
                    for one in folders:
                        folder = _made_folder(inner, one, folder)
                    if entry.size is None:
                        _made_folder(inner, name, folder)
                    else:
                        try:
                            copy = _copied(entry.source, entry.size, folder, name)
                        except IsADirectoryError as error:
                            raise SandboxError(
                                f"Code has put a folder in the place of {entry.name!r} of files=."
                            ) from error
                        self._brought[entry.name] = copy

    def written(self) -> tuple[WorkFile, ...]:
        """Returns the files that code has written or changed, by name.

        They are at most `MOST_LISTED`, no more than 20 folders deep.
        Names that begin with a dot, and ``__pycache__``, are caches of libraries; they are left
        out, and so is what is neither file nor folder, and what has a name that cannot be printed.
        """
        place = self._backend.work_folder(make=False)
        if place is None:
            return ()
        most = self._backend.limits.workdir_bytes or 1 << 30
        listed: list[WorkFile] = []
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            top = _opened(stack, place, None)
            for name, found in _listed(top, "", 0, itertools.count()):
                if self._brought.get(name) == (found.st_size, found.st_mtime_ns):
                    continue
                kind = mimetypes.guess_type(name.rpartition("/")[2])[0] or _UNKNOWN
                listed.append(WorkFile(name, found.st_size, kind, place, most))
                if len(listed) == MOST_LISTED:
                    break
        return tuple(listed)


def keep_files(files: Sequence[WorkFile], folder: Path) -> list[str]:
    """Copies files that code has written into a folder of the user's.

    Those of the same name are replaced. No link within the folder is followed, so that nothing
    outside of it is ever written.

    Returns:
        Why, for each that could not be copied.
    """
    failures = []
    left = files[0]._most_bytes if files else 0
    with contextlib.ExitStack() as stack:
        top = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
        stack.callback(os.close, top)
        for file in files:
            *folders, name = file.name.split("/")
            left -= file.size
            if left < 0:
                failures.append(f"{file.name}: the files are larger than a work folder may be")
                continue
            try:
                with contextlib.ExitStack() as inner:
                    place = top
                    for one in folders:
                        with contextlib.suppress(FileExistsError):
                            os.mkdir(one, dir_fd=place)
                        place = _opened(inner, one, place)
                    file._copy_to(place, name)
            except (OSError, SandboxError) as error:
                failures.append(f"{file.name}: {error}")
    return failures


def _listed(
    folder: int, prefix: str, depth: int, looks: Iterator[int]
) -> Iterator[tuple[str, os.stat_result]]:
    """Yields the files beneath an open folder, with their names from the top, sorted."""
    try:
        with os.scandir(folder) as scan:
            names = sorted(entry.name for entry in _bounded(scan, looks))
    except OSError:  # closed to us
        return
    for name in names:
        if name.startswith(".") or name == "__pycache__" or not name.isprintable():
            continue
        try:
            found = os.lstat(name, dir_fd=folder)
            if stat.S_ISREG(found.st_mode):
                yield prefix + name, found
            elif stat.S_ISDIR(found.st_mode) and depth < _DEEPEST:
                with contextlib.ExitStack() as stack:
                    inner = _opened(stack, name, folder)
                    yield from _listed(inner, f"{prefix}{name}/", depth + 1, looks)
        except OSError:  # closed to us, or the code is quicker than we are
            continue


def _bounded(
    entries: Iterable[os.DirEntry[str]], looks: Iterator[int]
) -> Iterator[os.DirEntry[str]]:
    for entry in entries:
        if next(looks) >= _MOST_ENTRIES:
            return
        yield entry


def _opened(stack: contextlib.ExitStack, name: str, folder: int | None) -> int:
    descriptor = os.open(name, _FOLDER, dir_fd=folder)
    stack.callback(os.close, descriptor)
    return descriptor


def _made_folder(stack: contextlib.ExitStack, name: str, folder: int) -> int:
    """Opens a folder; makes it, in the place of whatever else code has put there."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
    try:
        return _opened(stack, name, folder)
    except OSError:  # it is a link, or a file
        os.unlink(name, dir_fd=folder)
        os.mkdir(name, 0o700, dir_fd=folder)
        return _opened(stack, name, folder)


def _copied(source: Path, size: int, folder: int, name: str) -> tuple[int, int]:
    """Copies a file; returns by what it is known again: its size and time."""
    with contextlib.ExitStack() as stack:
        reading = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        stack.callback(os.close, reading)
        found = os.fstat(reading)
        writing = stack.enter_context(_replaced(folder, name))
        for piece in _pieces(reading, size):
            _write_all(writing, piece)
        os.utime(writing, ns=(found.st_atime_ns, found.st_mtime_ns))
        copy = os.fstat(writing)
        return copy.st_size, copy.st_mtime_ns


@contextlib.contextmanager
def _replaced(folder: int, name: str) -> Iterator[int]:
    """Opens a new file that takes the place of `name` when all is written, or never."""
    new = f".{secrets.token_hex(8)}.sanderling"
    writing = os.open(new, _NEW_FILE, 0o666, dir_fd=folder)
    try:
        try:
            yield writing
        finally:
            os.close(writing)
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise


def _pieces(file: int, most: int) -> Iterator[bytes]:
    """Yields the first `most` bytes of an open file, or all of them."""
    while most > 0 and (piece := os.read(file, min(most, _PIECE))):
        most -= len(piece)
        yield piece


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
