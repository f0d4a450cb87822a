from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.errors import AgentParsingError
from sanderling.messages import ChatMessageToolCall, ChatMessageToolCallFunction
from sanderling.models import parse_json_tool_calls, read_arguments


@given(
    st.lists(
        st.tuples(
            st.text(min_size=1, max_size=9), st.dictionaries(st.text(max_size=5), st.integers())
        ),
        min_size=1,
        max_size=3,
    )
)
def test_json_calls_are_found_in_prose(calls: list[tuple[str, dict[str, int]]]) -> None:
    reply = "I call: " + " and ".join(
        json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls
    )
    found = parse_json_tool_calls(reply)
    assert [(call.function.name, call.function.arguments) for call in found] == calls


def test_json_calls_may_have_other_keys_and_come_in_a_list() -> None:
    reply = '[{"tool": "add", "args": {"a": 1}}, {"tool": "sub"}] {broken'
    found = parse_json_tool_calls(reply, "tool", "args")
    assert [(c.function.name, c.function.arguments) for c in found] == [
        ("add", {"a": 1}),
        ("sub", {}),
    ]


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": "add", "parameters": {"a": "1\n2"}}',
        'Action:\n{"action": "add", "action_input": {"a": "1\\n2"}}',
        '{"type": "function", "function": {"name": "add", "arguments": {"a": "1\\n2"}}}',
        "Calling tools:\n[{'id': '1', 'function': {'name': 'add', 'arguments': {'a': '1\\n2'}}}]",
        "{'name': 'add', 'arguments': {'a': '1\\n2',}} is what I call.",
    ],
)
def test_calls_come_in_the_forms_that_models_were_trained_on(reply: str) -> None:
    (call,) = parse_json_tool_calls(reply)
    assert (call.function.name, call.function.arguments) == ("add", {"a": "1\n2"})


@pytest.mark.parametrize("piece", ["{", '{"', '{"a": ', '[{"a": [', "{'a': ("])
def test_a_reply_that_goes_round_in_circles_is_given_up_soon(piece: str) -> None:
    # Read anew from each brace, this would take longer than a test may.
    with pytest.raises(AgentParsingError):
        parse_json_tool_calls(piece * 500_000)


@pytest.mark.parametrize("reply", ["", "no call", '{"a": 1}', "{" * 5000, '{"name": 3}'])
def test_a_reply_without_calls_is_answered_with_the_form_that_is_wanted(reply: str) -> None:
    with pytest.raises(AgentParsingError, match='"arguments"'):
        parse_json_tool_calls(reply)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (None, {}),
        ("just text", "just text"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_arguments_in_json_text_are_read(written: object, read: object) -> None:
    function = ChatMessageToolCallFunction(written, "f")
    assert read_arguments(ChatMessageToolCall(function, "id")) == read


def test_a_text_cannot_make_any_number_of_calls() -> None:
    call = '{"name": "add", "arguments": {}}\n'
    assert len(parse_json_tool_calls(call * 1_000)) == 1_000
    with pytest.raises(AgentParsingError, match="makes 1,001 tool calls, and may make 1,000"):
        parse_json_tool_calls(call * 1_001)


@pytest.mark.parametrize("depth", [100, 900, 100_000])
def test_arguments_that_are_nested_deeply_stay_text(depth: int) -> None:
    text = '{"x":' + "[" * depth + "]" * depth + "}"
    call = ChatMessageToolCall(ChatMessageToolCallFunction(text, "f"), "1")
    assert read_arguments(call) == text
    with pytest.raises(AgentParsingError, match="calls no tool"):
        parse_json_tool_calls('{"name": "f", "arguments": ' + text + "}")
