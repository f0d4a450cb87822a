"""A GGUF file that a test makes in a moment: a model that answers with the texts it is given.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

# ChatML, with tools and their calls as Hermes writes them, by which llama.cpp knows how to read
# calls.
TEMPLATE = (
    "{% if tools %}<|im_start|>system\nCall functions by <tool_call></tool_call> tags:\n<tools>"
    "{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools>\n"
    '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    "<|im_end|>\n{% endif %}"
    "{% for message in messages %}"
    "{% if message.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ message.content }}\n"
    "</tool_response><|im_end|>\n"
    "{% else %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{% for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_MARKS = ("<|im_start|>", "<|im_end|>")


def saying_gguf(path: Path, pieces: Sequence[str], endless: bool = False) -> Path:
    """Writes a Llama that answers whatever it is asked with these texts, each of them one token.

    Its one layer adds nothing: a token's embedding says which token comes next.

    Args:
        path: The file.
        pieces: The texts, all different; none is a single byte.
        endless: Whether it begins again after the last one.
    """
    import gguf
    import numpy as np

    alphabet = sorted(_alphabet().values())
    tokens = [*alphabet, *_MARKS, *pieces]
    kinds = [
        *[gguf.TokenType.NORMAL] * len(alphabet),
        *[gguf.TokenType.CONTROL] * len(_MARKS),
        *[gguf.TokenType.USER_DEFINED] * (len(tokens) - len(alphabet) - len(_MARKS)),
    ]
    end = tokens.index(_MARKS[1])
    size = len(tokens) + len(tokens) % 2
    meanings = np.eye(len(tokens), size, dtype=np.float32)
    following = np.zeros_like(meanings)
    said = [tokens.index(piece) for piece in pieces]
    line_end = tokens.index(_alphabet()[ord("\n")])
    for token, after in zip([line_end, *said], [*said, said[0] if endless else end], strict=True):
        following[after, token] = 10.0

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(size)
    writer.add_block_count(1)
    writer.add_feed_forward_length(8)
    writer.add_head_count(1)
    writer.add_rope_dimension_count(size)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([f"{alphabet[0]} {alphabet[1]}"])  # it takes no empty list
    writer.add_eos_token_id(end)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    ones, square = np.ones(size, dtype=np.float32), np.zeros((size, size), dtype=np.float32)
    writer.add_tensor("token_embd.weight", meanings)
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", following)
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", ones)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.0.{name}.weight", square)
    for name in ("ffn_gate", "ffn_up"):
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros((8, size), dtype=np.float32))
    writer.add_tensor("blk.0.ffn_down.weight", np.zeros((size, 8), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _alphabet() -> dict[int, str]:
    """Returns the character that stands for each byte in vocabularies of GPT-2's kind."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {
        byte: chr(256 + place) for place, byte in enumerate(others)
    }
