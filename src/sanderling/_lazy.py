"""Public names that are imported when first used: `import sanderling` costs next to nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def lazy(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Makes the public list of a package.

    Args:
        package: The package's ``__name__``.
        names: Public name to the module that defines it, relative to the package (``"._tool"``).

    Returns:
        ``__getattr__``, ``__dir__`` and ``__all__`` of the package (PEP 562).
    """

    def resolve(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(names[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    public = sorted(names)
    return resolve, lambda: public, public
