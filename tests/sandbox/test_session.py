"""The host's end of the wire: what a kernel may say, and that nothing else gets through."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.errors import SandboxUnavailable, SandboxViolation
from sanderling.sandbox import Printed, ToolRequest, ToolSpec, kernel
from sanderling.sandbox._host_values import HostValues
from sanderling.sandbox._outcome import Fault, Finished
from sanderling.sandbox._session import Ready, Session

READY = {"layers": {"landlock": 7}, "versions": {"python": "3.11.7"}}
CALL = {"id": 1, "step": 1, "name": "add", "args": [1], "kwargs": {"b": 2}, "alone": True}
FINAL = {**CALL, "name": "final_answer", "args": ["the answer"], "kwargs": {}, "text": "its text"}
DONE = {"id": 1, "v": 5, "text": "5", "error": None, "threads": 0, "interrupted": False}
FAULT = {"type": "ValueError", "message": "m", "traceback": "t"}


def said(kind: str, fields: dict[str, Any], **changes: Any) -> bytes:
    return b"".join(kernel.pack(kind, {**fields, **changes}))


def heard(buffers: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    frames = kernel.FrameReader().feed(b"".join(buffers))
    return [(frame.kind, frame.fields) for frame in frames]


def session(*, running: bool = True, **limits: Any) -> Session:
    made = Session(**limits)
    made.feed(said("ready", READY))
    made.tools([ToolSpec("add", "(a, b)", ""), ToolSpec("final_answer", "(a)", "", final=True)])
    if running:
        made.execute(1, "1")
    return made


def test_a_step_from_beginning_to_end() -> None:
    made = Session()
    ((kind, hello),) = heard(made.hello(["json"], {"open_files": 9}))
    assert kind == "hello"
    assert hello.pop("loader") == {"$": "bytes", "i": 0}
    limits = {"open_files": 9}
    assert hello == {"imports": ["json"], "output": 50_000, "calls": 10_000, "limits": limits}
    (ready,) = made.feed(said("ready", READY))
    assert isinstance(ready, Ready)
    assert ready.layers == {"landlock": 7}
    assert heard(made.variables({"x": 1})) == [("set", {"v": {"x": 1}})]
    assert heard(made.execute(1, "code")) == [("exec", {"id": 1, "code": "code"})]
    told = {"id": 1, "code": "code", "forget": True}
    assert heard(made.execute(1, "code", forget=True)) == [("exec", told)]
    stream = (
        said("out", {"id": 1, "text": "hi\n"})
        + said("call", CALL)
        + said("out", {"id": 1, "text": "x"})
    )
    printed, request, _ = made.feed(stream)
    assert printed == Printed("hi\n")
    assert isinstance(request, ToolRequest)
    assert (request.name, request.args, request.kwargs, request.alone) == (
        "add",
        (1,),
        {"b": 2},
        True,
    )
    assert (made.running, made.calls) == (True, 1)
    assert heard(made.reply(request, 3)) == [("ret", {"id": 1, "v": 3})]
    assert (made.running, made.calls) == (True, 0)
    assert made.feed(said("done", DONE)) == [Finished(5, "5", None, interrupted=False, threads=0)]
    assert (made.running, made.calls) == (False, 0)
    assert made.logs == "hi\nx"


def test_a_fault_is_read() -> None:
    (finished,) = session().feed(said("done", DONE, error=FAULT))
    assert isinstance(finished, Finished)
    assert finished.error == Fault("ValueError", "m", "t")


def test_a_kernel_that_cannot_lock_says_why() -> None:
    with pytest.raises(SandboxUnavailable, match="no Landlock"):
        Session().feed(said("failed", {"reason": "no Landlock"}))


@pytest.mark.parametrize(
    ("kind", "fields", "changes"),
    [
        ("nonsense", DONE, {}),
        ("ready", READY, {}),
        ("done", DONE, {"id": "1"}),
        ("done", DONE, {"id": True}),
        ("done", DONE, {"text": 5}),
        ("done", DONE, {"text": "x" * 300_000}),
        ("done", DONE, {"error": "no"}),
        ("done", DONE, {"error": {"type": "E"}}),
        ("done", DONE, {"threads": 1.5}),
        ("done", DONE, {"interrupted": 0}),
        ("done", DONE, {"v": {"$": "pickle"}}),
        ("out", {"id": 1}, {}),
        ("out", {"id": 1, "text": None}, {}),
        ("out", {"id": 1, "text": "x" * 52_000}, {}),
        ("call", CALL, {"id": 0}),
        ("call", CALL, {"id": None}),
        ("call", CALL, {"name": "../etc"}),
        ("call", CALL, {"name": "a" * 300}),
        ("call", CALL, {"name": ["add"]}),
        ("call", CALL, {"args": {"a": 1}}),
        ("call", CALL, {"args": {"$": "tuple", "v": []}}),
        ("call", CALL, {"kwargs": []}),
        ("call", CALL, {"kwargs": {"$": "dict", "k": [1], "v": [1]}}),
        ("call", CALL, {"alone": None}),
        ("call", CALL, {"name": "final_answer"}),
        ("call", FINAL, {"text": None}),
        ("call", FINAL, {"text": "x" * 300_000}),
    ],
)
def test_a_breach_ends_the_session(kind: str, fields: Any, changes: Any) -> None:
    made = session()
    made.feed(said("out", {"id": 1, "text": "before\n"}))
    with pytest.raises(SandboxViolation, match="broke its protocol") as caught:
        made.feed(said(kind, fields, **changes))
    assert caught.value.logs == "before\n"


@pytest.mark.parametrize("kind", ["out", "call", "done", "hello"])
def test_nothing_is_said_before_ready(kind: str) -> None:
    with pytest.raises(SandboxViolation):
        Session().feed(said(kind, DONE))


def test_the_id_of_a_call_is_used_once() -> None:
    made = session()
    made.feed(said("call", CALL, id=5))
    for again in (5, 4):
        with pytest.raises(SandboxViolation):
            made.feed(said("call", CALL, id=again))


def test_calls_and_output_of_a_step_have_an_end() -> None:
    made = session(max_calls=2)
    made.feed(said("call", CALL, id=1) + said("call", CALL, id=2))
    with pytest.raises(SandboxViolation, match="more calls"):
        made.feed(said("call", CALL, id=3))
    made = session(max_output=10)
    made.feed(said("out", {"id": 1, "text": "x" * 1_000}))
    with pytest.raises(SandboxViolation, match="more output"):
        made.feed(said("out", {"id": 1, "text": "x" * 100}))


def test_what_belongs_to_another_step_is_dropped() -> None:
    made = session()
    for step in (0, 2, -1):
        assert made.feed(said("done", DONE, id=step)) == []
        assert made.feed(said("out", {"id": step, "text": "x"})) == []
        assert made.feed(said("call", CALL, step=step)) == []
    assert made.running
    assert made.logs == ""
    made.feed(said("done", DONE))
    assert made.feed(said("done", DONE)) == []
    made.execute(2, "2")
    assert made.feed(said("done", DONE)) == []
    assert made.running


def only_request(made: Session, call: dict[str, Any] = CALL, **changes: Any) -> ToolRequest:
    (request,) = made.feed(said("call", call, **changes))
    assert isinstance(request, ToolRequest)
    return request


def test_a_call_is_answered_once() -> None:
    made = session()
    request = only_request(made)
    assert heard(made.fail(request, "no")) == [("ret", {"id": 1, "e": "no"})]
    assert made.fail(request, "no") == []


def test_the_builtin_class_of_an_error_is_told() -> None:
    made = session()
    (request,) = made.feed(said("call", CALL))
    assert isinstance(request, ToolRequest)
    told = heard(made.fail(request, "no", "KeyError"))
    assert told == [("ret", {"id": 1, "e": "no", "kind": "KeyError"})]
    assert made.reply(request, 1) == []


def test_a_value_that_cannot_enter_becomes_an_error() -> None:
    made = session()
    ((kind, fields),) = heard(made.reply(only_request(made), "x" * (kernel.MAX_JSON + 1)))
    assert kind == "ret"
    assert "what add returned did not arrive: too large" in fields["e"]
    assert not made.calls


class Exhausted(HostValues):
    def encode(self, value: object) -> Any:
        raise MemoryError("no room")


def test_whatever_keeps_a_value_from_being_sent_becomes_an_error() -> None:
    made = session(values=Exhausted())
    ((kind, fields),) = heard(made.reply(only_request(made), 1))
    assert (kind, fields["e"]) == ("ret", "what add returned did not arrive: MemoryError: no room")
    assert not made.calls


def test_calls_and_the_bytes_of_their_arguments_are_counted_until_they_are_answered() -> None:
    made = session()
    frames = [said("call", CALL, id=number, args=["x" * number * 1_000]) for number in range(1, 5)]
    requests = [event for frame in frames for event in made.feed(frame)]
    assert (made.calls, made.argument_bytes) == (4, sum(map(len, frames)))
    answered, failed = requests[:2]
    assert isinstance(answered, ToolRequest)
    assert isinstance(failed, ToolRequest)
    made.reply(answered, "done")
    made.fail(failed, "done")
    assert (made.calls, made.argument_bytes) == (2, sum(map(len, frames[2:])))
    made.interrupt()
    assert (made.calls, made.argument_bytes) == (0, 0)


def test_the_final_answer_stays_on_the_host() -> None:
    made, answer = session(), object()
    request = only_request(made, FINAL)
    assert heard(made.reply(request, answer)) == [("ret", {"id": 1, "v": None})]
    made.reply(only_request(made, FINAL, id=2), "a second one")
    made.feed(said("done", DONE))
    finals = [made.final]
    made.execute(2, "")
    finals.append(made.final)
    assert finals == [(answer, None), None]


@pytest.mark.parametrize("call", [FINAL, {**FINAL, "args": [], "kwargs": {"a": "the answer"}}])
def test_the_sandbox_says_how_an_unchanged_answer_reads(call: dict[str, Any]) -> None:
    made = session()
    request = only_request(made, call, text="a text \ud800")
    made.reply(request, [*request.args, *request.kwargs.values()][0])
    assert made.final == ("the answer", "a text \N{REPLACEMENT CHARACTER}")


def test_a_call_without_a_reply_is_answered_when_the_next_step_begins() -> None:
    made = session()
    request = only_request(made)
    made.feed(said("done", DONE))
    assert made.reply(request, 1) == []
    told = heard(made.execute(2, "2"))
    assert told[0] == ("ret", {"id": 1, "e": "the step that made this call has ended"})
    assert told[1][0] == "exec"
    assert len(heard(made.execute(3, "3"))) == 1


def test_an_interrupt_answers_all_that_wait() -> None:
    made = session()
    requests = [only_request(made, id=number) for number in (1, 2)]
    told = heard(made.interrupt())
    assert [fields["id"] for _, fields in told] == [1, 2]
    assert made.reply(requests[0], 1) == []
    assert made.interrupt() == []


# Whatever bytes come: events, or a violation, and nothing else.


def survives(feed: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(SandboxViolation, SandboxUnavailable):
        feed(data)


ENCODED, BLOBS = kernel.encode({"b": b"blob", 1: (2.5, {3}), "big": 2**80})
GENUINE = [
    said("out", {"id": 1, "text": "hello\n"}),
    said("call", CALL),
    b"".join(kernel.pack("call", {**CALL, "kwargs": {"x": ENCODED}}, BLOBS)),
    b"".join(kernel.pack("done", {**DONE, "v": ENCODED}, BLOBS)),
    said("done", DONE, error=FAULT),
]


@settings(deadline=None, max_examples=500)
@given(st.sampled_from(GENUINE), st.data())
def test_changed_frames_do_no_harm(frame: bytes, data: st.DataObject) -> None:
    changed = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(changed) - 1))
        match data.draw(st.sampled_from(("set", "delete", "insert"))):
            case "set":
                changed[place] = data.draw(st.integers(0, 255))
            case "delete" if len(changed) > 1:
                del changed[place]
            case _:
                changed[place:place] = data.draw(st.binary(max_size=8))
    made = session()
    survives(made.feed, bytes(changed))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["$", "v", "i", "k", "t", "s", "x"]), inner, max_size=5)
        | st.fixed_dictionaries(
            {"$": st.sampled_from(sorted(kernel._READERS)), "v": inner},
            optional=dict.fromkeys(
                ("i", "k", "n", "t", "s", "type", "repr", "fold", "rows"), inner
            ),
        )
    ),
    max_leaves=15,
)


@settings(deadline=None, max_examples=500)
@given(
    st.sampled_from(["out", "call", "done"]),
    st.dictionaries(st.sampled_from([*CALL, *DONE]), JSON),
    st.lists(st.binary(max_size=16), max_size=2),
)
def test_forged_messages_do_no_harm(kind: str, fields: dict[str, Any], blobs: list[bytes]) -> None:
    text = json.dumps({"t": kind, "b": [len(b) for b in blobs], **DONE, **CALL, **fields}).encode()
    head = len(text).to_bytes(4, "little") + sum(map(len, blobs)).to_bytes(4, "little")
    survives(session().feed, head + text + b"".join(blobs))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_garbage_does_no_harm(data: bytes) -> None:
    survives(Session().feed, data)
    survives(session().feed, data)


class Client:
    """Something that stays on the host, and can be called."""

    key = "sk-SECRET"

    def __repr__(self) -> str:
        return self.key

    def __call__(self, *args: object, **kwargs: object) -> object:
        raise AssertionError("it was called")


@dataclasses.dataclass
class Job:
    dict: object = None


def told(made: Session, value: object) -> Any:
    """Returns the value of a step as the host reads it."""
    (finished,) = made.feed(said("done", {**DONE, "v": value}))
    assert isinstance(finished, Finished)
    return finished.output


def test_nothing_that_can_be_called_becomes_an_attribute() -> None:
    made, client = session(), Client()
    frames = heard(made.variables({"client": client, "function": len, "Job": Job}))
    host = {"$": "host", "id": frames[0][1]["v"]["client"]["id"]}
    codes = [{"$": "code", "n": fields["code"][0][0]} for _, fields in frames[1:]]
    for found in (host, *codes):
        for extra in ({}, {"class": codes[1]["n"]}):
            value = {"$": "record", "type": "Job", "k": ["dict"], "v": [found], **extra}
            made.execute(1, "1")
            record = told(made, value)
            assert isinstance(record, kernel.Record)
            assert not callable(record.dict)
            assert "SECRET" not in repr(record)
    made.execute(1, "1")
    assert told(made, [host, *codes]) == [client, len, Job]


COLUMN = {"$": "objects", "s": [1]}
INDEX = {"$": "index", "names": [None]}
LABELS = {**INDEX, "v": [{**COLUMN, "v": ["a"]}]}
TABLE = {"$": "table", "k": LABELS, "n": None, "rows": 1}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda one: {**COLUMN, "v": [one]},
        lambda one: {**INDEX, "v": [{**COLUMN, "v": [one]}]},
        lambda one: {"$": "series", "name": one, "n": None, "v": [1]},
        lambda one: {
            "$": "table",
            "k": LABELS,
            "n": None,
            "v": [{**COLUMN, "v": [one]}],
            "rows": 1,
        },
    ],
    ids=["array", "index", "series", "table"],
)
@pytest.mark.parametrize("name", ["client", "function"])
def test_nothing_of_the_host_becomes_a_part_of_an_array(
    wrap: Callable[[object], object], name: str
) -> None:
    made = session()
    ((_, client), (_, code)) = heard(made.variables({"client": Client(), "function": len}))
    one = {"$": "code", "n": code["code"][0][0]}
    if name == "client":
        one = {"$": "host", "id": client["v"]["client"]["id"]}
    made.execute(1, "1")
    value = told(made, [wrap(one), one])
    assert callable(value[1])
    cells = getattr(value[0], "values", value[0]).ravel()
    parts = [*cells, *getattr(value[0], "index", ()), getattr(value[0], "name", None)]
    assert not any(map(callable, parts))
    assert "it stayed on the host" in f"{parts}"
    assert "SECRET" not in f"{value[0]}{parts}"
