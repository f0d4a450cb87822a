"""JSON of a given schema from models that cannot be held to it: told, checked, asked again."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from sanderling.errors import AgentGenerationError, MissingExtraError
from sanderling.messages import ChatMessage, MessageLike, MessageRole

#: Yields conversations to be answered, is sent the answers, and returns the one that fits.
Course: TypeAlias = Generator[list[MessageLike], ChatMessage, ChatMessage]

_TRIES: Final = 3
_MAX_SHOWN = 500


def schema_of(response_format: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Returns the JSON schema that a reply must fit; `None` where any reply will do.

    Args:
        response_format: As chat completions write it: of the type ``json_schema`` or
            ``json_object``.
    """
    match response_format:
        case {"type": "json_schema", "json_schema": {"schema": Mapping() as schema}}:
            return schema
        case {"type": "json_object"}:
            return {"type": "object"}
    return None


def form_of(grammar: object) -> Mapping[str, Any] | None:
    """Returns the response format that says the same as a grammar; `None` where there is none.

    Args:
        grammar: As Text Generation Inference takes it: ``{"type": "json", "value": schema}``; or of
            another form.
    """
    match grammar:
        case {"type": "json", "value": Mapping() as schema}:
            return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    return None


def told_and_checked(messages: Sequence[MessageLike], schema: Mapping[str, Any]) -> Course:
    """Asks for JSON of a schema in words, and again where the reply does not fit.

    Returns:
        The reply, its text the JSON and nothing around it; the usage is that of all tries.

    Raises:
        AgentGenerationError: No try fits.
        MissingExtraError: The package `jsonschema` is not installed.
    """
    asked: list[MessageLike] = [*messages, _told(schema)]
    usage = None
    for _ in range(_TRIES):
        reply = yield asked
        if reply.token_usage is not None:
            usage = reply.token_usage if usage is None else usage + reply.token_usage
        text = _json_in(reply.text)
        mistake = _mistake(text, schema)
        if mistake is None:
            return replace(reply, content=text, token_usage=usage)
        if reply.finish_reason == "length":
            mistake = "It was cut off at the model's output limit: raise max_tokens."
        asked = [
            *asked,
            ChatMessage(MessageRole.ASSISTANT, reply.text),
            ChatMessage(MessageRole.USER, f"{mistake} Reply with the corrected JSON only."),
        ]
    raise AgentGenerationError(
        f"The model did not write JSON of the schema that was asked for, {_TRIES} times. The last "
        f"time: {mistake} A model that can be held to a schema will; or ask for a simpler one."
    )


def settle(course: Course, answer: Callable[[list[MessageLike]], ChatMessage]) -> ChatMessage:
    """Carries a course out in blocking code."""
    asked = next(course)
    while True:
        reply = answer(asked)
        try:
            asked = course.send(reply)
        except StopIteration as done:
            return _settled(done)


async def asettle(
    course: Course, answer: Callable[[list[MessageLike]], Awaitable[ChatMessage]]
) -> ChatMessage:
    """Does what `settle` does, under asyncio."""
    asked = next(course)
    while True:
        reply = await answer(asked)
        try:
            asked = course.send(reply)
        except StopIteration as done:
            return _settled(done)


def _settled(done: StopIteration) -> ChatMessage:
    reply: ChatMessage = done.value
    return reply


def _told(schema: Mapping[str, Any]) -> ChatMessage:
    return ChatMessage(
        MessageRole.USER,
        "Reply with JSON only: no explanation and no code fence. It must fit this JSON schema:\n"
        + json.dumps(schema, ensure_ascii=False),
    )


def _json_in(text: str) -> str:
    """Returns what is within a code fence, if the text is one."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        return text.removesuffix("```").partition("\n")[2].strip()
    return text


def _mistake(text: str, schema: Mapping[str, Any]) -> str | None:
    try:
        import jsonschema
    except ModuleNotFoundError as error:
        feature = "A JSON schema with a model that cannot be held to one"
        raise MissingExtraError(feature, "schema", "jsonschema") from error
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"This is not JSON ({error})."
    misfit = next(
        iter(jsonschema.validators.validator_for(schema)(schema).iter_errors(value)), None
    )
    if misfit is None:
        return None
    return f"This does not fit the schema: at {misfit.json_path}, {misfit.message[:_MAX_SHOWN]}."
