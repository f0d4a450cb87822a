"""Chat completions, for the providers that speak it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from sanderling.models import (
    AzureOpenAIModel,
    InferenceClientModel,
    LiteLLMModel,
    LiteLLMRouterModel,
    Model,
    OpenAIModel,
)
from support.dialects.dialect import Call, Dialect, Reply, Sent
from support.openai_server import chunk, completion, events, usage
from support.scripted_http import Answer, Request, ScriptedServer


class ChatDialect(Dialect):
    """What all of them have in common."""

    filtered: ClassVar[tuple[int, str] | None] = (
        400,
        "The response was filtered due to the prompt triggering content management policy",
    )

    def whole(self, reply: Reply) -> Answer:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if reply.calls:
            message["tool_calls"] = [_call(call) for call in reply.calls]
        choice = {"index": 0, "message": message, "finish_reason": reply.finish}
        return completion([choice], _usage(reply))

    def streamed(self, reply: Reply) -> Answer:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": reply.reasoning}] if reply.reasoning else []
        deltas += [{"content": piece} for piece in reply.pieces]
        for index, call in enumerate(reply.calls):
            arguments = json.dumps(call.arguments)
            head = {**_call(call), "index": index}
            head["function"] = {"name": call.name, "arguments": arguments[:3]}
            rest = {"index": index, "function": {"arguments": arguments[3:]}}
            deltas += [{"tool_calls": [head]}, {"tool_calls": [rest]}]
        chunks = [chunk(delta) for delta in deltas]
        if not reply.ends or reply.stall:
            return events(chunks, end="", stall=reply.stall, cut=not reply.stall)
        end = {**chunk({}), "choices": [], "usage": _usage(reply)}
        return events([*chunks, chunk({}, reply.finish), end])

    def fails(self, status: int, message: str, headers: Mapping[str, str]) -> Answer:
        body = {"error": {"message": message, "type": "error", "code": None}}
        return Answer(json.dumps(body), status, headers={"x-request-id": "req-42", **headers})

    def sent(self, request: Request) -> Sent:
        body = request.body
        texts, images, marks = [], [], 0
        for message in body["messages"]:
            content = message.get("content") or ""
            parts: list[Any] = (
                [{"type": "text", "text": content}] if isinstance(content, str) else content
            )
            marks += sum("cache_control" in part for part in parts)
            images += [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
            text = "".join(part["text"] for part in parts if part["type"] == "text")
            texts.append((message["role"], text))
        form = body.get("response_format") or {}
        return Sent(
            texts,
            images,
            body.get("stop") or (),
            [tool["function"]["name"] for tool in body.get("tools") or ()],
            (form.get("json_schema") or {}).get("schema"),
            marks,
        )


class OpenAIDialect(ChatDialect):
    name = "OpenAIModel"
    offers = Dialect.offers | {"cache_marks"}
    package = "openai"

    def model(self, server: ScriptedServer, **kwargs: Any) -> Model:
        kwargs.setdefault("retry", False)
        return OpenAIModel("scripted", server.url, "sk-test", **kwargs)


class AzureDialect(ChatDialect):
    name = "AzureOpenAIModel"
    package = "openai"

    def model(self, server: ScriptedServer, **kwargs: Any) -> Model:
        kwargs.setdefault("retry", False)
        return AzureOpenAIModel("scripted", server.address, "sk-test", "2024-10-21", **kwargs)


class HubDialect(ChatDialect):
    """An endpoint of one's own: the package rewrites a schema as such a server wants it."""

    name = "InferenceClientModel"
    package = "huggingface_hub"

    def model(self, server: ScriptedServer, **kwargs: Any) -> Model:
        kwargs.setdefault("retry", False)
        return InferenceClientModel("scripted", token="sk-test", base_url=server.url, **kwargs)

    def sent(self, request: Request) -> Sent:
        form = request.body.get("response_format") or {}
        return replace(super().sent(request), schema=form.get("value"))


class LiteLLMDialect(ChatDialect):
    name = "LiteLLMModel"
    package = "litellm"
    offers = Dialect.offers | {"cache_marks"}

    def model(self, server: ScriptedServer, **kwargs: Any) -> Model:
        kwargs.setdefault("retry", False)
        return LiteLLMModel("openai/scripted", server.url, "sk-test", **kwargs)


class LiteLLMRouterDialect(LiteLLMDialect):
    name = "LiteLLMRouterModel"

    def model(self, server: ScriptedServer, **kwargs: Any) -> Model:
        kwargs.setdefault("retry", False)
        parameters = {"model": "openai/scripted", "api_base": server.url, "api_key": "sk-test"}
        deployments = [{"model_name": "some", "litellm_params": parameters}]
        return LiteLLMRouterModel("some", deployments, **kwargs)


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _usage(reply: Reply) -> dict[str, Any]:
    return usage(reply.input_tokens, reply.output_tokens, reply.cached, reply.reasoning_tokens)
