"""Loaded models of transformers, and how they write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sanderling.errors import AgentGenerationError, MissingExtraError, UnknownModelError
from sanderling.messages import ChatMessageStreamDelta, TokenUsage

from ._chat_template import Prompt, longest_reply
from ._failures import short
from ._kv_cache import PrefixCaches
from ._stop import StopCutter
from ._thinking import LAST_TOKENS, opens_thinking, split_thinking
from ._worker import Worker

if TYPE_CHECKING:
    import torch
    from transformers import Cache, PreTrainedModel

_FEATURE: Final = "TransformersModel"
# What `from_pretrained` of a model takes and that of its tokenizer needs as well.
_OF_THE_REPOSITORY: Final = frozenset(
    {
        "cache_dir",
        "code_revision",
        "gguf_file",
        "local_files_only",
        "revision",
        "subfolder",
        "token",
    }
)


@dataclass(frozen=True, slots=True)
class Weights:
    """What is loaded, and how; see `TransformersModel`."""

    model_id: str
    device_map: str | Mapping[str, Any] | None
    torch_dtype: str | torch.dtype | None
    trust_remote_code: bool
    model_kwargs: Mapping[str, Any]
    kv_caches: int


class TransformersEngine:
    """A loaded model. Questions of several threads wait for each other.

    Attributes:
        model: The model.
        tokenizer: Its tokenizer.
        processor: What reads text and images, for a model that sees.
    """

    def __init__(self, weights: Weights) -> None:
        transformers = _transformers()
        repository = {
            name: value
            for name, value in weights.model_kwargs.items()
            if name in _OF_THE_REPOSITORY
        }
        common = {"trust_remote_code": weights.trust_remote_code, **repository}
        given: dict[str, Any] = {
            "trust_remote_code": weights.trust_remote_code,
            **weights.model_kwargs,
        }
        if weights.torch_dtype is not None:
            given["dtype"] = weights.torch_dtype
        if weights.device_map is not None:
            given["device_map"] = weights.device_map
        self._name = weights.model_id
        self.processor: Any = None
        try:
            if _sees(transformers, weights.model_id, common):
                self.processor = transformers.AutoProcessor.from_pretrained(
                    weights.model_id, **common
                )
                self.tokenizer: Any = self.processor.tokenizer
                kind: Any = transformers.AutoModelForImageTextToText
            else:
                self.tokenizer = transformers.AutoTokenizer.from_pretrained(
                    weights.model_id, **common
                )
                kind = transformers.AutoModelForCausalLM
            self.model: PreTrainedModel = kind.from_pretrained(weights.model_id, **given)
        except Exception as error:
            raise _unloaded(weights, error) from error
        if weights.device_map is None:
            self.model.to(_device())
        self._worker = Worker("sanderling-transformers")
        self._caches: PrefixCaches[Cache] = PrefixCaches(weights.kv_caches)

    @property
    def sees(self) -> bool:
        """Whether the model takes images."""
        return self.processor is not None

    def stream(
        self,
        prompt: Prompt,
        stops: Sequence[str],
        options: Mapping[str, Any],
        cancelled: threading.Event,
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Writes a reply.

        Args:
            prompt: What to.
            stops: Texts at which it ends.
            options: For ``model.generate``, ``max_new_tokens`` among them.
            cancelled: Ends the reply at its next token.
        """
        reader = self.processor or self.tokenizer
        inputs = dict(prompt.read(reader, self._name, return_dict=True, return_tensors="pt"))
        length = inputs["input_ids"].shape[1]
        most = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        longest = longest_reply(options["max_new_tokens"], length, most, self._name)
        options = {**options, "max_new_tokens": longest}

        def work(put: Callable[[str | ChatMessageStreamDelta], None]) -> None:
            put(self._write(inputs, _Writing(self._decoded, stops, put, cancelled), options))

        end = inputs["input_ids"][0, -LAST_TOKENS:].tolist()
        opened = opens_thinking(self.tokenizer.decode(end))
        with closing(self._worker.pump(work, cancelled)) as pieces:
            deltas = (ChatMessageStreamDelta(p) if isinstance(p, str) else p for p in pieces)
            yield from split_thinking(deltas, opened)

    def _write(
        self, inputs: dict[str, Any], writing: _Writing, options: Mapping[str, Any]
    ) -> ChatMessageStreamDelta:
        """Writes the reply, and returns how it ended."""
        prompt: list[int] = inputs["input_ids"][0].tolist()
        writing.seen = len(prompt)
        cache, known = None, 0
        # Keys and values of pictures are not told apart by the tokens.
        plain = set(inputs) <= {"input_ids", "attention_mask"}
        if plain:
            cache, known = self._caches.take(prompt)
        import transformers

        settings: dict[str, Any] = {**inputs, **options}
        if self.tokenizer.pad_token_id is None:
            settings.setdefault("pad_token_id", self.tokenizer.eos_token_id)
        placed = {
            name: value.to(self.model.device) if hasattr(value, "to") else value
            for name, value in settings.items()
        }
        criteria: Any = [writing.ended]
        written: Any = self.model.generate(  # type: ignore[operator]  # a mixin's method
            **placed,
            past_key_values=cache,
            stopping_criteria=transformers.StoppingCriteriaList(criteria),
            return_dict_in_generate=True,
        )
        tokens: list[int] = written.sequences[0].tolist()
        if plain and isinstance(written.get("past_key_values"), transformers.Cache):
            self._caches.keep(tokens, len(prompt), written.past_key_values)
        usage = TokenUsage(len(prompt), len(tokens) - len(prompt), cached_tokens=known)
        writing.finish()
        full = usage.output_tokens >= options["max_new_tokens"]
        ends = writing.stopped or tokens[-1] in self._ends() or not full
        return ChatMessageStreamDelta(token_usage=usage, finish_reason="stop" if ends else "length")

    def _decoded(self, tokens: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(tokens, skip_special_tokens=True)
        return text

    def _ends(self) -> set[int]:
        configured: Any = getattr(self.model.generation_config, "eos_token_id", None)
        ends = configured if isinstance(configured, list) else [configured]
        return {token for token in [*ends, self.tokenizer.eos_token_id] if token is not None}


class _Writing:
    """Follows a reply token by token: shows its text, and ends it.

    Attributes:
        seen: How many tokens are known: the prompt, and of the reply so far.
        stopped: Whether a stop sequence came.
    """

    def __init__(
        self,
        decode: Callable[[Sequence[int]], str],
        stops: Sequence[str],
        put: Callable[[str], None],
        cancelled: threading.Event,
    ) -> None:
        self.seen = 0
        self._decode = decode
        self._cutter = StopCutter(stops)
        self._put = put
        self._cancelled = cancelled
        self._tokens: list[int] = []
        self._shown = 0  # tokens whose text is out
        self._before = 0  # where the text begins that a token is decoded with

    @property
    def stopped(self) -> bool:
        return self._cutter.stopped

    def ended(self, input_ids: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
        """Takes the tokens so far, as a stopping criterion of transformers does."""
        import torch

        rows = input_ids[:, self.seen :].tolist()
        self.seen = input_ids.shape[1]
        self._tokens += rows[0]
        self._show(self._text())
        done = self.stopped or self._cancelled.is_set()
        return torch.full((len(rows),), done, dtype=torch.bool, device=input_ids.device)

    def finish(self) -> None:
        """Shows what was held back."""
        self._show(self._text(final=True))
        if rest := self._cutter.rest():
            self._put(rest)

    def _show(self, text: str) -> None:
        if piece := self._cutter.feed(text):
            self._put(piece)

    def _text(self, final: bool = False) -> str:
        """Returns the text of the tokens that came last, unless they end within a character.

        What a token reads as may depend on the one before it (on a space, mostly).
        """
        before = self._decode(self._tokens[self._before : self._shown])
        text = self._decode(self._tokens[self._before :])
        if text.endswith("\ufffd") and not final:
            return ""
        self._before, self._shown = self._shown, len(self._tokens)
        return text[len(before) :]


def _transformers() -> Any:
    try:
        import torch  # noqa: F401 - transformers can be imported without it, and loads nothing then
        import transformers
    except ModuleNotFoundError as error:
        raise MissingExtraError(_FEATURE, "transformers", error.name or "transformers") from error
    return transformers


def _sees(transformers: Any, model_id: str, common: Mapping[str, Any]) -> bool:
    if "gguf_file" in common:
        return False  # of such a file the part that writes is read, no part that sees
    config = transformers.AutoConfig.from_pretrained(model_id, **common)
    known = type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    return known or "AutoModelForImageTextToText" in (getattr(config, "auto_map", None) or {})


def _device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _unloaded(weights: Weights, error: Exception) -> Exception:
    if isinstance(error, MissingExtraError):
        return error
    said = f"transformers cannot load {weights.model_id!r}: {short(error)}"
    if isinstance(error, OSError):
        return UnknownModelError(
            f"{said}\nCheck the name of the repository or folder, the connection, and, for a gated "
            "model, HF_TOKEN."
        )
    if "trust_remote_code" in str(error):
        return AgentGenerationError(
            f"{said}\nThe repository has Python code of its own. Read it, and give "
            "trust_remote_code=True if you trust it: it runs in this process, without a sandbox."
        )
    return AgentGenerationError(said)
