"""Files of the user's that are to go into a work folder: found, counted and named."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_MOST_ENTRIES = 100_000
_DEEPEST = 50  # folders within folders
_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """One file or folder that is to be copied.

    Attributes:
        name: Its path within the work folder, with ``/`` between the parts.
        source: Where it is.
        size: In bytes; `None` for a folder.
    """

    name: str
    source: Path
    size: int | None


@dataclass(frozen=True, slots=True)
class Incoming:
    """What goes into a work folder, folders before what is in them."""

    entries: tuple[IncomingFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size or 0 for entry in self.entries)

    def described(self) -> str:
        """Returns what a model is told of them."""
        shown = [
            f"- {_plain(entry.name)} ({entry.size:,} bytes)"
            for entry in self.entries
            if entry.size is not None
        ]
        if len(shown) > _MOST_SHOWN:
            shown[_MOST_SHOWN:] = [f"- … and {len(shown) - _MOST_SHOWN:,} more"]
        return "\n".join(
            ("These files are in the work folder, the current directory of the code:", *shown)
        )


def incoming_files(files: Sequence[str | os.PathLike[str]]) -> Incoming:
    """Finds the files and folders of an argument ``files=``.

    Each comes to lie in the work folder itself under its own name; a folder with all that is in it.

    Raises:
        FileNotFoundError: One is not there.
        PermissionError: One may not be read.
        TypeError: One is no path.
        ValueError: Two have one name, there are too many, or one is neither a file nor a folder. A
            link within a folder is neither: what it leads to would come along unseen.
    """
    entries: list[IncomingFile] = []
    for number, path in enumerate(files):
        given: object = path
        if not isinstance(given, str | os.PathLike):
            raise TypeError(f"files[{number}] is a path, not a {type(given).__name__}")
        source = Path(path)
        name = source.name or source.resolve().name
        if not name or name == "..":
            raise ValueError(f"files[{number}] has no name of its own: {str(source)!r}")
        if any(entry.name == name for entry in entries):
            raise ValueError(f"two of files= are called {name!r}: rename one of them")
        try:
            entries += _found(name, source, source.stat(), 0, _MOST_ENTRIES - len(entries))
        except FileNotFoundError as error:
            raise FileNotFoundError(
                error.errno, f"files[{number}] is not there", str(source)
            ) from error
    return Incoming(tuple(entries))


def _found(
    name: str, source: Path, found: os.stat_result, depth: int, most: int
) -> Iterator[IncomingFile]:
    is_folder = stat.S_ISDIR(found.st_mode)
    if not (is_folder or stat.S_ISREG(found.st_mode)):
        if stat.S_ISLNK(found.st_mode):
            raise ValueError(
                f"{source} is a link within a folder of files=: name what it leads to in files= "
                "itself, or leave it out"
            )
        raise ValueError(f"files= takes files and folders; {source} is neither")
    if most < 1 or depth > _DEEPEST:
        raise ValueError(
            f"files= has more than {_MOST_ENTRIES:,} files, or folders nested too deep: name what "
            "the task needs"
        )
    if not os.access(source, os.R_OK | (os.X_OK if is_folder else 0)):
        raise PermissionError(13, "this file of files= may not be read", str(source))
    yield IncomingFile(name, source, None if is_folder else found.st_size)
    if not is_folder:
        return
    with os.scandir(source) as inner:
        entries = sorted(inner, key=lambda entry: entry.name)
    taken = 1
    for entry in entries:
        path = Path(entry.path)
        for one in _found(
            f"{name}/{entry.name}",
            path,
            entry.stat(follow_symlinks=False),
            depth + 1,
            most - taken,
        ):
            taken += 1
            yield one


def _plain(name: str) -> str:
    return name if name.isprintable() else ascii(name)
