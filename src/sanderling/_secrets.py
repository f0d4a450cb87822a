"""Finds secrets: by the name of what holds them, and by their look.

What is saved leaves secrets out; what is shown has `MASK` in their place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

MASK: Final = "[secret]"

# Shorter texts are words that any message may hold.
_SHORTEST = 6
# So many characters of a known secret give it away, where a text is cut off within it.
_BEGINNING = 8

_NAME = re.compile(
    r"(api|access|private|subscription)[-_]?key(?![-_]?id)|secret|passw|passphrase|passcode|pwd"
    r"|authorization|credential|cookie|jwt|session|connection[-_ ]?string"
    r"|(key|token|auth|dsn)$|(^|[-_.])(signature|sig)$",
    re.I,
)
# In these parts of a JSON schema names are those of fields, whatever they are called.
_FIELDS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_NO_SECRETS = frozenset({"tool_name_key", "tool_arguments_key", "prompt_cache_key"})
_ENVIRONMENT = re.compile(r"(^|_)(api_?key|key|token|secret|password|passwd|passphrase)(_|$)", re.I)

# Each begins where no longer word can have begun, so that a search is linear.
_TOKEN = re.compile(
    r"""(?<![\w-])(?:
        [srp]k[-_](?=[\w-]*\d)[\w-]{16,}
        | gh[pousr]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{20,}
        | hf_[A-Za-z0-9]{20,} | gsk_\w{20,} | xox[abeprs]-[\w-]{10,}
        | AIza[\w-]{30,} | ya29\.[\w-]{20,} | npm_\w{30,}
        | (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])
        | eyJ[\w-]{4,}\.[\w-]{4,}(?:\.[\w-]*){0,3}
    )
    | -----BEGIN\ (?:[A-Z]+\ )*PRIVATE\ KEY-----(?s:.*?)(?:-----END[^\n]*?KEY-----|\Z)""",
    re.X,
)
_AUTHORIZATION = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{16,}", re.I)
_USER = re.compile(r"(?<=://)[^\s/?#]+@")
# A whole value, which is no prose: so less of it is proof.
_VALUE = re.compile(
    r"(?:Bearer|Basic|Token|ApiKey)\s+\S+|[srp]k-[\w-]{4,}|gh[pousr]_\w{8,}|hf_\w{8,}", re.I
)
_ASSIGNED = re.compile(r"(?:password|pwd|accountkey|sharedaccesskey)\s?=\s?[^;\s]", re.I)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.I)


def is_secret(name: str, value: object, declared: Collection[str] = ()) -> bool:
    """Tells whether a setting is secret.

    Args:
        name: Its name.
        value: Its value.
        declared: The names of parameters that are known to be secret.
    """
    if name in declared or _is_secret_name(name):
        return True
    if not isinstance(value, str):
        return False
    text = value.strip()
    return bool(_VALUE.fullmatch(text) or _TOKEN.search(text) or _ASSIGNED.search(text))


def without_secrets(text: str) -> str:
    """Returns an address without the secrets in it, and any other text as it is."""
    if not _ADDRESS.match(text):
        return text
    try:
        parts = urlsplit(text)
    except ValueError:  # it is none, and no server is reached by it
        return text
    host = parts.netloc.rpartition("@")[2]
    query = parse_qsl(parts.query, keep_blank_values=True)
    kept = [each for each in query if not _is_secret_name(each[0])]
    if host == parts.netloc and kept == query:
        return text
    return urlunsplit(parts._replace(netloc=host, query=urlencode(kept)))


def settings_without_secrets(
    settings: Mapping[str, object], declared: Collection[str] = ()
) -> dict[str, object]:
    """Returns settings without those that are secret, at any depth.

    Args:
        settings: The settings; in an address only the secret is left out.
        declared: The names of those that are secret whatever they look like.
    """
    return {
        str(name): _fields(value, declared) if name in _FIELDS else _stripped(value, declared)
        for name, value in settings.items()
        if not is_secret(str(name), value, declared)
    }


def secrets_in(settings: object, declared: Collection[str] = (), within: str = "") -> Iterator[str]:
    """Yields the names of what `settings_without_secrets` leaves out: ``"headers.Cookie"``."""
    if isinstance(settings, Mapping):
        items = [(str(name), value) for name, value in settings.items()]
    elif isinstance(settings, list | tuple):
        items = [(str(place), value) for place, value in enumerate(settings)]
    else:
        return
    for name, value in items:
        if name in _FIELDS:
            continue
        if not is_secret(name, value, declared):
            yield from secrets_in(value, declared, f"{within}{name}.")
            if isinstance(value, str) and without_secrets(value) != value:
                yield f"{within}{name}"
        elif value is not None:
            yield f"{within}{name}"


def masked(text: str, known: Iterable[str] = ()) -> str:
    """Returns a text with `MASK` in the place of what looks like a secret.

    Args:
        text: Any text.
        known: Secrets that are masked whatever they look like, also where the text ends, or goes
            on otherwise, after their first 8 characters. Those of less than 6 are not.
    """
    for secret in sorted(set(known), key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = _without(text, secret)
    text = _TOKEN.sub(MASK, text)
    text = _USER.sub(f"{MASK}@", text)
    return _AUTHORIZATION.sub(rf"\1 {MASK}", text)


def secret_values(settings: object, declared: Collection[str] = ()) -> Iterator[str]:
    """Yields the secret texts within settings."""
    for name, value in _items(settings):
        if is_secret(name, value, declared):
            yield from _texts(value)
        else:
            yield from secret_values(value, declared)


def environment_secrets() -> Iterator[str]:
    """Yields the secrets that packages read from the environment variables of this process."""
    for name, value in os.environ.items():
        is_place = "://" in value or value.startswith("/")  # of a file that holds the secret
        if _ENVIRONMENT.search(name) and len(value) >= _BEGINNING and not is_place:
            yield value


def _stripped(value: object, declared: Collection[str]) -> object:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return settings_without_secrets(value, declared)
    if isinstance(value, list | tuple):
        return [None if is_secret("", item) else _stripped(item, declared) for item in value]
    return value


def _fields(value: object, declared: Collection[str]) -> object:
    """Returns a part of a JSON schema, where a name makes no secret."""
    if not isinstance(value, Mapping):
        return _stripped(value, declared)
    return {
        str(name): _stripped(schema, declared)
        for name, schema in value.items()
        if not is_secret("", schema)
    }


def _is_secret_name(name: str) -> bool:
    return name not in _NO_SECRETS and _NAME.search(name) is not None


def _without(text: str, secret: str) -> str:
    head = secret[:_BEGINNING]
    kept, end = [], 0
    while (start := text.find(head, end)) != -1:
        kept.append(text[end:start])
        kept.append(MASK)
        end = start + len(head)
        while text[end : end + 1] == secret[end - start : end - start + 1] != "":
            end += 1
    return "".join([*kept, text[end:]]) if kept else text


def _items(value: object) -> list[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(str(name), item) for name, item in value.items()]
    return [("", item) for item in value] if isinstance(value, list | tuple) else []


def _texts(value: object) -> Iterator[str]:
    """Yields the texts of a secret; the word before a token says only what kind it is."""
    if isinstance(value, str):
        yield value.strip().rpartition(" ")[2] if _VALUE.fullmatch(value.strip()) else value
    for _, item in _items(value):
        yield from _texts(item)
