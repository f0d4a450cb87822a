from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sanderling.messages import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    ImagePart,
    MessageLike,
    MessageRole,
    TextPart,
    Timing,
    TokenUsage,
    agglomerate_stream_deltas,
)
from support.growth import assert_linear


def png(colour: str = "red") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 3), colour).save(buffer, format="PNG")
    return buffer.getvalue()


texts = st.text(max_size=30)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
counts = st.integers(0, 1 << 60)
usages = st.builds(TokenUsage, counts, counts, counts)
calls = st.builds(
    ChatMessageToolCall,
    st.builds(ChatMessageToolCallFunction, arguments=json_values, name=texts),
    id=texts,
)
parts = st.one_of(st.builds(TextPart, texts), st.just(ImagePart(png())))
messages = st.builds(
    ChatMessage,
    role=st.sampled_from(MessageRole),
    content=st.none() | texts | st.lists(parts, max_size=3),
    tool_calls=st.none() | st.lists(calls, max_size=2),
    token_usage=st.none() | usages,
    finish_reason=st.none() | texts,
    reasoning=st.none() | texts,
    tool_call_id=st.none() | texts,
)
deltas = st.builds(
    ChatMessageStreamDelta,
    content=st.none() | texts,
    tool_calls=st.none()
    | st.lists(
        st.builds(
            ChatMessageToolCallStreamDelta,
            index=st.none() | st.integers(0, 3),
            id=st.none() | texts,
            type=st.none() | st.just("function"),
            function=st.none()
            | st.builds(ChatMessageToolCallFunction, arguments=texts, name=texts),
        ),
        max_size=2,
    ),
    token_usage=st.none() | usages,
    finish_reason=st.none() | texts,
    reasoning=st.none() | texts,
)


@given(messages)
def test_messages_survive_their_json_form(message: ChatMessage) -> None:
    loaded = ChatMessage.from_dict(json.loads(message.model_dump_json()))
    assert loaded == message


@given(deltas)
def test_deltas_survive_their_json_form(delta: ChatMessageStreamDelta) -> None:
    assert ChatMessageStreamDelta.from_dict(json.loads(json.dumps(delta.dict()))) == delta


@given(usages, usages)
def test_usage_adds_up_and_survives_its_json_form(one: TokenUsage, two: TokenUsage) -> None:
    total = one + two
    assert total.total_tokens == one.total_tokens + two.total_tokens
    assert TokenUsage.from_dict(total.dict()) == total


def test_timing_tells_its_duration_once_it_has_ended() -> None:
    assert Timing(10.0).duration is None
    timing = Timing(10.0, 12.5)
    assert timing.duration == 2.5
    assert Timing.from_dict(timing.dict()) == timing


def test_messages_read_like_the_dicts_they_replace() -> None:
    message = ChatMessage.of(
        {"role": "user", "content": [{"type": "text", "text": "hello"}, "there"]}
    )
    assert message["role"] == "user"
    assert message.get("tool_calls") is None
    assert message.get("no such field", 7) == 7
    assert "content" in message
    assert message.text == "hello\nthere"
    with pytest.raises(KeyError):
        message["no such field"]


def test_an_openai_image_part_is_understood() -> None:
    url = "https://example.org/cat.png"
    part = {"type": "image_url", "image_url": {"url": url}}
    message = ChatMessage(MessageRole.USER, [part])  # type: ignore[list-item]  # dicts are accepted
    assert message.parts == [ImagePart(url)]


@pytest.mark.parametrize("part", [{"type": "video"}, 7, {"text": "no type"}, None])
def test_what_is_no_part_is_refused_with_the_forms_that_are(part: object) -> None:
    with pytest.raises(ValueError, match="Use a string, TextPart, ImagePart"):
        ChatMessage(MessageRole.USER, [part])  # type: ignore[list-item]  # that is the point


def test_the_roles_of_chat_completions_are_understood() -> None:
    answer = ChatMessage.of({"role": "tool", "tool_call_id": "call_1", "content": "rain"})
    assert (answer.role, answer.tool_call_id) == (MessageRole.TOOL_RESPONSE, "call_1")
    assert ChatMessage.of({"role": "developer", "content": "Be brief."}).role is MessageRole.SYSTEM


@pytest.mark.parametrize(
    "messages",
    ["Hello", {"role": "user", "content": "Hello"}, ChatMessage(MessageRole.USER, "Hello"), [1]],
)
def test_what_is_no_list_of_messages_is_refused(messages: Sequence[MessageLike]) -> None:
    with pytest.raises(TypeError, match=r"messages are a list|not iterable"):
        [ChatMessage.of(each) for each in messages]


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="wizard"):
        ChatMessage.from_dict({"role": "wizard", "content": "x"})


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd", "data:text/html,x", 7, b"x"])
def test_a_message_from_data_cannot_make_us_read_a_file(url: object) -> None:
    for part in (
        {"type": "image", "url": url},
        {"type": "image", "image": url},
        {"type": "image_url", "image_url": {"url": url}},
    ):
        with pytest.raises(
            ValueError, match=r"must be an http\(s\) or data: URL|not a content part"
        ):
            ChatMessage.from_dict({"role": "user", "content": [part]})
    with pytest.raises(ValueError, match=r"must be an http\(s\) or data: URL"):
        ImagePart.from_dict({"type": "image", "url": url})


def test_a_message_of_the_program_may_name_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    image = {"type": "image", "image": tmp_path / "a.png"}
    (part,) = ChatMessage.of({"role": "user", "content": [image]}).parts
    assert isinstance(part, ImagePart)
    assert ImagePart.from_dict(part.dict()) == part


def test_an_image_is_taken_in_every_form(tmp_path: Path) -> None:
    data = png()
    path = tmp_path / "a.png"
    path.write_bytes(data)
    expected = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    for source in (data, path, str(path), expected, ImagePart(data)):
        assert ImagePart(source).url == expected
    picture = Image.open(io.BytesIO(base64.b64decode(ImagePart(Image.open(path)).base64()[1])))
    assert picture.size == (2, 3)


def test_an_image_is_encoded_once() -> None:
    class Counting(Image.Image):
        saves = 0

        def save(self, *args: Any, **options: Any) -> None:
            self.saves += 1
            Image.new("L", (2, 3)).save(*args, **options)

    source = Counting()
    part = ImagePart(source)
    assert [part.url, part.url, part.dict()["url"]] == [part.url] * 3
    assert source.saves == 1


def test_what_has_the_methods_of_an_image_is_none() -> None:
    class Pretender:
        def save(self, *args: Any, **options: Any) -> None:
            raise AssertionError("it was called")

    part = ImagePart(Pretender())  # type: ignore[arg-type]  # the test is about this mistake
    with pytest.raises(ValueError, match="of the type Pretender is not an image"):
        part.dict()


@pytest.mark.parametrize(
    ("source", "text"),
    [(b"plain text", "not a PNG"), ("data:image/png;base64,!!", "broken"), (7, "not an image")],
)
def test_what_is_no_image_is_refused(source: object, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ImagePart(source).base64()  # type: ignore[arg-type]  # that is the point


def test_a_web_image_keeps_its_address() -> None:
    part = ImagePart("https://example.org/cat.png")
    assert part.url == "https://example.org/cat.png"
    with pytest.raises(ValueError, match="web address"):
        part.base64()


@given(st.lists(texts))
def test_deltas_of_text_spell_the_message(pieces: list[str]) -> None:
    message = agglomerate_stream_deltas(ChatMessageStreamDelta(piece) for piece in pieces)
    assert message.content == "".join(pieces)


def test_deltas_of_tool_calls_are_joined_by_index() -> None:
    def piece(index: int, id: str | None, name: str, arguments: str) -> ChatMessageStreamDelta:
        function = ChatMessageToolCallFunction(arguments, name)
        call = ChatMessageToolCallStreamDelta(index, id, "function", function)
        return ChatMessageStreamDelta(tool_calls=[call])

    message = agglomerate_stream_deltas(
        [
            piece(0, "a", "add", '{"x": '),
            piece(1, "b", "mul", "{}"),
            piece(0, None, "", "1}"),
            ChatMessageStreamDelta(token_usage=TokenUsage(5, 2), finish_reason="tool_calls"),
        ]
    )
    assert message.content is None
    assert [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or []] == [
        ("a", "add", '{"x": 1}'),
        ("b", "mul", "{}"),
    ]
    assert message.token_usage == TokenUsage(5, 2)
    assert message.finish_reason == "tool_calls"


def test_a_piece_of_no_tool_call_is_an_error() -> None:
    piece = ChatMessageToolCallStreamDelta(index=None)
    with pytest.raises(ValueError, match="tool call"):
        agglomerate_stream_deltas([ChatMessageStreamDelta(tool_calls=[piece])])


def test_a_tool_call_that_never_gets_a_name_is_left_to_the_reader() -> None:
    piece = ChatMessageToolCallStreamDelta(index=0, id="a")
    message = agglomerate_stream_deltas([ChatMessageStreamDelta(tool_calls=[piece])])
    assert [(call.id, call.function.name) for call in message.tool_calls or ()] == [("a", "")]


def test_pieces_of_a_call_are_joined_in_time_in_proportion() -> None:
    def joined(count: int) -> ChatMessage:
        function = ChatMessageToolCallFunction("ten chars.", "")
        piece = ChatMessageToolCallStreamDelta(0, "1", None, function)
        return agglomerate_stream_deltas([ChatMessageStreamDelta(tool_calls=[piece])] * count)

    assert_linear(joined, 40_000)
    calls = joined(3).tool_calls or []
    (call,) = calls
    assert call.function.arguments == "ten chars." * 3
