"""The JSON form of events and effects."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sanderling.errors import (
    AgentError,
    AgentToolExecutionError,
    InterpreterError,
    MissingExtraError,
    RateLimitError,
    SandboxCrashed,
    SandboxTimeout,
    SandboxViolation,
)
from sanderling.loop import (
    ActionOutput,
    CallTool,
    CheckAnswer,
    CodeOutputDelta,
    ExecuteCode,
    Generate,
    ModelReply,
    NestedEvent,
    Notify,
    Now,
    Outcome,
    PlanningStarted,
    ReplyBrokenOff,
    RunStarted,
    StepStarted,
    Together,
    ToolOutput,
    code_result_from_dict,
    code_result_to_dict,
    effect_from_dict,
    event_from_dict,
    event_to_dict,
)
from sanderling.memory import ActionStep, AgentMemory, FinalAnswerStep, PlanningStep, ToolCall
from sanderling.messages import (
    ChatMessageStreamDelta,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
)
from sanderling.sandbox import CodeResult
from support.memories import actions, calls, data_url, errors, messages, plain, plans, steps, text
from support.memories import usage as usages

CALL = ToolCall("add", {"a": 1}, "call_1")


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (
            RunStarted("Go.", images=(b"\x89PNG\r\n\x1a\n",)),
            {
                "type": "RunStarted",
                "version": 1,
                "task": "Go.",
                "agent": None,
                "model": "",
                "images": [{"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="}],
            },
        ),
        (
            PlanningStarted(True, 1),
            {"type": "PlanningStarted", "version": 1, "is_first": True, "step_number": 1},
        ),
        (StepStarted(1), {"type": "StepStarted", "version": 1, "step_number": 1}),
        (ChatMessageStreamDelta("hi"), {"content": "hi"}),
        (CALL, CALL.dict()),
        (ModelReply("hi"), {"type": "ModelReply", "version": 1, "text": "hi"}),
        (ReplyBrokenOff("x"), {"type": "ReplyBrokenOff", "version": 1, "reason": "x"}),
        (CodeOutputDelta("x"), {"type": "CodeOutputDelta", "version": 1, "text": "x"}),
        (
            ToolOutput("call_1", {1: object}, "said", False, CALL),
            {
                "type": "ToolOutput",
                "version": 1,
                "id": "call_1",
                "output": {"1": "<class 'object'>"},
                "observation": "said",
                "is_final_answer": False,
                "tool_call": CALL.dict(),
            },
        ),
        (
            ActionOutput((1, 2), True),
            {"type": "ActionOutput", "version": 1, "output": [1, 2], "is_final_answer": True},
        ),
        (ActionStep(1), ActionStep(1).dict()),
        (PlanningStep(plan="p"), PlanningStep(plan="p").dict()),
        (FinalAnswerStep(3), {"type": "FinalAnswerStep", "version": 1, "output": 3}),
        (
            NestedEvent("boss/helper", "call_1", StepStarted(1)),
            {
                "type": "NestedEvent",
                "version": 1,
                "path": "boss/helper",
                "call_id": "call_1",
                "event": {
                    "event": "StepStarted",
                    "version": 1,
                    "data": {"type": "StepStarted", "version": 1, "step_number": 1},
                },
            },
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_event_as_json(event: Any, data: Any) -> None:
    written = event_to_dict(event)
    assert written == {"event": type(event).__name__, "version": 1, "data": data}
    assert json.loads(json.dumps(written)) == written


@pytest.mark.parametrize(
    ("effect", "part"),
    [
        (
            Generate(AgentMemory("system").messages(), ("stop",), options={"n": 1}),
            {
                "messages": [
                    {"role": "system", "content": [{"type": "text", "text": "system"}]},
                ],
                "stop_sequences": ["stop"],
                "options": {"n": 1},
            },
        ),
        (ExecuteCode("f()"), {"code": "f()"}),
        (CallTool("call_1", "add", {"a": 1}), {"id": "call_1", "arguments": {"a": 1}}),
        (
            Together((CallTool("1", "f", {}),)),
            {
                "effects": [
                    {
                        "type": "CallTool",
                        "version": 1,
                        "id": "1",
                        "name": "f",
                        "arguments": {},
                        "in_code": False,
                    }
                ]
            },
        ),
        (
            Outcome(error=AgentToolExecutionError("no")),
            {"error": {"type": "AgentToolExecutionError", "message": "no"}},
        ),
        (CheckAnswer(3), {"answer": 3}),
        (Notify(ActionStep(1)), {"step": ActionStep(1).dict()}),
        (Now(), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_effect_as_json(effect: Any, part: dict[str, Any]) -> None:
    written = effect.dict()
    assert (written["type"], written["version"]) == (type(effect).__name__, 1)
    assert part.items() <= written.items()
    assert json.loads(json.dumps(written)) == written


names = st.lists(text, max_size=2).map(tuple)
tool_calls = st.builds(CallTool, text, text, plain)
effects = st.one_of(
    st.builds(
        Generate,
        st.lists(messages, max_size=3),
        names,
        names,
        st.dictionaries(text, plain, max_size=2),
        st.booleans(),
    ),
    st.builds(ExecuteCode, text),
    tool_calls,
    st.builds(Together, st.lists(tool_calls, max_size=3).map(tuple)),
    st.builds(CheckAnswer, plain),
    st.builds(Notify, steps),
    st.just(Now()),
)
deltas = st.builds(
    ChatMessageStreamDelta,
    st.none() | text,
    st.none()
    | st.lists(
        st.builds(
            ChatMessageToolCallStreamDelta,
            st.none() | st.integers(0, 3),
            st.none() | text,
            st.none() | text,
            st.none() | st.builds(ChatMessageToolCallFunction, text, text),
        ),
        min_size=1,
        max_size=2,
    ),
    usages,
    st.none() | text,
    st.none() | text,
)
numbers = st.integers(0, 99)
own_events = st.one_of(
    st.builds(RunStarted, text, st.none() | text, text, st.lists(data_url, max_size=2).map(tuple)),
    st.builds(PlanningStarted, st.booleans(), numbers),
    plans,
    st.builds(StepStarted, numbers),
    deltas,
    calls,
    st.builds(CodeOutputDelta, text),
    st.builds(ReplyBrokenOff, text),
    st.builds(ToolOutput, text, plain, text, st.booleans(), calls),
    st.builds(ActionOutput, plain, st.booleans()),
    actions,
    st.builds(FinalAnswerStep, plain),
)
events = own_events | st.builds(NestedEvent, text, text, own_events)


@settings(max_examples=150, deadline=None)
@given(effects)
def test_an_effect_comes_back(effect: Any) -> None:
    written = effect.dict(exact=True)
    again: Any = effect_from_dict(json.loads(json.dumps(written)))
    assert type(again) is type(effect)
    assert again.dict(exact=True) == written
    assert again.dict() == effect.dict()
    if not isinstance(effect, Notify):
        assert again == effect


@settings(max_examples=50, deadline=None)
@given(st.builds(Outcome, plain, errors))
def test_an_outcome_comes_back(outcome: Outcome) -> None:
    again = Outcome.from_dict(json.loads(json.dumps(outcome.dict(exact=True))))
    assert again.value == outcome.value
    assert type(again.error) is type(outcome.error)
    assert str(again.error) == str(outcome.error)


sandbox_errors = st.sampled_from(
    [InterpreterError, SandboxTimeout, SandboxCrashed, SandboxViolation]
).flatmap(lambda kind: st.builds(kind, text, text))
results = st.builds(
    CodeResult, plain, text, text, st.booleans(), st.none() | sandbox_errors, numbers
)


@settings(max_examples=50, deadline=None)
@given(results)
def test_what_came_of_code_comes_back(result: CodeResult) -> None:
    written = code_result_to_dict(result, exact=True)
    again = code_result_from_dict(json.loads(json.dumps(written)))
    assert code_result_to_dict(again, exact=True) == written
    assert code_result_to_dict(again) == code_result_to_dict(result)
    assert replace(again, error=None) == replace(result, error=None)
    assert type(again.error) is type(result.error)
    if result.error is not None and again.error is not None:
        assert (str(again.error), again.error.logs) == (str(result.error), result.error.logs)


@pytest.mark.parametrize("data", [{}, {"type": "Outcome"}, {"type": "CodeResult", "error": 3}])
def test_what_is_no_result_of_code_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="this is no CodeResult"):
        code_result_from_dict(data)


@settings(max_examples=150, deadline=None)
@given(events)
def test_an_event_comes_back(event: Any) -> None:
    written = event_to_dict(event, exact=True)
    again = event_from_dict(json.loads(json.dumps(written)))
    assert type(again) is type(event)
    assert event_to_dict(again, exact=True) == written
    assert event_to_dict(again) == event_to_dict(event)


def test_values_that_json_has_no_word_for_come_back() -> None:
    image = Image.new("RGB", (2, 2), "red")
    effect: Any = effect_from_dict(CallTool("1", "f", {"a": (1, {2}), "b": image}).dict(exact=True))
    assert effect.arguments["a"] == (1, {2})
    assert effect.arguments["b"].tobytes() == image.tobytes()


def test_an_error_that_ends_a_run_does_so_again() -> None:
    missing = MissingExtraError("Sound", "audio", "soundfile")
    again = Outcome.from_dict(Outcome(error=missing).dict(exact=True)).error
    assert again is not None
    assert not isinstance(again, AgentError)
    assert "soundfile" in str(again)


@pytest.mark.parametrize("read", [effect_from_dict, event_from_dict])
@pytest.mark.parametrize(
    "data",
    [
        {},
        {"type": "Effect"},
        {"type": "ExecuteCode"},
        {"type": "CallTool", "id": "1"},
        {"type": ["Now"]},
        {"type": "Together", "effects": [{"type": "Now"}]},
        {"type": "Generate", "messages": [{"role": "nobody"}]},
        {
            "type": "Notify",
            "step": {"type": "TaskStep", "task": "t", "task_images": [{"url": "/"}]},
        },
        {"event": "StepStarted"},
        {"event": "StepStarted", "data": {"type": "Now"}},
        {"event": "RunStarted", "data": {"type": "RunStarted", "task": "t", "images": [{}]}},
        {"event": "NestedEvent", "data": {"type": "NestedEvent", "path": "", "call_id": ""}},
        event_to_dict(NestedEvent("", "", NestedEvent("", "", StepStarted(1)))),
        {"event": "ChatMessageStreamDelta", "data": 3},
        {"event": "ToolCall", "data": {}},
    ],
    ids=str,
)
def test_a_broken_form_is_refused(read: Any, data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"there is no|this is no"):
        read(data)


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd"])
def test_a_journal_cannot_make_us_read_a_file(url: str) -> None:
    content = {"role": "user", "content": [{"type": "image", "url": url}]}
    with pytest.raises(ValueError, match=r"http\(s\) or data: URL"):
        effect_from_dict({"type": "Generate", "messages": [content]})
    started = {"type": "RunStarted", "task": "t", "images": [{"type": "image", "url": url}]}
    with pytest.raises(ValueError, match=r"http\(s\) or data: URL"):
        event_from_dict({"event": "RunStarted", "data": started})


def test_what_is_not_known_is_left_out() -> None:
    assert effect_from_dict({"type": "ExecuteCode", "code": "1", "shiny": 3}) == ExecuteCode("1")


@pytest.mark.parametrize("read", [effect_from_dict, event_from_dict])
def test_a_form_of_a_newer_version_is_refused(read: Any) -> None:
    forms = {
        effect_from_dict: {"type": "ExecuteCode", "version": 2, "code": "1"},
        event_from_dict: {"event": "StepStarted", "version": 2, "data": {}},
    }
    with pytest.raises(ValueError, match="saved by a newer Sanderling"):
        read(forms[read])


def test_an_error_comes_back_with_its_fields() -> None:
    error = RateLimitError("slow down", status=429, request_id="r1", retryable=True, retry_after=2)
    again = Outcome.from_dict(json.loads(json.dumps(Outcome(error=error).dict()))).error
    assert isinstance(again, RateLimitError)
    assert (again.status, again.request_id, again.retryable, again.retry_after) == (
        429,
        "r1",
        True,
        2,
    )
