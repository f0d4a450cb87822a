"""Agents that act by writing Python: quick steps, in a sandbox.

Everything public is named here, and imported when it is first used.
"""

from ._lazy import lazy
from ._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy(__name__)
