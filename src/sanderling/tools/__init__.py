"""What agents can do: `Tool`, `@tool`, their schemas, and ready-made tools."""

from sanderling._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
