"""ToolCallingAgent with a scripted model and real tools, under both drivers."""

from __future__ import annotations

import threading
from typing import Any

import PIL.Image

from sanderling import (
    ActionStep,
    AgentMemory,
    AgentToolCallError,
    AgentToolExecutionError,
    LogLevel,
    ModelProfile,
    ScriptedModel,
    TokenUsage,
    ToolCallingAgent,
    tool,
)
from support.drivers import Driver, both_drivers
from support.play import says
from support.tools import add, greet


def agent_for(*replies: Any, tools: Any = (add, greet), **kwargs: Any) -> ToolCallingAgent:
    kwargs.setdefault("verbosity_level", LogLevel.OFF)
    return ToolCallingAgent(list(tools), ScriptedModel(replies), **kwargs)


def answer(value: Any) -> Any:
    return says(None, ("final_answer", {"answer": value}))


def steps(agent: ToolCallingAgent) -> list[ActionStep]:
    return [step for step in agent.memory.steps if isinstance(step, ActionStep)]


@both_drivers
def test_a_run_from_task_to_answer(driver: Driver) -> None:
    agent = agent_for(
        says("First the sum.", ("add", {"a": 1, "b": 2})),
        says(None, ("greet", '{"name": "Ada"}')),
        answer("Hello, Ada: 3"),
    )
    result = driver.run(agent, "Add and greet.", return_full_result=True)
    assert result.output == "Hello, Ada: 3"
    assert result.token_usage == TokenUsage(30, 6)
    assert [step.observations for step in steps(agent)] == ["3", "Hello, Ada!", "Hello, Ada: 3"]
    assert isinstance(agent.model, ScriptedModel)
    assert agent.model.requests[0].tools == ("add", "greet", "final_answer")


@both_drivers
def test_calls_of_one_reply_run_together_in_their_order(driver: Driver) -> None:
    meeting = threading.Barrier(3)

    @tool
    def meet(who: str) -> str:
        """Waits for two others.

        Args:
            who: Anybody.
        """
        meeting.wait(timeout=20)
        return who

    agent = agent_for(
        says("", *(("meet", {"who": who}) for who in "abc")), answer("done"), tools=[meet]
    )
    assert driver.run(agent, "Meet.") == "done"
    assert steps(agent)[0].action_output == ["a", "b", "c"]


@both_drivers
def test_one_failure_keeps_the_other_results(driver: Driver) -> None:
    agent = agent_for(
        says("", ("greet", {"name": "Nobody"}), ("add", {"a": 1, "b": 2})), answer("done")
    )
    driver.run(agent, "Go.")
    step = steps(agent)[0]
    assert isinstance(step.error, AgentToolExecutionError)
    assert "nobody is there" in (step.observations or "")
    assert "add (id_1): 3" in (step.observations or "")


@both_drivers
def test_wrong_calls_are_explained_to_the_model(driver: Driver) -> None:
    agent = agent_for(
        says("", ("ad", {"a": 1, "b": 2})),
        says("", ("add", {"a": 1})),
        says("", ("add", {"a": 1, "b": "two"})),
        says("", ("add", {"a": 1, "b": 2, "c": 3})),
        says("", ("add", "no object")),
        answer("done"),
    )
    assert driver.run(agent, "Go.") == "done"
    errors = [step.error for step in steps(agent)[:-1]]
    assert all(isinstance(error, AgentToolCallError) for error in errors)
    told = [str(error) for error in errors]
    assert "Did you mean 'add'?" in told[0]
    assert "'b'" in told[1]
    assert "integer" in told[2]
    assert "'c'" in told[3]
    assert "object" in told[4]


@both_drivers
def test_an_argument_that_names_a_variable_of_the_run_becomes_its_value(driver: Driver) -> None:
    @tool
    def length(items: list) -> int:  # type: ignore[type-arg]  # as users write it
        """Counts.

        Args:
            items: What is to be counted.
        """
        return len(items)

    agent = agent_for(says("", ("length", {"items": "numbers"})), answer("n"), tools=[length])
    driver.run(agent, "Count.", additional_args={"numbers": [1, 2, 3]})
    assert steps(agent)[0].action_output == 3


def test_the_prompt_tells_the_tools_and_the_instructions() -> None:
    prompt = agent_for(answer(1), instructions="Speak like a pirate.").system_prompt
    for text in ("add", "Adds two numbers.", "greet", "final_answer", "Speak like a pirate."):
        assert text in prompt


@both_drivers
def test_an_image_goes_from_tool_to_tool_by_its_name(driver: Driver) -> None:
    @tool
    def draw(colour: str) -> PIL.Image.Image:
        """Draws.

        Args:
            colour: Of everything.
        """
        return PIL.Image.new("RGB", (2, 1), colour)

    @tool
    def width(image: PIL.Image.Image) -> int:
        """Measures.

        Args:
            image: What is measured.
        """
        return image.width

    agent = agent_for(
        says("", ("draw", {"colour": "red"}), ("draw", {"colour": "blue"})),
        says("", ("width", {"image": "image.png"})),
        answer("image_2.png"),
        tools=[draw, width],
    )
    image = driver.run(agent, "Draw.")
    assert image.getpixel((0, 0)) == (0, 0, 255)
    assert steps(agent)[1].action_output == 2
    assert "'image_2.png'" in (steps(agent)[0].observations or "")


@both_drivers
def test_checks_of_every_form_send_an_answer_back(driver: Driver) -> None:
    def long_enough(answer: str) -> bool:
        return len(answer) > 2

    def no_digit(answer: str, memory: AgentMemory) -> bool:
        if any(map(str.isdigit, answer)):
            raise ValueError("there is a digit in it")
        return bool(memory.steps)

    def polite(answer: str, memory: AgentMemory, agent: ToolCallingAgent) -> bool:
        return agent.name == "butler" and "please" in answer

    agent = agent_for(
        *map(answer, ("a", "abc1", "abcd", "abcd, please")),
        name="butler",
        final_answer_checks=[long_enough, no_digit, polite],
    )
    assert driver.run(agent, "Ask.") == "abcd, please"
    told = [str(step.error) for step in steps(agent)[:-1]]
    assert "'long_enough'" in told[0]
    assert "there is a digit in it" in told[1]
    assert "'polite'" in told[2]
    assert isinstance(agent.model, ScriptedModel)
    assert "'polite'" in agent.model.requests[-1].messages[-1].text


def test_a_profile_for_code_leaves_calls_of_tools_alone() -> None:
    model = ScriptedModel([answer("done")], profile=ModelProfile.load("small"))
    agent = ToolCallingAgent([], model, verbosity_level=LogLevel.OFF)
    assert agent.run("x") == "done"
    assert agent.system_prompt == agent_for(tools=()).system_prompt
