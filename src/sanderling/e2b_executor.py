"""The import path of smolagents 1.4 for running code at E2B; see `sanderling.sandbox`."""

from .sandbox import E2BExecutor

__all__ = ["E2BExecutor"]
