"""VLLMModel: against a stand-in of vLLM's own objects, and live where vLLM and a GPU are."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sanderling.errors import AgentGenerationError, MissingExtraError
from sanderling.models import VLLMModel, model_from_dict, model_to_dict
from support import vllm_stand_in
from support.doors import HELLO, Door, doors, streams
from support.tiny_model import saying_model, tokenizer_of
from support.vllm_stand_in import AsyncLLMEngine

pytest.importorskip("transformers", reason="transformers, which has the tokenizer, is missing")

PIECES = ["Hel", "lo", " wor", "ld!"]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}


@pytest.fixture(autouse=True)
def vllm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.name == "test_live":
        return
    for name, module in vllm_stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(AsyncLLMEngine, "tokenizer", tokenizer_of(PIECES), raising=False)
    monkeypatch.setattr(AsyncLLMEngine, "pieces", PIECES, raising=False)
    monkeypatch.setattr(AsyncLLMEngine, "closings", [])


def engine(model: VLLMModel) -> AsyncLLMEngine:
    found: AsyncLLMEngine = model.model
    return found


class Weather:
    name = "weather"

    def to_json_schema(self) -> Any:
        return {"type": "function", "function": {"name": self.name, "parameters": {}}}


@doors
def test_a_reply(door: Door) -> None:
    model = VLLMModel("tiny", {"max_model_len": 512}, temperature=0.5)
    reply = door.ask(model, stop_sequences=["Observation:"])
    assert (reply.text, reply.finish_reason) == ("Hello world!", "stop")
    usage = reply.token_usage
    assert usage is not None
    assert (usage.output_tokens, usage.cached_tokens) == (4, 5)
    ((tokens, sampling),) = engine(model).asked
    assert usage.input_tokens == len(tokens)
    read = model.tokenizer.decode(tokens)
    assert read == "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert (sampling.temperature, sampling.max_tokens) == (0.5, 2048)
    assert sampling.stop == ["Observation:"]
    assert sampling.structured_outputs is None
    assert engine(model).args.max_model_len == 512


@streams
def test_a_reply_comes_piece_by_piece(door: Door) -> None:
    assert [each.content for each in door.deltas(VLLMModel("tiny")) if each.content] == PIECES


@doors
def test_the_longest_reply(door: Door) -> None:
    reply = door.ask(VLLMModel("tiny"), max_tokens=2)
    assert (reply.text, reply.finish_reason) == ("Hello", "length")


@doors
def test_stop_sequences_as_a_parameter(door: Door) -> None:
    model = VLLMModel("tiny", stop=["world"])
    door.ask(model, stop_sequences=["Observation:"])
    ((_, sampling),) = engine(model).asked
    assert sampling.stop == ["Observation:", "world"]


@doors
def test_a_schema_or_a_grammar_is_held_to(door: Door) -> None:
    model = VLLMModel("tiny")
    door.ask(model, response_format=FORM)
    door.ask(model, grammar='root ::= "yes"')
    schema, grammar = (sampling.structured_outputs for _, sampling in engine(model).asked)
    assert schema is not None
    assert schema.json == SCHEMA
    assert grammar is not None
    assert grammar.grammar == 'root ::= "yes"'


@doors
def test_tools_are_shown_by_the_chat_template(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    call = '<tool_call>{"name": "weather", "arguments": {"city": "Bern"}}</tool_call>'
    monkeypatch.setattr(AsyncLLMEngine, "pieces", [call])
    model = VLLMModel("tiny", apply_chat_template_kwargs={"opening": "Hm."})
    reply = model.parse_tool_calls(door.ask(model, tools_to_call_from=[Weather()]))
    (wanted,) = reply.tool_calls or []
    assert (wanted.function.name, wanted.function.arguments) == ("weather", {"city": "Bern"})
    ((tokens, _),) = engine(model).asked
    read = model.tokenizer.decode(tokens)
    assert '"name": "weather"' in read
    assert read.endswith("Hm.")


@doors
def test_thoughts_are_kept_apart(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsyncLLMEngine, "pieces", ["Hm. ", "</think>", "\n\n", "Hello"])
    model = VLLMModel("tiny", apply_chat_template_kwargs={"opening": "<think>\n"})
    reply = door.ask(model)
    assert (reply.text, reply.reasoning) == ("Hello", "Hm. ")


def test_replies_are_written_together_in_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody is answered before all have asked.
    monkeypatch.setattr(AsyncLLMEngine, "together", asyncio.Barrier(3))
    model = VLLMModel("tiny")

    async def main() -> list[str]:
        replies = await asyncio.gather(*(model.agenerate(HELLO) for _ in range(3)))
        return [reply.text for reply in replies]

    for _ in range(2):
        assert asyncio.run(main()) == ["Hello world!"] * 3
    assert len(engine(model).loops) == 1


def test_a_stream_that_is_closed_aborts_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsyncLLMEngine, "endless", True)
    model = VLLMModel("tiny", max_tokens=100_000)
    with closing(model.generate_stream(HELLO)) as stream:
        assert next(stream).content == "Hel"
    assert len(engine(model).aborted) == 1


def test_cancelling_a_task_aborts_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsyncLLMEngine, "endless", True)
    model = VLLMModel("tiny")

    async def main() -> None:
        begun = asyncio.Event()

        async def ask() -> None:
            async for _ in model.agenerate_stream(HELLO, max_tokens=100_000):
                begun.set()

        task = asyncio.create_task(ask())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert engine(model).gone.wait(10)


def test_weights_are_shared_and_given_back() -> None:
    one, other = VLLMModel("tiny"), VLLMModel("tiny", temperature=1)
    assert engine(one) is engine(other)
    assert engine(VLLMModel("tiny", {"tensor_parallel_size": 2})) is not engine(one)
    AsyncLLMEngine.closings.clear()
    one.cleanup()
    assert AsyncLLMEngine.closings == []
    other.cleanup()
    assert AsyncLLMEngine.closings == ["tiny"]
    assert one.generate(HELLO).text == "Hello world!"


def test_what_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AgentGenerationError, match=r"vLLM cannot load 'nothing'.*local folder"):
        VLLMModel("nothing").generate(HELLO)
    with pytest.raises(AgentGenerationError, match="no_such_parameter"):
        VLLMModel("tiny").generate(HELLO, no_such_parameter=1)
    image: Any = {"type": "image", "image": b"\x89PNG\r\n\x1a\n"}
    with pytest.raises(AgentGenerationError, match="takes text only"):
        VLLMModel("tiny").generate([{"role": "user", "content": [image]}])
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sanderling\[vllm\]'"):
        VLLMModel("another").generate(HELLO)


def test_settings_load_back() -> None:
    arguments = {"max_model_len": 64, "hf_token": "hf_secret"}
    made = VLLMModel("tiny", arguments, top_p=0.5)
    data = json.loads(json.dumps(model_to_dict(made)))
    assert "hf_secret" not in json.dumps(data)
    loaded = model_from_dict(data, model_kwargs=arguments)
    assert isinstance(loaded, VLLMModel)
    assert loaded.to_dict() == made.to_dict()
    assert loaded.model_kwargs == made.model_kwargs


def test_live(tmp_path: Path) -> None:
    pytest.importorskip("vllm", reason="vLLM is not installed: it needs a GPU, or a build for CPUs")
    model = VLLMModel(str(saying_model(tmp_path, PIECES)), {"max_model_len": 512})
    for door in (Door(streamed=False, awaited=False), Door(streamed=True, awaited=True)):
        assert door.ask(model).text == "Hello world!"
        assert door.ask(model, stop_sequences=["o wo"]).text == "Hell"
    model.cleanup()
