"""The console command: ``sanderling "TASK"``, and ``sanderling doctor``."""

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._main import main as main

__getattr__, __dir__, __all__ = lazy(__name__, {"main": "._main"})
