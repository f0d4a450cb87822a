"""Answers of a type, given from code and by tool, in both drivers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from pydantic import BaseModel

from sanderling import (
    ActionStep,
    AgentMaxStepsError,
    CodeAgent,
    LogLevel,
    MultiStepAgent,
    RunResult,
    ScriptedModel,
    ToolCallingAgent,
)
from support.drivers import Driver, both_drivers
from support.play import says


class City(BaseModel):
    name: str
    people: int


@dataclasses.dataclass
class Point:
    x: int
    y: int


BERN = City(name="Bern", people=134_000)


def code(text: str) -> str:
    return f"Go.\n<code>\n{text}\n</code>"


def answer(value: Any) -> Any:
    return says(None, ("final_answer", {"answer": value}))


def errors(agent: MultiStepAgent) -> list[str | None]:
    steps = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    return [None if step.error is None else str(step.error) for step in steps]


@both_drivers
def test_code_answers_with_data_of_the_type(driver: Driver) -> None:
    model = ScriptedModel(
        [
            code("final_answer({'name': 'Bern'})"),
            code("final_answer({'name': 'Bern', 'people': 134_000})"),
        ]
    )
    with CodeAgent([], model, output_type=City, verbosity_level=LogLevel.OFF) as agent:
        result: RunResult[City] = driver.run(agent, "Which?", return_full_result=True)
    assert result.output == BERN
    assert result.state == "success"
    assert result.dict()["output"] == {"name": "Bern", "people": 134_000}
    first, last = errors(agent)
    assert first is not None
    assert "['people']: Field required" in first
    assert last is None
    assert '"people": {"type": "integer"}' in agent.system_prompt
    assert "Field required" in model.requests[1].messages[-1].text


@both_drivers
def test_a_tool_call_answers_with_data_of_the_type(driver: Driver) -> None:
    model = ScriptedModel([answer("Bern"), answer('{"x": "1", "y": 2}')])
    agent = ToolCallingAgent([], model, output_type=Point, verbosity_level=LogLevel.OFF)
    assert driver.run(agent, "Where?") == Point(1, 2)
    schema: Any = agent.tools["final_answer"].to_json_schema()
    properties = schema["function"]["parameters"]["properties"]["answer"]["properties"]
    assert properties == {"x": {"type": "integer"}, "y": {"type": "integer"}}


@both_drivers
def test_checks_see_the_answer_as_the_type(driver: Driver) -> None:
    def is_large(city: City) -> bool:
        return city.people > 1_000_000

    model = ScriptedModel(
        [answer(BERN.model_dump()), answer({"name": "Rome", "people": 2_750_000})]
    )
    agent = ToolCallingAgent(
        [], model, output_type=City, final_answer_checks=[is_large], verbosity_level=LogLevel.OFF
    )
    assert driver.run(agent, "Which?").name == "Rome"
    assert "is_large" in (errors(agent)[0] or "")


@both_drivers
def test_the_answer_at_the_limit_is_json_of_the_type(driver: Driver) -> None:
    model = ScriptedModel([answer("?"), 'It is:\n{"name": "Bern", "people": 134000}'])
    agent = ToolCallingAgent([], model, output_type=City, max_steps=1, verbosity_level=LogLevel.OFF)
    result = driver.run(agent, "Which?", return_full_result=True)
    assert (result.output, result.state) == (BERN, "max_steps_error")
    asked = model.requests[-1]
    assert "JSON" in asked.messages[-1].text
    assert not any(message.tool_calls for message in asked.messages)


@both_drivers
def test_without_an_answer_of_the_type_a_run_ends_in_an_error(driver: Driver) -> None:
    model = ScriptedModel([answer("?"), "Nobody knows."])
    agent = ToolCallingAgent([], model, output_type=City, max_steps=1, verbosity_level=LogLevel.OFF)
    with pytest.raises(AgentMaxStepsError, match="does not fit"):
        driver.run(agent, "Which?")
    assert len(errors(agent)) == 2


def test_an_own_final_answer_tool_stays() -> None:
    from sanderling import FinalAnswerTool

    class Signed(FinalAnswerTool):
        def forward(self, answer: Any) -> Any:
            return {**answer, "name": "Bern"}

    agent = ToolCallingAgent(
        [Signed()],
        ScriptedModel([answer({"people": 134_000})]),
        output_type=City,
        verbosity_level=LogLevel.OFF,
    )
    assert agent.run("Which?") == BERN


def test_by_hand_the_type_counts_as_well() -> None:
    model = ScriptedModel([answer("?"), answer(BERN.model_dump())])
    agent = ToolCallingAgent([], model, output_type=City, verbosity_level=LogLevel.OFF)
    refused = ActionStep(step_number=1)
    assert agent.step(refused) is None
    assert refused.error is not None
    assert agent.step(ActionStep(step_number=2)) == BERN


@both_drivers
def test_structured_replies_are_asked_for_and_read(driver: Driver) -> None:
    model = ScriptedModel(
        [
            '{"thought": "Compute.", "code": "x = 6 * 7"}',
            '{"thought": "Answer.", "code": "final_answer(x)"}',
        ]
    )
    with CodeAgent(
        [], model, use_structured_outputs_internally=True, verbosity_level=LogLevel.OFF
    ) as agent:
        assert driver.run(agent, "6 * 7?") == 42
    request = model.requests[0]
    assert request.response_format is not None
    assert request.response_format["type"] == "json_schema"
    assert '"thought"' in request.messages[0].text


def test_an_agent_as_data_keeps_the_schema_of_its_answers() -> None:
    class Silent(ScriptedModel):
        def to_dict(self) -> Any:
            return {}

    agent = ToolCallingAgent([], Silent([]), output_type=City, verbosity_level=LogLevel.OFF)
    model = ScriptedModel([answer("?"), answer(BERN.model_dump())])
    again = ToolCallingAgent.from_dict(agent.to_dict(), model=model)
    assert again.run("Which?") == {"name": "Bern", "people": 134_000}
    assert again.system_prompt == agent.system_prompt


POINT = "from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n    y: int\n"
PAIR = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x", "y"]}


@both_drivers
@pytest.mark.parametrize("executor_type", ["local", "inprocess"])
@pytest.mark.parametrize(
    ("wanted", "given", "expected"),
    [
        (Point, "Point(1, 2)", Point(1, 2)),
        (list[Point], "[Point(1, 2)]", [Point(1, 2)]),
        (dict[str, tuple[Point, int]], "{'a': (Point(1, 2), 3)}", {"a": (Point(1, 2), 3)}),
        (PAIR, "Point(1, 2)", {"x": 1, "y": 2}),
    ],
    ids=["alone", "listed", "deep", "schema"],
)
def test_code_answers_with_a_class_of_its_own(
    driver: Driver, executor_type: str, wanted: Any, given: str, expected: Any
) -> None:
    model = ScriptedModel([code(f"{POINT}final_answer({given})")])
    kwargs: dict[str, Any] = {"executor_type": executor_type, "verbosity_level": LogLevel.OFF}
    with CodeAgent([], model, None, ["dataclasses"], output_type=wanted, **kwargs) as agent:
        assert driver.run(agent, "Where?") == expected


@both_drivers
def test_what_a_class_of_ones_own_lacks_is_told(driver: Driver) -> None:
    lacking = POINT.replace("    y: int\n", "")
    replies = [code(f"{lacking}final_answer(Point(1))"), code(f"{POINT}final_answer(Point(1, 2))")]
    model = ScriptedModel(replies)
    kwargs: dict[str, Any] = {"output_type": Point, "verbosity_level": LogLevel.OFF}
    with CodeAgent([], model, None, ["dataclasses"], **kwargs) as agent:
        assert driver.run(agent, "Where?") == Point(1, 2)
    assert "['y']: Field required" in str(errors(agent)[0])
