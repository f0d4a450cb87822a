"""Model: each door from each other one, and what all models share."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import closing
from typing import Any

import pytest

from sanderling import LogLevel, ToolCallingAgent
from sanderling.errors import AgentParsingError
from sanderling.messages import (
    ChatMessage,
    ChatMessageStreamDelta,
    JSONObject,
    MessageLike,
    MessageRole,
    TokenUsage,
    agglomerate_stream_deltas,
)
from sanderling.models import REMOVE_PARAMETER, Model

HELLO = [ChatMessage(MessageRole.USER, "Hello")]
REPLY = ChatMessage(
    MessageRole.ASSISTANT, "a b", token_usage=TokenUsage(1, 2), finish_reason="stop"
)
DELTAS = [ChatMessageStreamDelta("a "), ChatMessageStreamDelta("b", None, TokenUsage(1, 2), "stop")]

user: contextvars.ContextVar[str] = contextvars.ContextVar("user")


class Noting(Model):
    """Notes what it was asked and where; says `REPLY`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []
        self.users: list[str] = []
        self.threads: list[threading.Thread] = []

    def note(self, kwargs: dict[str, Any]) -> None:
        self.asked.append(kwargs)
        self.users.append(user.get("nobody"))
        self.threads.append(threading.current_thread())


class Whole(Noting):
    def generate(self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any) -> ChatMessage:
        self.note(kwargs)
        return REPLY


class Awaited(Noting):
    async def agenerate(
        self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any
    ) -> ChatMessage:
        await asyncio.sleep(0)
        self.note(kwargs)
        return REPLY


class Streamed(Noting):
    def generate_stream(
        self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        self.note(kwargs)
        yield from DELTAS


class AwaitedStream(Noting):
    async def agenerate_stream(
        self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any
    ) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        self.note(kwargs)
        for delta in DELTAS:
            await asyncio.sleep(0)
            yield delta


async def collected(model: Model, **kwargs: Any) -> list[ChatMessageStreamDelta]:
    return [delta async for delta in model.agenerate_stream(HELLO, **kwargs)]


@pytest.mark.parametrize("kind", [Whole, Awaited, Streamed, AwaitedStream])
def test_writing_one_method_gives_all_four(kind: type[Noting]) -> None:
    model = kind()
    user.set("ada")
    deltas = list(model.generate_stream(HELLO, stop_sequences=["x"]))
    adeltas = asyncio.run(collected(model, stop_sequences=["x"]))
    messages = [
        model.generate(HELLO, stop_sequences=["x"]),
        model(HELLO, stop_sequences=["x"]),
        asyncio.run(model.agenerate(HELLO, stop_sequences=["x"])),
        agglomerate_stream_deltas(deltas),
        agglomerate_stream_deltas(adeltas),
    ]
    assert messages == [REPLY] * 5
    # Nothing is passed on that was not given, and the caller's context is seen everywhere.
    assert model.asked == [{"stop_sequences": ["x"]}] * 5
    assert model.users == ["ada"] * 5


def test_blocking_code_stays_in_its_thread() -> None:
    model = Whole()
    model.generate(HELLO)
    list(model.generate_stream(HELLO))
    assert model.threads == [threading.current_thread()] * 2


def test_an_event_loop_is_not_blocked() -> None:
    model = Whole()
    asyncio.run(model.agenerate(HELLO))
    assert model.threads != [threading.current_thread()]


def test_a_model_that_writes_nothing_says_what_to_write() -> None:
    with pytest.raises(NotImplementedError, match="def generate"):
        Model().generate(HELLO)
    with pytest.raises(NotImplementedError, match="def generate"):
        asyncio.run(Model().agenerate(HELLO))


class Both(Model):
    def generate(self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any) -> ChatMessage:
        return ChatMessage(MessageRole.ASSISTANT, "sync")

    async def agenerate(
        self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any
    ) -> ChatMessage:
        return ChatMessage(MessageRole.ASSISTANT, "async")


class Louder(Both):
    def generate(self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any) -> ChatMessage:
        return ChatMessage(MessageRole.ASSISTANT, super().generate(messages).text + "!")


class LouderAsync(Both):
    async def agenerate(
        self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any
    ) -> ChatMessage:
        return ChatMessage(MessageRole.ASSISTANT, (await super().agenerate(messages)).text + "!")


def test_redefining_one_twin_is_not_passed_by() -> None:
    assert asyncio.run(Louder().agenerate(HELLO)).text == "sync!"
    assert LouderAsync().generate(HELLO).text == "async!"


class Endless(Model):
    def __init__(self) -> None:
        super().__init__()
        self.closed = threading.Event()

    def generate_stream(
        self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        try:
            while True:
                yield ChatMessageStreamDelta("x")
        finally:
            self.closed.set()


class AsyncEndless(Model):
    def __init__(self) -> None:
        super().__init__()
        self.closed = threading.Event()

    async def agenerate_stream(
        self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any
    ) -> AsyncGenerator[ChatMessageStreamDelta, None]:
        try:
            while True:
                yield ChatMessageStreamDelta("x")
        finally:
            self.closed.set()


@pytest.mark.parametrize("kind", [Endless, AsyncEndless])
def test_closing_a_stream_reaches_the_model(kind: type[Endless | AsyncEndless]) -> None:
    model = kind()
    with closing(model.generate_stream(HELLO)) as stream:
        next(stream)
    assert model.closed.is_set()

    async def main() -> None:
        stream = model.agenerate_stream(HELLO)
        await anext(stream)
        await stream.aclose()

    model.closed.clear()
    asyncio.run(main())
    assert model.closed.is_set()


class Slow(Model):
    """Waits inside a step of its stream until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting, self.go_on, self.closed = (threading.Event() for _ in range(3))

    def generate_stream(
        self, messages: Sequence[MessageLike], *_: Any, **kwargs: Any
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        try:
            self.waiting.set()
            self.go_on.wait(10)
            yield ChatMessageStreamDelta("x")
        finally:
            self.closed.set()


def test_cancelling_does_not_wait_for_a_thread_and_still_closes() -> None:
    model = Slow()

    async def main() -> None:
        task = asyncio.create_task(collected(model))
        await asyncio.to_thread(model.waiting.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not model.closed.is_set()
        model.go_on.set()

    asyncio.run(main())
    assert model.closed.wait(10)


@pytest.mark.parametrize("kind", [Whole, Awaited, Streamed, AwaitedStream])
def test_errors_come_out_of_every_door(kind: type[Noting], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Noting, kwargs: dict[str, Any]) -> None:
        raise ValueError("no")

    monkeypatch.setattr(kind, "note", fail)
    model = kind()
    for door in (
        lambda: model.generate(HELLO),
        lambda: list(model.generate_stream(HELLO)),
        lambda: asyncio.run(model.agenerate(HELLO)),
        lambda: asyncio.run(collected(model)),
    ):
        with pytest.raises(ValueError, match="no"):
            door()


@pytest.mark.parametrize(
    "text",
    [
        'I call {"name": "add", "arguments": {"a": 1}} now.',
        '{"note": {}} then {"name": "add", "arguments": "{\\"a\\": 1}"}',
        '[{"name": "add", "arguments": {"a": 1}}]',
    ],
)
def test_tool_calls_are_read_from_the_text(text: str) -> None:
    message = Model().parse_tool_calls(ChatMessage(MessageRole.ASSISTANT, text))
    (call,) = message.tool_calls or []
    assert (call.function.name, call.function.arguments) == ("add", {"a": 1})
    assert call.id
    assert message.content == text


def test_the_keys_of_tool_calls_can_be_others() -> None:
    model = Model(tool_name_key="tool", tool_arguments_key="args")
    text = '{"tool": "f", "args": {"b": 2}} {"tool": "g", "args": {}}'
    calls = model.parse_tool_calls(ChatMessage(MessageRole.ASSISTANT, text)).tool_calls or []
    assert [call.function.name for call in calls] == ["f", "g"]
    assert calls[0].id != calls[1].id


@pytest.mark.parametrize("text", ["", "no call", '{"a": 1}', "{" * 10_000, '{"name": 3}'])
def test_a_text_without_a_call(text: str) -> None:
    with pytest.raises(AgentParsingError, match="calls no tool"):
        Model().parse_tool_calls(ChatMessage(MessageRole.ASSISTANT, text))


def test_settings_load_back_without_secrets() -> None:
    model = Model(
        flatten_messages_as_text=True,
        model_id="m",
        max_tokens=5,
        api_key="sk",
        hf_token="hf",
        stop=REMOVE_PARAMETER,
        extra_headers={"Authorization": "Bearer sk", "X-Title": "t"},
    )
    data = model.to_dict()
    assert data["missing_secrets"] == ["api_key", "extra_headers.Authorization", "hf_token"]
    assert not {"sk", "hf", "Bearer sk"} & set(map(str, data.values()))
    headers = {"X-Title": "t"}
    with pytest.warns(UserWarning, match=r"without its secrets: api_key, .*from_dict"):
        loaded = Model.from_dict(data, extra_headers=headers)
    assert loaded.kwargs == {
        "max_tokens": 5,
        "stop": REMOVE_PARAMETER,
        "extra_headers": {"X-Title": "t"},
    }
    assert loaded.flatten_messages_as_text
    with pytest.warns(UserWarning, match="hf_token"):
        again = Model.from_dict(data, api_key="new", extra_headers=headers)
    assert again.kwargs["api_key"] == "new"


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"headers": {"Ocp-Apim-Subscription-Key": "s3cret"}}, "headers.Ocp-Apim-Subscription-Key"),
        ({"headers": {"Helicone-Auth": "s3cret"}}, "headers.Helicone-Auth"),
        ({"headers": {"X-Mine": "Bearer s3cret"}}, "headers.X-Mine"),
        ({"stages": ["Bearer s3cret"]}, "stages.0"),
        ({"base": "https://me:s3cret@example.org/v1"}, "base"),
        ({"base": "https://example.org/v1?key=s3cret&v=2"}, "base"),
        ({"base": "https://example.org/v1?sig=s3cret"}, "base"),
        ({"base": "postgres://me:s3cret@example.org/db"}, "base"),
        ({"headers": {"X-Functions-Key": "s3cret"}}, "headers.X-Functions-Key"),
        ({"passphrase": "s3cret"}, "passphrase"),
        ({"connection_string": "s3cret"}, "connection_string"),
        ({"base": "sk-s3cret"}, "base"),
    ],
)
def test_secrets_are_found_wherever_they_are(settings: dict[str, Any], missing: str) -> None:
    data = Open(model_id="m", **settings).to_dict()
    assert "s3cret" not in json.dumps(data)
    assert data["missing_secrets"] == [missing]
    assert "new" in str(Open.from_dict(data, **{missing: "new"}).kwargs)


class Open(Model):
    form_settings = Model.form_settings | {"headers", "stages", "base"}


class Grown(Model):
    """A user's model with arguments of its own."""

    def __init__(self, url: str) -> None:
        super().__init__(model_id="grown")
        self.url = url


class Saved(Grown):
    form_settings = Model.form_settings | {"url"}

    def to_dict(self) -> JSONObject:
        return {"url": self.url}


def test_a_class_with_arguments_of_its_own_is_told_to_save_them() -> None:
    with pytest.raises(TypeError, match=r"missing .*'url'\..*give it a method to_dict\(self\)"):
        Grown.from_dict(Grown("here").to_dict())
    assert Saved.from_dict(Saved("here").to_dict()).url == "here"


class Pinned(Model):
    secret_settings = Model.secret_settings | {"pin"}


def test_a_parameter_is_secret_where_its_class_says_so() -> None:
    data = Pinned(model_id="m", pin="1234").to_dict()
    assert data == {"model_id": "m", "missing_secrets": ["pin"]}


@pytest.mark.parametrize(
    "settings",
    [
        {"model_id": "https://stranger.example/v1"},
        {"anything": 1},
        {"extra_headers": {"Authorization": "sk-of-a-stranger"}},
        {"api_key": "sk-of-a-stranger"},
        {"profile": {"name": "p", "options": {"http_options": {"base_url": "http://stranger"}}}},
        {"client_kwargs": {"base_url": "http://stranger"}},
    ],
)
def test_a_form_chooses_nothing_that_it_may_not(settings: dict[str, Any]) -> None:
    (name,) = settings
    form: dict[str, Any] = {"model_id": "m", **settings}
    with pytest.raises(ValueError, match=rf"sets {name}, .*\.from_dict\(data, {name}=") as told:
        Model.from_dict(form)
    assert "sk-of" not in str(told.value)
    assert {**vars(loaded := Model.from_dict(form, **settings)), **loaded.kwargs}[name]


def test_what_a_form_leaves_as_it_is_needs_no_permission() -> None:
    form: dict[str, Any] = {"model_id": "m", "base_url": None, "client_kwargs": {}, "api_key": None}
    assert Model.from_dict(form).model_id == "m"


class Bare(Model):
    """A user's model that does not call the constructor of `Model`."""

    def __init__(self, reply: str) -> None:
        self.reply = reply

    def generate(self, messages: Sequence[MessageLike], *_: Any, **__: Any) -> ChatMessage:
        return ChatMessage(MessageRole.ASSISTANT, self.reply)


def test_a_class_that_does_not_call_our_constructor_has_the_usual_settings() -> None:
    model = Bare('{"name": "final_answer", "arguments": {"answer": 42}}')
    agent = ToolCallingAgent([], model, verbosity_level=LogLevel.OFF)
    assert agent.run("What is it?") == 42
    assert model.to_dict() == {"model_id": None}


def test_what_is_left_of_an_address_is_kept() -> None:
    base = "https://me:s3cret@example.org:8000/v1?key=s3cret&v=2"
    assert Model(base=base).to_dict()["base"] == "https://example.org:8000/v1?v=2"


def test_fields_of_a_schema_are_no_secrets() -> None:
    fields = {"password": {"type": "string"}, "token": {"type": "object", "properties": {}}}
    settings: dict[str, Any] = {"response_format": {"schema": {"properties": fields}}}
    data = Model(model_id="m", **settings).to_dict()
    assert data == {"model_id": "m", **settings}


def test_a_setting_without_a_json_form_is_not_lost_silently() -> None:
    with pytest.warns(UserWarning, match=r"'transport' .* is not saved"):
        assert Model(model_id="m", transport=object()).to_dict() == {"model_id": "m"}
