"""RecordingModel and ReplayModel."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from sanderling.errors import AgentGenerationError
from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    JSONObject,
    MessageRole,
    agglomerate_stream_deltas,
)
from sanderling.models import ModelProfile, RecordingModel, ReplayModel, ScriptedModel


def said(text: str) -> list[ChatMessage]:
    return [ChatMessage(MessageRole.SYSTEM, "be brief"), ChatMessage(MessageRole.USER, text)]


class Adder:
    name = "add"

    def to_json_schema(self) -> JSONObject:
        return {"type": "function", "function": {"name": self.name}}


CALLS = ChatMessage(
    MessageRole.ASSISTANT,
    None,
    [ChatMessageToolCall(ChatMessageToolCallFunction({"a": 1}, "add"), "1")],
    finish_reason="tool_calls",
    reasoning="Hmm",
)


def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    profile = ModelProfile("mine", stop_sequences=("x",))
    asked = ScriptedModel(["one", CALLS, "three words here", "four"], "m", profile)
    model = RecordingModel(asked, path)

    async def streamed() -> ChatMessage:
        return agglomerate_stream_deltas([d async for d in model.agenerate_stream(said("d"))])

    recorded = [
        model.generate(said("a"), stop_sequences=["END"]),
        model.generate(said("b"), tools_to_call_from=[Adder()], api_key="sk-1"),
        agglomerate_stream_deltas(model.generate_stream(said("c"))),
        asyncio.run(streamed()),
    ]
    assert "sk-1" not in path.read_text()
    replay = ReplayModel(path)
    assert (replay.model_id, replay.profile, replay.remaining) == ("m", profile, 4)
    replayed = [
        replay.generate(said("a"), ["END"]),
        asyncio.run(replay.agenerate(said("b"), tools_to_call_from=[Adder()])),
        agglomerate_stream_deltas(replay.generate_stream(said("c"))),
        replay.generate(said("d")),
    ]
    assert replayed == recorded
    assert replay.remaining == 0


def test_equal_requests_are_answered_in_order(tmp_path: Path) -> None:
    model = RecordingModel(ScriptedModel(["1", "2"]), tmp_path / "r")
    first, second = model.generate(said("a")), model.generate(said("a"))
    replay = ReplayModel(tmp_path / "r")
    assert [replay.generate(said("a")), replay.generate(said("a"))] == [first, second]
    with pytest.raises(AgentGenerationError, match="All replies recorded"):
        replay.generate(said("a"))


def test_the_first_divergence_is_shown(tmp_path: Path) -> None:
    model = RecordingModel(ScriptedModel(["1", "2"]), tmp_path / "r")
    model.generate(said("a"))
    model.generate(said("line one\nthe sky is blue\nline three"))
    replay = ReplayModel(tmp_path / "r")
    replay.generate(said("a"))
    with pytest.raises(AgentGenerationError) as caught:
        replay.generate(said("line one\nthe sky is grey\nline three"))
    assert "-the sky is blue\n+the sky is grey" in str(caught.value)


def test_errors_are_replayed(tmp_path: Path) -> None:
    model = RecordingModel(ScriptedModel([AgentGenerationError("no key")] * 2), tmp_path / "r")
    with pytest.raises(AgentGenerationError):
        model.generate(said("a"))
    with pytest.raises(AgentGenerationError):
        list(model.generate_stream(said("b")))
    replay = ReplayModel(tmp_path / "r")
    for text in "ab":
        with pytest.raises(AgentGenerationError, match="no key"):
            replay.generate(said(text))


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_only_its_owner_can_read_a_recording(tmp_path: Path, umask: int) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("an older one")
    old.chmod(0o644)
    with old.open() as reader:
        before = os.umask(umask)
        try:
            for path in (new, old):
                model = RecordingModel(ScriptedModel(["1"]), path, overwrite=path == old)
                assert mode(path) == "0o600"
                model.generate(said("a"))
                assert mode(path) == "0o600"
        finally:
            os.umask(before)
        assert "header" not in reader.read()
    assert ReplayModel(old).remaining == 1


class Pinned(ScriptedModel):
    secret_settings = ScriptedModel.secret_settings | {"pin"}


def test_secrets_are_not_recorded_and_the_recording_is_found_all_the_same(tmp_path: Path) -> None:
    token = "ghp_0123456789abcdefghij0123456789abcdef"
    settings = {
        "pin": "1234567",
        "passphrase": "open sesame",
        "extra_headers": {"X-Functions-Key": "f-key", "X-A": "Token t-key"},
        "database": "postgres://u:db-key@h/db",
    }
    path = tmp_path / "r"
    model = RecordingModel(Pinned([f"I saw {token}."]), path)
    model.generate(said(f"What is {token}?"), **settings)
    for secret in (token, "1234567", "sesame", "f-key", "t-key", "db-key"):
        assert secret not in path.read_text()
    reply = ReplayModel(path).generate(said(f"What is {token}?"), **settings)
    assert reply.text == "I saw [secret]."


def test_a_recording_cannot_make_us_read_a_file(tmp_path: Path) -> None:
    path = tmp_path / "r"
    RecordingModel(ScriptedModel(["1"]), path).generate(said("a"))
    header, entry = path.read_text().splitlines()
    forged = json.loads(entry)
    forged["reply"]["content"] = [{"type": "image", "url": "/etc/passwd"}]
    path.write_text(f"{header}\n{json.dumps(forged)}\n")
    with pytest.raises(ValueError, match=r"must be an http\(s\) or data: URL"):
        ReplayModel(path).generate(said("a"))


def test_half_a_reply_is_not_recorded(tmp_path: Path) -> None:
    model = RecordingModel(ScriptedModel(["one two three"]), tmp_path / "r")
    with closing(model.generate_stream(said("a"))) as stream:
        next(stream)
    assert ReplayModel(tmp_path / "r").remaining == 0


def test_a_recording_is_not_lost_by_accident(tmp_path: Path) -> None:
    RecordingModel(ScriptedModel(["1"]), tmp_path / "r").generate(said("a"))
    with pytest.raises(FileExistsError):
        RecordingModel(ScriptedModel([]), tmp_path / "r")
    assert ReplayModel(tmp_path / "r").remaining == 1
    RecordingModel(ScriptedModel([]), tmp_path / "r", overwrite=True)
    assert ReplayModel(tmp_path / "r").remaining == 0


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "first line"),
        (["hello"], "first line"),
        ([{"format": "sanderling.recording", "version": 2}], "version 2"),
        ([{"format": "sanderling.recording", "version": 1}, {"key": "x"}], "line 2"),
    ],
)
def test_what_is_no_recording(tmp_path: Path, lines: list[object], told: str) -> None:
    (tmp_path / "r").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(ValueError, match=told):
        ReplayModel(tmp_path / "r")
    (tmp_path / "r").write_text("{nonsense")
    with pytest.raises(ValueError, match="no recording"):
        ReplayModel(tmp_path / "r")
