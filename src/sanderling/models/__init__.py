"""Models: of every provider, in this process, functions, and scripted ones."""

from sanderling._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
