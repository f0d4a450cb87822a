"""The console command: ``sanderling "TASK"``, and ``sanderling doctor``."""

from sanderling._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
