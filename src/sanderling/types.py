"""The import path of smolagents 1.4 for what agents give back."""

from ._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
