"""Tracebacks that show the user's frames, and not the way through the loop and its drivers."""

from __future__ import annotations

import os
from types import TracebackType

_OWN = ("sanderling.agents.", "sanderling.loop.", "sanderling.runtime.")


class ShortTracebacks:
    """Takes the frames of the loop out of the traceback of what is raised inside.

    The innermost frame of each error stays, whosever it is. ``SANDERLING_DEBUG=1`` keeps all.
    """

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if os.environ.get("SANDERLING_DEBUG"):
            return
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            error.__traceback__ = _shortened(error.__traceback__)
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _shortened(traceback: TracebackType | None) -> TracebackType | None:
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        if kept is None or not _is_own(entry):
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def _is_own(entry: TracebackType) -> bool:
    module = entry.tb_frame.f_globals.get("__name__")
    return isinstance(module, str) and (module == "contextlib" or module.startswith(_OWN))
