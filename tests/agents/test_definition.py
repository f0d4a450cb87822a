"""What agents are made of: arguments, their limits, their form as data, and as a tree."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from typing import Any

import pytest

from console.screen import Screen
from sanderling import (
    AgentError,
    AgentMemory,
    ChatMessage,
    CodeAgent,
    Compaction,
    LogLevel,
    MessageRole,
    Model,
    MultiStepAgent,
    ScriptedModel,
    ToolCallingAgent,
    tool,
)
from sanderling.memory import ActionStep, FinalAnswerStep, PlanningStep, TaskStep
from sanderling.tools import PythonInterpreterTool
from sanderling.utils import parse_json_tool_call
from support.drivers import Driver, both_drivers
from support.play import says
from support.tools import add, greet

QUIET: dict[str, Any] = {"verbosity_level": LogLevel.OFF}
HOSTILE = "[red]x[/red]\x1b]0;pwned\x07"


class EchoModel(Model):
    """Says again what it is told; can be saved."""

    def generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatMessage:
        return ChatMessage(MessageRole.ASSISTANT, "<code>\nfinal_answer('echo')\n</code>")


def tool_agent(*replies: Any, **kwargs: Any) -> ToolCallingAgent:
    return ToolCallingAgent([add], ScriptedModel(replies), **{**QUIET, **kwargs})


def answer(value: Any) -> ChatMessage:
    return says(None, ("final_answer", {"answer": value}))


# --- Arguments ------------------------------------------------------------------------------------


class OwnAgent(CodeAgent):
    """An agent with an argument more."""

    def __init__(self, patience: int = 1, **kwargs: Any) -> None:
        self.patience = patience
        super().__init__(**kwargs)


@pytest.mark.parametrize("kind", [CodeAgent, ToolCallingAgent, OwnAgent])
@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("max_step", "max_steps"), ("plan_interval", "planning_interval"), ("frobnicate", None)],
)
def test_an_argument_that_there_is_not(
    kind: type[MultiStepAgent], wrong: str, meant: str | None
) -> None:
    arguments: dict[str, Any] = {wrong: 3}
    with pytest.raises(TypeError) as caught:
        kind(tools=[], model=EchoModel(), **arguments)
    told = f"{kind.__name__}() got an unexpected keyword argument {wrong!r}."
    assert str(caught.value) == (f"{told} Did you mean {meant!r}?" if meant else told)


def test_an_argument_that_no_run_has() -> None:
    agent: Any = CodeAgent([], EchoModel())
    for run in (agent.run, agent.astream, agent):
        with pytest.raises(TypeError, match=r"max_step'\. Did you mean 'max_steps'\?"):
            run("x", max_step=3)
    with pytest.raises(TypeError, match=r"CodeAgent\.arun\(\) .* 'image'\. Did you mean 'images'"):
        asyncio.run(agent.arun("x", image=[]))


def test_parts_name_themselves() -> None:
    agent = CodeAgent([add], ScriptedModel([]), name="boss")
    assert repr(agent) == (
        "CodeAgent(name='boss', model=ScriptedModel('scripted'), tools=['add', 'final_answer'])"
    )
    assert repr(agent.tools["final_answer"]) == "<FinalAnswerTool final_answer>"
    assert repr(agent.memory) == "<AgentMemory of 0 steps>"


@pytest.mark.parametrize(("given", "level"), [("debug", 2), ("INFO", 1), (7, 2), (-5, -1)])
def test_levels_go_by_name_and_number(given: Any, level: int) -> None:
    assert tool_agent(verbosity_level=given).verbosity_level == level


def test_an_argument_of_a_class_of_ones_own_is_meant_as_well() -> None:
    with pytest.raises(TypeError, match=r"OwnAgent\(\) got an .* Did you mean 'patience'"):
        OwnAgent(tools=[], model=EchoModel(), patienc=3)


@pytest.mark.parametrize("kind", [CodeAgent, ToolCallingAgent])
def test_every_argument_of_both_eras_is_taken_together(kind: type[MultiStepAgent]) -> None:
    def callback(memory_step: ActionStep, agent: MultiStepAgent) -> None: ...

    agent = kind(
        tools=[add],
        model=EchoModel(),
        system_prompt="{{ tool_descriptions }} {{ managed_agents_descriptions }}",
        tool_description_template="{{ tool.name }}",
        tool_parser=parse_json_tool_call,
        instructions="Be brief.",
        max_steps=6,
        add_base_tools=True,
        verbosity_level=0,
        managed_agents=[tool_agent(name="child", description="Counts.")],
        step_callbacks=[callback],
        planning_interval=3,
        name="boss",
        description="Commands.",
        provide_run_summary=True,
        final_answer_checks=[lambda answer, memory, agent: True],
        return_full_result=True,
        stream_outputs=True,
        grammar={"type": "regex", "value": ".*"},
    )
    agent.step_callbacks.append(callback)
    assert agent.max_steps == 6
    assert agent.tool_parser is parse_json_tool_call
    assert kind([], EchoModel(), tool_parser=None, grammar=None).tool_parser is None
    assert agent.verbosity_level is LogLevel.ERROR
    assert len(agent.step_callbacks) == 2
    assert (agent.name, agent.description) == ("boss", "Commands.")
    assert agent.system_prompt.split()[0] == "add"


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        (
            MultiStepAgent,
            """tools model prompt_templates instructions max_steps add_base_tools verbosity_level
            managed_agents step_callbacks planning_interval name description provide_run_summary
            final_answer_checks return_full_result logger""",
        ),
        (
            CodeAgent,
            """tools model prompt_templates additional_authorized_imports planning_interval executor
            executor_type executor_kwargs max_print_outputs_length stream_outputs
            use_structured_outputs_internally code_block_tags""",
        ),
        (
            ToolCallingAgent,
            "tools model prompt_templates planning_interval stream_outputs max_tool_threads",
        ),
    ],
)
def test_the_order_of_arguments_is_the_known_one(kind: type[MultiStepAgent], known: str) -> None:
    names = list(inspect.signature(kind).parameters)
    assert names[: len(known.split())] == known.split()
    run = " ".join(inspect.signature(kind.run).parameters)
    assert run.startswith(
        "self task stream reset images additional_args max_steps return_full_result"
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"verbosity_level": "loud"}, r"there is: OFF \(-1\), ERROR \(0\), INFO \(1\), DEBUG"),
        ({"max_steps": 0}, "max_steps must be a whole number, at least 1"),
        ({"planning_interval": 0}, "planning_interval must be a whole number, at least 1"),
        ({"max_tool_threads": 0}, "max_tool_threads must be a whole number, at least 1"),
        ({"name": "two words"}, "identifier"),
        ({"name": "class"}, "identifier"),
        ({"name": 7}, "identifier"),
        ({"max_steps": "7"}, "max_steps must be a whole number, at least 1, not '7'"),
        ({"prompt_templates": {}}, "lacks system_prompt"),
        ({"managed_agents": [tool_agent()]}, "name and a description"),
        ({"managed_agents": [tool_agent(name="add", description="Adds.")]}, "both called 'add'"),
        ({"managed_agents": [tool_agent(name="a", description="A.")] * 2}, "are called 'a'"),
        ({"system_prompt": "x", "prompt_templates": {}}, "leave out system_prompt"),
    ],
)
def test_arguments_that_cannot_be_are_refused_at_once(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        tool_agent(**wrong)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"tools": add}, "tools is a list"),
        ({"tools": {"add": add}}, "tools is a list"),
        ({"managed_agents": tool_agent(name="child", description="Counts.")}, "is a list"),
        ({"step_callbacks": print}, "step_callbacks is a list"),
        ({"step_callbacks": {"ActionStep": print}}, "goes by step class, not by 'ActionStep'"),
        ({"final_answer_checks": print}, "final_answer_checks is a list"),
        ({"final_answer_checks": [True]}, "what can be called; bool cannot be"),
        ({"history_processors": Compaction()}, "history_processors is a list"),
        ({"history_processors": ["all"]}, "what can be called; str cannot be"),
        ({"policies": [3]}, "what can be called; int cannot be"),
        ({"approve": True}, "what can be called; bool cannot be"),
        ({"limits": {"steps": 3}}, "limits must be a RunLimits, not a dict"),
        ({"prompt_templates": "You are helpful."}, "prompt_templates is a dict, not a str"),
        ({"additional_authorized_imports": "numpy"}, "additional_authorized_imports is a list"),
    ],
)
def test_arguments_of_another_kind_are_told_by_their_names(
    wrong: dict[str, Any], told: str
) -> None:
    arguments: dict[str, Any] = {"tools": [], "model": EchoModel(), **QUIET, **wrong}
    with pytest.raises(TypeError, match=told):
        CodeAgent(**arguments)


def test_what_cannot_go_together_says_so() -> None:
    with pytest.raises(ValueError, match="leave out grammar"):
        CodeAgent([], EchoModel(), use_structured_outputs_internally=True, grammar={"type": "json"})
    with pytest.raises(TypeError, match="must be an agent, not str"):
        tool_agent(managed_agents=["child"])


@pytest.mark.parametrize("tags", ["code", "", ("<code>",), ("", ""), ("<code>", " "), ("a", 1)])
def test_marks_around_code_that_cannot_be_are_refused(tags: Any) -> None:
    with pytest.raises(ValueError, match=r"code_block_tags is|marks around code"):
        CodeAgent([], EchoModel(), code_block_tags=tags)


@pytest.mark.parametrize("kind", [CodeAgent, ToolCallingAgent])
def test_the_base_tools_are_those_that_the_kind_of_agent_lacks(kind: type[MultiStepAgent]) -> None:
    agent = kind([], EchoModel(), add_base_tools=True)
    assert ("python_interpreter" in agent.tools) == (kind is ToolCallingAgent)
    mine = PythonInterpreterTool(["numpy"])
    kept = kind([mine], EchoModel(), add_base_tools=True)
    assert kept.tools["python_interpreter"] is mine


@both_drivers
def test_an_agent_that_calls_tools_runs_python_in_the_sandbox(driver: Driver) -> None:
    agent = tool_agent(
        says("", ("python_interpreter", {"code": "print('hi')\n6 * 7"})),
        says("", ("python_interpreter", {"code": "import os"})),
        answer("done"),
        add_base_tools=True,
    )
    assert driver.run(agent, "Compute.") == "done"
    first, second, _ = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    assert first.observations == "Stdout:\nhi\nOutput: 42"
    assert "not allowed" in str(second.error)


def test_no_more_calls_run_together_than_wanted() -> None:
    threads = set()
    pair = threading.Barrier(2)

    @tool
    def where(number: int) -> int:
        """Remembers its thread, once there are two at work.

        Args:
            number: Any.
        """
        pair.wait(timeout=20)
        threads.add(threading.get_ident())
        return number

    calls = says("", *(("where", {"number": number}) for number in range(8)))
    agent = ToolCallingAgent(
        [where], ScriptedModel([calls, answer(1)]), max_tool_threads=2, **QUIET
    )
    agent.run("Go.")
    assert len(threads) == 2


@pytest.mark.parametrize("awaits", [True, False])
@both_drivers
def test_one_call_at_a_time_means_so_in_both_drivers(driver: Driver, awaits: bool) -> None:
    at_work: list[int] = []

    def enter(number: int) -> None:
        at_work.append(number)
        assert at_work == [number]

    @tool
    def work(number: int) -> int:
        """Works.

        Args:
            number: Any.
        """
        enter(number)
        return at_work.pop()

    @tool
    async def work_async(number: int) -> int:
        """Works, and lets others work.

        Args:
            number: Any.
        """
        enter(number)
        for _ in range(5):
            await asyncio.sleep(0)
        return at_work.pop()

    name = "work_async" if awaits else "work"
    calls = says("", *((name, {"number": number}) for number in range(8)))
    replies = ScriptedModel([calls, answer(1)])
    agent = ToolCallingAgent([work, work_async], replies, max_tool_threads=1, **QUIET)
    driver.run(agent, "Go.")
    step = agent.memory.steps[1]
    assert isinstance(step, ActionStep)
    assert step.action_output == list(range(8))


@both_drivers
def test_the_grammar_goes_to_the_model_with_every_action(driver: Driver) -> None:
    model = ScriptedModel(["<code>\nfinal_answer(1)\n</code>"])
    grammar = {"type": "regex", "value": ".*"}
    agent = CodeAgent([], model, grammar=grammar, executor_type="inprocess", **QUIET)
    assert driver.run(agent, "Go.") == 1
    assert model.requests[0].options == {"grammar": grammar}


@both_drivers
@pytest.mark.parametrize(
    "read",
    [
        lambda text: ("add", {"a": 1, "b": int(text)}),
        lambda text: [("add", {"a": 1, "b": int(text)})],
    ],
)
def test_a_parser_of_ones_own_reads_the_call(driver: Driver, read: Any) -> None:
    agent = tool_agent("no number", "41", answer("done"), tool_parser=read)
    assert driver.run(agent, "Go.") == "done"
    first, second, _ = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    assert "no number" in str(first.error)
    assert first.model_output == "no number"
    assert second.action_output == 42


@both_drivers
def test_a_model_may_read_calls_its_own_way(driver: Driver) -> None:
    class Own(ScriptedModel):
        def parse_tool_calls(self, message: ChatMessage) -> ChatMessage:
            return says(message.text, ("final_answer", {"answer": message.text.upper()}))

    agent = ToolCallingAgent([], Own(["done"]), **QUIET)
    assert driver.run(agent, "Go.") == "DONE"


@both_drivers
def test_callbacks_by_class_of_step(driver: Driver) -> None:
    heard: list[str] = []

    def round_up(step: FinalAnswerStep) -> None:
        heard.append("answer")
        step.output += 0.5

    agent = tool_agent(
        "the plan",
        answer(1.5),
        planning_interval=5,
        step_callbacks={
            PlanningStep: lambda step: heard.append("plan"),
            ActionStep: [lambda step, agent: heard.append(agent.name)],
            FinalAnswerStep: round_up,
        },
        name="boss",
    )
    assert driver.run(agent, "Go.") == 2
    assert heard == ["plan", "boss", "answer"]


def test_callbacks_may_be_assigned() -> None:
    heard: list[str] = []
    agent = tool_agent(answer(1))
    agent.step_callbacks = [lambda step: heard.append("one")]
    agent.step_callbacks.register(FinalAnswerStep, lambda step: heard.append("two"))
    other = tool_agent(answer(1), step_callbacks=agent.step_callbacks)
    other.step_callbacks.append(lambda step: heard.append("mine"))
    agent.run("Go.")
    assert heard == ["one", "two"]
    other.run("Go.")
    assert heard[2:] == ["one", "mine", "two"]


@both_drivers
def test_a_run_goes_on_from_a_memory_that_was_saved(driver: Driver) -> None:
    first, second = tool_agent(answer(1)), tool_agent(answer(2))
    first.run("One.")
    second.memory = AgentMemory.from_json(first.memory.to_json())
    assert driver.run(second, "Two.", reset=False) == 2
    tasks = [step.task for step in second.memory.steps if isinstance(step, TaskStep)]
    assert tasks == ["One.", "Two."]
    with pytest.raises(TypeError, match="must be an AgentMemory, not a list"):
        second.memory = []  # type: ignore[assignment]  # that is the point
    events = second.run("Three.", stream=True)
    next(events)
    with pytest.raises(AgentError, match="under way"):
        second.memory = first.memory
    events.close()


@both_drivers
def test_a_callback_drops_old_screenshots(driver: Driver) -> None:
    shots = [f"https://example.org/{number}.png" for number in range(4)]

    def look(memory_step: ActionStep, agent: MultiStepAgent) -> None:
        for step in agent.memory.steps:
            if isinstance(step, ActionStep) and step is not memory_step:
                step.observations_images = None
        memory_step.observations_images = [shots[memory_step.step_number or 0]]

    calls = [says("", ("add", {"a": 1, "b": number})) for number in range(2)]
    agent = tool_agent(*calls, answer(1), step_callbacks=[look])
    driver.run(agent, "Look.")
    assert isinstance(agent.model, ScriptedModel)
    seen = [
        [shot for shot in shots if shot in json.dumps([m.dict() for m in request.messages])]
        for request in agent.model.requests
    ]
    assert seen == [[], shots[1:2], shots[2:3]]


def test_the_steps_of_another_agent_can_be_taken_over() -> None:
    first, second = tool_agent(answer(1)), tool_agent(answer(2))
    first.run("One.")
    second.memory.steps = first.memory.steps
    assert second.run("Two.", reset=False) == 2
    tasks = [step.task for step in second.memory.steps if isinstance(step, TaskStep)]
    assert tasks == ["One.", "Two."]


# --- As data --------------------------------------------------------------------------------------


# Where the code of the family runs, which its form may not choose.
PLACE: dict[str, Any] = {"executor_type": "inprocess", "executor_kwargs": {"timeout_seconds": 5}}


def family() -> CodeAgent:
    child = ToolCallingAgent(
        [greet],
        EchoModel(model_id="child"),
        name="child",
        description="Greets.",
        max_tool_threads=2,
        add_base_tools=True,
        **QUIET,
    )
    return CodeAgent(
        [add],
        EchoModel(model_id="boss", temperature=0.5),
        managed_agents=[child],
        instructions="Be brief.",
        max_steps=7,
        planning_interval=2,
        additional_authorized_imports=["numpy"],
        **PLACE,
        max_print_outputs_length=99,
        code_block_tags="markdown",
        provide_run_summary=True,
        return_full_result=True,
        stream_outputs=True,
        name="boss",
        description="Commands.",
        **QUIET,
    )


def test_the_form_has_what_the_known_file_has() -> None:
    data = json.loads(json.dumps(family().to_dict()))
    known = {"class", "tools", "model", "managed_agents", "prompt_templates", "max_steps"}
    known |= {"verbosity_level", "planning_interval", "name", "description", "requirements"}
    known |= {"authorized_imports", "executor_type", "executor_kwargs", "max_print_outputs_length"}
    assert known <= set(data)
    assert data["class"] == "CodeAgent"
    assert [one["name"] for one in data["tools"]] == ["add", "final_answer"]
    assert data["tools"][0]["inputs"]["a"]["type"] == "integer"
    assert data["model"] == {
        "class": f"{__name__}.EchoModel",
        "data": {"model_id": "boss", "temperature": 0.5},
    }
    assert data["managed_agents"]["child"]["class"] == "ToolCallingAgent"
    assert data["verbosity_level"] == -1


def test_an_agent_comes_back_from_a_form_that_only_names_its_tools() -> None:
    data = family().to_dict()
    data["tools"] = ["add", "final_answer"]
    agent = CodeAgent.from_dict(data, tools=[add, greet], **PLACE)
    assert sorted(agent.tools) == ["add", "final_answer"]
    with pytest.raises(ValueError, match="which are Python"):
        CodeAgent.from_dict(data, **PLACE)


def test_an_agent_comes_back_from_its_form() -> None:
    data = json.loads(json.dumps(family().to_dict()))
    agent = MultiStepAgent.from_dict(data, tools=[add, greet], **PLACE)
    assert isinstance(agent, CodeAgent)
    assert agent.to_dict() == data
    assert agent.system_prompt == family().system_prompt
    assert list(agent.tools) == ["add", "final_answer"]
    assert agent.run("Go.", return_full_result=False) == "echo"
    assert agent.managed_agents["child"].max_tool_threads == 2


def test_what_is_given_wins_over_the_form() -> None:
    model = ScriptedModel([])
    agent = CodeAgent.from_dict(
        family().to_dict(),
        tools=[add],
        managed_agents=[],
        model=model,
        max_steps=3,
        name="chief",
        **PLACE,
    )
    assert (agent.model, agent.max_steps, agent.name) == (model, 3, "chief")
    assert agent.managed_agents == {}


def test_a_class_of_ones_own_comes_back() -> None:
    class MyAgent(CodeAgent):
        pass

    data = MyAgent([], EchoModel(), **QUIET).to_dict()
    assert type(CodeAgent.from_dict(data)) is MyAgent


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"class": "Popen"}, "no MultiStepAgent of the name 'Popen'"),
        ({"class": "ToolCallingAgent"}, None),
        ({"model": {"class": "Popen", "data": {"args": "true"}}}, "no Model of the name 'Popen'"),
        ({"model": {"class": "as_model"}}, "no Model of the name"),
        ({"model": None}, "no Model of the name None"),
        ({"tools": [{"name": "launch"}]}, r"tools launch.*from_dict\(data, tools="),
    ],
)
def test_a_form_that_cannot_be_followed_says_what_to_do(
    changes: dict[str, Any], told: str | None
) -> None:
    data = {**CodeAgent([], EchoModel(), **QUIET).to_dict(), **changes}
    if told is None:
        assert type(MultiStepAgent.from_dict(data)) is ToolCallingAgent
        return
    with pytest.raises(ValueError, match=told):
        MultiStepAgent.from_dict(data)


def test_what_the_form_leaves_out_is_named() -> None:
    agent = ToolCallingAgent(
        [], EchoModel(), step_callbacks=[print], tool_parser=lambda text: ("a", {}), **QUIET
    )
    with pytest.warns(UserWarning, match="step_callbacks, tool_parser of the agent"):
        agent.to_dict()


def test_secrets_are_not_in_the_form() -> None:
    agent = CodeAgent([], EchoModel(api_key="sk-12345", token="hf-12345"), **QUIET)
    assert "12345" not in json.dumps(agent.to_dict())


# --- As a tree ------------------------------------------------------------------------------------


def test_a_tree_shows_model_tools_and_managed_agents() -> None:
    screen = Screen(width=160)
    agent = family()
    agent.logger = screen.logger
    agent.visualize()
    place = 0
    for text in [
        "boss | CodeAgent | EchoModel - boss",
        "Commands.",
        "numpy",
        "add",
        "Adds two numbers.",
        "a (integer): One of them.",
        "final_answer",
        "child | ToolCallingAgent | EchoModel - child",
        "Greets.",
        "python_interpreter",
    ]:
        assert text in screen.text[place:], text
        place = screen.text.index(text, place)


def test_nothing_in_a_tree_is_read_as_markup() -> None:
    screen = Screen(width=200)

    @tool
    def probe(x: str) -> str:
        """Y

        Args:
            x: Z
        """
        return x

    probe.description = HOSTILE
    agent = ToolCallingAgent(
        [probe], EchoModel(model_id=HOSTILE), description=HOSTILE, logger=screen.logger
    )
    agent.visualize()
    assert screen.text.count("[red]x[/red]\\x1b]0;pwned\\x07") == 3


@both_drivers
def test_a_run_is_replayed(driver: Driver) -> None:
    screen = Screen(LogLevel.ERROR)
    agent = tool_agent(says("", ("add", {"a": 1, "b": 2})), answer(3), logger=screen.logger)
    driver.run(agent, "Add one and two.")
    assert screen.text == ""
    agent.replay()
    for text in ("Add one and two.", "Step 1", "'add'", "Step 2", "Final answer"):
        assert text in screen.text


def test_an_agent_that_forgets_comes_back_from_its_form() -> None:
    processors = [Compaction()]
    agent = ToolCallingAgent([add], EchoModel(), history_processors=processors)
    with pytest.warns(UserWarning, match="history_processors"):
        form = agent.to_dict()
    for given, tools in ((processors, ["add", "recall", "final_answer"]), ([], ["add"])):
        back = ToolCallingAgent.from_dict(
            form, tools=[add], model=EchoModel(), history_processors=given
        )
        assert set(back.tools) == {*tools, "final_answer"}


@pytest.mark.parametrize("form", [[], "CodeAgent", None])
def test_a_form_that_is_none_is_refused(form: Any) -> None:
    with pytest.raises(ValueError, match="the form of an agent is a dict, not a"):
        ToolCallingAgent.from_dict(form)


def test_managed_agents_of_which_the_form_has_the_class_alone_are_given() -> None:
    form = {**saved_form(), "managed_agents": {"child": "ToolCallingAgent"}}
    with pytest.raises(ValueError, match=r"managed agents child .*managed_agents=\[\.\.\.\]"):
        ToolCallingAgent.from_dict(form, tools=[add])
    child = tool_agent(name="child", description="Counts.")
    back = ToolCallingAgent.from_dict(form, tools=[add], managed_agents=[child])
    assert back.managed_agents == {"child": child}


def test_managed_agents_may_be_a_list_of_forms() -> None:
    child = {**saved_form(), "name": "child", "description": "Counts."}
    back = ToolCallingAgent.from_dict({**saved_form(), "managed_agents": [child]}, tools=[add])
    assert list(back.managed_agents) == ["child"]


def saved_form() -> dict[str, Any]:
    return ToolCallingAgent([add], EchoModel(), **QUIET).to_dict()


@both_drivers
def test_a_function_may_be_assigned_as_the_model(driver: Driver) -> None:
    agent = tool_agent("unused")
    agent.model = lambda messages: answer(7)
    assert driver.run(agent, "Go.") == 7
    with pytest.raises(TypeError):
        agent.model = 7  # type: ignore[assignment]  # that is the point


@both_drivers
def test_the_state_may_be_assigned(driver: Driver) -> None:
    agent = tool_agent(says("", ("add", {"a": "one", "b": 2})), answer("done"))
    agent.state = {"one": 1}
    driver.run(agent, "Go.", reset=False)
    first = agent.memory.steps[1]
    assert isinstance(first, ActionStep)
    assert first.observations == "3"
    assert agent.state == {"one": 1}
    with pytest.raises(TypeError, match="the state is a dict"):
        agent.state = []  # type: ignore[assignment]  # that is the point
