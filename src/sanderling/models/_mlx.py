"""Models in this process with MLX, Apple's library for its own chips; on Linux it has a CPU.

Written for mlx-lm 0.32: https://github.com/ml-explore/mlx-lm
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sanderling.errors import AgentGenerationError, MissingExtraError
from sanderling.messages import ChatMessageStreamDelta, TokenUsage

from ._arguments import as_settings, check_at_least
from ._chat_template import Prompt, longest_reply
from ._failures import short
from ._kv_cache import PrefixCaches
from ._local import LocalModel, settings_key
from ._shared import shared
from ._stop import StopCutter
from ._thinking import LAST_TOKENS, opens_thinking, split_thinking
from ._worker import Worker

if TYPE_CHECKING:
    from ._question import Question

_MAX_TOKENS: Final = 4096
# What `make_sampler` takes; the name that it has for the temperature.
_SAMPLING: Final = {"temperature": "temp", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p"}


class MLXModel(LocalModel):
    """Runs a model with MLX, in this process. Nothing is loaded before it is asked.

    The keys and values of past conversations are kept, so that each step of a run reads only what
    is new. Two models made alike share their weights; questions of several runs wait for each
    other.

    Args:
        model_id: A repository on the Hub, such as those of ``mlx-community``, or a folder.
        trust_remote_code: Run the Python code that the repository has: in this process, without a
            sandbox.
        load_kwargs: Further arguments of ``mlx_lm.load``, such as ``adapter_path``.
        apply_chat_template_kwargs: For the chat template, such as ``{"enable_thinking": False}``.
        kv_caches: Of how many conversations the keys and values are kept; 0 for none.
        **kwargs: For each reply: ``max_tokens`` (by default 4096), ``temperature`` (0), ``top_p``,
            ``top_k``, ``min_p``, further arguments of ``mlx_lm.stream_generate``; and what every
            `Model` takes.

    Raises:
        ValueError: `kv_caches` is negative.
    """

    provider: ClassVar[str] = "mlx"
    _needs = ("mlx-lm", "mlx_lm")
    form_settings = LocalModel.form_settings | {"kv_caches"}

    def __init__(
        self,
        model_id: str,
        trust_remote_code: bool = False,
        load_kwargs: Mapping[str, Any] | None = None,
        apply_chat_template_kwargs: Mapping[str, Any] | None = None,
        *,
        kv_caches: int = 2,
        **kwargs: Any,
    ) -> None:
        check_at_least("kv_caches", kv_caches, 0)
        super().__init__(model_id, apply_chat_template_kwargs, **kwargs)
        self.trust_remote_code = trust_remote_code
        self.load_kwargs = as_settings("load_kwargs", load_kwargs)
        self.kv_caches = kv_caches
        self._loaded: _Engine | None = None

    @property
    def model(self) -> Any:
        """The model of `mlx_lm`; loaded now, if it is not yet."""
        return self._engine().model

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer."""
        return self._engine().tokenizer

    def _deltas(
        self, question: Question, cancelled: threading.Event
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        stops, options = self._request(question, {"max_tokens": _MAX_TOKENS})
        engine, prompt = self._engine(), self._prompt(question)
        with closing(engine.stream(prompt, stops, options, cancelled)) as deltas:
            yield from deltas

    def _engine(self) -> _Engine:
        if self._loaded is None:
            settings = self._load_settings()
            self._loaded = shared(_Engine, settings_key(settings), lambda: _Engine(settings))
        return self._loaded

    def _load_settings(self) -> dict[str, Any]:
        return {
            "model_id": self.model_id,
            "trust_remote_code": self.trust_remote_code,
            "load_kwargs": self.load_kwargs,
            "kv_caches": self.kv_caches,
        }

    def _settings(self) -> dict[str, object]:
        return {**super()._settings(), **self._load_settings()}


class _Engine:
    """A loaded model. Questions of several threads wait for each other."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        try:
            import mlx_lm
        except ModuleNotFoundError as error:
            raise MissingExtraError("MLXModel", "mlx-lm", "mlx_lm") from error
        trust = {"trust_remote_code": True} if settings["trust_remote_code"] else {}
        given = {"tokenizer_config": trust, **trust, **settings["load_kwargs"]}
        self._name: str = settings["model_id"]
        # Arrays of MLX belong to the thread that made them.
        self._worker = Worker("sanderling-mlx")
        try:
            loaded = self._worker.call(lambda: mlx_lm.load(self._name, **given))
        except Exception as error:
            raise AgentGenerationError(
                f"MLX cannot load {self._name!r}: {short(error)}\nCheck the name of the repository "
                "or folder, the connection, and, for a gated model, HF_TOKEN."
            ) from error
        self.model: Any = loaded[0]
        self.tokenizer: Any = loaded[1]
        self._caches: PrefixCaches[_Cache] = PrefixCaches(settings["kv_caches"])

    def stream(
        self,
        prompt: Prompt,
        stops: Sequence[str],
        options: Mapping[str, Any],
        cancelled: threading.Event,
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Writes a reply; `cancelled` ends it at its next token."""
        tokens: list[int] = list(prompt.read(self.tokenizer, self._name, return_dict=False))
        most = getattr(getattr(self.model, "args", None), "max_position_embeddings", None)
        longest = longest_reply(options["max_tokens"], len(tokens), most, self._name)
        options = {**options, "max_tokens": longest}

        def work(put: Callable[[ChatMessageStreamDelta], None]) -> None:
            self._write(tokens, StopCutter(stops), options, put, cancelled)

        opened = opens_thinking(self.tokenizer.decode(tokens[-LAST_TOKENS:]))
        with closing(self._worker.pump(work, cancelled)) as deltas:
            yield from split_thinking(deltas, opened)

    def _write(
        self,
        tokens: list[int],
        cutter: StopCutter,
        options: Mapping[str, Any],
        put: Callable[[ChatMessageStreamDelta], None],
        cancelled: threading.Event,
    ) -> None:
        import mlx_lm
        from mlx_lm.sample_utils import make_sampler

        cache, known = self._caches.take(tokens)
        if cache is None:
            cache = _Cache(self.model)
        sampling = {name: options[given] for given, name in _SAMPLING.items() if given in options}
        others = {name: value for name, value in options.items() if name not in _SAMPLING}
        written: list[int] = []
        finish = None
        replies = mlx_lm.stream_generate(
            self.model,
            self.tokenizer,
            tokens[known:],
            sampler=make_sampler(**sampling),
            prompt_cache=cache.layers,
            **others,
        )
        with closing(replies):
            for reply in replies:
                written.append(reply.token)
                finish = reply.finish_reason
                if text := cutter.feed(reply.text):
                    put(ChatMessageStreamDelta(text))
                if cutter.stopped or cancelled.is_set():
                    break
        if rest := cutter.rest():
            put(ChatMessageStreamDelta(rest))
        self._caches.keep([*tokens, *written], len(tokens), cache)
        usage = TokenUsage(len(tokens), len(written), cached_tokens=known)
        finish = "stop" if cutter.stopped else finish
        put(ChatMessageStreamDelta(token_usage=usage, finish_reason=finish))


class _Cache:
    """Keys and values of `mlx_lm`, layer by layer."""

    def __init__(self, model: Any) -> None:
        from mlx_lm.models.cache import make_prompt_cache

        self.layers: list[Any] = make_prompt_cache(model)

    @property
    def is_croppable(self) -> bool:
        from mlx_lm.models.cache import can_trim_prompt_cache

        able: bool = can_trim_prompt_cache(self.layers)
        return able

    def get_seq_length(self) -> int:
        return max((getattr(layer, "offset", 0) for layer in self.layers), default=0)

    def crop(self, tokens_to_remove: int) -> None:
        from mlx_lm.models.cache import trim_prompt_cache

        trimmed: object = trim_prompt_cache(self.layers, -tokens_to_remove)
        if trimmed != -tokens_to_remove:
            raise RuntimeError("these keys and values cannot be trimmed")
