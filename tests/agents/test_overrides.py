"""Agents of classes that define `step` or `execute_tool_call` anew."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from sanderling import (
    ActionOutput,
    ActionStep,
    AgentError,
    AgentInterruptedError,
    AgentLimitError,
    ChatMessage,
    CodeAgent,
    FinalAnswerStep,
    LogLevel,
    MultiStepAgent,
    RunLimits,
    ScriptedModel,
    StepStarted,
    TaskStep,
    TokenUsage,
    ToolCallingAgent,
    ToolOutput,
    tool,
)
from sanderling.loop import ModelReply, NestedEvent
from sanderling.runtime import Allow, ApprovalRequest, Deny
from support.drivers import Driver, both_drivers
from support.play import says
from support.tools import add, greet

QUIET: dict[str, Any] = {"verbosity_level": LogLevel.OFF}
ADD = says("", ("add", {"a": 1, "b": 2}))
TWO = says("", ("add", {"a": 1, "b": 2}), ("greet", {"name": "Ada"}))


def answer(value: Any) -> ChatMessage:
    return says(None, ("final_answer", {"answer": value}))


def code(text: str) -> str:
    return f"Go.\n<code>\n{text}\n</code>"


class OwnLoop(MultiStepAgent):
    """As programs for smolagents wrote it: the step is all of it."""

    def initialize_system_prompt(self) -> str:
        return "Count."

    def step(self, memory_step: ActionStep) -> Any:
        reply = self.model(self.write_memory_to_messages())
        memory_step.model_output = reply.text
        memory_step.token_usage = reply.token_usage
        if reply.text == "wrong":
            raise AgentError("That was wrong.")
        if reply.text == "add":
            memory_step.observations = str(self.execute_tool_call("add", {"a": 1, "b": "two"}))
            return None
        return reply.text


@both_drivers
def test_an_agent_is_its_step(driver: Driver) -> None:
    told: list[Any] = []
    model = ScriptedModel(["wrong", "add", says("done", token_usage=TokenUsage(3, 4))])
    agent = OwnLoop([add], model, step_callbacks=[told.append], **QUIET)
    events = driver.events(agent, "Go.", additional_args={"two": 2})
    assert [event.step_number for event in events if isinstance(event, StepStarted)] == [1, 2, 3]
    assert isinstance(events[-1], FinalAnswerStep)
    assert events[-1].output == "done"
    _, first, second, third = agent.memory.steps
    assert isinstance(first, ActionStep)
    assert isinstance(second, ActionStep)
    assert isinstance(third, ActionStep)
    assert told[:3] == [first, second, third]
    assert str(first.error) == "That was wrong."
    assert second.observations == "3"
    assert (third.is_final_answer, third.action_output) == (True, "done")
    assert "That was wrong." in model.requests[1].messages[-1].text


@both_drivers
def test_a_step_of_ones_own_is_bounded_by_max_steps(driver: Driver) -> None:
    agent = OwnLoop([add], ScriptedModel(["add", "add", "forced"]), max_steps=2, **QUIET)
    result = driver.run(agent, "Go.", return_full_result=True)
    assert (result.output, result.state) == ("forced", "max_steps_error")


@both_drivers
def test_what_a_step_of_ones_own_says_it_cost_is_counted(driver: Driver) -> None:
    model = ScriptedModel([says("done", token_usage=TokenUsage(3, 4))])
    result = driver.run(OwnLoop([], model, **QUIET), "Go.", return_full_result=True)
    assert result.token_usage == TokenUsage(3, 4)


def test_an_agent_without_a_step_says_so() -> None:
    class Empty(MultiStepAgent):
        def initialize_system_prompt(self) -> str:
            return ""

    with pytest.raises(NotImplementedError, match=r"step\(self, memory_step\)"):
        Empty([], ScriptedModel([]), **QUIET).run("Go.")


class Twice(CodeAgent):
    """Takes the step of its base, and looks at what came of it."""

    threads: list[str]

    def step(self, memory_step: ActionStep) -> Any:
        self.threads.append(threading.current_thread().name)
        found = super().step(memory_step)
        memory_step.observations = f"{memory_step.observations}\n(seen)"
        return None if found is None else found * 2


def twice(*replies: Any, **kwargs: Any) -> Twice:
    kwargs = {"executor_type": "inprocess", **QUIET, **kwargs}
    agent = Twice([add, greet], ScriptedModel(replies), **kwargs)
    agent.threads = []
    return agent


CODES = code("x = add(a=20, b=1)"), "no code", code("final_answer(x)")


@both_drivers
@pytest.mark.parametrize("executor_type", ["inprocess", "local"])
def test_the_step_of_the_base_can_be_taken(driver: Driver, executor_type: str) -> None:
    checked: list[Any] = []

    def check(answer: Any) -> bool:
        checked.append(answer)
        return True

    with twice(*CODES, executor_type=executor_type, final_answer_checks=[check]) as agent:
        result = driver.run(agent, "Go.", return_full_result=True)
        assert result.output == 42
        assert checked == [42]
        _, first, second, third = agent.memory.steps
        assert isinstance(first, ActionStep)
        assert isinstance(second, ActionStep)
        assert isinstance(third, ActionStep)
        assert first.code_action == "x = add(a=20, b=1)"
        assert str(first.observations).endswith("(seen)")
        assert "no code" in str(second.error)
        assert third.action_output == 42
        usages = [step.token_usage for step in (first, second, third) if step.token_usage]
        assert result.token_usage == sum(usages, TokenUsage(0, 0))


@both_drivers
def test_a_step_runs_beside_the_event_loop_and_else_in_the_calling_thread(driver: Driver) -> None:
    agent = twice(code("final_answer(1)"))
    driver.run(agent, "Go.")
    is_main = agent.threads == [threading.main_thread().name]
    assert is_main == (driver.name == "sync")


@both_drivers
def test_the_events_are_those_of_a_run_without_it(driver: Driver) -> None:
    def kinds(agent: CodeAgent) -> list[type]:
        return [type(event) for event in driver.events(agent, "Go.")]

    plain = CodeAgent([add], ScriptedModel(CODES), executor_type="inprocess", **QUIET)
    assert kinds(twice(*CODES)) == kinds(plain)
    assert ModelReply in kinds(twice(*CODES))


@both_drivers
def test_an_answer_of_the_base_can_be_turned_down(driver: Driver) -> None:
    class Picky(CodeAgent):
        def step(self, memory_step: ActionStep) -> Any:
            found = super().step(memory_step)
            if found == 1:
                memory_step.observations = "Not that one."
                return None
            return found

    model = ScriptedModel([code("final_answer(1)"), code("final_answer(None)")])
    agent = Picky([], model, executor_type="inprocess", **QUIET)
    assert driver.run(agent, "Go.") is None
    first, second = (step for step in agent.memory.steps if isinstance(step, ActionStep))
    assert (first.is_final_answer, second.is_final_answer) == (False, True)
    assert "Not that one." in model.requests[1].messages[-1].text


@both_drivers
@pytest.mark.parametrize("is_final", [False, True])
def test_a_step_may_return_what_an_action_came_to(driver: Driver, is_final: bool) -> None:
    class Modern(OwnLoop):
        def step(self, memory_step: ActionStep) -> Any:
            return ActionOutput(7, is_final_answer=is_final)

    agent = Modern([], ScriptedModel(["forced"]), max_steps=1, **QUIET)
    assert driver.run(agent, "Go.") == (7 if is_final else "forced")


@both_drivers
def test_a_step_may_be_async(driver: Driver) -> None:
    class Awaiting(ToolCallingAgent):
        async def step(self, memory_step: ActionStep) -> Any:
            return await super().astep(memory_step)

    agent = Awaiting([add], ScriptedModel([ADD, answer(3)]), **QUIET)
    assert driver.run(agent, "Go.") == 3
    assert len(agent.memory.steps) == 3


@both_drivers
def test_any_other_error_of_a_step_ends_the_run(driver: Driver) -> None:
    class Broken(OwnLoop):
        def step(self, memory_step: ActionStep) -> Any:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        driver.run(Broken([], ScriptedModel([]), **QUIET), "Go.")


@both_drivers
def test_limits_and_interrupts_reach_the_step_of_the_base(driver: Driver) -> None:
    with pytest.raises(AgentLimitError, match="1 of the 1 steps"):
        driver.run(twice(*CODES, limits=RunLimits(steps=1)), "Go.")
    agent = twice(*CODES)
    agent.step_callbacks.append(lambda step: agent.interrupt())
    with pytest.raises(AgentInterruptedError):
        driver.run(agent, "Go.")
    assert len(agent.threads) == 1


@both_drivers
def test_a_managed_agent_steps_in_its_own_conversation(driver: Driver) -> None:
    child = OwnLoop(
        [], ScriptedModel(["wrong", "done"]), name="child", description="Does.", **QUIET
    )
    tasks: list[TaskStep] = []
    child.step_callbacks.append(lambda step, agent: tasks.append(agent.memory.steps[0]))
    manager = ToolCallingAgent(
        [],
        ScriptedModel([says("", ("child", {"task": "Please."})), answer("ok")]),
        managed_agents=[child],
        **QUIET,
    )
    assert driver.run(manager, "Go.") == "ok"
    assert "Please." in tasks[0].task
    assert child.memory.steps == []


class Careful(ToolCallingAgent):
    """Sees each call before and after it is made."""

    seen: list[tuple[str, Any]]

    def execute_tool_call(self, tool_name: str, arguments: Any) -> Any:
        self.seen.append((tool_name, arguments))
        if tool_name == "greet":
            raise ValueError("no greetings")
        found = super().execute_tool_call(tool_name, arguments)
        return found if tool_name == "final_answer" else found * 10


def careful(*replies: Any, **kwargs: Any) -> Careful:
    agent = Careful([add, greet], ScriptedModel(replies), **QUIET, **kwargs)
    agent.seen = []
    return agent


@both_drivers
def test_each_call_is_made_by_the_method(driver: Driver) -> None:
    agent = careful(ADD, TWO, answer(3))
    events = driver.events(agent, "Go.")
    assert events[-1].output == 3
    outputs = [event.output for event in events if isinstance(event, ToolOutput)]
    assert outputs == [30, 30, None, 3]
    assert sorted(name for name, _ in agent.seen) == ["add", "add", "final_answer", "greet"]
    second = agent.memory.steps[2]
    assert isinstance(second, ActionStep)
    assert "ValueError: no greetings" in str(second.observations)
    assert "30" in str(second.observations)


@both_drivers
def test_calls_by_the_method_are_asked_for_and_counted_once(driver: Driver) -> None:
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> Allow | Deny:
        asked.append(request.name)
        return Deny("not that") if request.name == "greet" else Allow()

    agent = careful(ADD, TWO, answer(3), approve=approve, limits=RunLimits(tool_calls=3))
    assert driver.run(agent, "Go.") == 3
    assert sorted(asked) == ["add", "add", "greet"]
    assert [name for name, _ in agent.seen].count("greet") == 0
    with pytest.raises(AgentLimitError, match="tool calls"):
        driver.run(careful(ADD, ADD, limits=RunLimits(tool_calls=1)), "Go.")


@both_drivers
def test_a_managed_agent_is_called_by_the_method(driver: Driver) -> None:
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(f"{request.agent}:{request.name}")
        return True

    child = ToolCallingAgent(
        [add], ScriptedModel([ADD, answer(3)]), name="child", description="Adds.", **QUIET
    )

    class Boss(ToolCallingAgent):
        def execute_tool_call(self, tool_name: str, arguments: Any) -> Any:
            found = super().execute_tool_call(tool_name, arguments)
            return f"<{found}>"

    replies = says("", ("child", {"task": "1 + 2?"})), answer("ok")
    boss = Boss([], ScriptedModel(replies), managed_agents=[child], approve=approve, **QUIET)
    events = driver.events(boss, "Go.")
    assert events[-1].output == "<ok>"
    nested = [event for event in events if isinstance(event, NestedEvent)]
    assert {event.call_id for event in nested} == {"id_0"}
    assert [e.event.output for e in nested if isinstance(e.event, FinalAnswerStep)] == [3]
    assert asked == [":child", "child:add"]
    step = boss.memory.steps[1]
    assert isinstance(step, ActionStep)
    assert str(step.observations).startswith("<")


def test_the_method_by_hand_is_called_once() -> None:
    agent = careful(ADD)
    assert agent.execute_tool_call("add", {"a": 1, "b": 2}) == 30
    step = ActionStep()
    assert agent.step(step) is None
    assert step.action_output == 30
    assert len(agent.seen) == 2


@both_drivers
def test_both_methods_go_together(driver: Driver) -> None:
    class Both(Careful):
        def step(self, memory_step: ActionStep) -> Any:
            return super().step(memory_step)

    agent = Both([add], ScriptedModel([ADD, answer(3)]), **QUIET)
    agent.seen = []
    assert driver.run(agent, "Go.") == 3
    assert [name for name, _ in agent.seen] == ["add", "final_answer"]


@both_drivers
def test_a_single_step_is_that_of_the_class(driver: Driver) -> None:
    agent = twice(code("final_answer(4)"))
    assert driver.run(agent, "Go.", single_step=True) == 8
    assert len(agent.threads) == 1


@both_drivers
def test_a_run_is_interrupted_within_a_step_of_ones_own(driver: Driver) -> None:
    started, end = threading.Event(), threading.Event()

    class Slow(CodeAgent):
        def step(self, memory_step: ActionStep) -> Any:
            super().step(memory_step)
            started.set()
            end.wait(40)  # as what blocks for long does

    agent = Slow([], ScriptedModel([code("x = 1")]), executor_type="inprocess", **QUIET)

    def interrupt() -> None:
        started.wait()
        agent.interrupt()
        if driver.name == "sync":  # there the run ends when the method does
            end.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(AgentInterruptedError):
        driver.run(agent, "Go.")
    end.set()
    thread.join()


@both_drivers
def test_a_run_is_interrupted_within_the_step_of_the_base(driver: Driver) -> None:
    @tool
    def stop() -> None:
        """Interrupts the run."""
        agent.interrupt()

    replies = [code("stop()\nwhile True: pass")]
    agent = Twice([stop], ScriptedModel(replies), **QUIET)
    agent.threads = []
    with agent, pytest.raises(AgentInterruptedError):
        driver.run(agent, "Go.")
    assert len(agent.threads) == 1
