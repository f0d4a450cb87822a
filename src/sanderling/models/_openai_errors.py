"""What the errors of the `openai` package mean; LiteLLM's are made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._failures import Failure, Fault, cause, http_failure, short

if TYPE_CHECKING:
    import openai


def openai_failure(error: Exception) -> Failure:
    """Returns what an error that the `openai` package raised means."""
    import openai

    match error:
        case openai.APITimeoutError():
            return Failure(Fault.TIMEOUT, short(error))
        case openai.APIConnectionError():
            return Failure(Fault.CONNECTION, cause(error))
        case openai.APIStatusError():
            headers = error.response.headers
            return http_failure(
                error.status_code, headers, _said(error), error.code, error.request_id
            )
        case openai.APIError() if error.body is not None:
            return Failure(Fault.BROKEN, _said(error), code=str(error.code or ""))
        case openai.APIResponseValidationError() | ValueError():
            return Failure(Fault.UNREADABLE, short(error))
    return Failure(Fault.OTHER, short(error))


def _said(error: openai.APIError) -> str:
    body = error.body
    message = body.get("message") if isinstance(body, dict) else body
    return str(message or error.message)
