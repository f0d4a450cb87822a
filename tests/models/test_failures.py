"""What went wrong, and what to do: the same words for all providers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.errors import (
    AgentError,
    AgentGenerationError,
    ContentFilterError,
    ContextLengthError,
    ModelAccessError,
    ModelTimeoutError,
    RateLimitError,
    UnknownModelError,
)
from sanderling.models._failures import Asked, Failure, Fault, explained, http_failure, retry_after

ASKED = Asked("some-model", "https://example.org/v1", False, "EXAMPLE_KEY")


@pytest.mark.parametrize(
    ("status", "said", "kind", "retryable"),
    [
        (400, "bad", AgentGenerationError, False),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", ContextLengthError, False),
        (400, "the response was filtered: content_filter", ContentFilterError, False),
        (401, "bad key", ModelAccessError, False),
        (402, "pay", ModelAccessError, False),
        (403, "no", ModelAccessError, False),
        (404, "no", UnknownModelError, False),
        (408, "slow", ModelTimeoutError, True),
        (400, "This model's maximum prompt length is 131072", ContextLengthError, False),
        (400, "input length and `max_tokens` exceed context limit", ContextLengthError, False),
        (422, "`inputs` must have less than 4095 tokens.", ContextLengthError, False),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 8193", ContextLengthError, False),
        (413, "Request Entity Too Large", ContextLengthError, False),
        (429, "slow down", RateLimitError, True),
        (429, "You exceeded your current quota", ModelAccessError, False),
        (500, "boom", AgentGenerationError, True),
        (501, "never", AgentGenerationError, False),
        (503, "busy", AgentGenerationError, True),
        (529, "overloaded", AgentGenerationError, True),
    ],
)
def test_statuses(status: int, said: str, kind: type[AgentError], retryable: bool) -> None:
    error = explained(http_failure(status, {"x-request-id": "r1"}, said), ASKED)
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.request_id) == (status, "r1")
    assert said in str(error)
    assert f"status {status}" in str(error)


def test_the_provider_may_know_better() -> None:
    told = http_failure(500, {"x-should-retry": "false"}, "boom")
    assert not explained(told, ASKED).retryable
    told = http_failure(400, {"x-should-retry": "true"}, "bad")
    assert explained(told, ASKED).retryable


@pytest.mark.parametrize(
    ("fault", "kind", "retryable"),
    [
        (Fault.TIMEOUT, ModelTimeoutError, True),
        (Fault.CONNECTION, AgentGenerationError, True),
        (Fault.BROKEN, AgentGenerationError, True),
        (Fault.UNREADABLE, AgentGenerationError, False),
        (Fault.OTHER, AgentGenerationError, False),
    ],
)
def test_faults_without_a_status(fault: Fault, kind: type[AgentError], retryable: bool) -> None:
    error = explained(Failure(fault, "said this"), ASKED)
    assert (type(error), error.retryable) == (kind, retryable)
    assert "example.org" in str(error)


def test_the_key_is_named_by_where_it_came_from() -> None:
    refused = http_failure(401, {}, "bad key")
    assert "Set the environment variable EXAMPLE_KEY" in str(explained(refused, ASKED))
    given_key = Asked("some-model", "https://example.org/v1", True, "EXAMPLE_KEY")
    told = str(explained(refused, given_key))
    assert "Check the api_key that the model was made with." in told
    assert given_key.key_variable not in told


def test_a_password_in_an_address_is_not_told() -> None:
    asked = Asked("some-model", "https://me:s3cret@example.org/v1", False, "EXAMPLE_KEY")
    told = str(explained(Failure(Fault.TIMEOUT, "slow"), asked))
    assert "s3cret" not in told
    assert "https://example.org/v1" in told


def test_how_long_to_wait() -> None:
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after({"retry-after-ms": "250", "retry-after": "7"}) == 0.25
    assert retry_after({}) is None
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 80 < (retry_after({"retry-after": soon}) or 0) <= 90
    past = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    assert retry_after({"retry-after": past}) == 0


@given(st.text())
def test_any_header_is_survived(value: str) -> None:
    seconds = retry_after({"retry-after": value})
    assert seconds is None or 0 <= seconds < float("inf")


def test_a_long_message_is_cut() -> None:
    assert len(str(explained(http_failure(500, {}, "x" * 10_000), ASKED))) < 1_000
