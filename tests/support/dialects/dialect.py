"""How the scenarios of `tests/models/conformance` are told to one provider's model."""

from __future__ import annotations

import importlib.util
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

if TYPE_CHECKING:
    from sanderling.models import Model
    from support.scripted_http import Answer, Request, ScriptedServer


#: What a provider may offer; each is proved by the test of that name, ``test_<feature>``.
FEATURES = (
    "plain",
    "streamed",
    "tools",
    "streamed_tools",
    "stop",
    "schema",
    "image",
    "image_url",
    "usage",
    "cached_usage",
    "reasoning",
    "cache_marks",
    "signed_thinking",
    "retry",
    "cancellation",
)


#: What a provider signs its thinking with, where it does.
SIGNATURE = "RXFRQkNnSVlBaElN"

_WHY = {"litellm": ": it wants an older openai, so it is tested in an environment of its own"}


@dataclass(frozen=True)
class Call:
    """A tool call, as a provider's model makes it."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """A reply, as a provider's server is to give it.

    Attributes:
        pieces: The text, as it is streamed.
        calls: The tool calls.
        reasoning: The thinking.
        finish: Why it ends, in the words of chat completions.
        input_tokens: Tokens of the request, cached ones included.
        output_tokens: Tokens of the reply, thinking included.
        cached: Those that were read from the cache.
        reasoning_tokens: Those of the thinking.
        ends: Whether a stream ends as it should: if not, it stops after the pieces.
        stall: Whether the connection stays open after that.
    """

    pieces: Sequence[str] = ("Hello", " world")
    calls: Sequence[Call] = ()
    reasoning: str = ""
    finish: str = "stop"
    input_tokens: int = 11
    output_tokens: int = 7
    cached: int = 0
    reasoning_tokens: int = 0
    ends: bool = True
    stall: bool = False

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)


@dataclass(frozen=True)
class Sent:
    """What a request of a provider says, in the terms of `Model.generate`.

    Attributes:
        texts: Role and text of each message; a system prompt comes first, as ``system``.
        images: Each image: a web address, or a ``data:`` URL.
        stops: The stop sequences.
        tools: The names of the tools.
        schema: The JSON schema of the reply.
        marks: How many cache marks there are.
        signatures: Those of the thinking that is sent back.
    """

    texts: Sequence[tuple[str, str]]
    images: Sequence[str] = ()
    stops: Sequence[str] = ()
    tools: Sequence[str] = ()
    schema: Mapping[str, Any] | None = None
    marks: int = 0
    signatures: Sequence[str] = ()


class Dialect(ABC):
    """One provider: its model, and what its server and its requests look like.

    Attributes:
        name: The class of the model; a row of the table in ``docs/models.md``.
        package: What is imported; the scenarios are skipped where it is not installed.
        offers: What the provider offers, of `FEATURES`.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    offers: ClassVar[frozenset[str]] = frozenset(FEATURES) - {"cache_marks", "signed_thinking"}

    @abstractmethod
    def model(self, server: ScriptedServer, **kwargs: Any) -> Model:
        """Returns a model that asks the server; repeats nothing unless `kwargs` say so."""

    @abstractmethod
    def whole(self, reply: Reply) -> Answer:
        """Returns the answer that gives a reply at once."""

    @abstractmethod
    def streamed(self, reply: Reply) -> Answer:
        """Returns the answer that gives a reply piece by piece."""

    @abstractmethod
    def fails(self, status: int, message: str, headers: Mapping[str, str]) -> Answer:
        """Returns the answer of a server that refuses, with a request id of ``req-42``."""

    @abstractmethod
    def sent(self, request: Request) -> Sent:
        """Reads a request."""

    #: A message of this provider for a conversation that is too long, and its status.
    too_long: ClassVar[tuple[int, str]] = (400, "This model's maximum context length is 8 tokens")
    #: The same for what its filter refuses; `None` where there is no filter.
    filtered: ClassVar[tuple[int, str] | None] = None

    def require(self) -> None:
        """Skips the test where the package is not installed; see `require`."""
        require(self.package)

    def __repr__(self) -> str:
        return self.name


def require(package: str) -> None:
    """Skips the test without the package; fails it where SANDERLING_REQUIRE names it."""
    with suppress(ModuleNotFoundError):  # that in which the package lies
        if importlib.util.find_spec(package) is not None:
            return
    if package in os.environ.get("SANDERLING_REQUIRE", "").split(","):
        pytest.fail(f"{package} is required here, and not installed")
    pytest.skip(f"{package} is not installed{_WHY.get(package, '')}")
