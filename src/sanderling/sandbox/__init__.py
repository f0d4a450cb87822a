"""Runs the model's Python: real CPython, in a process that the operating system has locked.

Tools stay on the host and are called back. Nothing here knows an agent, a model or a tool: it is
given names, signatures and values.
"""

from sanderling._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
