"""A memory becomes JSON and the same memory again."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sanderling.errors import AgentError, AgentExecutionError, AgentParsingError
from sanderling.memory import (
    ActionStep,
    AgentMemory,
    FinalAnswerStep,
    MemoryStep,
    PlanningStep,
    TaskStep,
)
from sanderling.messages import (
    ChatMessage,
    ImagePart,
    MessageRole,
    Timing,
)
from sanderling.tools.agent_types import AgentAudio
from support.memories import steps, text


def remembered(*given: MemoryStep, prompt: str = "be good") -> AgentMemory:
    memory = AgentMemory(prompt)
    memory.steps = list(given)
    return memory


def again(memory: AgentMemory) -> AgentMemory:
    return AgentMemory.from_json(memory.to_json())


def said(memory: AgentMemory) -> list[Any]:
    return [message.dict() for message in memory.messages()]


@settings(max_examples=60, deadline=None)
@given(prompt=text, given_steps=st.lists(steps, max_size=4))
def test_every_step_comes_back(prompt: str, given_steps: list[MemoryStep]) -> None:
    memory = remembered(*given_steps, prompt=prompt)
    loaded = again(memory)
    assert loaded.system_prompt.system_prompt == prompt
    assert [type(step) for step in loaded.steps] == [type(step) for step in memory.steps]
    assert loaded.get_succinct_steps() == memory.get_succinct_steps()
    assert loaded.dict() == memory.dict()
    assert said(loaded) == said(memory)
    for before, after in zip(memory.steps, loaded.steps, strict=True):
        if isinstance(before, ActionStep) and isinstance(after, ActionStep):
            assert after.action_output == before.action_output
            assert [call.arguments for call in after.tool_calls or ()] == [
                call.arguments for call in before.tool_calls or ()
            ]
        if isinstance(before, FinalAnswerStep) and isinstance(after, FinalAnswerStep):
            assert after.output == before.output


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    "value",
    [
        (1, (2,)),
        {1: "a", None: "b"},
        {frozenset({1})},
        b"\0\xff",
        2**200,
        math.inf,
        3 + 4j,
        datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        decimal.Decimal("1.10"),
        {"$": "value", "data": 1, "blobs": []},
    ],
    ids=repr,
)
def test_values_that_json_has_no_word_for_come_back(value: object) -> None:
    memory = remembered(ActionStep(action_output=value), FinalAnswerStep(value))
    action, final = again(memory).steps
    assert isinstance(action, ActionStep)
    assert isinstance(final, FinalAnswerStep)
    assert (action.action_output, final.output) == (value, value)


def test_what_is_no_data_leaves_what_it_looked_like() -> None:
    (step,) = again(remembered(FinalAnswerStep([Point(1), object()]))).steps
    assert isinstance(step, FinalAnswerStep)
    assert repr(step.output[0]) == "Point(x=1)"
    assert "object" in repr(step.output[1])
    endless: list[object] = []
    endless.append(endless)
    (step,) = again(remembered(FinalAnswerStep(endless))).steps
    assert isinstance(step, FinalAnswerStep)
    assert "[[...]]" in repr(step.output)


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2), "red").save(buffer, "PNG")
    return buffer.getvalue()


def test_images_of_every_kind_are_inside(tmp_path: Path) -> None:
    path = tmp_path / "red.png"
    path.write_bytes(png())
    kinds: list[Any] = [Image.new("RGB", (2, 2), "red"), png(), path, str(path)]
    memory = remembered(TaskStep("look", kinds), ActionStep(observations_images=kinds))
    saved = memory.to_json()
    path.unlink()
    task, action = AgentMemory.from_json(saved).steps
    assert isinstance(task, TaskStep)
    assert isinstance(action, ActionStep)
    for images_of in (task.task_images, action.observations_images):
        assert images_of is not None
        assert [ImagePart(image).base64()[0] for image in images_of] == ["image/png"] * 4
    assert [part.dict() for part in action.to_messages()[0].content or ()] == [  # type: ignore[union-attr]  # parts, as there are images
        ImagePart(png()).dict()
    ] * 4


def test_an_image_that_cannot_be_read_any_more_is_an_error_and_not_a_gap(tmp_path: Path) -> None:
    memory = remembered(TaskStep("look", [tmp_path / "gone.png"]))
    with pytest.raises(FileNotFoundError, match=r"gone\.png"):
        memory.dict()
    assert "gone.png" in json.dumps(memory.get_succinct_steps())


SAMPLES = np.linspace(-1, 1, 8)


@pytest.mark.parametrize(
    "samples", [SAMPLES, SAMPLES.astype("float32"), SAMPLES.reshape(2, 4)], ids=str
)
def test_sound_is_inside(samples: Any) -> None:
    memory = remembered(FinalAnswerStep({"song": AgentAudio(samples, 8_000), "name": "la"}))
    (step,) = again(memory).steps
    assert isinstance(step, FinalAnswerStep)
    song = step.output["song"]
    assert isinstance(song, AgentAudio)
    assert song.samplerate == 8_000
    assert song.to_raw().dtype == samples.dtype
    assert np.array_equal(song.to_raw(), samples)
    assert step.output["name"] == "la"


def test_sound_of_a_file_is_inside(tmp_path: Path) -> None:
    path = tmp_path / "song.wav"
    path.write_bytes(Path(AgentAudio(SAMPLES, 8_000).to_string()).read_bytes())
    song = AgentAudio(path)
    saved = remembered(FinalAnswerStep([song, 1])).to_json()
    assert repr(song) == f"<AgentAudio of {str(path)!r}>"  # it was not changed by that
    path.unlink()
    (step,) = AgentMemory.from_json(saved).steps
    assert isinstance(step, FinalAnswerStep)
    assert step.output[0].samplerate == 8_000
    assert np.allclose(step.output[0].to_raw(), SAMPLES, atol=1e-4)
    (step,) = again(remembered(FinalAnswerStep([song, 1]))).steps  # the file is gone
    assert isinstance(step, FinalAnswerStep)
    assert "song.wav" in repr(step.output[0])
    assert step.output[1] == 1


@pytest.mark.parametrize(
    ("samples", "rate"), [("/etc/passwd", 8_000), ([0.5], 8_000), ({"$": "none"}, 8_000)], ids=str
)
def test_saved_sound_is_never_a_file(samples: object, rate: object) -> None:
    data = {"$": "audio", "rate": rate, "samples": samples}
    form = {"type": "FinalAnswerStep", "output": {"$": "value", "data": data, "blobs": []}}
    saved = {"version": 1, "system_prompt": "p", "steps": [form]}
    with pytest.raises(ValueError, match="no sound"):
        AgentMemory.from_dict(saved)


def run(count: int, planning_interval: int | None = None) -> AgentMemory:
    memory = remembered(TaskStep("count"))
    for place in range(1, count + 1):
        if planning_interval and place % planning_interval == 0:
            memory.steps.append(PlanningStep(memory.to_messages(summary_mode=True), plan="go on"))
        sent = memory.messages()
        memory.steps.append(
            ActionStep(step_number=place, model_input_messages=sent, model_output=f"step {place}")
        )
    return memory


def test_what_the_model_was_sent_comes_back_without_being_written_twice() -> None:
    memory = run(5)
    forced = [ChatMessage(MessageRole.SYSTEM, "answer now"), *memory.messages()[1:]]
    memory.steps.append(ActionStep(model_input_messages=forced))
    loaded = again(memory)
    for before, after in zip(memory.steps[1:], loaded.steps[1:], strict=True):
        assert isinstance(before, ActionStep)
        assert isinstance(after, ActionStep)
        assert list(after.model_input_messages or ()) == list(before.model_input_messages or ())
    assert again(loaded).dict() == loaded.dict() == memory.dict()


def test_full_steps_hold_each_message_once() -> None:
    full = run(4).get_full_steps()
    assert "model_input_messages" not in full[0]
    assert [step["model_input_prefix"] for step in full[1:]] == [0, 2, 3, 4]
    sent: list[Any] = []
    for step in full[1:]:
        prefix, new = step["model_input_prefix"], step["model_input_messages"]
        assert isinstance(prefix, int)
        assert isinstance(new, list)
        sent = sent[:prefix] + new
    assert [message["role"] for message in sent] == ["system", "user", *["assistant"] * 3]


@pytest.mark.parametrize("size", [AgentMemory.get_full_steps, AgentMemory.dict])
@pytest.mark.parametrize("planning_interval", [None, 5])
def test_the_json_grows_with_the_run_and_not_with_its_square(
    size: Callable[[AgentMemory], Any], planning_interval: int | None
) -> None:
    short, long = run(30, planning_interval), run(300, planning_interval)
    assert len(json.dumps(size(long))) < 11 * len(json.dumps(size(short)))


def test_a_run_goes_on_from_a_loaded_memory() -> None:
    loaded = again(run(3))
    before = loaded.messages()
    loaded.steps.append(ActionStep(step_number=4, model_output="step 4"))
    assert loaded.messages()[-1].text == "step 4"
    assert loaded.messages()[: len(before)] == before
    third = loaded.steps[3]
    assert isinstance(third, ActionStep)
    third.model_output = "edited"
    assert "edited" in [message.text for message in loaded.messages()]


def test_a_step_loads_from_its_own_form() -> None:
    step = ActionStep(step_number=1, error=AgentParsingError("no code"), observations="seen")
    for kind in (ActionStep, MemoryStep):
        loaded = kind.from_dict(step.dict())
        assert isinstance(loaded, ActionStep)
        assert type(loaded.error) is AgentParsingError
        assert loaded.dict() == step.dict()
    with pytest.raises(ValueError, match="no TaskStep of the name 'ActionStep'"):
        TaskStep.from_dict(step.dict())


def test_a_kind_of_step_of_ones_own_comes_back() -> None:
    @dataclass(eq=False)
    class Note(MemoryStep):
        written: str
        pages: tuple[int, ...] = ()

        def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
            return [ChatMessage(MessageRole.USER, self.written)]

    (note,) = again(remembered(Note("hello", (1, 2)))).steps
    assert isinstance(note, Note)
    assert (note.written, note.pages) == ("hello", (1, 2))


def test_fields_are_read_by_their_declaration_and_not_by_their_name() -> None:
    @dataclass(eq=False)
    class Report(MemoryStep):
        error: str
        timing: list[int]

        def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
            return []

    (report,) = again(remembered(Report("late", [1, 2]))).steps
    assert isinstance(report, Report)
    assert (report.error, report.timing) == ("late", [1, 2])


def test_classes_of_one_name_in_two_modules_are_told_apart() -> None:
    def note(module: str) -> type[MemoryStep]:
        def to_messages(self: MemoryStep, summary_mode: bool = False) -> list[ChatMessage]:
            return []

        body = {"__module__": module, "__qualname__": "Note", "to_messages": to_messages}
        return type("Note", (MemoryStep,), body)

    first, second = note("library"), note("other_library")
    assert [type(step) for step in again(remembered(second(), first())).steps] == [second, first]


def form(**changes: Any) -> dict[str, Any]:
    data = remembered(TaskStep("t"), ActionStep(error=AgentExecutionError("e"))).dict()
    return {**data, **changes}


def test_fields_of_the_future_are_left_out() -> None:
    data = form(invented_later=1)
    data["steps"][1]["mood"] = "good"
    data["steps"][1]["timing"] = {"start_time": 1.0, "zone": "UTC"}
    data["steps"][1]["error"] = {"type": "AgentBoredError", "message": "yawn", "since": 1}
    loaded = AgentMemory.from_dict(data)
    step = loaded.steps[1]
    assert isinstance(step, ActionStep)
    assert step.timing == Timing(1.0)
    assert type(step.error) is AgentError
    assert str(step.error) == "yawn"


def test_a_newer_format_says_that_it_is_newer() -> None:
    with pytest.raises(ValueError, match=r"newer Sanderling: its format is 2.*Upgrade"):
        AgentMemory.from_dict(form(version=2))


USAGE = {"input_tokens": 1, "output_tokens": 1}
BROKEN: list[tuple[Any, str]] = [
    ([], "no JSON object"),
    ({}, "no saved memory"),
    (form(version="1"), "no saved memory"),
    (form(steps={}), "no steps"),
    (form(steps=["x"]), "step 0"),
    (form(steps=[{"type": "TaskStep"}]), "step 0.*task"),
    (form(steps=[{"type": "object"}]), "no MemoryStep of the name 'object'"),
    (form(steps=[{"type": "ActionStep", "timing": 5}]), "step 0"),
    (form(steps=[{"type": "ActionStep", "tool_calls": [{}]}]), "step 0"),
    (form(steps=[{"type": "FinalAnswerStep", "output": {"$": "value", "data": {"$": "os"}}}]), "0"),
    (form(steps=[{"type": "ActionStep", "model_output_message": {"role": "king"}}]), "king"),
    (form(steps=[{"type": "ActionStep", "model_output": 5}]), "step 0"),
    (form(steps=[{"type": "PlanningStep", "plan": ["a"]}]), "step 0"),
    *(
        (form(steps=[{"type": "ActionStep", "token_usage": {**USAGE, "input_tokens": odd}}]), "0")
        for odd in ("1", True, -1, 1.5, [1], 10**400)
    ),
    *(
        (form(steps=[{"type": "ActionStep", "timing": {"start_time": odd}}]), "step 0")
        for odd in ("1", True, None, [1], 10**400)
    ),
]


@pytest.mark.parametrize(("data", "told"), BROKEN)
def test_a_broken_form_is_refused_and_the_place_named(data: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        AgentMemory.from_json(json.dumps(data))


def test_a_form_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValueError, match=r"too deep|no JSON object|Expecting"):
        AgentMemory.from_json("[" * 200_000)


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd", "data:text/html,x", 7, None])
@pytest.mark.parametrize("key", ["url", "image"])
def test_a_saved_memory_cannot_make_us_read_a_file(url: Any, key: str) -> None:
    image = {"type": "image", key: url}
    content = {"role": "user", "content": [image]}
    for step in (
        {"type": "TaskStep", "task": "t", "task_images": [image]},
        {"type": "ActionStep", "observations_images": [image]},
        {"type": "ActionStep", "model_output_message": content},
        {"type": "ActionStep", "model_input_messages": [content]},
    ):
        with pytest.raises(ValueError, match="step 0"):
            AgentMemory.from_dict(form(steps=[step]))
