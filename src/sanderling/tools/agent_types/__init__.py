"""What agents give back: text, images and sound, with the methods that smolagents gave them."""

from sanderling._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
