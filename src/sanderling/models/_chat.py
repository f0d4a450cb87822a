"""Models that speak chat completions: how they are asked, and how their answers are read.

https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ._api import ApiModel
from ._cache_marks import with_cache_marks
from ._completions import StreamReader, read_completion, told_failure
from ._failures import explained
from ._messages import to_chat_messages

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage

    from ._question import Question


class ChatCompletionsModel(ApiModel):
    """Base of the models that speak chat completions, through whatever package."""

    def _prepare(self, question: Question) -> dict[str, Any]:
        abilities = self.capabilities
        messages = to_chat_messages(
            question.messages,
            self.custom_role_conversions,
            self.flatten_messages_as_text or not abilities.images,
        )
        specific: dict[str, object] = {
            "model": self.model_id,
            "messages": with_cache_marks(messages) if abilities.cache_marks else messages,
        }
        if question.stops and self.supports_stop_parameter:
            specific["stop"] = list(question.stops[: abilities.max_stops])
        if question.response_format is not None:
            specific["response_format"] = question.response_format
        if question.tools and abilities.tools:
            specific["tools"] = [tool.to_json_schema() for tool in question.tools]
            if abilities.tool_choice:
                specific["tool_choice"] = "required"
        if question.streamed:
            # Without the option the usage of a streamed reply is not told.
            specific["stream_options"] = {"include_usage": True}
        request = self._parameters(specific, question.options)
        return {**request, "stream": True} if question.streamed else request

    def _read(self, answer: Any) -> ChatMessage:
        if (failure := told_failure(answer)) is not None:
            raise explained(failure, self._asked())
        return read_completion(answer)

    def _reader(self) -> StreamReader:
        return StreamReader()


def known_apart(request: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Moves the parameters that a package does not know to where it passes them on."""
    arguments = {name: value for name, value in request.items() if name in known}
    if others := {name: value for name, value in request.items() if name not in known}:
        arguments["extra_body"] = {**others, **(request.get("extra_body") or {})}
    return arguments
