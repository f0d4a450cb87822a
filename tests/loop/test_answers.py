"""Answers of a type: what fits, what is converted, and what the model is told otherwise."""

from __future__ import annotations

import dataclasses
import enum
from contextlib import suppress
from typing import Any, Literal, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from sanderling.errors import AgentError, AgentMaxStepsError
from sanderling.loop import ActionOutput, AnswerType, RunState, ToolAction, react
from sanderling.memory import ActionStep, AgentMemory, TaskStep
from sanderling.messages import ChatMessage, MessageRole
from sanderling.sandbox import HostObject
from support.play import Player, says


class City(BaseModel):
    name: str
    people: int


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Entry(TypedDict):
    title: str
    pages: NotRequired[int]


class Account:
    """An object of the host."""

    def __repr__(self) -> str:
        return "sk-SECRET"

    @property
    def people(self) -> int:
        raise AssertionError("it is read")

    name = people


class Colour(enum.Enum):
    RED = "red"


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}, "tags": {"type": "array"}},
    "required": ["n"],
}


@pytest.mark.parametrize(
    ("output_type", "given_value", "read"),
    [
        (City, {"name": "Bern", "people": 134_000}, City(name="Bern", people=134_000)),
        (City, City(name="Bern", people=1), City(name="Bern", people=1)),
        (City, '{"name": "Bern", "people": 1}', City(name="Bern", people=1)),
        (Point, {"x": 1}, Point(1.0)),
        (Entry, {"title": "Emma"}, {"title": "Emma"}),
        (list[int], [1, "2"], [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (int, "42", 42),
        (str, "[1]", "[1]"),
        (bool, True, True),
        (dict[str, float], {"a": 1}, {"a": 1.0}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Literal["yes", "no"], "no", "no"),
        (Colour, "red", Colour.RED),
        (int | None, None, None),
        (SCHEMA, {"n": 2, "tags": ("a",)}, {"n": 2, "tags": ("a",)}),
    ],
    ids=repr,
)
def test_what_fits_is_read(output_type: Any, given_value: Any, read: Any) -> None:
    answer_type = AnswerType.of(output_type)
    answer = answer_type.read(given_value)
    assert answer == read
    assert type(answer) is type(read)
    assert isinstance(answer_type.schema, dict)
    assert "$ref" not in answer_type.schema_text


@pytest.mark.parametrize(
    ("output_type", "given_value", "told"),
    [
        (City, {"name": "Bern"}, "['people']: Field required"),
        (City, {"name": "Bern", "people": "many"}, "but it is 'many'"),
        (City, "Bern", "valid dictionary"),
        (Entry, {"pages": 3}, "['title']"),
        (list[int], ["x"], "[0]"),
        (int, None, "integer"),
        (SCHEMA, {"n": 0}, "['n']: 0 is less than the minimum of 1"),
        (SCHEMA, "none", "the answer: 'none' is not of type 'object'"),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_explained(output_type: Any, given_value: Any, told: str) -> None:
    answer_type = AnswerType.of(output_type)
    with pytest.raises(AgentError) as caught:
        answer_type.read(given_value)
    assert told in str(caught.value)
    assert answer_type.schema_text in str(caught.value)
    assert ("Field required" in told) <= ("but it is" not in str(caught.value))


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Bern", "people": 1}',
        'Here it is:\n```json\n{"name": "Bern", "people": 1}\n```\nDone.',
        'So: {"name": "Bern", "people": 1}.',
        '<think>{"name": 3}</think>{"name": "Bern", "people": 1}',
    ],
)
def test_json_is_found_in_a_text(text: str) -> None:
    assert AnswerType.of(City).read_text(text) == City(name="Bern", people=1)


def test_many_problems_are_counted() -> None:
    with pytest.raises(AgentError, match="and 20 more"):
        AnswerType.of(list[int]).read(["x"] * 30)


def test_a_type_that_nobody_can_describe_is_refused() -> None:
    class Opaque:
        pass

    for opaque in (Opaque, 5):
        with pytest.raises(TypeError, match=r"described: Unable to .*Use a pydantic") as e:
            AnswerType.of(opaque)
        assert "\n" not in str(e.value)
    with pytest.raises(TypeError, match="not a valid JSON schema"):
        AnswerType.of({"type": "nothing"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(JSON)
def test_any_value_is_read_or_refused(value: Any) -> None:
    for output_type in (City, list[int], SCHEMA):
        answer_type = AnswerType.of(output_type)
        with suppress(AgentError):
            answer_type.read(value)


def play(player: Player, max_steps: int = 5) -> tuple[Any, RunState]:
    memory = AgentMemory("system")
    memory.steps.append(TaskStep("task"))
    run = RunState("task", memory, max_steps, answer_type=AnswerType.of(City))
    loop = react(
        run,
        ToolAction(("final_answer",)),
        lambda run: [ChatMessage(MessageRole.USER, "answer")],
    )
    return player.play(loop), run


def answers(value: Any) -> ChatMessage:
    return says(None, ("final_answer", {"answer": value}))


def test_an_answer_goes_back_until_it_fits_and_then_is_of_the_type() -> None:
    player = Player(
        [answers({"name": "Bern"}), answers({"name": "Bern", "people": 1})],
        call=lambda call: call.arguments["answer"],
    )
    city, run = play(player)
    assert city == City(name="Bern", people=1)
    refused, accepted = (step for step in run.memory.steps if isinstance(step, ActionStep))
    assert "['people']: Field required" in str(refused.error)
    assert not refused.is_final_answer
    assert accepted.action_output == city
    assert [event.output for event in player.events if isinstance(event, ActionOutput)] == [city]


def test_the_answer_at_the_limit_is_of_the_type_or_an_error() -> None:
    wrong = [answers({"name": "Bern"})]
    player = Player(
        [*wrong, says('{"name": "Bern", "people": 1}')],
        call=lambda call: call.arguments["answer"],
    )
    city, run = play(player, max_steps=1)
    assert city == City(name="Bern", people=1)
    assert run.status == "max_steps_error"
    player = Player([*wrong, says("I do not know.")], call=lambda call: call.arguments["answer"])
    with pytest.raises(AgentMaxStepsError, match=r"max steps \(1\)(.|\n)*does not fit"):
        play(player, max_steps=1)
    last = player.events[-1]
    assert isinstance(last, ActionStep)
    assert (last.action_output, last.is_final_answer) == ("I do not know.", False)


@pytest.mark.parametrize("obj", [Account(), Point(1)], ids=["object", "data"])
def test_an_answer_is_not_read_off_an_object_that_stays_on_the_host(obj: object) -> None:
    wrapped = HostObject(obj)
    for wanted in (City, SCHEMA):
        with pytest.raises(AgentError, match="host") as raised:
            AnswerType.of(wanted).read(wrapped.obj)
        assert "SECRET" not in str(raised.value)
    answer = {"n": 2, "tags": [wrapped.obj]}
    assert AnswerType.of(SCHEMA).read(answer) is answer


def test_an_answer_is_read_off_a_model_of_another_class() -> None:
    class Town(BaseModel):
        name: str
        people: int
        centre: Point

    town = Town(name="Bern", people=1, centre=Point(1))
    assert AnswerType.of(City).read(town) == City(name="Bern", people=1)
