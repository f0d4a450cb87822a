"""What a reply cost, and how long something took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._json import JSONObject

_TOO_MANY = 1 << 63  # numbers without end cannot be multiplied by a price


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens that a model counted; adding two gives their sum.

    Attributes:
        input_tokens: Tokens of the request, cached ones included.
        output_tokens: Tokens of the reply, reasoning included.
        cached_tokens: Those of `input_tokens` that the provider read from its cache.
        reasoning_tokens: Those of `output_tokens` that went into thinking.
        cache_write_tokens: Those of `input_tokens` that the provider wrote into its cache, where
            it charges for that.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Tokens in and out together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    def dict(self) -> JSONObject:
        """Returns the JSON form, with the total."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "total_tokens": self.total_tokens,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TokenUsage:
        """Loads what `dict` wrote.

        Raises:
            ValueError: A field is no count of tokens.
        """
        return cls(
            _count(data["input_tokens"]),
            _count(data["output_tokens"]),
            _count(data.get("cached_tokens", 0)),
            _count(data.get("reasoning_tokens", 0)),
            _count(data.get("cache_write_tokens", 0)),
        )


@dataclass(slots=True)
class Timing:
    """When something began and ended, in seconds since the epoch."""

    start_time: float
    end_time: float | None = None

    @property
    def duration(self) -> float | None:
        """Seconds from start to end; `None` while it lasts."""
        return None if self.end_time is None else self.end_time - self.start_time

    def dict(self) -> JSONObject:
        """Returns the JSON form, with the duration."""
        return {
            "start_time": self.start_time,
            "end_time": self.end_time,
            "duration": self.duration,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Timing:
        """Loads what `dict` wrote.

        Raises:
            ValueError: A field is no time.
        """
        end = data.get("end_time")
        return cls(_time(data["start_time"]), None if end is None else _time(end))


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < _TOO_MANY:
        raise ValueError("what is saved as a number of tokens is none")
    return value


def _time(value: object) -> float:
    if type(value) is not float and (type(value) is not int or abs(value) >= _TOO_MANY):
        raise ValueError("what is saved as a time is none")
    return value
