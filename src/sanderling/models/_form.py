"""What a model is made of, as data that is saved and loaded: without secrets, and without trust."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sanderling._secrets import secrets_in, settings_without_secrets

from ._settings import REMOVE_PARAMETER, REQUEST_PARAMETERS

if TYPE_CHECKING:
    from sanderling.messages import JSONObject, JSONValue

    from ._base import Model

# How REMOVE_PARAMETER is written in JSON.
_REMOVED = {"$": "REMOVE_PARAMETER"}

#: The key of a model's JSON form that names the secrets which are not in it.
MISSING_SECRETS: Final = "missing_secrets"

# Arguments that are the key of the server.
_KEYS: Final = ("api_key", "token")
_MAX_SHOWN: Final = 200


def saved(owner: str, settings: Mapping[str, object], declared: Collection[str] = ()) -> JSONObject:
    """Returns the JSON form of settings, without those that hold secrets.

    What has no JSON form, such as an HTTP client, is left out with a warning.

    Args:
        owner: Whose settings they are, for the warning.
        settings: The settings.
        declared: The names of those that are secret whatever they look like.
    """
    data: JSONObject = {}
    for name, value in settings_without_secrets(settings, declared).items():
        try:
            data[name] = _json(value)
        except TypeError:
            warnings.warn(
                f"{name!r} of {owner} is a {type(value).__name__}, which has no JSON form: it is "
                "not saved. Give it again after loading.",
                stacklevel=3,
            )
    return data


def warn_of_missing(
    owner: str, names: Iterable[str], given: Mapping[str, object]
) -> tuple[str, ...]:
    """Returns those of the named secrets that were not given again, and warns of them."""
    missing = tuple(
        name for name in names if name not in given and name.partition(".")[0] not in given
    )
    if missing:
        warnings.warn(
            f"This {owner} was saved without its secrets: {', '.join(missing)}. Give them again, "
            f"as in {owner}.from_dict(data, **{{{missing[0]!r}: ...}}), or keep keys in the "
            "environment variables of their provider.",
            stacklevel=3,
        )
    return missing


def check_form(kind: type[Model], form: Mapping[str, Any], arguments: Mapping[str, object]) -> None:
    """Checks that a saved model sets nothing that only the program may choose.

    Args:
        kind: The class of the model.
        form: What was saved.
        arguments: What the program passes in: it may be anything.

    Raises:
        ValueError: It sets such a thing, and it is no argument.
    """
    allowed = kind.form_settings
    if any(arguments.get(key) is not None for key in _KEYS):
        allowed |= kind._with_key
    parameters = inspect.signature(kind).parameters
    refused = {
        name: value
        for name, value in form.items()
        if name not in arguments
        and name != MISSING_SECRETS
        and not _is_unset(value, parameters.get(name))
        and (name not in allowed or _reaches_further(name, value))
    }
    if not refused:
        return
    passed = ", ".join(f"{name}={_shown(name, value)}" for name, value in refused.items())
    raise ValueError(
        f"This saved {kind.__name__} sets {', '.join(refused)}, which only your program may "
        "choose. If you trust where it comes from, pass what it says, or else what you want: "
        f"{kind.__name__}.from_dict(data, {passed})"
    )


def check_taken(kind: type, settings: Mapping[str, object]) -> None:
    """Checks that a class can be made with settings that were saved.

    Raises:
        TypeError: It takes others.
    """
    try:
        inspect.signature(kind).bind(**settings)
    except TypeError as error:
        raise TypeError(
            f"{kind.__name__} cannot be made from what was saved ({', '.join(settings)}): {error}. "
            f"Give what is missing: from_dict(data, name=value). If {kind.__name__} has an "
            "__init__ of its own, give it a method to_dict(self) as well, which returns the "
            "arguments of that as a dict, by name, without secrets."
        ) from None


def with_given(settings: Mapping[str, Any], given: Mapping[str, object]) -> dict[str, Any]:
    """Returns the settings with others that win; ``"headers.Cookie"`` is the place of one within.

    Raises:
        ValueError: There is no such place.
    """
    joined: dict[str, Any] = copy.deepcopy(dict(settings))
    for path, value in given.items():
        *way, name = path.split(".")
        place: Any = joined
        try:
            for step in way:
                key = int(step) if isinstance(place, list) else step
                place[key] = copy.copy(place[key])  # it may be the caller's
                place = place[key]
            place[int(name) if isinstance(place, list) else name] = value
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise ValueError(f"the settings have no place {path!r}") from error
    return joined


def loaded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that `saved` wrote."""
    return {
        name: REMOVE_PARAMETER if value == _REMOVED else value for name, value in settings.items()
    }


def _json(value: object) -> JSONValue:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if value is REMOVE_PARAMETER:
        return _REMOVED
    if isinstance(value, Mapping):
        return {str(name): _json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    raise TypeError(type(value).__name__)


def _shown(name: str, value: object) -> str:
    has_secrets = next(secrets_in({name: value}), None) is not None
    return "..." if has_secrets else repr(value)[:_MAX_SHOWN]


def _is_unset(value: object, parameter: inspect.Parameter | None) -> bool:
    if value is None or value == {} or value == []:
        return True
    default = None if parameter is None else parameter.default
    return type(value) is type(default) and value == default


def _reaches_further(name: str, value: object) -> bool:
    """Tells whether a setting that a form may choose does more than its name says."""
    match name, value:
        case "model_id", str(model_id):
            return "://" in model_id  # some packages take it for the address of the server
        case "profile", {"options": {**options}}:
            return not options.keys() <= REQUEST_PARAMETERS
    return False
