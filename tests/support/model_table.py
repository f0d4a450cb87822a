"""The table of docs/models.md: which provider offers what, and the test behind each cell."""

from __future__ import annotations

from collections.abc import Mapping

from support.dialects.all import DIALECTS
from support.dialects.dialect import FEATURES

#: Models that go through no HTTP: their tests by feature, as ``file.py::test`` within tests/models.
IN_PROCESS: Mapping[str, Mapping[str, str]] = {
    "LlamaCppModel": {
        "plain": "test_llamacpp.py::test_a_reply",
        "streamed": "test_llamacpp.py::test_replies_are_repeatable_and_all_doors_alike",
        "tools": "test_llamacpp.py::test_tools_are_called_as_json",
        "streamed_tools": "test_llamacpp.py::test_tools_are_called_as_json",
        "stop": "test_llamacpp.py::test_stop_sequences",
        "schema": "test_llamacpp.py::test_a_json_schema_is_enforced",
        "usage": "test_llamacpp.py::test_a_reply",
        "cancellation": "test_llamacpp.py::test_cancelling_a_task_stops_the_model",
    },
    "TransformersModel": {
        "plain": "test_transformers.py::test_a_reply",
        "streamed": "test_transformers.py::test_a_reply_comes_piece_by_piece",
        "tools": "test_transformers.py::test_tools_are_shown_by_the_chat_template",
        "streamed_tools": "test_transformers.py::test_tools_are_shown_by_the_chat_template",
        "stop": "test_transformers.py::test_stop_sequences_end_the_model_at_their_token",
        "schema": "test_transformers.py::test_a_schema_is_told_and_checked",
        "image": "test_transformers.py::test_a_model_that_sees",
        "usage": "test_transformers.py::test_a_reply",
        "cached_usage": "test_transformers.py::test_a_step_reads_only_what_is_new",
        "reasoning": "test_transformers.py::test_thoughts_are_kept_apart",
        "cancellation": "test_transformers.py::test_cancelling_a_task_stops_the_model",
    },
    "VLLMModel": {
        "plain": "test_vllm.py::test_a_reply",
        "streamed": "test_vllm.py::test_a_reply_comes_piece_by_piece",
        "tools": "test_vllm.py::test_tools_are_shown_by_the_chat_template",
        "streamed_tools": "test_vllm.py::test_tools_are_shown_by_the_chat_template",
        "stop": "test_vllm.py::test_a_reply",
        "schema": "test_vllm.py::test_a_schema_or_a_grammar_is_held_to",
        "usage": "test_vllm.py::test_a_reply",
        "cached_usage": "test_vllm.py::test_a_reply",
        "reasoning": "test_vllm.py::test_thoughts_are_kept_apart",
        "cancellation": "test_vllm.py::test_cancelling_a_task_aborts_the_request",
    },
    "MLXModel": {
        "plain": "test_mlx.py::test_a_reply",
        "streamed": "test_mlx.py::test_a_reply_comes_in_pieces",
        "tools": "test_mlx.py::test_tools_are_shown_by_the_chat_template",
        "streamed_tools": "test_mlx.py::test_tools_are_shown_by_the_chat_template",
        "stop": "test_mlx.py::test_stop_sequences",
        "schema": "test_mlx.py::test_a_schema_is_told_and_checked",
        "usage": "test_mlx.py::test_a_reply",
        "cached_usage": "test_mlx.py::test_a_step_reads_only_what_is_new",
        "reasoning": "test_mlx.py::test_thoughts_are_kept_apart",
        "cancellation": "test_mlx.py::test_cancelling_a_task_stops_the_model",
    },
}

OFFERED, NOT_OFFERED = "✓", "–"


def markdown() -> str:
    """Returns the table."""
    rows = {dialect.name: dialect.offers for dialect in DIALECTS}
    rows |= {name: frozenset(tests) for name, tests in IN_PROCESS.items()}
    head = ["", *(feature.replace("_", " ") for feature in FEATURES)]
    lines = [head, ["---"] * len(head)]
    for name, offers in rows.items():
        marks = [OFFERED if feature in offers else NOT_OFFERED for feature in FEATURES]
        lines.append([f"`{name}`", *marks])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(markdown())
