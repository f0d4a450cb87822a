"""What every model is: something that answers a conversation with a message."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self

from sanderling._registry import Registry
from sanderling.messages import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCallStreamDelta,
    agglomerate_stream_deltas,
)

from ._capabilities import Capabilities, capabilities_of
from ._settings import FORM_SETTINGS, REMOVE_PARAMETER
from ._tool_calls import with_tool_calls

if TYPE_CHECKING:
    from sanderling.messages import JSONObject, MessageLike

    from ._profile import ModelProfile


class ToolLike(Protocol):
    """What a model needs to know of a tool."""

    name: str

    def to_json_schema(self) -> JSONObject:
        """Returns the tool as an entry of the ``tools`` of an OpenAI chat request."""


def _own_class(name: str) -> type[Model] | None:
    from sanderling import models

    known = getattr(models, name) if name in dir(models) else None
    return known if isinstance(known, type) and issubclass(known, Model) else None


#: The model classes that the form of an agent may name.
MODEL_CLASSES: Final[Registry[Any]] = Registry(_own_class)


class Model:
    """Answers conversations. Subclass it and write `generate`, or any one of its siblings.

    `generate`, `generate_stream`, `agenerate` and `agenerate_stream` are four doors to one thing: a
    subclass that writes one of them, or only ``__call__``, has them all. A blocking method serves
    an event loop from a worker thread; a coroutine serves blocking code from a private event loop;
    a reply that is not streamed is a stream of one delta.

    Args:
        flatten_messages_as_text: Send every message as one text, for servers that take no parts.
        tool_name_key: Where a tool call that is written as JSON in the text has the tool's name.
        tool_arguments_key: Where it has the arguments.
        model_id: The provider's name of the model.
        **kwargs: Parameters of every request. They win over those of a single call. The value
            `REMOVE_PARAMETER` keeps a parameter out of the request.

    Attributes:
        provider: Where the class stands in the table of capabilities.
        profile: How agents talk to this model, if their own prompts do not suit it.
        takes_tool_messages: Whether agents send calls of tools and their results as providers have
            them: messages with `ChatMessage.tool_calls` and `ChatMessage.tool_call_id`. Otherwise
            they are texts, with the roles ``"tool-call"`` and ``"tool-response"``.
        stream_attempts: How often at most an agent asks for a reply that breaks off while it is
            streamed.
        form_settings: The arguments that a saved form may choose; `from_dict` takes all others
            from your program only. A subclass adds what is harmless in anybody's hand:
            ``form_settings = Model.form_settings | {"tries"}``.
        secret_settings: The arguments that are secret; those whose name or value looks like it are
            so without being declared.
    """

    provider: ClassVar[str] = ""
    form_settings: ClassVar[frozenset[str]] = FORM_SETTINGS
    # Those that a form may choose as well, where the program passes the key in: then the package
    # sends no key of the environment there.
    _with_key: ClassVar[frozenset[str]] = frozenset()
    secret_settings: ClassVar[frozenset[str]] = frozenset({"api_key", "token"})
    profile: ModelProfile | None = None
    takes_tool_messages: bool = False
    stream_attempts: int = 1
    _missing_secrets: tuple[str, ...] = ()
    # A class of the user's may have an __init__ that does not call this one.
    flatten_messages_as_text: bool = False
    tool_name_key: str = "name"
    tool_arguments_key: str = "arguments"
    model_id: str | None = None
    kwargs: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        flatten_messages_as_text: bool = False,
        tool_name_key: str = "name",
        tool_arguments_key: str = "arguments",
        model_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.flatten_messages_as_text = flatten_messages_as_text
        self.tool_name_key = tool_name_key
        self.tool_arguments_key = tool_arguments_key
        self.model_id = model_id
        self.kwargs = kwargs

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        MODEL_CLASSES.add(cls)
        # A class that redefines one twin of a model that has both must not be passed by.
        for twin, other in (
            ("generate", "agenerate"),
            ("agenerate", "generate"),
            ("generate_stream", "agenerate_stream"),
            ("agenerate_stream", "generate_stream"),
        ):
            if twin in vars(cls) and other not in vars(cls):
                setattr(cls, other, vars(Model)[other])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, 'model_id', None)!r})"

    def generate(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """Answers a conversation.

        Args:
            messages: The conversation so far.
            stop_sequences: Texts at which the reply ends; they are not part of it.
            response_format: What the reply must look like, as chat completions write it.
            tools_to_call_from: Tools that the model may call.
            **kwargs: Further parameters of the request.

        Raises:
            AgentGenerationError: The model could not be asked.
        """
        request = given_arguments(stop_sequences, response_format, tools_to_call_from, kwargs)
        if self._has("agenerate"):
            from sanderling._bridge import wait_for

            return wait_for(self.agenerate(messages, **request))
        if self._has("generate_stream") or self._has("agenerate_stream"):
            return agglomerate_stream_deltas(self.generate_stream(messages, **request))
        return self._of_call().generate(messages, **request)

    async def agenerate(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """Does what `generate` does, under asyncio."""
        request = given_arguments(stop_sequences, response_format, tools_to_call_from, kwargs)
        if self._has("generate"):
            from sanderling._bridge import in_thread

            return await in_thread(lambda: self.generate(messages, **request))
        if self._has("generate_stream") or self._has("agenerate_stream"):
            stream = self.agenerate_stream(messages, **request)
            return agglomerate_stream_deltas([delta async for delta in stream])
        return await self._of_call().agenerate(messages, **request)

    def generate_stream(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Answers a conversation piece by piece; takes and raises what `generate` does.

        Closing the generator ends the reply.
        """
        request = given_arguments(stop_sequences, response_format, tools_to_call_from, kwargs)
        if self._has("agenerate_stream"):
            from ._twins import iterate

            yield from iterate(self.agenerate_stream(messages, **request))
        else:
            yield as_delta(self._message(self.generate(messages, **request)))

    async def agenerate_stream(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        """Does what `generate_stream` does, under asyncio."""
        request = given_arguments(stop_sequences, response_format, tools_to_call_from, kwargs)
        if self._has("generate_stream"):
            from contextlib import aclosing

            from ._twins import aiterate

            async with aclosing(aiterate(self.generate_stream(messages, **request))) as stream:
                async for delta in stream:
                    yield delta
        else:
            yield as_delta(self._message(await self.agenerate(messages, **request)))

    def __call__(self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any) -> ChatMessage:
        """Does what `generate` does."""
        return self.generate(messages, *args, **kwargs)

    @property
    def prefers_async(self) -> bool:
        """Whether blocking code asks it by its coroutines, from a private event loop.

        Those can be cancelled; a blocking method is left behind in its thread when nobody waits for
        it any more. A class that has both returns True where cancelling frees something.
        """
        has_async = self._has("agenerate") or self._has("agenerate_stream")
        return has_async and not (self._has("generate") or self._has("generate_stream"))

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return capabilities_of(self.provider, self.model_id)

    @property
    def supports_stop_parameter(self) -> bool:
        """Whether the provider cuts at stop sequences; otherwise that is done here."""
        return self.capabilities.stop

    def parse_tool_calls(self, message: ChatMessage) -> ChatMessage:
        """Returns the message with its tool calls, read from the text where it has none.

        Raises:
            AgentParsingError: The message calls no tool.
        """
        return with_tool_calls(message, self.tool_name_key, self.tool_arguments_key)

    def to_dict(self) -> JSONObject:
        """Returns what the model was made with, as JSON: `from_dict` makes an equal one.

        A class with an ``__init__`` of its own returns the arguments of that instead. Secrets are
        left out, and named under ``missing_secrets``.
        """
        from sanderling._secrets import secrets_in

        from ._form import MISSING_SECRETS, saved

        settings = self._settings()
        declared = self.secret_settings
        data = saved(type(self).__name__, settings, declared)
        missing = sorted({*secrets_in(settings, declared), *self._missing_secrets})
        return {**data, MISSING_SECRETS: missing} if missing else data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **given: Any) -> Self:
        """Makes the model that `to_dict` described.

        Args:
            data: What `to_dict` returned. It may choose `form_settings` only.
            **given: Arguments of ``__init__`` that are added, or win: the secrets, above all, by
                the names that ``missing_secrets`` has; and what a form may not choose, such as the
                address of a server.

        Raises:
            ValueError: The form sets what only an argument may.
            TypeError: What was saved is not what ``__init__`` takes: a class with an ``__init__``
                of its own has a ``to_dict`` of its own as well.
        """
        from ._access import loading
        from ._form import (
            MISSING_SECRETS,
            check_form,
            check_taken,
            loaded,
            warn_of_missing,
            with_given,
        )

        check_form(cls, data, given)
        settings = with_given(loaded(data), given)
        missing = warn_of_missing(cls.__name__, settings.pop(MISSING_SECRETS, ()), given)
        check_taken(cls, settings)
        with loading():
            model = cls(**settings)
        model._missing_secrets = missing
        return model

    def _settings(self) -> dict[str, object]:
        """Returns the arguments of ``__init__``; subclasses add theirs."""
        settings: dict[str, object] = {"model_id": self.model_id, **self.kwargs}
        for name, default in (
            ("flatten_messages_as_text", False),
            ("tool_name_key", "name"),
            ("tool_arguments_key", "arguments"),
        ):
            if (value := getattr(self, name)) != default:
                settings[name] = value
        return settings

    def _parameters(
        self, specific: Mapping[str, object], call: Mapping[str, object]
    ) -> dict[str, Any]:
        """Joins the parameters of a request: those of the model win over those of the call."""
        joined = {**specific, **call, **self.kwargs}
        return {name: value for name, value in joined.items() if value is not REMOVE_PARAMETER}

    def _message(self, reply: object) -> ChatMessage:
        """Returns a reply as a message: a class of the user's may return a text or a dict."""
        from ._callable import as_message

        return as_message(reply, self.model_id or type(self).__name__)

    def _has(self, method: str) -> bool:
        return getattr(type(self), method) is not vars(Model)[method]

    def _of_call(self) -> Model:
        """Returns a model that asks ``__call__``, which old models have in place of `generate`."""
        if not self._has("__call__"):
            raise self._unwritten()
        from ._callable import CallableModel

        return CallableModel(self.__call__, self.model_id)

    def _unwritten(self) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} cannot answer: write `def generate(self, messages, "
            "stop_sequences=None, response_format=None, tools_to_call_from=None, **kwargs)` in it, "
            "or `async def agenerate` with the same arguments."
        )


def given_arguments(
    stop_sequences: Sequence[str] | None,
    response_format: Mapping[str, Any] | None,
    tools_to_call_from: Sequence[ToolLike] | None,
    kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    """Names the arguments that are there: a subclass need not take those that nobody gave."""
    request = dict(kwargs)
    if stop_sequences is not None:
        request["stop_sequences"] = stop_sequences
    if response_format is not None:
        request["response_format"] = response_format
    if tools_to_call_from is not None:
        request["tools_to_call_from"] = tools_to_call_from
    return request


def as_delta(message: ChatMessage) -> ChatMessageStreamDelta:
    """Returns a whole reply as one delta."""
    calls = [
        ChatMessageToolCallStreamDelta(place, call.id, call.type, call.function)
        for place, call in enumerate(message.tool_calls or ())
    ]
    return ChatMessageStreamDelta(
        content=message.text or None,
        tool_calls=calls or None,
        token_usage=message.token_usage,
        finish_reason=message.finish_reason,
        reasoning=message.reasoning,
        native=message.native,
    )
