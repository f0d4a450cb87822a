"""Carries out what the loop asks for: under threads (`drive`) and under asyncio (`adrive`)."""

from sanderling._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
