"""What went wrong below a provider's package, in the library that does HTTP for it."""

from __future__ import annotations

import sys
from typing import Final

from ._failures import Failure, Fault, cause, short

# Modules, and their errors for silence and for all else that may happen to a connection.
_LIBRARIES: Final = (
    ("httpx2", "TimeoutException", "TransportError"),
    ("httpx", "TimeoutException", "TransportError"),
    ("requests.exceptions", "Timeout", "ConnectionError"),
    ("urllib3.exceptions", "TimeoutError", "HTTPError"),
)


def transport_failure(error: Exception) -> Failure | None:
    """Returns the failure that an error of the HTTP library is; `None` where it is another."""
    for name, timeout, other in _LIBRARIES:
        # Where it was not imported, the error is not one of its own.
        if (library := sys.modules.get(name)) is None:
            continue
        if isinstance(error, getattr(library, timeout)):
            return Failure(Fault.TIMEOUT, short(error))
        if isinstance(error, getattr(library, other)):
            return Failure(Fault.CONNECTION, cause(error))
    return None
