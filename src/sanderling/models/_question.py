"""What a model is asked, as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._stop import stops_of
from ._structured import form_of

if TYPE_CHECKING:
    from sanderling.messages import MessageLike

    from ._base import ToolLike


@dataclass(frozen=True, slots=True)
class Question:
    """What a model was asked, in the terms of `Model.generate`.

    Attributes:
        messages: The conversation.
        stops: Where the reply ends.
        response_format: What the reply must look like, as chat completions write it.
        tools: What the model may call.
        options: All further parameters.
        streamed: Whether the reply is wanted piece by piece.
    """

    messages: Sequence[MessageLike]
    stops: tuple[str, ...] = ()
    response_format: Mapping[str, Any] | None = None
    tools: tuple[ToolLike, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    streamed: bool = False


def question_of(
    messages: Sequence[MessageLike],
    stop_sequences: Sequence[str] | None,
    response_format: Mapping[str, Any] | None,
    tools: Sequence[ToolLike] | None,
    options: Mapping[str, Any],
) -> Question:
    """Returns the arguments of `Model.generate` as one question."""
    stops = stops_of(stop_sequences)
    if response_format is None and (form := form_of(options.get("grammar"))) is not None:
        response_format = form
        options = {name: value for name, value in options.items() if name != "grammar"}
    return Question(messages, stops, response_format, tuple(tools or ()), options)
