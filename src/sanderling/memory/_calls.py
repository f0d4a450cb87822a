"""Tool calls in a conversation: as providers have them, and as text for those that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    JSONObject,
    MessageRole,
    TextPart,
)

if TYPE_CHECKING:
    from ._steps import ActionStep, ToolCall

BROKEN_OFF = "There is no result: the step broke off."
SEE_FIRST = "See the result of the first call."


def joined_observations(calls: list[ToolCall], said: list[str]) -> str:
    """Returns what several calls came to as one text, each under its name and id."""
    if len(calls) == 1:
        return said[0]
    return "\n".join(
        f"{call.name} ({call.id}): {text}" for call, text in zip(calls, said, strict=True)
    )


def was_called_natively(step: ActionStep) -> bool:
    """Tells whether the provider itself has made the calls, and so understands them in a history.

    A call that the model wrote into its text, or whose code stands there, is no such call.
    """
    reply = step.model_output_message
    return bool(step.tool_calls and step.code_action is None and reply and reply.tool_calls)


def native_messages(step: ActionStep, error: str | None) -> list[ChatMessage]:
    """Renders the calls of a step and their results, one message for each as providers insist.

    Args:
        step: One whose calls were made natively.
        error: What the model is told of the step's failure.
    """
    calls = step.tool_calls or []
    said = _results(step, calls)
    if error is not None and len(calls) == 1:
        said = [f"{step.observations}\n{error}" if step.observations else error]
        error = None
    asked = [
        ChatMessageToolCall(ChatMessageToolCallFunction(call.arguments, call.name), call.id)
        for call in calls
    ]
    text = (step.model_output or "").strip()
    reply = ChatMessage(MessageRole.ASSISTANT, [TextPart(text)] if text else None, asked)
    reply.native = native_form(step)
    messages = [reply]
    messages += [
        ChatMessage(MessageRole.TOOL_RESPONSE, [TextPart(text)], tool_call_id=call.id)
        for call, text in zip(calls, said, strict=True)
    ]
    if error is not None:
        messages.append(ChatMessage(MessageRole.TOOL_RESPONSE, [TextPart(error)]))
    return messages


def native_form(step: ActionStep) -> JSONObject | None:
    """Returns the step's reply in its provider's own form, if the provider wants that back."""
    return None if step.model_output_message is None else step.model_output_message.native


def _results(step: ActionStep, calls: list[ToolCall]) -> list[str]:
    said = step.tool_responses
    if (
        said is not None
        and len(said) == len(calls)
        and step.observations == joined_observations(calls, said)
    ):
        return said
    # A callback has rewritten the observations: what it wrote counts.
    first = BROKEN_OFF if step.observations is None else step.observations
    return [first, *[BROKEN_OFF if step.observations is None else SEE_FIRST] * (len(calls) - 1)]
