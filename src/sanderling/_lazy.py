"""Public names that are imported when first used: `import sanderling` costs next to nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable


def lazy(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Makes the public list of a module from its stub: the ``.pyi`` file beside it.

    Each name stands there as ``from .module import Name as Name``, which type checkers read too.

    Args:
        package: The module's ``__name__``.

    Returns:
        ``__getattr__``, ``__dir__`` and ``__all__`` of the module (PEP 562).
    """
    module = sys.modules[package]
    names = _read(f"{module.__file__}".rpartition(".")[0] + ".pyi")
    public = sorted(names)

    def resolve(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(names[name], module.__package__), name)
        setattr(module, name, value)
        return value

    return resolve, lambda: public, public


def _read(stub: str) -> dict[str, str]:
    """Returns the public names of a stub, each with the module that it is imported from."""
    with open(stub, encoding="utf-8") as file:  # noqa: PTH123 - importing pathlib takes longer
        words = iter(file.read().translate(str.maketrans("(),", "   ")).split())
    names = {}
    module = ""
    for word in words:
        if word == "from":
            module = next(words)
        elif word == "as" and not (name := next(words)).startswith("_"):
            names[name] = module
    return names
