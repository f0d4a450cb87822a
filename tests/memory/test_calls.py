"""Native tool calls in a conversation."""

from __future__ import annotations

import pytest

from sanderling.errors import AgentExecutionError
from sanderling.memory import ActionStep, ToolCall, joined_observations
from sanderling.messages import MessageRole, calls_as_text
from sanderling.models._messages import to_chat_messages
from support.play import says

CALLS = [ToolCall("f", {"a": 1}, "id_0"), ToolCall("g", {}, "id_1")]


def step(calls: list[ToolCall], **fields: object) -> ActionStep:
    reply = says("I call.", *((call.name, call.arguments) for call in calls))
    made = ActionStep(1, tool_calls=calls, model_output="I call.", model_output_message=reply)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def several() -> ActionStep:
    said = ["one", "two"]
    return step(CALLS, observations=joined_observations(CALLS, said), tool_responses=said)


def texts(step: ActionStep) -> list[str]:
    return [message.text for message in step.to_messages()]


def test_each_call_is_answered() -> None:
    assert texts(several()) == ["I call.", "one", "two"]


def test_what_a_callback_writes_counts() -> None:
    edited = several()
    edited.observations = "(old results left out)"
    assert texts(edited) == [
        "I call.",
        "(old results left out)",
        "See the result of the first call.",
    ]


def test_a_step_that_broke_off_answers_its_calls_all_the_same() -> None:
    assert texts(step(CALLS)) == ["I call.", *["There is no result: the step broke off."] * 2]


def test_an_error_follows_what_was_observed() -> None:
    one = step(CALLS[:1], observations="3", error=AgentExecutionError("refused"))
    said = texts(one)
    assert said[1].startswith("3\nError:\nrefused\n")
    assert len(said) == 2


def test_images_come_after_the_answers() -> None:
    shown = several()
    shown.observations_images = ["https://example.org/a.png"]
    roles = [message.role for message in shown.to_messages()]
    assert roles == [
        MessageRole.ASSISTANT,
        MessageRole.TOOL_RESPONSE,
        MessageRole.TOOL_RESPONSE,
        MessageRole.USER,
    ]


def test_a_summary_tells_them_as_text() -> None:
    messages = several().to_messages(summary_mode=True)
    assert [message.text for message in messages] == [
        f"Calling tools:\n{[call.dict() for call in CALLS]}",
        "Observation:\nf (id_0): one\ng (id_1): two",
    ]


def test_a_conversation_can_do_without_native_calls() -> None:
    messages = calls_as_text(several().to_messages())
    assert not any(message.tool_calls or message.tool_call_id for message in messages)
    assert messages[0].text == f"I call.\nCalling tools:\n{[call.dict() for call in CALLS]}"
    assert messages[1].text == "Call id: id_0\nObservation:\none"


@pytest.mark.parametrize("make", [several, lambda: step(CALLS)])
def test_a_request_has_them_as_chat_completions_want_them(make: object) -> None:
    assert callable(make)
    entries = to_chat_messages(make().to_messages())
    assert [entry["role"] for entry in entries] == ["assistant", "tool", "tool"]
    assert [call["id"] for call in entries[0]["tool_calls"]] == ["id_0", "id_1"]
    assert [entry["tool_call_id"] for entry in entries[1:]] == ["id_0", "id_1"]
    assert entries[0]["tool_calls"][0]["function"]["arguments"] == '{"a": 1}'


def test_a_loaded_step_tells_them_still() -> None:
    loaded = ActionStep.from_dict(several().dict())
    assert [m.dict() for m in loaded.to_messages()] == [m.dict() for m in several().to_messages()]
