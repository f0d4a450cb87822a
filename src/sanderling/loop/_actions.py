"""What the kinds of step have in common: asking the model, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling.errors import AgentParsingError

from ._effects import Effect, Generate
from ._events import ActionOutput, Event, ModelReply
from ._parsing import without_thinking

if TYPE_CHECKING:
    from sanderling.memory import ActionStep
    from sanderling.messages import ChatMessage

    from ._state import RunState

Acting: TypeAlias = Generator[Effect | Event, Any, ActionOutput]
Action: TypeAlias = "Callable[[RunState, ActionStep], Acting]"

MAX_OBSERVATION = 20_000  # characters
MAX_LOGS = 51_000  # what a sandbox lets code print by default, and what it notes beside
STOPS = ("Observation:", "Calling tools:")


def ask(
    run: RunState, step: ActionStep, **request: Any
) -> Generator[Effect | Event, Any, ChatMessage]:
    """Asks the model for the action of a step, and notes what it was sent and what it cost."""
    history = run.memory.messages()
    step.model_input_messages = history
    reply: ChatMessage = yield Generate(history, **request)
    run.count(reply)
    step.model_output_message = reply
    step.token_usage = reply.token_usage
    yield ModelReply(reply.text)
    return reply


def cut_off(reply: ChatMessage) -> AgentParsingError:
    """Returns what the model is told of a reply that ended at its limit of tokens."""
    return AgentParsingError(
        f"Your reply was cut off at {_limit(reply)} before the action was complete, "
        "so nothing was run. Write less: shorter reasoning, and the work in smaller steps. "
        "(For the operator: finish_reason=length; raise the model's max_tokens.)"
    )


def answer_in(reply: ChatMessage) -> str:
    """Returns the text of a reply that is to be an answer by itself.

    Raises:
        AgentParsingError: There is none.
    """
    text = without_thinking(reply.text)
    if text.strip():
        return text
    if reply.finish_reason == "length":
        raise AgentParsingError(
            f"The model's answer was cut off at {_limit(reply)} before its first word: all went "
            "into thinking. Raise the model's max_tokens, or have it think less."
        )
    raise AgentParsingError("The model's answer was empty.")


def _limit(reply: ChatMessage) -> str:
    used = f" ({reply.token_usage.output_tokens} tokens)" if reply.token_usage else ""
    return f"the model's output limit{used}"


def shorten(text: str, length: int | None = MAX_OBSERVATION) -> str:
    """Cuts the middle out of a long text, and says how much was cut."""
    if length is None or len(text) <= length:
        return text
    half = length // 2
    cut = len(text) - 2 * half
    said = f"… {cut} characters of {len(text)} are cut out here: look at a part at a time …"
    return f"{text[:half]}\n{said}\n{text[-half:]}"
