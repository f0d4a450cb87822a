"""The terminal's view of a run: one consumer of the events, like any other."""

from sanderling._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
