"""MLXModel, with models made here, on the CPU."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sanderling import CodeAgent
from sanderling.errors import AgentGenerationError, ContextLengthError, MissingExtraError
from sanderling.messages import ChatMessage, MessageRole
from sanderling.models import MLXModel, model_from_dict, model_to_dict
from support.doors import HELLO, Door, doors, streams
from support.tiny_model import CONTEXT, random_model, saying_model

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
pytest.importorskip("torch", reason="torch, which makes the models, is not installed")

PIECES = ["Hel", "lo", " wor", "ld", "!"]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def hello(folder: Path) -> MLXModel:
    return MLXModel(str(saying_model(folder / "hello", PIECES)))


@pytest.fixture(scope="module")
def endless(folder: Path) -> MLXModel:
    saying_model(folder / "endless", ["on ", "and ", "on, "], endless=True)
    return MLXModel(str(folder / "endless"))


class Weather:
    name = "weather"

    def to_json_schema(self) -> Any:
        return {"type": "function", "function": {"name": self.name, "parameters": {}}}


@doors
def test_a_reply(hello: MLXModel, door: Door) -> None:
    reply = door.ask(hello)
    assert (reply.text, reply.finish_reason) == ("Hello world!", "stop")
    usage = reply.token_usage
    assert usage is not None
    assert usage.output_tokens == len(PIECES) + 1
    assert usage.input_tokens == len("[user\nHL]\n[assistant\n")


@streams
def test_a_reply_comes_in_pieces(hello: MLXModel, door: Door) -> None:
    texts = [delta.content for delta in door.deltas(hello) if delta.content]
    assert "".join(texts) == "Hello world!"
    assert len(texts) > 2


@doors
def test_the_longest_reply(endless: MLXModel, door: Door) -> None:
    reply = door.ask(endless, max_tokens=4)
    assert (reply.text, reply.finish_reason) == ("on and on, on ", "length")


def test_a_reply_ends_where_the_model_could_not_read_on(folder: Path) -> None:
    path = saying_model(folder / "narrow", ["on ", "and "], endless=True, context=64)
    reply = MLXModel(str(path)).generate(HELLO)
    assert reply.finish_reason == "length"
    assert reply.token_usage is not None
    assert reply.token_usage.total_tokens == 64


@doors
def test_stop_sequences(hello: MLXModel, door: Door) -> None:
    reply = door.ask(hello, stop_sequences=["never", "o wo"])
    assert (reply.text, reply.finish_reason) == ("Hell", "stop")
    assert door.ask(hello, stop_sequences=["world!?"]).text == "Hello world!"
    assert door.ask(MLXModel(hello.model_id, stop="wor"), stop_sequences=["x"]).text == "Hello "


@doors
def test_tools_are_shown_by_the_chat_template(folder: Path, door: Door) -> None:
    call = '<tool_call>{"name": "weather", "arguments": {"city": "Bern"}}</tool_call>'
    model = MLXModel(str(saying_model(folder / f"call{door}", [call])))
    told = door.ask(model, tools_to_call_from=[Weather()])
    (wanted,) = model.parse_tool_calls(told).tool_calls or []
    assert (wanted.function.name, wanted.function.arguments) == ("weather", {"city": "Bern"})
    untold = door.ask(model)
    assert told.token_usage is not None
    assert untold.token_usage is not None
    assert told.token_usage.input_tokens > untold.token_usage.input_tokens + 50


@doors
def test_a_schema_is_told_and_checked(folder: Path, door: Door) -> None:
    right = MLXModel(str(saying_model(folder / f"right{door}", ['{"n"', ": 1", "}"])))
    assert json.loads(door.ask(right, response_format=FORM).text) == {"n": 1}
    with pytest.raises(AgentGenerationError, match="3 times"):
        door.ask(MLXModel(f"{folder}/hello"), response_format=FORM)


def test_a_step_reads_only_what_is_new(folder: Path) -> None:
    model = MLXModel(str(saying_model(folder / "steps", PIECES)))
    history = [ChatMessage(MessageRole.SYSTEM, "Be brief. " * 20), *HELLO]
    model.generate(history)
    history += [ChatMessage(MessageRole.ASSISTANT, "Hello world!"), *HELLO]
    usage = model.generate(history).token_usage
    assert usage is not None
    assert usage.input_tokens - usage.cached_tokens == len("\n[user\nHL]\n[assistant\n")


@pytest.mark.parametrize("caches", [0, 1, 2])
def test_what_is_kept_changes_no_reply(folder: Path, caches: int) -> None:
    if not (folder / "noise").exists():
        random_model(folder / "noise")

    def course(model: MLXModel) -> list[str]:
        said = []
        runs = [[ChatMessage(MessageRole.USER, f"{'long ' * 20} {run}")] for run in range(3)]
        for step in range(3):
            for run in runs:
                reply = model.generate(run[: 1 + 2 * step])
                said.append(reply.text)
                run += [
                    ChatMessage(MessageRole.ASSISTANT, reply.text[: len(reply.text) - step]),
                    ChatMessage(MessageRole.USER, f"step {step}"),
                ]
        return said

    kept = MLXModel(str(folder / "noise"), max_tokens=8, kv_caches=caches)
    forgotten = MLXModel(str(folder / "noise"), max_tokens=8, kv_caches=0)
    assert course(kept) == course(forgotten)


@doors
def test_thoughts_are_kept_apart(folder: Path, door: Door) -> None:
    pieces = ["<think>", "Hm. ", "</think>", "\n\n", "Hello"]
    model = MLXModel(str(saying_model(folder / f"thinks{door}", pieces)))
    reply = door.ask(model)
    assert (reply.text, reply.reasoning) == ("Hello", "Hm. ")
    opened = MLXModel(model.model_id, apply_chat_template_kwargs={"opening": "<think>\n"})
    reply = door.ask(opened)
    assert (reply.text, reply.reasoning) == ("Hello", "<think>Hm. ")


def test_one_model_serves_threads_and_tasks(folder: Path, hello: MLXModel) -> None:
    async def main() -> list[str]:
        replies = await asyncio.gather(*(hello.agenerate(HELLO) for _ in range(6)))
        return [reply.text for reply in replies]

    assert asyncio.run(main()) == ["Hello world!"] * 6


def test_closing_a_stream_stops_the_model(endless: MLXModel) -> None:
    with closing(endless.generate_stream(HELLO, max_tokens=1_000_000)) as stream:
        next(stream)
    assert endless.generate(HELLO, max_tokens=1).text == "on "


def test_cancelling_a_task_stops_the_model(endless: MLXModel) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def ask() -> None:
            async for _ in endless.agenerate_stream(HELLO, max_tokens=1_000_000):
                begun.set()

        task = asyncio.create_task(ask())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await endless.agenerate(HELLO, max_tokens=2)).text == "on and "

    asyncio.run(main())


def test_what_goes_wrong(folder: Path, hello: MLXModel, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="kv_caches is 0 or more"):
        MLXModel("any", kv_caches=-1)
    with pytest.raises(AgentGenerationError, match="no_such_parameter"):
        hello.generate(HELLO, no_such_parameter=1)
    with pytest.raises(AgentGenerationError, match=r"MLX cannot load '.*nothing'"):
        MLXModel(str(folder / "nothing")).generate(HELLO)
    with pytest.raises(ContextLengthError, match=rf"can read {CONTEXT}"):
        hello.generate([ChatMessage(MessageRole.USER, "word " * CONTEXT)])
    monkeypatch.setitem(sys.modules, "mlx_lm", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sanderling\[mlx-lm\]'"):
        MLXModel("any/model").generate(HELLO)


def test_settings_load_back(hello: MLXModel) -> None:
    made = MLXModel(hello.model_id, load_kwargs={"lazy": True}, max_tokens=2, top_p=0.5)
    data = json.loads(json.dumps(model_to_dict(made)))
    loaded = model_from_dict(data, load_kwargs={"lazy": True})
    assert isinstance(loaded, MLXModel)
    assert loaded.to_dict() == made.to_dict()
    assert loaded.model is made.model
    assert loaded.generate(HELLO, temperature=0).text == "Hello"


def test_a_code_agent(folder: Path) -> None:
    reply = ["<code>\n", "final_answer(6 * 7)\n", "</code>"]
    with CodeAgent([], MLXModel(str(saying_model(folder / "coder", reply)))) as agent:
        assert agent.run("What is 6 times 7?") == 42
