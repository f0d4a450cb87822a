"""Conversations as the chat template of a model writes them.

https://huggingface.co/docs/transformers/chat_templating
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sanderling.errors import AgentGenerationError, ContextLengthError

from ._messages import encodable_all

if TYPE_CHECKING:
    from ._messages import Entry


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a reply is written to.

    Attributes:
        entries: The conversation, as chat completions have it.
        tools: JSON schemas of tools, for templates that show them.
        arguments: Further arguments for the template.
    """

    entries: Sequence[Entry]
    tools: Sequence[Mapping[str, Any]] | None
    arguments: Mapping[str, Any]

    def read(self, reader: Any, name: str, **how: Any) -> Any:
        """Returns the tokens, from a tokenizer or processor of transformers.

        Args:
            reader: The tokenizer or processor.
            name: The model, for errors.
            **how: In which form.

        Raises:
            AgentGenerationError: The model has no chat template.
        """
        arguments: dict[str, Any] = {"add_generation_prompt": True, **self.arguments}
        if self.tools:
            arguments["tools"] = list(self.tools)
        if not (arguments.get("chat_template") or getattr(reader, "chat_template", None)):
            raise AgentGenerationError(
                f"{name} has no chat template: it was not made for conversations. Use a model "
                "whose name says 'Instruct' or 'Chat', or give "
                "apply_chat_template_kwargs={'chat_template': '...'}."
            )
        entries = [_valued_calls(entry) for entry in self.entries]
        return reader.apply_chat_template(entries, tokenize=True, **how, **arguments)


def longest_reply(wanted: int, length: int, most: object, name: str) -> int:
    """Returns how many tokens a reply may have, so that the model can read it all.

    Args:
        wanted: How many it may have at most.
        length: Of the conversation, in tokens.
        most: How many tokens the model can read, if that is known.
        name: The model.

    Raises:
        ContextLengthError: There is no place for a reply.
    """
    if not isinstance(most, int):
        return wanted
    if length >= most:
        raise ContextLengthError(
            f"The conversation has {length} tokens, and {name} can read {most}. Use a model that "
            "reads more, or shorten what steps print."
        )
    return min(wanted, most - length)


def _valued_calls(entry: Entry) -> Entry:
    """Returns a message with the arguments of its calls as values, which templates write out."""
    calls = entry.get("tool_calls")
    if not calls:
        return entry
    valued = [_valued(call) for call in calls]
    return {**entry, "content": entry["content"] or "", "tool_calls": valued}


def _valued(call: Entry) -> Entry:
    function = call["function"]
    try:
        arguments = encodable_all(json.loads(function["arguments"]))
    except (ValueError, RecursionError):
        return call
    return {**call, "function": {**function, "arguments": arguments}}
