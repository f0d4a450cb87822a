"""Agents: definitions that assemble a model, tools and prompts, and run tasks with them."""

from sanderling._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
