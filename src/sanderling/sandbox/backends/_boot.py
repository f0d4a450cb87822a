"""Begins where nothing of this library is installed: runs what comes over standard input.

One file, standard library only, CPython 3.9 or newer, given to ``python -c``. It reads what
`_parcel.parcel` wrote, no byte more, and leaves what follows to the module that it starts.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class Sent(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports modules from texts."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Finds what was sent."""
        if fullname not in self._sources:
            return None
        package = any(name.startswith(fullname + ".") for name in self._sources)
        return importlib.util.spec_from_loader(fullname, self, is_package=package)

    def get_source(self, fullname: str) -> str:
        """Returns what was sent."""
        return self._sources[fullname]


def read(size: int) -> bytes:
    """Reads so many bytes; ends the process where they do not come."""
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            os._exit(1)
        data += part
    return data


if __name__ == "__main__":
    parcel = json.loads(read(int.from_bytes(read(4), "little")))
    sys.meta_path.insert(0, Sent(parcel["modules"]))
    importlib.import_module(parcel["start"]).main(**parcel["arguments"])
