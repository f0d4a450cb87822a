"""Models for transformers that a test makes in a moment: random ones, and ones that say a text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

# ChatML, with tools and their calls as Hermes writes them.
TEMPLATE = (
    "{% if tools %}<|im_start|>tools\n"
    "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}"
    "{{ '<image>' if part.type == 'image' else part.text }}"
    "{% endfor %}{% endif %}"
    "{% for call in message.tool_calls or [] %}"
    "<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{{ opening or '' }}{% endif %}"
)
CONTEXT = 4096


def tokenizer_of(pieces: Sequence[str] = (), template: str | None = TEMPLATE) -> Any:
    """Returns a tokenizer of bytes, with some texts as tokens of their own."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bare = Tokenizer(models.BPE({each: place for place, each in enumerate(alphabet)}, []))
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bare.decoder = decoders.ByteLevel()
    kind: Any = transformers.PreTrainedTokenizerFast
    tokenizer = kind(
        tokenizer_object=bare, eos_token="<|im_end|>", extra_special_tokens=["<|im_start|>"]
    )
    tokenizer.add_tokens(list(pieces))
    tokenizer.chat_template = template
    return tokenizer


_SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.5,
}


def random_model(folder: Path, window: int | None = None) -> Path:
    """Writes a small Mistral of random weights, which says what nobody can read.

    Args:
        folder: Where.
        window: How many tokens its attention reaches back; by default all.
    """
    import torch
    from transformers import MistralConfig, MistralForCausalLM

    tokenizer = tokenizer_of()
    torch.manual_seed(7)
    config: Any = MistralConfig(
        **_SMALL,
        vocab_size=len(tokenizer),
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        sliding_window=window,
        eos_token_id=tokenizer.eos_token_id,
    )
    model: Any = MistralForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def saying_model(
    folder: Path,
    pieces: Sequence[str],
    endless: bool = False,
    template: str | None = TEMPLATE,
    context: int = CONTEXT,
) -> Path:
    """Writes a model that answers whatever it is asked with these texts, each of them one token.

    Its layers add nothing: a token's embedding says which token comes next.

    Args:
        folder: Where.
        pieces: The texts, all different.
        endless: Whether it begins again after the last one.
        template: The chat template.
        context: How many tokens it can read.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = tokenizer_of(pieces, template)
    size = len(tokenizer) + len(tokenizer) % 2
    config: Any = LlamaConfig(
        vocab_size=size,
        hidden_size=size,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=context,
        tie_word_embeddings=False,
        eos_token_id=tokenizer.eos_token_id,
    )
    model: Any = LlamaForCausalLM(config)
    said = [tokenizer.convert_tokens_to_ids(piece) for piece in pieces]
    last = said[0] if endless else tokenizer.eos_token_id
    (opening,) = tokenizer.encode("\n", add_special_tokens=False)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        model.lm_head.weight.zero_()
        for token, following in zip([opening, *said], [*said, last], strict=True):
            model.lm_head.weight[following, token] = 1.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def seeing_model(folder: Path) -> Path:
    """Writes a small LLaVA of random weights, which takes images of any size."""
    import torch
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = tokenizer_of()
    tokenizer.add_tokens(["<image>"], special_tokens=True)
    torch.manual_seed(7)
    side = {"height": 28, "width": 28}
    kind: Any = LlavaProcessor
    processor = kind(
        CLIPImageProcessorPil(size=side, crop_size=side),
        tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        chat_template=TEMPLATE,
        num_additional_image_tokens=1,
    )
    config: Any = LlavaConfig(
        vision_config=CLIPVisionConfig(**_SMALL, image_size=28, patch_size=14),
        text_config=LlamaConfig(
            **_SMALL, vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id
        ),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    model: Any = LlavaForConditionalGeneration(config)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
