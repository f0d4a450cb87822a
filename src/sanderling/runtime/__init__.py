"""Carries out what the loop asks for: under threads (`drive`) and under asyncio (`adrive`)."""

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._async import AsyncPerformer as AsyncPerformer
    from ._callbacks import CallbackRegistry as CallbackRegistry
    from ._callbacks import StepCallbacks as StepCallbacks
    from ._drivers import Done as Done
    from ._drivers import adrive as adrive
    from ._drivers import drive as drive
    from ._services import Services as Services
    from ._sync import Performer as Performer

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "AsyncPerformer": "._async",
        "CallbackRegistry": "._callbacks",
        "Done": "._drivers",
        "Performer": "._sync",
        "Services": "._services",
        "StepCallbacks": "._callbacks",
        "adrive": "._drivers",
        "drive": "._drivers",
    },
)
