"""Refuses parameters that no request has: most of them are misspelled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from typing import Final

from sanderling.errors import MissingExtraError

from ._settings import REQUEST_PARAMETERS

_ADDRESSES: Final = ("api_base", "base_url")
# How alike two names are, from 0 to 1.
_ALIKE: Final = 0.6
_MISSPELLED: Final = 0.85


def check_parameters(
    model: type,
    names: Iterable[str],
    of_package: Callable[[], Collection[str]],
    place: str,
    passes_on: bool = False,
) -> None:
    """Checks that a request may have parameters of these names.

    Args:
        model: The class of the model.
        names: The names.
        of_package: Returns the parameters that the provider's package knows.
        place: The parameter that takes those of the server's own.
        passes_on: Whether any other parameter is passed on to the model. Then only what looks
            misspelled is refused.

    Raises:
        TypeError: There is no such parameter.
    """
    unknown = [name for name in names if name not in REQUEST_PARAMETERS]
    if not unknown:
        return
    try:
        package = of_package()
    except MissingExtraError:  # raised again when the model is first used
        return
    known = REQUEST_PARAMETERS.union(package)
    accepted = known | _arguments(model)
    for name in unknown:
        if name in known:
            continue
        alike = _MISSPELLED if passes_on else _ALIKE
        if close := _close(name, accepted, alike):
            hint = f"Did you mean {close!r}? "
        elif passes_on:
            continue
        else:
            hint = ""
        raise TypeError(
            f"{model.__name__} has no parameter {name!r}. {hint}A parameter that only the server "
            f"knows is passed as {place}={{{name!r}: ...}}."
        )


def _close(name: str, accepted: Collection[str], alike: float) -> str | None:
    if name in _ADDRESSES:
        return next((each for each in _ADDRESSES if each in accepted), None)
    return next(iter(get_close_matches(name, sorted(accepted), 1, alike)), None)


def _arguments(model: type) -> set[str]:
    """Returns the names of the arguments of ``__init__``, of the base classes as well."""
    inits = [vars(kind)["__init__"] for kind in model.__mro__[:-1] if "__init__" in vars(kind)]
    names = {name for init in inits for name in inspect.signature(init).parameters}
    return names - {"self", "args", "kwargs"}
