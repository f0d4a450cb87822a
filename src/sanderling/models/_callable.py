"""Plain functions as models."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sanderling.errors import AgentGenerationError
from sanderling.messages import (
    ChatMessage,
    MessageRole,
)

from ._base import Model, ToolLike, given_arguments
from ._stop import cut_at_stop

if TYPE_CHECKING:
    from sanderling.messages import JSONObject, MessageLike


def as_model(obj: object) -> Model:
    """Returns `obj` itself, if it is a `Model`, or a model that calls it or its ``generate``.

    A function is a model when it takes the list of messages as its first argument and returns a
    `ChatMessage`, a dict with ``content``, a text, or an object with ``content`` such as the OpenAI
    SDK's message. It may be async. Of the arguments of `Model.generate` it gets those by keyword
    that its signature names: ``stop_sequences``, ``response_format``, ``tools_to_call_from``,
    ``grammar`` and so on. Stop sequences that it does not take are cut from its reply.

    Raises:
        TypeError: `obj` is no model.
    """
    if isinstance(obj, Model):
        return obj
    if not isinstance(obj, type) and callable(generate := getattr(obj, "generate", None)):
        named = getattr(obj, "model_id", None) or type(obj).__name__
        return CallableModel(generate, named, getattr(obj, "takes_tool_messages", False))
    if isinstance(obj, type) or not callable(obj):
        what = f"the class {obj.__name__}" if isinstance(obj, type) else type(obj).__name__
        hint = " Did you mean to make an instance of it?" if isinstance(obj, type) else ""
        raise TypeError(
            f"A model is an instance of sanderling.models.Model, or a function that takes a list "
            f"of messages and returns a ChatMessage; this is {what}.{hint}"
        )
    return CallableModel(obj, takes_tool_messages=getattr(obj, "takes_tool_messages", False))


class CallableModel(Model):
    """A function that answers messages, as a model; `as_model` makes it."""

    def __init__(
        self,
        function: Callable[..., Any],
        model_id: object = None,
        takes_tool_messages: object = False,
    ) -> None:
        named = model_id or getattr(function, "model_id", None)
        super().__init__(model_id=named if isinstance(named, str) else _name(function))
        self.takes_tool_messages = takes_tool_messages is True  # whatever a mock has there
        self._function = function
        called = function if inspect.isroutine(function) else type(function).__call__
        self._is_async = inspect.iscoroutinefunction(called)
        self._accepted = _accepted(function)

    @property
    def prefers_async(self) -> bool:
        """Whether the function is async."""
        return self._is_async

    def generate(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """Calls the function; see `as_model` for what it gets."""
        given = given_arguments(stop_sequences, response_format, tools_to_call_from, kwargs)
        reply = self._function(_as_list(messages), **self._taken(given))
        if inspect.isawaitable(reply):
            from sanderling._bridge import wait_for

            reply = wait_for(_finish(reply))
        return self._reply(reply, stop_sequences)

    async def agenerate(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """Awaits the function, or calls it in a worker thread if it is not async."""
        given = given_arguments(stop_sequences, response_format, tools_to_call_from, kwargs)
        arguments = self._taken(given)
        if self._is_async:
            reply = await self._function(_as_list(messages), **arguments)
        else:
            from sanderling._bridge import in_thread

            reply = await in_thread(lambda: self._function(_as_list(messages), **arguments))
            if inspect.isawaitable(reply):
                reply = await reply
        return self._reply(reply, stop_sequences)

    def to_dict(self) -> JSONObject:
        """Refuses: a function has no JSON form.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            f"The model {self.model_id!r} is a plain function, which cannot be saved as data. "
            "Write it as a subclass of sanderling.models.Model, and load it through that class."
        )

    def _taken(self, given: Mapping[str, Any]) -> dict[str, Any]:
        if self._accepted is None:
            return dict(given)
        return {name: value for name, value in given.items() if name in self._accepted}

    def _reply(self, reply: object, stop_sequences: Sequence[str] | None) -> ChatMessage:
        message = as_message(reply, self.model_id)
        if stop_sequences and self._accepted is not None and "stop_sequences" not in self._accepted:
            return cut_at_stop(message, stop_sequences)
        return message


def _as_list(messages: Sequence[MessageLike]) -> list[ChatMessage]:
    return [ChatMessage.of(message) for message in messages]


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _accepted(function: Callable[..., Any]) -> frozenset[str] | None:
    """Returns the keywords that a function takes beside its messages; `None` if it takes any."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return frozenset()  # written in C, without a signature
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    # The first one is the messages, whatever it is called.
    return frozenset(parameter.name for parameter in parameters[1:] if parameter.kind in named)


def as_message(reply: object, name: str | None) -> ChatMessage:
    """Returns what a model of the user's returned as a message.

    Args:
        reply: A `ChatMessage`, a dict, a text, or a message of a provider's package.
        name: The name of the model, for the error.

    Raises:
        AgentGenerationError: It is none of them.
    """
    try:
        if isinstance(reply, ChatMessage):
            return reply
        if isinstance(reply, str):
            return ChatMessage(MessageRole.ASSISTANT, reply)
        if isinstance(reply, Mapping):
            message = ChatMessage.from_dict(
                {"role": MessageRole.ASSISTANT, **reply, "tool_calls": None}
            )
            return replace(message, tool_calls=reply.get("tool_calls"))
        if hasattr(reply, "content"):
            return _from_client(reply)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise AgentGenerationError(
            f"The model {name!r} returned a message that cannot be read ({error!r}): {reply!r:.200}"
        ) from error
    raise AgentGenerationError(
        f"The model {name!r} must return a ChatMessage, a dict or a text, "
        f"not {type(reply).__name__}: {reply!r:.200}"
    )


def _from_client(reply: Any) -> ChatMessage:
    """Reads what client libraries return: an object with the fields of a chat completion."""
    calls = getattr(reply, "tool_calls", None)
    if not (reply.content is None or isinstance(reply.content, str | list)):
        raise TypeError(f"its content is a {type(reply.content).__name__}")
    return ChatMessage(
        MessageRole.ASSISTANT,
        reply.content,
        calls if isinstance(calls, list) else None,
        raw=reply,
    )


async def _finish(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
