"""OpenAIModel against llama.cpp's server, which is not ours, with a model made here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from typing import Any

import pytest

from sanderling import CodeAgent, ToolCallingAgent
from sanderling.errors import AgentGenerationError, ContextLengthError
from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)
from sanderling.models import OpenAIModel, survey_models
from sanderling.models._choice import list_models
from support.doors import HELLO, Door, doors, streams
from support.tiny_gguf import saying_gguf

pytest.importorskip("gguf", reason="gguf is not installed")
xllamacpp: Any = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")


PIECES = ["Hel", "lo", " wor", "ld!"]
CALL = ["<tool_call>", '\n{"name": ', '"weather", ', '"arguments": ', '{"city": ', '"Bern"', "}}\n"]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}

#: Starts a server that says some texts, or says them for ever.
Serve = Callable[..., OpenAIModel]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    servers: dict[tuple[str, ...], Any] = {}

    def start(*pieces: str, endless: bool = False, **settings: Any) -> OpenAIModel:
        if pieces not in servers:
            parameters = xllamacpp.CommonParams()
            parameters.model.path = str(
                saying_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", pieces, endless)
            )
            parameters.n_ctx, parameters.n_parallel = 8192, 2
            parameters.verbosity, parameters.warmup = -1, False
            servers[pieces] = xllamacpp.Server(parameters)
        url = f"{servers[pieces].listening_address}/v1"
        return OpenAIModel("tiny", url, "none", temperature=0, retry=False, **settings)

    yield start
    servers.clear()


class Weather:
    name = "weather"

    def to_json_schema(self) -> Any:
        parameters = {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        }
        function = {"name": self.name, "description": "Tells it.", "parameters": parameters}
        return {"type": "function", "function": function}


@doors
def test_a_reply_with_its_usage(serve: Serve, door: Door) -> None:
    reply = door.ask(serve(*PIECES))
    assert (reply.text, reply.finish_reason) == ("Hello world!", "stop")
    assert reply.token_usage is not None
    assert reply.token_usage.output_tokens == len(PIECES) + 1
    cut = door.ask(serve(*PIECES), max_tokens=2)
    assert (cut.text, cut.finish_reason) == ("Hello", "length")


@streams
def test_a_reply_comes_piece_by_piece(serve: Serve, door: Door) -> None:
    assert [each.content for each in door.deltas(serve(*PIECES)) if each.content] == PIECES


@doors
def test_stop_sequences(serve: Serve, door: Door) -> None:
    reply = door.ask(serve(*PIECES), stop_sequences=["never", "o wo"])
    assert (reply.text, reply.finish_reason) == ("Hell", "stop")


@doors
def test_tools_are_called(serve: Serve, door: Door) -> None:
    model = serve(*CALL, "</tool_call>")
    for choice in ("required", "auto"):
        reply = door.ask(model, tools_to_call_from=[Weather()], tool_choice=choice)
        assert reply.finish_reason == "tool_calls"
        (call,) = model.parse_tool_calls(reply).tool_calls or []
        assert (call.function.name, call.function.arguments) == ("weather", {"city": "Bern"})
    result = ChatMessage(MessageRole.TOOL_RESPONSE, "rain", tool_call_id=call.id)
    history = [*HELLO, ChatMessage(MessageRole.ASSISTANT, None, [call]), result]
    said = door.ask(serve(*PIECES), history, tools_to_call_from=[Weather()], tool_choice="none")
    assert said.text == "Hello world!"


@doors
@pytest.mark.parametrize("arguments", ['{"city": "Be', "", "Bern", "[1, 2]", '"Bern"', None])
def test_a_call_with_broken_arguments_may_be_told_again(
    serve: Serve, door: Door, arguments: str | None
) -> None:
    broken = ChatMessageToolCall(ChatMessageToolCallFunction(arguments, "weather"), "call_1")
    history = [
        *HELLO,
        ChatMessage(MessageRole.ASSISTANT, None, [broken]),
        ChatMessage(MessageRole.TOOL_RESPONSE, "Error: no JSON", tool_call_id="call_1"),
    ]
    said = door.ask(serve(*PIECES), history, tools_to_call_from=[Weather()], tool_choice="none")
    assert said.text == "Hello world!"


@doors
def test_a_schema_is_held_to(serve: Serve, door: Door) -> None:
    model = serve(*PIECES)  # it wants to say something else, and is not let
    assert set(json.loads(door.ask(model, response_format=FORM, max_tokens=60).text)) == {"n"}


@doors
def test_refusals(serve: Serve, door: Door) -> None:
    with pytest.raises(ContextLengthError):
        door.ask(serve(*PIECES), [ChatMessage(MessageRole.USER, "word " * 9000)])
    with pytest.raises(AgentGenerationError, match="400"):
        door.ask(serve(*PIECES), grammar="root ::= nowhere")


def test_a_stream_that_is_closed_frees_the_server(serve: Serve) -> None:
    model = serve("on ", "and ", endless=True)
    for _ in range(4):  # the server answers two at once
        with closing(model.generate_stream(HELLO, max_tokens=7000)) as stream:
            assert next(stream).content

    async def main() -> None:
        for _ in range(4):
            async with aclosing(model.agenerate_stream(HELLO, max_tokens=7000)) as stream:
                assert (await anext(stream)).content

    asyncio.run(main())
    assert model.generate(HELLO, max_tokens=2).text == "on and "


def test_a_server_tells_its_models(serve: Serve) -> None:
    url = serve(*PIECES).api_base or ""
    (name,) = list_models(url)
    assert name.endswith("tiny.gguf")
    found = {each.name: each for each in survey_models({"OLLAMA_HOST": url.removesuffix("/v1")})}
    assert found["Ollama"].usable
    assert found["Ollama"].detail.startswith(f"1 model at {url}: ")


def test_agents(serve: Serve) -> None:
    with CodeAgent([], serve("<code>\n", "final_answer(6 * 7)\n", "</code>")) as agent:
        assert agent.run("What is 6 times 7?") == 42
    call = [*CALL[:2], '"final_answer", ', *CALL[3:4], '{"answer": ', "42", CALL[6], "</tool_call>"]
    assert asyncio.run(ToolCallingAgent([], serve(*call)).arun("What is 6 times 7?")) == 42
