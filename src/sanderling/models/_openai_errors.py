"""What went wrong with a request to an OpenAI-compatible server, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sanderling.errors import AgentGenerationError

from ._endpoints import key_variable

if TYPE_CHECKING:
    import openai

_MAX_SAID = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked.

    Attributes:
        model_id: The model.
        url: The base address of the server.
        key_given: Whether the key was passed in, instead of read from the environment.
    """

    model_id: str
    url: str
    key_given: bool


def generation_error(error: Exception, asked: Asked) -> AgentGenerationError:
    """Returns the error that a caller is told, for one that the `openai` package raised."""
    import openai

    match error:
        case AgentGenerationError():
            return error
        case openai.APITimeoutError():
            text = (
                f"{asked.url} did not answer in time. If the model needs longer, raise the limit: "
                'client_kwargs={"timeout": seconds}.'
            )
        case openai.APIConnectionError():
            text = (
                f"The connection to {asked.url} failed ({_cause(error)}). Is the server running at "
                "this address, and can it be reached from here?"
            )
        case openai.APIStatusError():
            text = f"{_advice(error, asked)} The server said: {_said(error)}{_trace(error)}"
        case openai.APIError() if error.body is not None:
            text = f"{asked.url} broke the reply off with an error: {_said(error)}"
        case openai.APIResponseValidationError() | ValueError():
            text = (
                f"{asked.url} sent what is no chat completion ({_short(error)}). Is the address "
                "that of an OpenAI-compatible endpoint (it usually ends in /v1)?"
            )
        case _:
            text = f"Asking {asked.model_id} at {asked.url} failed: {_short(error)}"
    return AgentGenerationError(text)


def _advice(error: openai.APIStatusError, asked: Asked) -> str:
    status = error.status_code
    match status:
        case 401:
            return f"{asked.url} refused the key (status 401). {_key_advice(asked)}"
        case 403:
            return (
                f"{asked.url} does not let this key use {asked.model_id!r} (status 403). Check the "
                "rights of the key and the terms of the model."
            )
        case 404:
            return (
                f"{asked.url} has no model {asked.model_id!r}, or no chat completions at this "
                "address (status 404). Check model_id, and that api_base is the whole base "
                "address (it usually ends in /v1)."
            )
        case 429:
            wait = error.response.headers.get("retry-after")
            hint = f" It asks to wait {wait} seconds." if wait else ""
            return (
                f"{asked.url} gets too many requests, or the account has no credit left (status "
                f"429); the request was repeated without success.{hint} Wait, raise the limits of "
                'the account, or repeat more often: client_kwargs={"max_retries": n}.'
            )
        case 400 | 413 | 422 if _is_too_long(error):
            return (
                f"The conversation is longer than {asked.model_id!r} can read (status {status}). "
                "Use a model with a larger context, or shorten what steps print."
            )
        case _ if status >= 500:
            return f"{asked.url} failed (status {status}), also when asked again. Try later."
        case _:
            return (
                f"{asked.url} refused the request (status {status}). If it names a parameter that "
                "this model does not take, give that one to the model as REMOVE_PARAMETER."
            )


def _key_advice(asked: Asked) -> str:
    variable = key_variable(asked.url)
    if asked.key_given:
        return f"Check the api_key that was given to the model; {variable} is where it is kept."
    return f"Set the environment variable {variable} to a valid key, or pass api_key."


def missing_key(asked: Asked) -> AgentGenerationError:
    """Returns the error for a request that cannot be made without a key."""
    variable = key_variable(asked.url)
    return AgentGenerationError(
        f"There is no key for {asked.url}. Set the environment variable {variable}, or pass "
        "api_key. A local server needs none: pass its address as api_base."
    )


def _is_too_long(error: openai.APIStatusError) -> bool:
    said = error.message.lower()
    return (
        error.code == "context_length_exceeded"
        or "context length" in said
        or ("context size" in said)
    )


def _said(error: openai.APIError) -> str:
    body = error.body
    message = body.get("message") if isinstance(body, dict) else body
    return str(message or error.message)[:_MAX_SAID]


def _trace(error: openai.APIStatusError) -> str:
    return f" (request id {error.request_id})" if error.request_id else ""


def _cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return _short(error)


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_MAX_SAID]
