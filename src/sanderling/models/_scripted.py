"""A model that says what it is told to: for tests of agents, without a server or a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from sanderling.errors import AgentGenerationError
from sanderling.messages import ChatMessage, ChatMessageStreamDelta, MessageRole, TokenUsage

from ._base import Model, ToolLike, as_delta
from ._copies import OwnLock
from ._stop import cut_at_stop, stops_of

if TYPE_CHECKING:
    from sanderling.messages import JSONObject, MessageLike

    from ._profile import ModelProfile

Reply: TypeAlias = str | ChatMessage | Mapping[str, Any] | Exception

_WORD = re.compile(r"\s*\S+|\s+$")


@dataclass(frozen=True, slots=True)
class ScriptedRequest:
    """A request that a `ScriptedModel` got.

    Attributes:
        messages: The conversation.
        stop_sequences: Where the reply had to end.
        response_format: What the reply had to look like.
        tools: Names of the tools that could be called.
        options: All further parameters.
    """

    messages: tuple[ChatMessage, ...]
    stop_sequences: tuple[str, ...]
    response_format: Mapping[str, Any] | None
    tools: tuple[str, ...]
    options: Mapping[str, Any]


class ScriptedModel(Model):
    """Gives the replies of a script, in order, and keeps the requests that it got.

    A reply without a usage gets one that depends on the texts alone: a token per word. Runs that go
    on at the same time share the script; where each needs its own replies, give a function.

    Args:
        replies: Texts, messages, their dicts, and exceptions, which are raised; or a function from
            the messages to one of these.
        model_id: Names the model.
        profile: As for any model.

    Attributes:
        requests: The requests so far.
    """

    takes_tool_messages = True

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[list[ChatMessage]], Reply],
        model_id: str = "scripted",
        profile: ModelProfile | None = None,
    ) -> None:
        super().__init__(model_id=model_id)
        if isinstance(replies, str | Mapping):
            raise TypeError("replies is a list of replies: put the one you have into a list")
        self.profile = profile
        self.requests: list[ScriptedRequest] = []
        self._function = replies if callable(replies) else None
        self._replies: list[Reply] = [] if callable(replies) else list(replies)
        self._next = 0
        self._lock = OwnLock()

    @property
    def remaining(self) -> int:
        """How many replies of the script are left."""
        return len(self._replies) - self._next

    def generate(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """Gives the next reply, cut at the first stop sequence.

        Raises:
            AgentGenerationError: The script is at its end.
            Exception: The script says so.
        """
        conversation = _as_messages(messages)
        request = ScriptedRequest(
            messages=conversation,
            stop_sequences=stops_of(stop_sequences),
            response_format=response_format,
            tools=tuple(tool.name for tool in tools_to_call_from or ()),
            options=kwargs,
        )
        reply = self._reply_to(request)
        if isinstance(reply, Exception):
            raise reply
        message = _as_message(reply)
        if message.token_usage is None:
            message = replace(message, token_usage=_counted(conversation, message))
        return cut_at_stop(message, request.stop_sequences)

    async def agenerate(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> ChatMessage:
        """Does what `generate` does."""
        return self.generate(messages, *args, **kwargs)

    def generate_stream(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Gives the next reply word by word, then the rest of it."""
        yield from spelled(self.generate(messages, *args, **kwargs))

    def to_dict(self) -> JSONObject:
        """Refuses: a script is no setting.

        Raises:
            TypeError: Always.
        """
        raise TypeError("A ScriptedModel is made for one test and cannot be saved.")

    def _reply_to(self, request: ScriptedRequest) -> Reply:
        with self._lock:
            self.requests.append(request)
            if self._function is None:
                if not self.remaining:
                    raise AgentGenerationError(
                        f"The script of this ScriptedModel is used up: it has "
                        f"{len(self._replies)} replies, and this is request "
                        f"{len(self.requests)}. The last message was: "
                        f"{request.messages[-1].text[-300:] if request.messages else '(none)'}"
                    )
                self._next += 1
                return self._replies[self._next - 1]
        return self._function(list(request.messages))


def spelled(message: ChatMessage) -> Generator[ChatMessageStreamDelta, None, None]:
    """Yields a message word by word, then what else there is to it."""
    for word in _WORD.findall(message.text):
        yield ChatMessageStreamDelta(word)
    yield replace(as_delta(message), content=None)


def _as_messages(messages: Sequence[MessageLike]) -> tuple[ChatMessage, ...]:
    # Asked at each step of a run: what there is to convert must not cost a look at every message.
    if {ChatMessage}.issuperset(map(type, messages)):
        return cast("tuple[ChatMessage, ...]", tuple(messages))
    return tuple(ChatMessage.of(message) for message in messages)


def _as_message(reply: str | ChatMessage | Mapping[str, Any]) -> ChatMessage:
    if isinstance(reply, ChatMessage):
        return reply
    if isinstance(reply, str):
        return ChatMessage(MessageRole.ASSISTANT, reply)
    return ChatMessage.from_dict({"role": MessageRole.ASSISTANT, **reply})


def _counted(messages: Sequence[ChatMessage], reply: ChatMessage) -> TokenUsage:
    return TokenUsage(
        sum(len(message.text.split()) for message in messages), len(reply.text.split())
    )
