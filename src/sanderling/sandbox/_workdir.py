"""Work folders: made private, removed with whatever the code left in them, swept after a crash."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import itertools
import os
import re
import secrets
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .lockdown._linux import syscall

PATIENCE = 5.0
"""Seconds to remove a folder that hostile code has filled, or is still busy in."""

_SWEEP_SECONDS = 1.0  # for all folders that dead processes have left behind
_PREFIX = "sanderling-"
_NAME = re.compile(rf"{_PREFIX}([1-9][0-9]*)-[a-z0-9_]{{8}}")  # as mkdtemp makes them
_MARKER, _FILES = "owner", "files"  # all that lies in a work folder
_NOTE = "A work folder of Sanderling, removed when this process has ended:"
_LONGEST_MARKER = 1_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RESOLVE_NO_SYMLINKS = 4  # linux/openat2.h
_ELSEWHERE = errno.ENOENT, errno.ENOTDIR, errno.ELOOP  # a folder is gone, or is a link by now
_LONG_PATH, _MOST_BASES = 2_000, 64
_BLOCK = 512  # bytes; the unit of stat(2)
UNKNOWN_SIZE = 1 << 62
_CHANGED = FileNotFoundError, NotADirectoryError, IsADirectoryError  # since it was listed


class WorkFolder:
    """A private folder for files of this process, removed with `remove`.

    Beside the files lies a marker that names the process, and the folder is locked (``flock``)
    while it is in use. Once the process has ended, another one may remove the folder: the guard of
    the fork server, if there is one, or the next process that makes a work folder.
    """

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        _sweep(root)
        folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root)
        self.path = f"{folder}/{_FILES}"
        self._lock: int | None = None
        try:
            self._lock = os.open(folder, _FOLDER)
            # Locked first: what has no marker yet is left alone by all that sweep.
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            os.mkdir(self.path, 0o700)  # noqa: PTH102 - it is a str
            marker = os.open(_MARKER, _NEW_FILE, 0o600, dir_fd=self._lock)
            try:
                os.write(marker, (_marker_of(os.getpid()) or "").encode())
            finally:
                os.close(marker)
        except OSError:
            _remove_empty(folder)
            if self._lock is not None:
                os.close(self._lock)
            raise

    def remove(self, seconds: float = PATIENCE) -> None:
        """Removes the folder and all in it. May be called again.

        What is left after that time stays, with its marker. The next work folder that this process
        makes tries again, and so does the next process.
        """
        if self._lock is None:
            return
        try:
            _remove(os.path.dirname(self.path), seconds)  # noqa: PTH120 - as above
        except OSError:
            _sweep.cache_clear()
        finally:
            os.close(self._lock)
            self._lock = None


def _remove(folder: str, seconds: float) -> None:
    """Removes a work folder. If it cannot remove all of it, the marker stays too."""
    remove_tree(f"{folder}/{_FILES}", seconds)
    _remove_empty(folder)


def _remove_empty(folder: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(f"{folder}/{_FILES}")  # noqa: PTH106 - as above
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{folder}/{_MARKER}")  # noqa: PTH108 - as above
    os.rmdir(folder)  # noqa: PTH106 - as above


def _marker_of(pid: int) -> str | None:
    """Returns the marker of a process: no other one has the same. None if it has ended."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = line.rpartition(b")")[2].split()  # behind the name; see proc(5)
    if state in (b"Z", b"X"):
        return None
    started, boot = fields[18].decode(), _BOOT_ID.read_text("ascii").strip()
    return f"{_NOTE} {pid} {started} {boot}\n"


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
    """Removes the work folders of a process that has ended, and nothing of one that lives.

    Args:
        pid: The number of the process.
        root: The folder for temporary files.
    """
    for path in Path(root).glob(f"{_PREFIX}{pid}-*"):
        _remove_if_left_behind(path, PATIENCE)


@functools.cache
def _sweep(root: Path) -> None:
    until = time.monotonic() + _SWEEP_SECONDS
    for path in root.glob(f"{_PREFIX}*"):
        _remove_if_left_behind(path, until - time.monotonic())


def _remove_if_left_behind(folder: Path, seconds: float) -> None:
    """Removes a work folder of ours whose process has ended. Anything else stays as it is."""
    name = _NAME.fullmatch(folder.name)
    if name is None:
        return
    with contextlib.suppress(OSError):  # another user's, in use, or swept by another process
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or not _is_private(found, 0o700):
            return
        lock = os.open(folder, _FOLDER)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            names = os.listdir(lock)  # noqa: PTH208 - opened, not named
            if {_MARKER, _FILES}.issuperset(names) and _has_ended(lock, int(name[1])):
                _remove(str(folder), seconds)
        finally:
            os.close(lock)


def _has_ended(folder: int, pid: int) -> bool:
    """Returns whether a folder carries the marker of a process that uses it no more."""
    marker = os.open(_MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        found = os.fstat(marker)
        text = os.read(marker, _LONGEST_MARKER).decode("ascii", "replace")
    finally:
        os.close(marker)
    if not stat.S_ISREG(found.st_mode) or not _is_private(found, 0o600):
        return False
    boot = re.escape(_BOOT_ID.read_text("ascii").strip())
    ours = re.fullmatch(rf"{re.escape(_NOTE)} {pid} \d+ {boot}\n", text, re.ASCII)
    # A folder of this very process would be locked if it were in use.
    return ours is not None and (pid == os.getpid() or text != _marker_of(pid))


def _is_private(found: os.stat_result, mode: int) -> bool:
    return found.st_uid == os.geteuid() and found.st_mode & 0o777 == mode


def remove_tree(root: str, seconds: float = PATIENCE) -> None:
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
        while folders := _unlink_files(top, until):
            for name in folders:
                with contextlib.suppress(*_CHANGED):
                    _lift_folders(top, name, names, until)
        os.rmdir(root)  # noqa: PTH106 - as above


def _lift_folders(top: int, name: str, names: Iterator[str], until: float) -> None:
    """Moves the folders within a folder to `top`, and removes all else, and the folder."""
    with contextlib.ExitStack() as stack:
        folder = opened_wide(stack, name, top)
        for inner in _unlink_files(folder, until):
            with contextlib.suppress(*_CHANGED):
                move(inner, folder, next(names), top)
    with contextlib.suppress(OSError):  # there is something in it again: the next round sees it
        os.rmdir(name, dir_fd=top)


def opened_wide(stack: contextlib.ExitStack, name: str, folder: int | None) -> int:
    """Opens a folder and no link; its owner, who we are, may do all in it from here on."""
    opened = _open_folder(name, folder)
    stack.callback(os.close, opened)
    if os.fstat(opened).st_mode & 0o700 != 0o700:
        os.fchmod(opened, 0o700)
    return opened


def move(name: str, source: int, new_name: str, target: int) -> None:
    """Moves what hostile code has made from one open folder to another."""
    with contextlib.ExitStack() as stack, contextlib.suppress(NotADirectoryError):
        opened_wide(stack, name, source)  # else a folder that is closed to us could not be moved
    os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)


def _unlink_files(folder: int, until: float) -> list[str]:
    """Removes what is no folder; returns the names of the folders.

    Raises:
        TimeoutError: There was no time for all of it.
    """
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if time.monotonic() > until:
                raise TimeoutError("a folder could not be removed in time")
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                with contextlib.suppress(*_CHANGED):
                    os.unlink(entry.name, dir_fd=folder)
    return folders
