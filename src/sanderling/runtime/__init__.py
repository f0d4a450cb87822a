"""Carries out what the loop asks for: under threads (`drive`) and under asyncio (`adrive`)."""

from ._async import AsyncPerformer
from ._callbacks import CallbackRegistry, StepCallbacks
from ._drivers import Done, adrive, drive
from ._services import Services
from ._sync import Performer

__all__ = [
    "AsyncPerformer",
    "CallbackRegistry",
    "Done",
    "Performer",
    "Services",
    "StepCallbacks",
    "adrive",
    "drive",
]
