"""The settings of models: which of them a saved model may choose, and how to leave one out."""

from __future__ import annotations

import enum
from typing import Final

#: Parameters that say how a reply is written, and nothing else: no address, header, key or file.
REQUEST_PARAMETERS: Final = frozenset(
    (
        "additionalModelRequestFields",
        "do_sample",
        "extra_body",
        "frequency_penalty",
        "grammar",
        "inferenceConfig",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_new_tokens",
        "max_output_tokens",
        "max_tokens",
        "min_p",
        "modalities",
        "n",
        "num_beams",
        "num_ctx",
        "output_config",
        "parallel_tool_calls",
        "performanceConfig",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "repetition_penalty",
        "response_format",
        "response_logprobs",
        "seed",
        "serviceTier",
        "service_tier",
        "stop",
        "stop_sequences",
        "store",
        "stream_options",
        "temperature",
        "thinking",
        "thinking_config",
        "tool_choice",
        "top_k",
        "top_logprobs",
        "top_p",
        "typical_p",
        "user",
        "verbosity",
    )
)
#: What a saved model may choose; a class adds its own.
FORM_SETTINGS: Final = REQUEST_PARAMETERS | frozenset(
    (
        "capabilities",
        "custom_role_conversions",
        "flatten_messages_as_text",
        "max_concurrent_requests",
        "model_id",
        "profile",
        "requests_per_minute",
        "retry",
        "timeout",
        "tool_arguments_key",
        "tool_name_key",
    )
)


class _Removal(enum.Enum):
    REMOVE_PARAMETER = enum.auto()

    def __repr__(self) -> str:
        return self.name


#: As the value of a model's keyword argument: leave that parameter out of the request.
REMOVE_PARAMETER: Final = _Removal.REMOVE_PARAMETER
