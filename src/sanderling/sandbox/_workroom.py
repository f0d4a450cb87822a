"""The work folders of an interpreter and of its forks, and copies of what is in them.

Other code of the family may run while files are copied or removed, and change them. So nothing is
opened by its path: each folder is opened from the one that holds it, and no link is followed. That
goes for what was moved to where no sandbox reaches it, too: who has opened a folder before goes on.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat
import threading
from dataclasses import dataclass
from pathlib import Path

from sanderling.errors import SandboxError

from ._workdir import WorkFolder, measure, move, remove_tree

_DEEPEST = 100  # folders within folders: each costs a descriptor while it is copied
_MOST_ENTRIES = 100_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkRoom:
    """A private folder with the work folders of a family of interpreters.

    It is removed when the last of them has left.
    """

    def __init__(self) -> None:
        self._folder = WorkFolder()
        self._lock = threading.Lock()
        self._users = 1
        self._serial = itertools.count(1)
        self.first = self._new("work")
        self.branches = self._new("branches")

    def join(self) -> None:
        """Counts one more interpreter."""
        with self._lock:
            self._users += 1

    def leave(self, place: str) -> None:
        """Counts one less, and removes its work folder; with the last one all is removed."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._folder.remove()
        if place != self.first:
            self.discard(place)

    def measure(self, place: str, most_files: int) -> tuple[int, int]:
        """Returns what a work folder holds: bytes of disk, and files and folders.

        Each of the family can write to the branches of the others. So it is no less than one's
        share of all of them.
        """
        members = max(1, self._users)  # it may have been closed while a step runs
        family = [measure(each, most_files * members) for each in (self.first, self.branches)]
        all_used, all_files = map(sum, zip(*family, strict=True))
        used, files = family[0] if place == self.first else measure(place, most_files)
        return max(used, all_used // members), max(files, all_files // members)

    def branch(self, source: str, most_bytes: int) -> str:
        """Returns a work folder with copies of all files of another one.

        Raises:
            SandboxError: It holds too much.
        """
        return self._copied(source, f"branches/{secrets.token_hex(8)}", most_bytes)

    def save(self, source: str, most_bytes: int) -> str:
        """Returns a folder that no sandbox can reach, with copies of all files of a work folder.

        Raises:
            SandboxError: It holds too much.
        """
        return self._copied(source, f"saved-{next(self._serial)}", most_bytes)

    def put_back(self, saved: str, place: str) -> None:
        """Makes a work folder hold what was saved, and nothing else.

        Raises:
            SandboxError: Code is busy putting other files there, or has removed the folder.
        """
        try:
            self._take_away(place)
            _copy_tree(saved, place, _Budget(None))
        except OSError as error:
            raise SandboxError(f"The files could not be put back: {error.strerror}") from error

    def out_of_reach(self, place: str) -> str:
        """Returns a work folder for a process that starts anew, with the files of `place`.

        The walls around it are named by the path of that folder. A branch will not do: code of the
        family may put a link in its place, and the walls would be built around something else.
        """
        if Path(place).parent != Path(self.branches):
            return place
        own = self._new(f"work-{next(self._serial)}")
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # it was put elsewhere
            _move_all(place, own)
        self.discard(place)
        return own

    def discard(self, folder: str) -> None:
        """Removes a folder of this room with all that is in it."""
        with contextlib.suppress(OSError):  # what is left of it goes with the room
            with self._lock:
                if not self._users:
                    return
                trash = f"{self._folder.path}/trash-{next(self._serial)}"
                os.rename(folder, trash)  # noqa: PTH104 - one call
            remove_tree(trash)

    def _take_away(self, place: str) -> None:
        trash = self._new(f"trash-{next(self._serial)}")
        _move_all(place, trash)
        with contextlib.suppress(OSError):  # what is left of it goes with the room
            remove_tree(trash)

    def _copied(self, source: str, name: str, most_bytes: int) -> str:
        target = self._new(name)
        try:
            _copy_tree(source, target, _Budget(most_bytes))
        except BaseException as error:
            self.discard(target)
            if isinstance(error, OSError):
                raise SandboxError(f"The work folder could not be copied: {error}") from error
            raise
        return target

    def _new(self, name: str) -> str:
        path = Path(self._folder.path, name)
        path.mkdir(mode=0o700)
        return str(path)


@dataclass(slots=True)
class _Budget:
    """What may still be copied."""

    bytes: int | None
    entries: int = _MOST_ENTRIES

    def spend(self, size: int) -> None:
        self.entries -= 1
        if self.bytes is not None:
            self.bytes -= size
        if self.entries < 0 or (self.bytes is not None and self.bytes < 0):
            raise SandboxError(
                "The work folder holds too much to be copied: remove files from it, or allow more "
                "with snapshot_bytes."
            )


def _move_all(source: str, target: str) -> None:
    with contextlib.ExitStack() as stack:
        places = _opened(stack, source, None), _opened(stack, target, None)
        for name in os.listdir(places[0]):  # noqa: PTH208 - opened, not named
            with contextlib.suppress(FileNotFoundError):
                move(name, places[0], name, places[1])


def _copy_tree(source: str, target: str, budget: _Budget) -> None:
    with contextlib.ExitStack() as stack:
        _copy_folder(_opened(stack, source, None), _opened(stack, target, None), budget, 0)


def _copy_folder(source: int, target: int, budget: _Budget, depth: int) -> None:
    if depth > _DEEPEST:
        raise SandboxError("The work folder cannot be copied: its folders are nested too deep.")
    for name in os.listdir(source):
        with contextlib.ExitStack() as stack:
            found = os.lstat(name, dir_fd=source)
            budget.spend(0 if stat.S_ISDIR(found.st_mode) else found.st_size)
            if stat.S_ISLNK(found.st_mode):
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            elif stat.S_ISDIR(found.st_mode):
                os.mkdir(name, 0o700, dir_fd=target)
                inner = _opened(stack, name, source), _opened(stack, name, target)
                _copy_folder(*inner, budget, depth + 1)
            elif stat.S_ISREG(found.st_mode):
                _copy_file(stack, name, source, target, found.st_size)


def _copy_file(stack: contextlib.ExitStack, name: str, source: int, target: int, size: int) -> None:
    reading = os.open(name, _FILE, dir_fd=source)
    stack.callback(os.close, reading)
    found = os.fstat(reading)
    if not stat.S_ISREG(found.st_mode):
        return
    writing = os.open(name, _NEW_FILE, stat.S_IMODE(found.st_mode) & 0o777, dir_fd=target)
    stack.callback(os.close, writing)
    # Where the file system can, this shares the blocks of the file until one of the two changes.
    while size > 0 and (count := os.copy_file_range(reading, writing, size)):
        size -= count
    os.utime(writing, ns=(found.st_atime_ns, found.st_mtime_ns))


def _opened(stack: contextlib.ExitStack, name: str, folder: int | None) -> int:
    descriptor = os.open(name, _FOLDER, dir_fd=folder)
    stack.callback(os.close, descriptor)
    return descriptor
