"""Work folders: made private, removed with whatever the code left in them, swept after a crash."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import itertools
import math
import os
import secrets
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .lockdown._linux import syscall

_PREFIX = "sanderling-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RESOLVE_NO_SYMLINKS = 4  # linux/openat2.h
_ELSEWHERE = errno.ENOENT, errno.ENOTDIR, errno.ELOOP  # a folder is gone, or is a link by now
_LONG_PATH, _MOST_BASES = 2_000, 64
_BLOCK = 512  # bytes; the unit of stat(2)
UNKNOWN_SIZE = 1 << 62
_CHANGED = FileNotFoundError, NotADirectoryError, IsADirectoryError  # since it was listed
_LEFT_BEHIND = 60.0  # seconds; younger folders may belong to a process that is about to lock them


class WorkFolder:
    """A private folder that lives as long as this object is not removed.

    The folder is locked (``flock``) while its process lives. So folders whose process was killed
    are told apart: what watches over the zygote removes them at once, where there is such a guard,
    or else the next process that makes one.
    """

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        _sweep(root)
        self.path = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root)
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

    Raises:
        OSError: This process has not even the three descriptors that a look takes.
    """
    used, count = 0, 0
    seen: set[int] = set()  # files of several names
    bases: list[int] = []  # the root, and folders so deep that what is in them is named from there
    try:
        try:
            bases.append(_open_folder(root, None))
        except (FileNotFoundError, NotADirectoryError):
            return 0, 0
        folders = [(bases[0], ".")]
        while folders and count <= most_files:
            base, path = folders.pop()
            try:
                folder = _open_folder(path, base)
            except OSError as error:
                if error.errno not in _ELSEWHERE:
                    raise
                continue  # the code is quicker than we are
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
    except OSError as error:  # closed to us, or too deep for the descriptors that are left
        if len(bases) <= 2 and error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return UNKNOWN_SIZE, count
    finally:
        for base in bases:
            os.close(base)
    return used, count


def _open_folder(path: str, base: int | None) -> int:
    """Opens a folder and no link, and if it is closed to its owner, who we are, opens it first.

    Beneath `base` no part of the path may be a link either.
    """
    try:
        return _opened(path, base, _FOLDER)
    except PermissionError:
        place = _opened(path, base, _FOLDER | os.O_PATH)
        try:
            os.chmod(f"/proc/self/fd/{place}", 0o700)  # noqa: PTH101 - what it is cannot be swapped
        finally:
            os.close(place)
        return _opened(path, base, _FOLDER)


def _opened(path: str, base: int | None, flags: int) -> int:
    if base is None or "/" not in path:
        return os.open(path, flags, dir_fd=base)
    how = struct.pack("<3Q", flags, 0, _RESOLVE_NO_SYMLINKS)  # struct open_how
    return syscall("openat2", base, os.fsencode(path), how, len(how))


def clear_up_after(pid: int, root: str) -> None:
    """Removes what a process that has ended left behind, and nothing of one that lives.

    Args:
        pid: Its number, which is part of the names of its folders.
        root: The folder that they lie in.
    """
    for path in Path(root).glob(f"{_PREFIX}{pid}-*"):
        _remove_unlocked(path, 0.0)


@functools.cache
def _sweep(root: Path) -> None:
    for path in root.glob(f"{_PREFIX}*"):
        _remove_unlocked(path, _LEFT_BEHIND)


def _remove_unlocked(path: Path, older: float) -> None:
    with contextlib.suppress(OSError):  # somebody else's, in use, or swept by another process
        found = path.lstat()
        age = time.time() - found.st_mtime
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if age >= older:
                remove_tree(str(path))
        finally:
            os.close(lock)


def remove_tree(root: str, seconds: float = math.inf) -> None:
    """Removes a folder that hostile code has filled: nested at any depth, with any permissions.

    Folders within folders are moved up before they are emptied, so that neither the length of a
    path nor the depth of a recursion matters. Symbolic links are removed, never followed, `root`
    itself included. The code may even be at work in there: it can hinder this, not lead it away.

    Raises:
        TimeoutError: It was not done within this time.
        OSError: Something was put there in the last moment.
    """
    until = time.monotonic() + seconds
    names = map(f"{secrets.token_hex(8)}-{{}}".format, itertools.count())
    with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as stack:
        try:
            top = opened_wide(stack, root, None)
        except NotADirectoryError:  # a link, or a file, put in its place
            os.unlink(root)  # noqa: PTH108 - Path has no advantage here
            return
        while folders := _unlink_files(top):
            if time.monotonic() > until:
                raise TimeoutError(f"{root} could not be removed in time")
            for name in folders:
                with contextlib.suppress(*_CHANGED):
                    _lift_folders(top, name, names)
        os.rmdir(root)  # noqa: PTH106 - as above


def _lift_folders(top: int, name: str, names: Iterator[str]) -> None:
    """Moves the folders within a folder to `top`, and removes all else, and the folder."""
    with contextlib.ExitStack() as stack:
        folder = opened_wide(stack, name, top)
        for inner in _unlink_files(folder):
            with contextlib.suppress(*_CHANGED):
                move(inner, folder, next(names), top)
    with contextlib.suppress(OSError):  # there is something in it again: the next round sees it
        os.rmdir(name, dir_fd=top)


def opened_wide(stack: contextlib.ExitStack, name: str, folder: int | None) -> int:
    """Opens a folder and no link; its owner, who we are, may do all in it from here on."""
    opened = _open_folder(name, folder)
    stack.callback(os.close, opened)
    os.fchmod(opened, 0o700)
    return opened


def move(name: str, source: int, new_name: str, target: int) -> None:
    """Moves what hostile code has made from one open folder to another."""
    with contextlib.ExitStack() as stack, contextlib.suppress(NotADirectoryError):
        opened_wide(stack, name, source)  # else a folder that is closed to us could not be moved
    os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)


def _unlink_files(folder: int) -> list[str]:
    """Removes what is no folder; returns the names of the folders."""
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                with contextlib.suppress(*_CHANGED):
                    os.unlink(entry.name, dir_fd=folder)
    return folders
