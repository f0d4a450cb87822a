"""OpenAIModel, with the real SDK against a scripted server."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from sanderling.errors import (
    AgentGenerationError,
    ContentFilterError,
    ModelAccessError,
    RateLimitError,
)
from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    JSONObject,
    MessageRole,
    TokenUsage,
    agglomerate_stream_deltas,
)
from sanderling.models import REMOVE_PARAMETER, OpenAIModel, OpenAIServerModel
from support.openai_server import (
    Answer,
    OpenAIServer,
    chunk,
    completion,
    events,
    fails,
    says,
    serving,
    streams,
    usage,
)

HELLO = [ChatMessage(MessageRole.USER, "Hello")]


class Weather:
    name = "weather"

    def to_json_schema(self) -> JSONObject:
        parameters: JSONObject = {"type": "object", "properties": {"city": {"type": "string"}}}
        return {
            "type": "function",
            "function": {"name": self.name, "description": "Weather.", "parameters": parameters},
        }


def model(server: OpenAIServer, model_id: str = "scripted", **kwargs: Any) -> OpenAIModel:
    kwargs.setdefault("client_kwargs", {"max_retries": 0, "timeout": 5})
    return OpenAIModel(model_id, api_base=server.url, api_key="sk-test", **kwargs)


# The four doors; each returns the message and must behave alike.
def whole(model: OpenAIModel, **kwargs: Any) -> ChatMessage:
    return model.generate(HELLO, **kwargs)


def awaited(model: OpenAIModel, **kwargs: Any) -> ChatMessage:
    return asyncio.run(model.agenerate(HELLO, **kwargs))


def streamed(model: OpenAIModel, **kwargs: Any) -> ChatMessage:
    return agglomerate_stream_deltas(model.generate_stream(HELLO, **kwargs))


def astreamed(model: OpenAIModel, **kwargs: Any) -> ChatMessage:
    async def main() -> ChatMessage:
        stream = model.agenerate_stream(HELLO, **kwargs)
        return agglomerate_stream_deltas([delta async for delta in stream])

    return asyncio.run(main())


Door = Callable[..., ChatMessage]
DOORS = pytest.mark.parametrize("door", [whole, awaited, streamed, astreamed])
WHOLE = pytest.mark.parametrize("door", [whole, awaited])
STREAMED = pytest.mark.parametrize("door", [streamed, astreamed])


def speaks(door: Door, text: str) -> Answer:
    return says(text) if door in (whole, awaited) else streams(*text.partition(" "))


@DOORS
def test_a_reply_comes_with_usage_and_finish_reason(door: Door) -> None:
    with serving(speaks(door, "Hello world")) as server:
        reply = door(model(server))
    assert reply.content == "Hello world"
    assert reply.role == MessageRole.ASSISTANT
    assert reply.token_usage == TokenUsage(11, 7)
    assert reply.finish_reason == "stop"
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-test"
    assert request.body["model"] == "scripted"
    assert request.body["messages"] == [{"role": "user", "content": "Hello"}]


@STREAMED
def test_a_stream_asks_for_usage(door: Door) -> None:
    with serving(streams("a", "b", "c")) as server:
        assert door(model(server)).content == "abc"
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


@DOORS
def test_the_models_parameters_win_over_those_of_the_call(door: Door) -> None:
    with serving(speaks(door, "x")) as server:
        served = model(server, temperature=0.5, stop=REMOVE_PARAMETER, top_k=3)
        door(served, temperature=0.9, max_tokens=5, stop_sequences=["END"], min_p=0.1)
    body = server.requests[0].body
    assert (body["temperature"], body["max_tokens"]) == (0.5, 5)
    assert (body["top_k"], body["min_p"]) == (3, 0.1)  # the SDK does not know these two
    assert "stop" not in body


@DOORS
def test_stop_sequences_are_sent(door: Door) -> None:
    with serving(speaks(door, "some text")) as server:
        door(model(server), stop_sequences=["END", "STOP"])
    assert server.requests[0].body["stop"] == ["END", "STOP"]


@DOORS
@pytest.mark.parametrize("model_id", ["o3", "openai/o4-mini", "gpt-5", "grok-4"])
def test_stop_sequences_are_cut_here_for_models_that_refuse_them(door: Door, model_id: str) -> None:
    with serving(speaks(door, "keep </co de>no</code> more")) as server:
        reply = door(model(server, model_id), stop_sequences=["</code>"])
    assert "stop" not in server.requests[0].body
    assert reply.content == "keep </co de>no"
    assert reply.token_usage == TokenUsage(11, 7)


@DOORS
def test_more_stop_sequences_than_the_api_takes(door: Door) -> None:
    with serving(speaks(door, "one five six")) as server:
        reply = door(model(server), stop_sequences=["s1", "s2", "s3", "s4", "five"])
    assert server.requests[0].body["stop"] == ["s1", "s2", "s3", "s4"]
    assert reply.content == "one "


CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Bern"}'},
}


def in_pieces(arguments: str, **fields: Any) -> list[dict[str, Any]]:
    first, second = arguments[:6], arguments[6:]
    return [
        {"tool_calls": [{**fields, "function": {"name": "weather", "arguments": first}}]},
        {"tool_calls": [{"index": fields["index"], "function": {"arguments": second}}]},
    ]


@DOORS
def test_tool_calls(door: Door) -> None:
    pieces = in_pieces('{"city": "Bern"}', index=0, id="call_1", type="function")
    answer = (
        says(None, "tool_calls", tool_calls=[CALL])
        if door in (whole, awaited)
        else streams(*pieces, finish_reason="tool_calls")
    )
    with serving(answer) as server:
        served = model(server)
        reply = door(served, tools_to_call_from=[Weather()])
    body = server.requests[0].body
    assert body["tools"] == [Weather().to_json_schema()]
    assert body["tool_choice"] == "required"
    assert reply.tool_calls == [ChatMessageToolCall.from_dict(CALL)]
    assert reply.finish_reason == "tool_calls"
    assert not reply.content
    (call,) = served.parse_tool_calls(reply).tool_calls or []
    assert call.function.arguments == {"city": "Bern"}


@DOORS
def test_tool_choice_can_be_changed(door: Door) -> None:
    with serving(speaks(door, "x y")) as server:
        door(model(server), tools_to_call_from=[Weather()], tool_choice="auto")
    assert server.requests[0].body["tool_choice"] == "auto"


@STREAMED
def test_streamed_calls_without_an_index_are_told_apart(door: Door) -> None:
    def call(identity: str) -> dict[str, Any]:
        function = {"name": "weather", "arguments": f'{{"city": "{identity}"}}'}
        return {"tool_calls": [{"id": identity, "function": function}]}

    with serving(streams(call("a"), call("b"), finish_reason="tool_calls")) as server:
        calls = door(model(server)).tool_calls or []
    assert [each.id for each in calls] == ["a", "b"]
    assert calls[1].function.arguments == '{"city": "b"}'


@STREAMED
def test_streamed_calls_that_all_have_index_0_are_told_apart(door: Door) -> None:
    def call(identity: str) -> list[dict[str, Any]]:
        function = {"name": "weather", "arguments": '{"city": '}
        rest = {"index": 0, "function": {"arguments": f'"{identity}"}}'}}
        return [
            {"tool_calls": [{"index": 0, "id": identity, "function": function}]},
            {"tool_calls": [rest]},
        ]

    with serving(streams(*call("a"), *call("b"), finish_reason="tool_calls")) as server:
        calls = door(model(server)).tool_calls or []
    assert [(each.id, each.function.arguments) for each in calls] == [
        ("a", '{"city": "a"}'),
        ("b", '{"city": "b"}'),
    ]


def test_what_a_model_cannot_take_is_not_sent() -> None:
    with serving(says("x")) as server:
        limited = model(server, capabilities={"tools": False, "images": False})
        limited.generate(HELLO, tools_to_call_from=[Weather()])
        with pytest.raises(ValueError, match="text only"):
            limited.generate([{"role": "user", "content": [{"type": "image", "image": b"x"}]}])
    (request,) = server.requests
    assert "tools" not in request.body


@DOORS
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(door: Door, field: str) -> None:
    answer = (
        says("42", **{field: "Hmm."})
        if door in (whole, awaited)
        else streams({field: "Hm"}, {field: "m."}, "42")
    )
    with serving(answer) as server:
        reply = door(model(server))
    assert (reply.content, reply.reasoning) == ("42", "Hmm.")


def test_content_that_comes_as_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hmm."}]},
        {"type": "text", "text": "42"},
    ]
    message = {"role": "assistant", "content": parts}
    with serving(completion([{"message": message, "finish_reason": "stop"}])) as server:
        reply = whole(model(server))
    assert (reply.content, reply.reasoning, reply.token_usage) == ("42", "Hmm.", None)


@pytest.mark.parametrize("arguments", ["/etc/passwd", '"x"', "[1", 7, None, [1]])
@pytest.mark.parametrize(
    ("told", "counted"),
    [
        ({"prompt_tokens": -5, "completion_tokens": 10**400}, (0, 1 << 53)),
        ({"prompt_tokens": True, "completion_tokens": 1.5}, (0, 0)),
        ({"prompt_tokens": "many", "completion_tokens": {}}, (0, 0)),
        ([1], None),
    ],
)
def test_a_hostile_reply_is_text_and_counts(
    told: Any, counted: tuple[int, int] | None, arguments: Any
) -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "file:///etc/hostname"}},
        {"type": "image", "path": "/etc/hostname", "image": "/etc/hostname"},
        *({"type": "text", "text": "42"}, {"type": "text", "text": ["a"]}, "x", None, 7),
    ]
    call = {"id": 5, "function": {"name": "weather", "arguments": arguments}}
    message = {"role": "system", "content": parts, "tool_calls": [call]}
    answer = json.loads(completion([{"message": message}]).body) | {"usage": told}
    with serving(Answer(json.dumps(answer))) as server:
        reply = whole(model(server))
    assert (reply.role, reply.content) == (MessageRole.ASSISTANT, "42")
    usage = reply.token_usage
    assert (usage and (usage.input_tokens, usage.output_tokens)) == counted
    assert [call.function.name for call in reply.tool_calls or []] == ["weather"]


@DOORS
def test_a_response_format_is_sent(door: Door) -> None:
    form = {"type": "json_object"}
    with serving(speaks(door, "{} ")) as server:
        door(model(server), response_format=form)
    assert server.requests[0].body["response_format"] == form


@DOORS
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (fails(401, "Incorrect API key"), r"refused the key .* Check the api_key .*req-42"),
        (fails(403, "not yours"), r"does not let this key use 'scripted'"),
        (fails(404, "no such model"), r"no model 'scripted'.*api_base.*no such model"),
        (fails(400, "bad temperature"), r"REMOVE_PARAMETER.*bad temperature"),
        (fails(400, "maximum context length is 8"), r"longer than 'scripted' can read"),
        (fails(429, "slow down", retry_after="7"), r"too many requests.*wait 7 seconds"),
        (fails(500, "boom"), r"failed \(status 500\).*boom"),
        (Answer("<html>gateway</html>", status=502), r"status 502.*gateway"),
        (Answer("", status=503), r"status 503"),
    ],
)
def test_refusals_say_what_to_do(door: Door, answer: Answer, told: str) -> None:
    with serving(answer) as server, pytest.raises(AgentGenerationError, match=told) as caught:
        door(model(server))
    assert server.url in str(caught.value) or "longer than" in str(caught.value)
    assert "sk-test" not in str(caught.value)
    assert caught.value.__cause__ is not None


@WHOLE
@pytest.mark.parametrize(
    "answer",
    [
        Answer("<html>It works!</html>", content_type="text/html"),
        Answer("<html>It works!</html>"),
        Answer("[1, 2]"),
        Answer("null"),
        Answer('{"choices": "many"}'),
        completion([]),
        completion([{"finish_reason": "stop"}]),
        completion([{"message": "hello"}]),
    ],
)
def test_a_body_that_is_no_completion(door: Door, answer: Answer) -> None:
    with serving(answer) as server, pytest.raises(AgentGenerationError, match="ends in /v1"):
        door(model(server))


@STREAMED
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (events([chunk({"content": "half"})], end=""), "broke off"),
        (events([chunk({"content": "half"})], end="", cut=True), "broke the reply off"),
        (events([chunk({"content": "half"})], end="data: {nonsense\n\n"), "no chat completion"),
        (events([], end=""), "broke off"),
        (events([[1, 2]]), "what is no chunk"),
        (
            events([chunk({"content": "half"}), {"error": {"message": "out of memory"}}]),
            "out of memory",
        ),
    ],
)
def test_a_stream_that_goes_wrong(door: Door, answer: Answer, told: str) -> None:
    with serving(answer) as server, pytest.raises(AgentGenerationError, match=told):
        door(model(server))


@STREAMED
def test_a_running_total_of_usage_counts_once(door: Door) -> None:
    counted = [{**chunk({"content": "a"}), "usage": usage(11, n)} for n in (1, 2)]
    with serving(events([*counted, {**chunk({}, "stop"), "usage": usage(11, 3)}])) as server:
        assert door(model(server)).token_usage == TokenUsage(11, 3)


@DOORS
def test_a_server_that_stalls(door: Door) -> None:
    answer = (
        Answer('{"choices"', stall=True)
        if door in (whole, awaited)
        else events([chunk({"content": "half"})], end="", stall=True)
    )
    with serving(answer) as server, pytest.raises(AgentGenerationError, match=r"in time.*timeout"):
        door(model(server, client_kwargs={"max_retries": 0, "timeout": 0.3}))


@DOORS
def test_a_server_that_is_down(door: Door) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    down = OpenAIModel(
        "m", api_base=f"http://127.0.0.1:{port}/v1", client_kwargs={"max_retries": 0}
    )
    with pytest.raises(AgentGenerationError, match=rf"{port}/v1 failed .*server running"):
        door(down)


@WHOLE
def test_a_passing_failure_is_repeated(door: Door) -> None:
    busy = fails(429, "slow down", retry_after_ms="1")
    with serving(busy, busy, says("at last")) as server:
        assert door(model(server, client_kwargs={"max_retries": 2})).content == "at last"
    assert len(server.requests) == 3


@pytest.mark.parametrize("awaits", [False, True])
def test_an_error_that_comes_as_an_answer_is_an_error(awaits: bool) -> None:
    def ask(*answers: Answer) -> ChatMessage:
        with serving(*answers) as server:
            asked = model(server, retry={"attempts": 2, "first_wait": 0})
            return awaited(asked) if awaits else whole(asked)

    busy = {"error": {"message": "the provider is busy", "code": 429}}
    within = {"choices": [{"error": {"message": "it broke"}, "message": {"content": ""}}]}
    for body in (busy, within):
        assert ask(Answer(json.dumps(body)), says("at last")).content == "at last"
    with pytest.raises(RateLimitError, match="the provider is busy"):
        ask(Answer(json.dumps(busy)))
    no_credit = {"error": {"message": "Insufficient credits", "code": 402}}
    with pytest.raises(ModelAccessError, match="Insufficient credits"):
        ask(Answer(json.dumps(no_credit)))


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(AgentGenerationError, match="Set the environment variable OPENAI_API_KEY"):
        OpenAIModel("gpt-5").generate(HELLO)
    with pytest.raises(AgentGenerationError, match="Set the environment variable OPENAI_API_KEY"):
        awaited(OpenAIModel("gpt-5"))


@pytest.mark.parametrize("others", [{}, {"OPENAI_API_KEY": "sk-openai"}])
def test_a_known_provider_gets_its_own_key(
    monkeypatch: pytest.MonkeyPatch, others: dict[str, str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, value in {"OPENROUTER_API_KEY": "sk-or", **others}.items():
        monkeypatch.setenv(name, value)
    assert OpenAIModel("m", api_base="https://openrouter.ai/api/v1/").client.api_key == "sk-or"
    given = OpenAIModel("m", api_base="https://openrouter.ai/api/v1", api_key="sk-given")
    assert given.client.api_key == "sk-given"
    somebody_else = OpenAIModel("m", api_base="https://openrouter.ai/api/v1.example.org")
    assert somebody_else.client.api_key != "sk-or"


def test_a_local_server_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(says("hi")) as server:
        assert OpenAIModel("m", server.url).generate(HELLO).content == "hi"


def test_closing_a_stream_early_closes_the_connection() -> None:
    answer = events([chunk({"content": "a"}), chunk({"content": "b"})], end="", stall=True)
    with serving(answer) as server:
        with closing(model(server).generate_stream(HELLO)) as stream:
            assert next(stream).content == "a"

        async def main() -> None:
            deltas = model(server).agenerate_stream(HELLO)
            assert (await anext(deltas)).content == "a"
            await deltas.aclose()

        asyncio.run(main())


def test_one_model_serves_many_loops_and_tasks() -> None:
    async def ask(served: OpenAIModel) -> list[str | None]:
        replies = await asyncio.gather(*(served.agenerate(HELLO) for _ in range(5)))
        return [str(reply.content) for reply in replies]

    with serving(says("hi")) as server:
        served = model(server)
        for _ in range(3):
            assert asyncio.run(ask(served)) == ["hi"] * 5
        assert served.generate(HELLO).content == "hi"


def test_settings_load_back_without_secrets() -> None:
    made = OpenAIServerModel(
        "m",
        api_base="http://localhost:1/v1",
        api_key="sk-secret",
        organization="org",
        client_kwargs={"timeout": 3, "default_headers": {"Authorization": "sk-2", "X": "y"}},
        custom_role_conversions={MessageRole.SYSTEM: "developer"},
        flatten_messages_as_text=True,
        profile={"name": "mine", "stop_sequences": ["x"]},
        temperature=0.1,
        stop=REMOVE_PARAMETER,
    )
    data = made.to_dict()
    assert "sk-" not in str(data)
    assert data["missing_secrets"] == ["api_key", "client_kwargs.default_headers.Authorization"]
    with pytest.warns(UserWarning, match="api_key"):
        loaded = OpenAIModel.from_dict(
            data, api_base=made.api_base, client_kwargs=data["client_kwargs"]
        )
    assert loaded.to_dict() == {**data, "missing_secrets": ["api_key"]}
    assert loaded.client_kwargs == {"timeout": 3, "default_headers": {"X": "y"}}
    assert loaded.kwargs == {"temperature": 0.1, "stop": REMOVE_PARAMETER}
    assert loaded.profile == made.profile


@pytest.mark.parametrize("door", ["generate", "generate_stream"])
def test_a_missing_package_names_the_command(door: str) -> None:
    script = (
        "import sys; sys.modules['openai'] = None\n"
        "from sanderling.errors import MissingExtraError\n"
        "from sanderling.models import OpenAIModel\n"
        "try:\n"
        f"    list(OpenAIModel('m', 'http://localhost:1/v1').{door}([]))\n"
        "except MissingExtraError as error:\n"
        "    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'sanderling[openai]'" in done.stdout, done.stderr


@DOORS
def test_a_reply_that_the_filter_withheld(door: Door) -> None:
    answer = (
        says("", "content_filter")
        if door in (whole, awaited)
        else streams(finish_reason="content_filter")
    )
    with serving(answer) as server, pytest.raises(ContentFilterError, match="withheld"):
        door(model(server))


@DOORS
def test_an_empty_reply_is_a_reply(door: Door) -> None:
    answer = says(None) if door in (whole, awaited) else streams()
    with serving(answer) as server:
        reply = door(model(server))
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", None, "stop")


@DOORS
def test_a_tool_call_with_broken_json_keeps_its_text(door: Door) -> None:
    broken = {**CALL, "function": {"name": "weather", "arguments": '{"city": "Be'}}
    answer = (
        says(None, "tool_calls", tool_calls=[broken])
        if door in (whole, awaited)
        else streams({"tool_calls": [{**broken, "index": 0}]}, finish_reason="tool_calls")
    )
    with serving(answer) as server:
        (call,) = model(server).parse_tool_calls(door(model(server))).tool_calls or []
    assert call.function.arguments == '{"city": "Be'


@DOORS
def test_a_client_of_ones_own(door: Door) -> None:
    import openai

    with (
        serving(speaks(door, "Hello world")) as server,
        openai.OpenAI(api_key="mine", base_url=server.url) as client,
    ):
        assert door(OpenAIModel("m", client=client)).text == "Hello world"
        assert not client.is_closed()
    assert server.requests[0].headers["authorization"] == "Bearer mine"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"requests_per_minute": 0}, "requests_per_minute is more than 0"),
        ({"max_concurrent_requests": -1}, "max_concurrent_requests is more than 0"),
        ({"capabilities": {"sees": True}}, "no capability sees"),
        ({"retry": 3}, "retry is True, False or a RetryPolicy"),
        ({"retry": {"attempts": 0}}, "1 or more"),
        ({"profile": "none"}, "no model profile 'none'"),
        ({"timeout": 0}, "timeout is more than 0 seconds"),
        ({"timeout": "5"}, "timeout is a number, not '5'"),
        ({"model_id": None}, "OpenAIModel needs a model_id"),
        ({"model_id": " "}, "model_id is an empty text"),
        ({"model_id": 5}, "model_id is a text, not 5"),
        ({"requests_per_minute": "9"}, "requests_per_minute is a number, not '9'"),
        ({"max_concurrent_requests": 1.5}, "max_concurrent_requests is a whole number"),
        ({"capabilities": ["stop"]}, "capabilities is a dict"),
        ({"retry": {"attempts": "3"}}, "attempts, .*, is a whole number"),
        ({"retry": {"total": None}}, "total is a number, not None"),
        ({"profile": 5}, "profile is a ModelProfile"),
        ({"client_kwargs": ["timeout"]}, "client_kwargs is a dict"),
        ({"client_kwargs": {"max_retries": "2"}}, "max_retries is a whole number"),
        ({"custom_role_conversions": {"wizard": "user"}}, "'wizard' .* there is: user, "),
        ({"custom_role_conversions": ["system"]}, "custom_role_conversions is a dict"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises((ValueError, TypeError), match=told):
        OpenAIModel(**{"model_id": "m", **arguments})


def test_requests_at_once_are_limited_for_tasks() -> None:
    async def main(served: OpenAIModel) -> list[ChatMessage]:
        return await asyncio.gather(*(served.agenerate(HELLO) for _ in range(6)))

    with serving(says("hi")) as server:
        replies = asyncio.run(main(model(server, max_concurrent_requests=2)))
    assert [reply.text for reply in replies] == ["hi"] * 6
