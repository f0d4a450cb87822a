"""Which settings a saved model may choose, and which only the program that loads it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ._settings import MISSING_SECRETS, secrets_in

if TYPE_CHECKING:
    from ._base import Model

# What says how a reply is written, and nothing else: no addresses, headers, keys, files or code.
_REQUEST: Final = frozenset(
    (
        "additionalModelRequestFields",
        "do_sample",
        "extra_body",
        "frequency_penalty",
        "grammar",
        "inferenceConfig",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_new_tokens",
        "max_output_tokens",
        "max_tokens",
        "min_p",
        "modalities",
        "n",
        "num_beams",
        "num_ctx",
        "output_config",
        "parallel_tool_calls",
        "performanceConfig",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "repetition_penalty",
        "response_format",
        "response_logprobs",
        "seed",
        "serviceTier",
        "service_tier",
        "stop",
        "stop_sequences",
        "store",
        "stream_options",
        "temperature",
        "thinking",
        "thinking_config",
        "tool_choice",
        "top_k",
        "top_logprobs",
        "top_p",
        "typical_p",
        "user",
        "verbosity",
    )
)
FORM_SETTINGS: Final = _REQUEST | frozenset(
    (
        "capabilities",
        "custom_role_conversions",
        "flatten_messages_as_text",
        "max_concurrent_requests",
        "model_id",
        "profile",
        "requests_per_minute",
        "retry",
        "timeout",
        "tool_arguments_key",
        "tool_name_key",
    )
)
_KEYS: Final = ("api_key", "token")
_MAX_SHOWN: Final = 200


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
            return not options.keys() <= _REQUEST
    return False
