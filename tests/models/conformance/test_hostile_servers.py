"""A server that means harm costs no more than an error, whatever package talks to it."""

from __future__ import annotations

import json
import logging
import traceback

import pytest

from sanderling.errors import AgentGenerationError
from sanderling.models import RetryPolicy
from sanderling.models._bounds import MAX_TEXT
from sanderling.models._tool_calls import MAX_CALLS
from support.dialects.all import DIALECTS
from support.dialects.dialect import Call, Dialect, Reply
from support.doors import Door, doors, streams, wholes
from support.scripted_http import EVENTS, Answer, serving

QUICK = RetryPolicy(attempts=3, first_wait=0.001)
KEY = "sk-test"
MIB = 2**20
# The others read what comes before it can be counted.
COUNTED = ("OpenAIModel", "AzureOpenAIModel", "AnthropicModel", "GeminiModel")

every = pytest.mark.parametrize("dialect", DIALECTS, ids=repr, indirect=True)
counted = pytest.mark.parametrize(
    "dialect", [each for each in DIALECTS if each.name in COUNTED], ids=repr, indirect=True
)


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> Dialect:
    asked: Dialect = request.param
    asked.require()
    return asked


def answer(dialect: Dialect, door: Door, reply: Reply) -> Answer:
    return dialect.streamed(reply) if door.streamed else dialect.whole(reply)


@every
@doors
@pytest.mark.parametrize("status", [401, 500])
@pytest.mark.parametrize("own", [KEY, "the very own key of the environment"])
def test_a_key_that_the_server_echoes_is_told_to_nobody(
    dialect: Dialect,
    door: Door,
    status: int,
    own: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", own)
    said = f"{own} is wrong. {'x' * 460} {own}"  # packages and we cut long messages off
    with (
        serving(dialect.fails(status, said, {})) as server,
        caplog.at_level(logging.WARNING),
        pytest.raises(AgentGenerationError) as caught,
    ):
        door.ask(dialect.model(server, retry=QUICK))
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(caught.value)
    assert "[secret] is wrong" in told
    assert own not in told
    assert own[:20] not in told
    assert ("Attempt 2" in caplog.text) == (status == 500)


@every
@doors
def test_a_key_in_an_answer_that_is_none_is_told_to_nobody(dialect: Dialect, door: Door) -> None:
    answers = Answer(json.dumps({"key": KEY})), Answer(f"data: {KEY}\n\n", content_type=EVENTS)
    with (
        serving(answers[door.streamed]) as server,
        pytest.raises(AgentGenerationError) as caught,
    ):
        door.ask(dialect.model(server))
    assert KEY not in "".join(traceback.format_exception(caught.value))


@every
@doors
def test_a_reply_that_is_too_long_is_given_up(dialect: Dialect, door: Door) -> None:
    reply = Reply(["x" * MIB] * 4 + ["x"])
    assert len(reply.text) == MAX_TEXT + 1
    with (
        serving(answer(dialect, door, reply)) as server,
        pytest.raises(AgentGenerationError, match="more than 4,194,304 characters"),
    ):
        door.ask(dialect.model(server, retry=QUICK))
    assert len(server.requests) == 1


@every
@doors
def test_a_reply_of_too_many_calls_is_given_up(dialect: Dialect, door: Door) -> None:
    reply = Reply([], [Call("call_1", "weather", {})] * (MAX_CALLS + 1), finish="tool_calls")
    with (
        serving(answer(dialect, door, reply)) as server,
        pytest.raises(AgentGenerationError, match="more than 1,000 tool calls"),
    ):
        door.ask(dialect.model(server, retry=QUICK))
    assert len(server.requests) == 1


@counted
@wholes
@pytest.mark.parametrize("status", [200, 400])
def test_a_body_without_end_is_given_up(dialect: Dialect, door: Door, status: int) -> None:
    endless = Answer('{"choices": "', status, endless=b"x" * MIB)
    with (
        serving(endless) as server,
        pytest.raises(AgentGenerationError, match="more than an answer may have: 16,777,216 bytes"),
    ):
        door.ask(dialect.model(server, retry=QUICK))
    assert server.hung_up.wait(10)
    assert len(server.requests) == 1


@counted
@wholes
def test_a_body_that_is_nothing_but_objects_is_not_read(dialect: Dialect, door: Door) -> None:
    body = '{"choices": [' + "{}," * 200_000 + "{}]}"
    with (
        serving(Answer(body)) as server,
        pytest.raises(AgentGenerationError, match="more than an answer may have: 50,000 objects"),
    ):
        door.ask(dialect.model(server))


@counted
@streams
def test_an_event_without_end_is_given_up(dialect: Dialect, door: Door) -> None:
    endless = Answer('data: {"choices": "', content_type=EVENTS, endless=b"x" * MIB)
    with (
        serving(endless) as server,
        pytest.raises(AgentGenerationError, match="more than an answer may have: 16,777,216 bytes"),
    ):
        door.ask(dialect.model(server, retry=QUICK))
    assert server.hung_up.wait(10)
    assert len(server.requests) == 1


@counted
@doors
def test_what_may_be_a_bomb_is_not_unpacked(dialect: Dialect, door: Door) -> None:
    packed = Answer("x", headers={"content-encoding": "zstd"})
    with (
        serving(packed) as server,
        pytest.raises(AgentGenerationError, match="compressed its answer with 'zstd'"),
    ):
        door.ask(dialect.model(server))
    assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"
