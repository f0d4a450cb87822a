"""What went wrong with a request to a provider, and what to do about it: the same for all of them.

A provider's file turns the errors of its package into a `Failure`; `explained` makes of it the
error that a caller gets.
"""

from __future__ import annotations

import enum
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from sanderling._secrets import masked, without_secrets
from sanderling._show import text_of
from sanderling.errors import (
    AgentGenerationError,
    ContentFilterError,
    ContextLengthError,
    ModelAccessError,
    ModelTimeoutError,
    RateLimitError,
    UnknownModelError,
)

_MAX_SAID = 500

# 408 request timeout, 409 conflict (a lock that was held), 425 too early, 429 too many requests.
_PASSING = frozenset({408, 409, 425, 429})
_LASTING = frozenset({501, 505})

# How providers say it; in lower case.
_TOO_LONG = (
    "context length",
    "context limit",
    "context size",
    "context window",
    "context_length_exceeded",
    "prompt is too long",
    "input is too long",
    "too many input tokens",
    "exceeds the maximum number of tokens",
    "reduce the length of the messages",
    "maximum prompt length",
    # Text Generation Inference, behind many of the Hub's endpoints.
    "`inputs` tokens + `max_new_tokens`",
    "`inputs` must have less than",
)
_FILTERED = (
    "content_filter",
    "content_policy_violation",
    "content filter",
    "content management policy",
    "content policy",
    "responsibleaipolicyviolation",
)
_UNKNOWN = ("model identifier is invalid", "model_not_found")
_BAD_KEY = ("api key not valid", "api key expired", "api_key_invalid")
# What packages say of a header that cannot be sent, with its value.
_HEADER = re.compile(
    r"""((?:illegal|invalid)\b.{0,100}?header\b.{0,20}?:?\s*)b?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""",
    re.IGNORECASE,
)
_NO_CREDIT = ("insufficient_quota", "credit balance", "exceeded your current quota", "billing")


class Fault(enum.Enum):
    """Where a request failed."""

    STATUS = enum.auto()  # the provider answered, with an error
    TIMEOUT = enum.auto()
    CONNECTION = enum.auto()
    BROKEN = enum.auto()  # an error came within the reply
    UNREADABLE = enum.auto()
    ACCESS = enum.auto()  # there is no key, or the package could not get one
    OTHER = enum.auto()


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked.

    Attributes:
        model_id: The model.
        url: The base address of the server, or the provider's name.
        key_given: Whether the key was passed in, instead of read from the environment.
        key_variable: The environment variable where the key is looked for.
        protocol: What the server is expected to speak.
        address: What to look at where it does not.
    """

    model_id: str
    url: str
    key_given: bool
    key_variable: str
    protocol: str = "chat completions"
    address: str = (
        "that api_base is the whole base address of an OpenAI-compatible endpoint (it usually ends "
        "in /v1)"
    )


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed request, in terms that all providers share.

    Attributes:
        fault: Where it failed.
        said: What the provider, or its package, says about it.
        status: The HTTP status.
        code: The provider's name of the error.
        request_id: The provider's name of the request.
        retry_after: How many seconds the provider asks to wait.
        should_retry: What the provider says about repeating the request, if it does.
    """

    fault: Fault
    said: str
    status: int | None = None
    code: str = ""
    request_id: str | None = None
    retry_after: float | None = None
    should_retry: bool | None = None


def http_failure(
    status: int,
    headers: Mapping[str, str],
    said: object,
    code: object = "",
    request_id: str | None = None,
) -> Failure:
    """Returns the failure that an HTTP answer with an error status is.

    Args:
        status: Its status.
        headers: Its headers, without regard to case.
        said: What it says.
        code: The provider's name of the error, if there is one.
        request_id: The provider's name of the request; by default from the usual headers.
    """
    retry = headers.get("x-should-retry")
    return Failure(
        Fault.STATUS,
        str(said)[:_MAX_SAID],
        status,
        code if isinstance(code, str) else "",
        request_id or headers.get("x-request-id") or headers.get("request-id"),
        retry_after(headers),
        None if retry is None else retry == "true",
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns how many seconds an answer asks to wait.

    https://www.rfc-editor.org/rfc/rfc9110#field.retry-after: seconds, or a date. OpenAI and Azure
    tell milliseconds as well.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None or (seconds := _number(value)) is not None:
        return None if value is None else seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def explained(failure: Failure, asked: Asked) -> AgentGenerationError:
    """Returns the error that a caller is told."""
    asked = replace(asked, url=without_secrets(asked.url))
    kind, advice = _advice(failure, asked)
    trace = f" (request id {failure.request_id})" if failure.request_id else ""
    passing = failure.fault in (Fault.TIMEOUT, Fault.CONNECTION, Fault.BROKEN)
    if kind is ModelAccessError or kind is ContextLengthError or kind is ContentFilterError:
        passing = False
    elif failure.status is not None:
        passing = _is_passing(failure.status)
    return kind(
        f"{advice}{trace}",
        status=failure.status,
        request_id=failure.request_id,
        retryable=passing if failure.should_retry is None else failure.should_retry,
        retry_after=failure.retry_after,
    )


def short(error: BaseException) -> str:
    """Returns an error in a few words."""
    return f"{type(error).__name__}: {text_of(error)}"[:_MAX_SAID]


def cause(error: BaseException) -> str:
    """Returns the first cause of an error in a few words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return short(error)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error, and what it was raised from or during."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def masked_error(
    error: Exception,
    failure_of: Callable[[Exception], Failure | None],
    asked: Callable[[], Asked],
    secrets: Collection[str],
    begun: bool = False,
) -> AgentGenerationError:
    """Returns the error that a caller gets, without the secrets that a server may have echoed.

    Args:
        error: What was raised while a model was asked: ours, or one of the provider's package.
        failure_of: Tells what an error of the package means.
        asked: Tells who was asked.
        secrets: What is masked beside all that looks like a secret.
        begun: Whether a part of the reply had come.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, AgentGenerationError):
        cause = cause.__cause__  # packages wrap what is raised while they read
    if cause is not None:
        ours = cause
    else:
        failure = failure_of(error) or Failure(Fault.OTHER, short(error))
        if _HEADER.search(failure.said):
            failure = Failure(
                Fault.OTHER,
                "a header has a value that cannot be sent, and that is not shown here. Look for "
                "line breaks and unprintable characters in keys and headers.",
            )
        if begun and failure.fault is Fault.CONNECTION:
            failure = replace(failure, fault=Fault.BROKEN)
        ours = explained(failure, asked())
        ours.__cause__ = error if _mask(error, secrets) else None
    _mask(ours, secrets)
    return ours


def _mask(error: BaseException, secrets: Collection[str]) -> bool:
    """Masks secrets in the texts of an error and its causes.

    Returns:
        Whether none is left in what a traceback shows.
    """
    chain = list(causes(error))
    for each in chain:
        each.args = tuple(_masked(value, secrets) for value in each.args)
        fields = getattr(each, "__dict__", {})
        fields.update({name: _masked(value, secrets) for name, value in fields.items()})
    texts = [f"{each}\n{each!r}" for each in chain]
    return all(_masked(text, secrets) == text for text in texts)


def _masked(value: object, secrets: Collection[str]) -> object:
    if not isinstance(value, str):
        return value
    return masked(_HEADER.sub(r"\1[secret]", value), secrets)


def missing_key(asked: Asked) -> ModelAccessError:
    """Returns the error for a request that cannot be made without a key."""
    return ModelAccessError(
        f"There is no key for {asked.url}. Set the environment variable {asked.key_variable}, or "
        f"pass api_key. If it is another server that you mean, check {asked.address}."
    )


def _advice(failure: Failure, asked: Asked) -> tuple[type[AgentGenerationError], str]:
    match failure.fault:
        case Fault.STATUS:
            kind, advice = _status_advice(failure, asked)
            return kind, f"{advice} The server said: {failure.said}"
        case Fault.TIMEOUT:
            return ModelTimeoutError, (
                f"{asked.url} did not answer in time. If the model needs longer, raise the limit: "
                "timeout=seconds."
            )
        case Fault.CONNECTION:
            return AgentGenerationError, (
                f"The connection to {asked.url} failed ({failure.said}). Is the server running at "
                "this address, and can it be reached from here?"
            )
        case Fault.BROKEN:
            kind = _known_kind(failure) or AgentGenerationError
            return kind, f"{asked.url} broke the reply off with an error: {failure.said}"
        case Fault.UNREADABLE:
            return AgentGenerationError, (
                f"{asked.url} sent no {asked.protocol} that could be read ({failure.said}). Check "
                f"{asked.address}."
            )
        case Fault.ACCESS:
            said = f"There is no key for {asked.url} ({failure.said}). {_key_advice(asked)}"
            return ModelAccessError, said
        case Fault.OTHER:
            return (
                _known_kind(failure) or AgentGenerationError,
                f"Asking {asked.model_id} at {asked.url} failed: {failure.said}",
            )


def _status_advice(failure: Failure, asked: Asked) -> tuple[type[AgentGenerationError], str]:
    status = failure.status or 0
    known = _known_kind(failure)
    if known is ContextLengthError and status < 500:
        return known, (
            f"The conversation is longer than {asked.model_id!r} can read (status {status}). "
            "Use a model with a larger context, or shorten what steps print."
        )
    if known is ContentFilterError and status < 500:
        return known, (
            f"The content filter of {asked.url} refused this conversation (status {status}). "
            "Look for what it objects to in the task and in what tools returned, or ask another "
            "model."
        )
    if any(sign in failure.said.lower() for sign in _BAD_KEY):
        return ModelAccessError, _key_refused(failure, asked)
    if known is ModelAccessError or status == 402:
        return ModelAccessError, (
            f"The account at {asked.url} has no credit left (status {status}). Look at its billing "
            "page, or ask another provider."
        )
    match 404 if known is UnknownModelError else status:
        case 401:
            return ModelAccessError, _key_refused(failure, asked)
        case 403:
            return ModelAccessError, (
                f"{asked.url} does not let this key use {asked.model_id!r} (status 403). Check the "
                "rights of the key and the terms of the model."
            )
        case 404:
            return UnknownModelError, (
                f"{asked.url} has no model {asked.model_id!r}, or no {asked.protocol} at this "
                f"address (status {status}). Check model_id, and {asked.address}."
            )
        case 429:
            wait = failure.retry_after
            hint = "" if wait is None else f" It asks to wait {wait:g} seconds."
            return RateLimitError, (
                f"{asked.url} gets too many requests (status 429).{hint} Wait, raise the limits of "
                "the account, or ask less often: requests_per_minute=n."
            )
        case 408:
            return ModelTimeoutError, f"{asked.url} gave up waiting (status 408). Try later."
        case _ if status >= 500:
            return AgentGenerationError, f"{asked.url} failed (status {status}). Try later."
        case _:
            return AgentGenerationError, (
                f"{asked.url} refused the request (status {status}). If it names a parameter that "
                "this model does not take, give that one to the model as REMOVE_PARAMETER."
            )


def _known_kind(failure: Failure) -> type[AgentGenerationError] | None:
    said = f"{failure.code} {failure.said}".lower()
    if failure.status == 413 or any(sign in said for sign in _TOO_LONG):
        return ContextLengthError
    if any(sign in said for sign in _FILTERED):
        return ContentFilterError
    if any(sign in said for sign in _UNKNOWN):
        return UnknownModelError
    if (
        failure.status in (400, 429)
        and failure.retry_after is None
        and any(sign in said for sign in _NO_CREDIT)
    ):
        return ModelAccessError
    return None


def _is_passing(status: int) -> bool:
    return status in _PASSING or (status >= 500 and status not in _LASTING)


def _key_refused(failure: Failure, asked: Asked) -> str:
    return f"{asked.url} refused the key (status {failure.status}). {_key_advice(asked)}"


def _key_advice(asked: Asked) -> str:
    if asked.key_given:
        return "Check the api_key that the model was made with."
    return f"Set the environment variable {asked.key_variable} to a valid key, or pass api_key."


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number < float("inf") else None
