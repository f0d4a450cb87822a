"""Work folders: made private, removed with whatever the code left in them, swept after a crash."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import os
import secrets
import stat
import tempfile
import time
from pathlib import Path

_PREFIX = "sanderling-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONG_PATH, _MOST_BASES = 2_000, 64
_BLOCK = 512  # bytes; the unit of stat(2)
UNKNOWN_SIZE = 1 << 62
_LEFT_BEHIND = 60.0  # seconds; younger folders may belong to a process that is about to lock them


class WorkFolder:
    """A private folder that lives as long as this object is not removed.

    The folder is locked (``flock``) while its process lives. So folders whose process was killed
    are told apart, and the next process that makes one removes them.
    """

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        _sweep(root)
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=root)
        try:
            self._lock: int | None = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            Path(self.path).rmdir()
            raise
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Removes the folder and all in it. May be called again."""
        if self._lock is not None:
            remove_tree(self.path)
            os.close(self._lock)
            self._lock = None


def measure(root: str, most_files: int) -> tuple[int, int]:
    """Returns what a folder that hostile code fills holds: bytes of disk, and files and folders.

    It looks at no more than `most_files` and one, and follows no link. What it cannot look into
    counts as more than any disk has.
    """
    used, count = 0, 0
    seen: set[int] = set()  # files of several names
    folders: list[tuple[int | None, str]] = [(None, root)]
    bases: list[int] = []  # folders that lie so deep that what is in them is named from there
    try:
        while folders and count <= most_files:
            base, path = folders.pop()
            try:
                folder = _open_folder(path, base)
            except (FileNotFoundError, NotADirectoryError):  # the code is quicker than we are
                continue
            bases.append(folder)
            deep = len(path) > _LONG_PATH
            with os.scandir(folder) as entries:
                for entry in itertools.islice(entries, most_files + 1 - count):
                    count += 1
                    with contextlib.suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        if stat.S_ISDIR(found.st_mode):
                            within = (
                                (folder, entry.name) if deep else (base, f"{path}/{entry.name}")
                            )
                            folders.append(within)
                        elif found.st_nlink > 1 and found.st_ino in seen:
                            continue
                        elif found.st_nlink > 1:
                            seen.add(found.st_ino)
                        used += found.st_blocks * _BLOCK
            if not deep:
                os.close(bases.pop())
            elif len(bases) > _MOST_BASES:
                return UNKNOWN_SIZE, count
    except OSError:  # closed to us, or no descriptors left
        return UNKNOWN_SIZE, count
    finally:
        for base in bases:
            os.close(base)
    return used, count


def _open_folder(path: str, base: int | None) -> int:
    """Opens a folder and no link, and if it is closed to its owner, who we are, opens it first."""
    try:
        return os.open(path, _FOLDER, dir_fd=base)
    except PermissionError:
        place = os.open(path, _FOLDER | os.O_PATH, dir_fd=base)
        try:
            os.chmod(f"/proc/self/fd/{place}", 0o700)  # noqa: PTH101 - what it is cannot be swapped
        finally:
            os.close(place)
        return os.open(path, _FOLDER, dir_fd=base)


@functools.cache
def _sweep(root: Path) -> None:
    for path in root.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # somebody else's, in use, or swept by another process
            found = path.lstat()
            age = time.time() - found.st_mtime
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if age > _LEFT_BEHIND:
                    remove_tree(str(path))
            finally:
                os.close(lock)


def remove_tree(root: str) -> None:
    """Removes a folder that hostile code has filled: nested at any depth, with any permissions.

    Folders within folders are moved up before they are emptied, so that neither the length of a
    path nor the depth of a recursion matters. Symbolic links are removed, never followed.
    """
    token, moved = secrets.token_hex(8), 0
    with contextlib.suppress(FileNotFoundError):
        os.chmod(root, 0o700)  # noqa: PTH101 - Path follows links; this is our own folder
        while folders := _unlink_files(root):
            for folder in folders:
                os.chmod(folder, 0o700)  # noqa: PTH101 - found to be a folder, and nobody is left to swap it
                for inner in _unlink_files(folder):
                    os.chmod(inner, 0o700)  # noqa: PTH101 - as above
                    moved += 1
                    os.rename(inner, f"{root}/{token}-{moved}")  # noqa: PTH104 - as above
                os.rmdir(folder)  # noqa: PTH106 - as above
        os.rmdir(root)  # noqa: PTH106 - as above


def _unlink_files(folder: str) -> list[str]:
    """Removes what is no folder; returns the folders."""
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                os.unlink(entry.path)  # noqa: PTH108 - one call per file, millions perhaps
    return folders
