"""Marks that tell a provider up to where it shall cache a conversation.

https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching, as LiteLLM and OpenRouter take
it within chat completions: ``cache_control`` on a part of a message's content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ._messages import Entry

MARK: Final = {"type": "ephemeral"}


def with_cache_marks(messages: Sequence[Entry]) -> list[Entry]:
    """Returns the messages, marked where a cache is worth its price.

    That is after the system prompt, which all runs of an agent share, and after the last message:
    a conversation only grows, so the next request begins with all of this one. The messages that
    were given are not changed.
    """
    marked = list(messages)
    places = {len(marked) - 1} if marked else set()
    if marked and marked[0]["role"] == "system":
        places.add(0)
    for place in places:
        marked[place] = _marked(marked[place])
    return marked


def _marked(entry: Entry) -> Entry:
    content: Any = entry.get("content")
    if not content:
        return entry
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    parts[-1] = {**parts[-1], "cache_control": MARK}
    return {**entry, "content": parts}
