"""Models of the Hub, or from a folder, in this process: with transformers and torch."""

from __future__ import annotations

import base64
import binascii
import io
import threading
import warnings
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sanderling.errors import MissingExtraError

from ._arguments import as_settings, check_at_least
from ._local import LocalModel, settings_key
from ._shared import shared
from ._transformers_engine import TransformersEngine, Weights

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from sanderling.messages import ChatMessageStreamDelta

    from ._messages import Entry
    from ._question import Question

_DEFAULT: Final = "HuggingFaceTB/SmolLM2-1.7B-Instruct"
_MAX_NEW_TOKENS: Final = 4096


class TransformersModel(LocalModel):
    """Runs a model with transformers, in this process. Nothing is loaded before it is asked.

    Models that take images see those of a conversation. The keys and values of past conversations
    are kept, so that each step of a run reads only what is new. Two models made alike share their
    weights; questions of several runs wait for each other.

    Args:
        model_id: A repository on the Hub, or a folder.
        device_map: Where the weights go, as transformers takes it (such as ``"auto"``); by default
            to the first GPU, or else the CPU.
        torch_dtype: Their type, such as ``"bfloat16"`` or ``torch.float16``; by default the one
            they are saved in.
        trust_remote_code: Run the Python code that the repository has: in this process, without a
            sandbox.
        model_kwargs: Further arguments of ``from_pretrained``, such as ``revision``,
            ``quantization_config``, or ``gguf_file`` for a GGUF file in the repository.
        max_new_tokens: The longest reply, in tokens; by default 4096.
        max_tokens: The same.
        apply_chat_template_kwargs: For the chat template, such as ``{"enable_thinking": False}``.
        kv_caches: Of how many conversations the keys and values are kept; 0 for none.
        **kwargs: For each reply, as ``model.generate`` takes them: ``temperature``, ``top_p``, …;
            ``stop``, at which it ends; and what every `Model` takes.

    Raises:
        ValueError: `kv_caches` is negative, or the length of replies is not positive.
    """

    provider: ClassVar[str] = "transformers"
    _needs = ("transformers", "transformers", "torch")
    form_settings = LocalModel.form_settings | {"device_map", "torch_dtype", "kv_caches"}

    def __init__(
        self,
        model_id: str | None = None,
        device_map: str | Mapping[str, Any] | None = None,
        torch_dtype: str | torch.dtype | None = None,
        trust_remote_code: bool = False,
        model_kwargs: Mapping[str, Any] | None = None,
        max_new_tokens: int | None = None,
        max_tokens: int | None = None,
        apply_chat_template_kwargs: Mapping[str, Any] | None = None,
        *,
        kv_caches: int = 2,
        **kwargs: Any,
    ) -> None:
        if model_id is None:
            warnings.warn(
                f"TransformersModel was made without a model_id: {_DEFAULT!r} is used. Name the "
                "model that you mean.",
                stacklevel=2,
            )
            model_id = _DEFAULT
        check_at_least("kv_caches", kv_caches, 0)
        longest = max_tokens if max_tokens is not None else max_new_tokens
        if longest is not None:
            check_at_least("max_new_tokens", longest, 1)
            kwargs["max_new_tokens"] = longest
        super().__init__(model_id, apply_chat_template_kwargs, **kwargs)
        self._weights = Weights(
            model_id,
            device_map,
            torch_dtype,
            trust_remote_code,
            as_settings("model_kwargs", model_kwargs),
            kv_caches,
        )
        self._loaded: TransformersEngine | None = None

    @property
    def model(self) -> Any:
        """The model of transformers; loaded now, if it is not yet."""
        return self._engine().model

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer."""
        return self._engine().tokenizer

    @property
    def processor(self) -> Any:
        """What reads text and images, for a model that sees; otherwise `None`."""
        return self._engine().processor

    def _deltas(
        self, question: Question, cancelled: threading.Event
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        engine = self._engine()
        prompt = self._prompt(question, engine.sees)
        if engine.sees:
            prompt = replace(prompt, entries=[_in_parts(entry) for entry in prompt.entries])
        stops, given = self._request(question, {})
        with closing(engine.stream(prompt, stops, _options(given), cancelled)) as deltas:
            yield from deltas

    def _engine(self) -> TransformersEngine:
        if self._loaded is None:
            key = settings_key(self._load_settings())
            self._loaded = shared(
                TransformersEngine, key, lambda: TransformersEngine(self._weights)
            )
        return self._loaded

    def _load_settings(self) -> dict[str, object]:
        weights = self._weights
        dtype = weights.torch_dtype
        given: dict[str, object] = {
            "device_map": weights.device_map,
            "torch_dtype": None if dtype is None else str(dtype).removeprefix("torch."),
            "trust_remote_code": weights.trust_remote_code or None,
            "model_kwargs": weights.model_kwargs or None,
        }
        there = {name: value for name, value in given.items() if value is not None}
        return {"model_id": self.model_id, **there, "kv_caches": weights.kv_caches}

    def _settings(self) -> dict[str, object]:
        return {**super()._settings(), **self._load_settings()}


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns parameters of a request as ``model.generate`` takes them."""
    options = dict(given)
    for alias in ("max_tokens", "max_completion_tokens"):
        if (longest := options.pop(alias, None)) is not None:
            options.setdefault("max_new_tokens", longest)
    options.setdefault("max_new_tokens", _MAX_NEW_TOKENS)
    temperature = options.get("temperature")
    if temperature is not None:
        if temperature == 0:
            del options["temperature"]
        options.setdefault("do_sample", temperature != 0)
    if options.get("num_beams", 1) != 1 or options.get("num_return_sequences", 1) != 1:
        raise ValueError(
            "a reply is written token by token: num_beams and num_return_sequences = 1"
        )
    return options


def _in_parts(entry: Entry) -> Entry:
    """Returns a message as templates of models that see take it: in parts, pictures as such."""
    content = entry["content"]
    parts: list[Entry] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else content
    )
    return {
        **entry,
        "content": [
            {"type": "image", "image": _picture(part["image_url"]["url"])}
            if part["type"] == "image_url"
            else part
            for part in parts
        ],
    }


def _picture(url: str) -> Image:
    if not url.startswith("data:"):
        raise ValueError(
            f"{url[:200]} is a web address, and a model in this process fetches nothing: download "
            "the image, and give its path or bytes"
        )
    try:
        from PIL import Image, UnidentifiedImageError
    except ModuleNotFoundError as error:
        raise MissingExtraError("An image for TransformersModel", "vision", "PIL") from error
    try:
        return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
    except (UnidentifiedImageError, binascii.Error, OSError) as error:
        raise ValueError(f"an image of the conversation cannot be read: {error}") from error
