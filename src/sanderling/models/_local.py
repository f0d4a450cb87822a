"""What models share whose weights are in this process: all but llama.cpp's, which does it itself.

A file of such a model writes `_deltas`, which answers one question piece by piece and looks at
every token whether the question was cancelled. Everything else is here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from sanderling.errors import AgentGenerationError, MissingExtraError
from sanderling.messages import agglomerate_stream_deltas

from ._access import check_installed, is_loading
from ._arguments import as_settings, check_text
from ._base import Model, ToolLike, as_delta
from ._capabilities import Capabilities, capabilities_of
from ._chat_template import Prompt
from ._failures import short
from ._messages import roles_of, to_chat_messages
from ._profile import ModelProfile, as_profile, profile_setting
from ._question import Question, question_of
from ._stop import stops_of
from ._structured import asettle, schema_of, settle, told_and_checked
from ._twins import aiterate

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage, ChatMessageStreamDelta, MessageLike

    from ._messages import RoleConversions


class LocalModel(Model):
    """Base of the models whose weights are loaded into this process.

    Args:
        model_id: A repository on the Hub, or a folder.
        apply_chat_template_kwargs: For the chat template, such as ``{"enable_thinking": False}``,
            or another ``chat_template``.
        capabilities: What the model can do otherwise than its row in the table says.
        profile: How agents are to talk to this model; a `ModelProfile`, or the name of one.
        custom_role_conversions: Which role stands for which; replaces the usual ones (tool call to
            assistant, tool response to user).
        **kwargs: As for every `Model`.

    Raises:
        ValueError: There is no such capability, no such profile, or no such role.
        MissingExtraError: The package that runs the model is not installed.
    """

    takes_tool_messages = True
    #: The extra of this distribution that is needed, and what is imported of it.
    _needs: ClassVar[tuple[str, ...]]
    model_id: str
    form_settings = Model.form_settings | {"apply_chat_template_kwargs"}

    def __init__(
        self,
        model_id: str,
        apply_chat_template_kwargs: Mapping[str, Any] | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        profile: ModelProfile | Mapping[str, Any] | str | None = None,
        custom_role_conversions: RoleConversions | None = None,
        **kwargs: Any,
    ) -> None:
        check_text("model_id", model_id)
        if not is_loading():
            check_installed(type(self).__name__, *self._needs)
        super().__init__(model_id=model_id, **kwargs)
        roles_of(custom_role_conversions)
        self.custom_role_conversions = custom_role_conversions
        self.apply_chat_template_kwargs = as_settings(
            "apply_chat_template_kwargs", apply_chat_template_kwargs
        )
        self.profile = as_profile(profile)
        self._given_capabilities = as_settings("capabilities", capabilities)
        self._capabilities = capabilities_of(self.provider, model_id, capabilities)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_loaded": None}  # copies find the weights by their settings

    def _deltas(
        self, question: Question, cancelled: threading.Event
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Answers; the last delta has the usage and the finish reason.

        Closing the generator ends the reply, as does `cancelled`, at the next token.
        """
        raise NotImplementedError

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self._capabilities

    @property
    def prefers_async(self) -> bool:
        """A reply that nobody waits for any more ends at the next token."""
        return True

    def generate_stream(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Answers piece by piece; closing the generator stops the model at its next token.

        A reply that must fit a JSON schema which the model cannot be held to comes in one piece, as
        it has to be checked first.
        """
        question = question_of(
            messages, stop_sequences, response_format, tools_to_call_from, kwargs
        )
        if (schema := self._schema_to_check(question)) is None:
            yield from self._answer(question, threading.Event())
            return
        yield as_delta(
            settle(
                told_and_checked(messages, schema),
                lambda asked: agglomerate_stream_deltas(
                    self._answer(_plain(question, asked), threading.Event())
                ),
            )
        )

    async def agenerate_stream(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        """Does what `generate_stream` does, under asyncio; the model works in a thread."""
        question = question_of(
            messages, stop_sequences, response_format, tools_to_call_from, kwargs
        )
        if (schema := self._schema_to_check(question)) is None:
            async with aclosing(self._aanswer(question)) as deltas:
                async for delta in deltas:
                    yield delta
            return

        async def answer(asked: list[MessageLike]) -> ChatMessage:
            async with aclosing(self._aanswer(_plain(question, asked))) as deltas:
                return agglomerate_stream_deltas([delta async for delta in deltas])

        yield as_delta(await asettle(told_and_checked(messages, schema), answer))

    @property
    def supports_stop_parameter(self) -> bool:
        """True: the model is ended at stop sequences."""
        return True

    def _answer(
        self, question: Question, cancelled: threading.Event
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        with self._explained(), closing(self._deltas(question, cancelled)) as deltas:
            yield from deltas

    async def _aanswer(self, question: Question) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        cancelled = threading.Event()
        async with aclosing(aiterate(self._answer(question, cancelled))) as deltas:
            try:
                async for delta in deltas:
                    yield delta
            finally:
                # Before the stream is closed, which waits for its next delta.
                cancelled.set()

    def _schema_to_check(self, question: Question) -> Mapping[str, Any] | None:
        if self._capabilities.json_schema:
            return None
        return schema_of(question.response_format)

    def _prompt(self, question: Question, sees: bool = False) -> Prompt:
        """Returns a question for the chat template, which need not heed the tools."""
        text_only = self.flatten_messages_as_text or not sees
        entries = to_chat_messages(question.messages, self.custom_role_conversions, text_only)
        shown = question.tools if self._capabilities.tools else ()
        tools = [tool.to_json_schema() for tool in shown]
        return Prompt(entries, tools or None, self.apply_chat_template_kwargs)

    def _request(
        self, question: Question, defaults: Mapping[str, object]
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Returns where the reply ends, and the further parameters.

        The stop sequences of the question do not take the place of those that the model, or the
        call, has as its parameter ``stop``: the reply ends at the first of all.
        """
        options = self._parameters(defaults, question.options)
        return (*question.stops, *stops_of(options.pop("stop", None))), options

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns the errors of packages into ours."""
        try:
            yield
        except (AgentGenerationError, MissingExtraError):
            raise
        except Exception as error:
            raise AgentGenerationError(
                f"{type(self).__name__} cannot answer with {self.model_id!r}: {short(error)}"
            ) from error

    def _settings(self) -> dict[str, object]:
        given: dict[str, object] = {
            "apply_chat_template_kwargs": self.apply_chat_template_kwargs or None,
            "custom_role_conversions": self.custom_role_conversions,
            "capabilities": self._given_capabilities or None,
            "profile": profile_setting(self.profile),
        }
        there = {name: value for name, value in given.items() if value is not None}
        return {**super()._settings(), **there}


def settings_key(settings: Mapping[str, object]) -> str:
    """Returns what two models have in common that may share their weights."""
    return json.dumps(settings, default=repr, sort_keys=True)


def _plain(question: Question, asked: list[MessageLike]) -> Question:
    return replace(question, messages=asked, response_format=None)
