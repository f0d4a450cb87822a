"""The import path of smolagents for what agents give back; see `sanderling.tools.agent_types`."""

from ._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
