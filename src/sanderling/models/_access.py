"""Checks of keys and addresses when a model is made, before anything is sent.

No error repeats a key.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, TypeVar

from sanderling.errors import MissingExtraError, ModelAccessError

from ._arguments import as_settings

T = TypeVar("T")

_KEYS: Final = ("api_key", "token", "auth_token", "azure_ad_token")
_loading: Final[ContextVar[bool]] = ContextVar("loading", default=False)
_ADDRESSES: Final = ("api_base", "base_url", "azure_endpoint", "endpoint_url")


def as_key(name: str, value: T) -> T:
    """Returns a key without the white space around it; anything but a text as it is.

    Args:
        name: The argument or environment variable, for the error.
        value: The key.

    Raises:
        ValueError: The key is empty, or cannot be the value of a header.
        TypeError: It is bytes.
    """
    if isinstance(value, bytes | bytearray):
        raise TypeError(f"{name} is a text, not {type(value).__name__}: decode() it")
    if not isinstance(value, str):
        return value
    key = value.strip()
    if not key:
        raise ValueError(f"{name} is empty: pass a key, or leave {name} out")
    if not (key.isascii() and key.isprintable()):
        raise ValueError(
            f"{name} cannot be sent in a header: it has a line break, or another character that "
            "is not printable ASCII. Check where the key is read from"
        )
    return key  # type: ignore[return-value]


def key_of_environment(variable: str) -> str | None:
    """Returns the key in an environment variable; `None` without one.

    Raises:
        ModelAccessError: It cannot be the value of a header.
    """
    value = os.environ.get(variable)
    try:
        return as_key(variable, value) if value and value.strip() else None
    except ValueError as error:
        raise ModelAccessError(f"The environment variable {error}.") from None


def is_installed(package: str) -> bool:
    """Tells whether a package can be imported, without importing it."""
    if package in sys.modules:
        return sys.modules[package] is not None
    try:
        return importlib.util.find_spec(package) is not None
    except (ModuleNotFoundError, ValueError):  # of a package within one that is not there
        return False


def check_installed(feature: str, extra: str, *packages: str) -> None:
    """Checks that packages can be imported.

    Args:
        feature: What needs them.
        extra: The extra of this distribution that brings them.
        packages: Their import names.

    Raises:
        MissingExtraError: One is not installed.
    """
    for package in packages:
        if not is_installed(package):
            raise MissingExtraError(feature, extra, package)


def is_loading() -> bool:
    """Tells whether a model is made from a saved form, whose keys may come later."""
    return _loading.get()


@contextmanager
def loading() -> Iterator[None]:
    """Makes models within that need not be ready to be asked."""
    token = _loading.set(True)
    try:
        yield
    finally:
        _loading.reset(token)


def saved_hub_token(environment: Mapping[str, str]) -> str | None:
    """Returns the token that ``hf auth login`` has saved, where the Hub's package keeps it."""
    home = Path(environment.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    try:
        text = Path(environment.get("HF_TOKEN_PATH") or home / "token").read_text("utf-8")
    except (OSError, ValueError):
        return None
    return text.strip() or None


def as_address(name: str, value: T) -> T:
    """Returns an address without the white space around it; anything but a text as it is.

    Args:
        name: The argument or environment variable, for the error.
        value: The address of a server.

    Raises:
        ValueError: It does not begin with http:// or https://.
    """
    if not isinstance(value, str):
        return value
    address = value.strip()
    if not address.lower().startswith(("http://", "https://")):
        # What stands before an @ or after a ? may be a secret.
        shown = address.rpartition("@")[2].partition("?")[0]
        raise ValueError(f"{name} must begin with http:// or https://; it is {shown!r:.200}")
    return address  # type: ignore[return-value]


def as_client_settings(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the arguments of a package's client, with keys and addresses checked.

    Args:
        name: What holds them, for the errors.
        value: The arguments.

    Raises:
        TypeError: They are no mapping.
        ValueError: As for `as_key` and `as_address`.
    """
    settings = as_settings(name, value)
    for each in settings.keys() & _KEYS:
        settings[each] = as_key(f"{each} in {name}", settings[each])
    for each in settings.keys() & _ADDRESSES:
        settings[each] = as_address(f"{each} in {name}", settings[each])
    return settings


def one_address(api_base: str | None, base_url: str | None) -> str | None:
    """Returns the address that has one of two names.

    Raises:
        ValueError: There are both, or it is none; see `as_address`.
    """
    if api_base is not None and base_url is not None:
        raise ValueError("api_base and base_url are two names of one address: give one of them")
    if base_url is not None:
        return as_address("base_url", base_url)
    return as_address("api_base", api_base)
