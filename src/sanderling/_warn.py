"""What models and sandboxes warn of while somebody waits for them.

Each warning is a record of the logger ``sanderling.models`` or ``sanderling.sandbox``: that a model
is asked again, or that a value cannot enter. As with any library nothing prints those, unless the
program has set up `logging`; a run shows them on the console of its agent, unless the logger
``sanderling`` has a handler that does it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Final

from ._show import visible

_package = logging.getLogger("sanderling")
_package.addHandler(logging.NullHandler())

# Worker threads and the private event loop go on with the context of whoever waits for them.
_listener: Final[ContextVar[Callable[[str], object] | None]] = ContextVar("listener", default=None)


def warn(warning: str, source: str = "models") -> None:
    """Warns of something that is no error yet, in one line whatever a server said.

    Args:
        warning: What is wrong.
        source: The logger within ``sanderling`` that it is a record of.
    """
    log = logging.getLogger(f"sanderling.{source}")
    line = visible(" ".join(warning.split()))
    log.warning("%s", line)
    if (listener := _listener.get()) is not None and not _is_shown(log):
        listener(line)


@contextlib.contextmanager
def capture_warnings(listener: Callable[[str], object] | None) -> Iterator[None]:
    """Calls a listener with each warning of a model within."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def _is_shown(log: logging.Logger) -> bool:
    handlers = (*_package.handlers, *log.handlers)
    return any(not isinstance(handler, logging.NullHandler) for handler in handlers)
