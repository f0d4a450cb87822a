"""Models in this process with vLLM: many replies are written at once.

Written for vLLM 0.33: https://docs.vllm.ai/en/v0.33.0/api/vllm/v1/engine/async_llm/
"""

from __future__ import annotations

import gc
import threading
import uuid
from collections.abc import AsyncIterator, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar

from sanderling.errors import AgentGenerationError, MissingExtraError
from sanderling.messages import ChatMessageStreamDelta, TokenUsage

from ._arguments import as_settings
from ._failures import short
from ._local import LocalModel, settings_key
from ._shared import shared
from ._structured import schema_of
from ._thinking import LAST_TOKENS, opens_thinking, split_thinking
from ._twins import iterate

if TYPE_CHECKING:
    from ._question import Question

# As smolagents has them.
_DEFAULTS: dict[str, Any] = {"temperature": 0.0, "max_tokens": 2048}


class VLLMModel(LocalModel):
    """Runs a model with vLLM, in this process. Nothing is loaded before it is asked.

    The replies of runs that go on at the same time are written together. Beginnings of
    conversations that were read before are not read again.

    Args:
        model_id: A repository on the Hub, or a folder.
        model_kwargs: Further arguments of vLLM's engine, such as ``max_model_len``,
            ``tensor_parallel_size`` or ``gpu_memory_utilization``.
        apply_chat_template_kwargs: For the chat template, such as ``{"enable_thinking": False}``.
        **kwargs: For each reply, as vLLM's `SamplingParams` takes them (by default
            ``temperature=0`` and ``max_tokens=2048``), ``grammar``, and what every `Model` takes.
    """

    provider: ClassVar[str] = "vllm"
    _needs = ("vllm", "vllm")

    def __init__(
        self,
        model_id: str,
        model_kwargs: Mapping[str, Any] | None = None,
        apply_chat_template_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model_id, apply_chat_template_kwargs, **kwargs)
        self.model_kwargs = as_settings("model_kwargs", model_kwargs)
        self._loaded: _Engine | None = None

    @property
    def model(self) -> Any:
        """The `vllm.AsyncLLMEngine`; loaded now, if it is not yet."""
        return self._engine().model

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer."""
        return self._engine().model.get_tokenizer()

    def cleanup(self) -> None:
        """Gives the memory back, unless another model shares it; the next question loads anew."""
        self._loaded = None
        gc.collect()

    def _deltas(
        self, question: Question, cancelled: threading.Event
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        engine = self._engine()
        reader = engine.model.get_tokenizer()
        prompt = self._prompt(question).read(reader, self.model_id, return_dict=True)
        tokens: list[int] = list(prompt["input_ids"])
        stops, options = self._request(question, _DEFAULTS)
        outputs = engine.write(tokens, _sampling(question, stops, options))
        opened = opens_thinking(reader.decode(tokens[-LAST_TOKENS:]))
        with closing(iterate(outputs)) as pieces:
            yield from split_thinking(_read(pieces, cancelled), opened)

    def _engine(self) -> _Engine:
        if self._loaded is None:
            settings = {"model": self.model_id, **self.model_kwargs}
            self._loaded = shared(_Engine, settings_key(settings), lambda: _Engine(settings))
        return self._loaded

    def _settings(self) -> dict[str, object]:
        given = {"model_kwargs": self.model_kwargs} if self.model_kwargs else {}
        return {**super()._settings(), **given}


class _Engine:
    """A loaded engine. It lives in our private event loop, whichever loop a question comes from."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        try:
            import vllm  # type: ignore[import-not-found,unused-ignore]  # 8 GB, for GPUs
        except ModuleNotFoundError as error:
            raise MissingExtraError("VLLMModel", "vllm", "vllm") from error
        try:
            self.model: Any = vllm.AsyncLLMEngine.from_engine_args(vllm.AsyncEngineArgs(**settings))
        except Exception as error:
            raise AgentGenerationError(
                f"vLLM cannot load {settings['model']!r}: {short(error)}"
            ) from error

    def write(self, tokens: list[int], sampling: Any) -> AsyncIterator[Any]:
        """Returns the outputs for a prompt; closing the stream aborts the request."""
        written: AsyncIterator[Any] = self.model.generate(
            {"prompt_token_ids": tokens}, sampling, str(uuid.uuid4())
        )
        return written


def _read(
    outputs: Iterable[Any], cancelled: threading.Event
) -> Generator[ChatMessageStreamDelta, None, None]:
    """Yields what `vllm.RequestOutput`s add to the reply."""
    written = cached = 0
    for output in outputs:
        if cancelled.is_set():
            return
        (reply,) = output.outputs
        written += len(reply.token_ids)
        cached = output.num_cached_tokens or cached
        if reply.text:
            yield ChatMessageStreamDelta(reply.text)
        if output.finished:
            usage = TokenUsage(len(output.prompt_token_ids or ()), written, cached_tokens=cached)
            yield ChatMessageStreamDelta(token_usage=usage, finish_reason=reply.finish_reason)


def _sampling(question: Question, stops: Sequence[str], options: dict[str, Any]) -> Any:
    from vllm.sampling_params import (  # type: ignore[import-not-found,unused-ignore]
        RequestOutputKind,
        SamplingParams,
        StructuredOutputsParams,
    )

    schema, grammar = schema_of(question.response_format), options.pop("grammar", None)
    if schema is not None or grammar is not None:
        options["structured_outputs"] = StructuredOutputsParams(
            json=None if schema is None else dict(schema), grammar=grammar
        )
    return SamplingParams(**options, stop=list(stops) or None, output_kind=RequestOutputKind.DELTA)
