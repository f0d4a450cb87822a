"""Several models as one: where one fails, the next is asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any, Self

from sanderling._warn import warn
from sanderling.errors import AgentGenerationError
from sanderling.messages import ChatMessage, plain_messages

from ._base import Model
from ._callable import as_message, as_model
from ._form import MISSING_SECRETS, warn_of_missing
from ._registry import model_from_dict, model_to_dict

if TYPE_CHECKING:
    from sanderling.messages import ChatMessageStreamDelta, JSONObject, MessageLike


class FallbackModel(Model):
    """Asks the first of several models, and the next one where that fails.

    Each request begins with the first one. A model fails after its own retries: its server is down,
    its key refused, the conversation too long for it, … A stream is given up for the next model
    only as long as nothing of it was handed out.

    Args:
        models: The models, the best one first. Agents talk to all of them as the first one wants
            it, by its profile.

    Raises:
        ValueError: There is no model.
        TypeError: It is no list of models.
    """

    takes_tool_messages = True

    def __init__(self, models: Sequence[Any]) -> None:
        if isinstance(models, str) or not isinstance(models, Sequence):
            raise TypeError(f"models is a list of models, not {models!r:.80}")
        if not models:
            raise ValueError("a FallbackModel needs at least one model")
        self.models = [as_model(model) for model in models]
        super().__init__(model_id=self.models[0].model_id)
        self.profile = self.models[0].profile
        self.stream_attempts = max(model.stream_attempts for model in self.models)

    @property
    def prefers_async(self) -> bool:
        """Whether one of the models does."""
        return any(model.prefers_async for model in self.models)

    def generate(self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any) -> ChatMessage:
        """Answers a conversation.

        Raises:
            AgentGenerationError: All models failed; the message says how each did.
        """
        failures = _Failures()
        for model in self.models:
            with failures.of(model):
                reply = model.generate(_shown(model, messages), *args, **kwargs)
                return as_message(reply, model.model_id)
        raise failures.together()

    async def agenerate(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> ChatMessage:
        """Does what `generate` does, under asyncio."""
        failures = _Failures()
        for model in self.models:
            with failures.of(model):
                reply = await model.agenerate(_shown(model, messages), *args, **kwargs)
                return as_message(reply, model.model_id)
        raise failures.together()

    def generate_stream(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Answers piece by piece."""
        failures = _Failures()
        for model in self.models:
            with failures.of(model):
                shown = _shown(model, messages)
                with closing(model.generate_stream(shown, *args, **kwargs)) as deltas:
                    for delta in deltas:
                        failures.begun = True
                        yield delta
                return
        raise failures.together()

    async def agenerate_stream(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        """Does what `generate_stream` does, under asyncio."""
        failures = _Failures()
        for model in self.models:
            with failures.of(model):
                shown = _shown(model, messages)
                async with aclosing(model.agenerate_stream(shown, *args, **kwargs)) as deltas:
                    async for delta in deltas:
                        failures.begun = True
                        yield delta
                return
        raise failures.together()

    def parse_tool_calls(self, message: ChatMessage) -> ChatMessage:
        """Returns the message with its tool calls, as the first model reads them."""
        return self.models[0].parse_tool_calls(message)

    def to_dict(self) -> JSONObject:
        """Returns the JSON form, that of each model within."""
        models = [model_to_dict(model) for model in self.models]
        missing = [
            f"models.{place}.{name}"
            for place, each in enumerate(models)
            for name in _secrets_missing_in(each)
        ]
        return {"models": models, **({MISSING_SECRETS: missing} if missing else {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **given: Any) -> Self:
        """Makes the model that `to_dict` described.

        Args:
            data: What `to_dict` returned.
            **given: Arguments of the models within, by names such as ``"models.0.api_key"``.

        Raises:
            ValueError: A model is not known, or sets what only an argument may.
        """
        warn_of_missing(cls.__name__, data.get(MISSING_SECRETS, ()), given)
        models = []
        for place, each in enumerate(data["models"]):
            within = f"models.{place}."
            arguments = {
                name.removeprefix(within): value
                for name, value in given.items()
                if name.startswith(within)
            }
            try:
                models.append(model_from_dict(each, **arguments))
            except ValueError as error:
                raise ValueError(f"{error} Here each name begins with {within!r}.") from None
        others = {name: value for name, value in given.items() if not name.startswith("models.")}
        return cls(**{"models": models, **others})


def _shown(model: Model, messages: Sequence[MessageLike]) -> Sequence[MessageLike]:
    return messages if model.takes_tool_messages else plain_messages(map(ChatMessage.of, messages))


def _secrets_missing_in(saved: Mapping[str, Any]) -> Sequence[str]:
    missing: Sequence[str] = saved["data"].get(MISSING_SECRETS, ())
    return missing


class _Failures:
    """What went wrong so far.

    Attributes:
        begun: Whether a part of a reply was handed out: then nobody else is asked.
    """

    def __init__(self) -> None:
        self.begun = False
        self._model = ""
        self._errors: list[tuple[str, AgentGenerationError]] = []

    def of(self, model: Model) -> Self:
        """Notes the failure of a model, in the context this returns."""
        self._model = f"{type(model).__name__} {model.model_id!r}"
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if self.begun or not isinstance(error, AgentGenerationError):
            return False
        self._errors.append((self._model, error))
        warn(f"{self._model} failed, asking the next model: {error}")
        return True

    def together(self) -> AgentGenerationError:
        """Returns the error for all of them: of the kind of the last one."""
        last = self._errors[-1][1]
        if len(self._errors) == 1:
            return last
        told = "\n".join(f"- {name}: {error}" for name, error in self._errors)
        error = type(last)(
            f"All {len(self._errors)} models failed:\n{told}",
            status=last.status,
            request_id=last.request_id,
            retryable=last.retryable,
            retry_after=last.retry_after,
        )
        error.__cause__ = last
        return error
