"""Agents with executors of their own choice: ours, and those that somebody else wrote."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from sanderling import (
    ActionStep,
    AgentExecutionError,
    CodeAgent,
    CodeOutput,
    LocalPythonExecutor,
    LogLevel,
    PythonExecutor,
    SandboxUnavailable,
    ScriptedModel,
)
from sanderling.sandbox import create_executor
from support.drivers import Driver, both_drivers
from support.tools import add


def code(*lines: str) -> str:
    return "\n".join(["<code>", *lines, "</code>"])


def action(agent: CodeAgent) -> ActionStep:
    step = agent.memory.steps[1]
    assert isinstance(step, ActionStep)
    return step


ANSWER = code("final_answer('done')")
Make = Callable[..., CodeAgent]


class PlainExecutor:
    """Runs code with `exec`, as somebody may have written it for smolagents."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.tools: dict[str, Any] = {}
        self.threads: set[int] = set()
        self.ended = 0

    def send_tools(self, tools: dict[str, Any]) -> None:
        assert type(tools) is dict
        self.tools = tools

    def send_variables(self, variables: dict[str, Any]) -> None:
        self.state.update(variables)

    def run(self, text: str, state: dict[str, Any]) -> tuple[Any, str, bool]:
        self.threads.add(threading.get_ident())
        answers: list[Any] = []
        printed = io.StringIO()
        names = {**self.tools, "final_answer": answers.append}
        try:
            with contextlib.redirect_stdout(printed):
                exec(text, names, state)
        finally:
            state["_print_outputs"] = printed.getvalue()
        return answers[0] if answers else state.get("_"), printed.getvalue(), bool(answers)

    def __call__(self, code_action: str) -> Any:
        return CodeOutput(*self.run(code_action, self.state))

    def cleanup(self) -> None:
        self.ended += 1


class OldExecutor(PlainExecutor):
    """Has the call shape of the first releases."""

    def __call__(self, code_action: str, additional_variables: dict[str, Any]) -> Any:  # type: ignore[override]
        return self.run(code_action, additional_variables)


@pytest.fixture
def make() -> Iterator[Make]:
    agents: list[CodeAgent] = []

    def new(replies: list[str], tools: Any = (), **kwargs: Any) -> CodeAgent:
        kwargs.setdefault("verbosity_level", LogLevel.OFF)
        agents.append(CodeAgent(list(tools), ScriptedModel(replies), **kwargs))
        return agents[-1]

    yield new
    for agent in agents:
        agent.cleanup()


@both_drivers
@pytest.mark.parametrize("kind", [PlainExecutor, OldExecutor])
def test_an_executor_of_somebody_else_runs_the_code(
    make: Make, driver: Driver, kind: type[PlainExecutor]
) -> None:
    executor = kind()
    replies = [code("y = add(x, 1)", "print('y is', y)"), code("final_answer(y * 2)")]
    agent = make(replies, [add], executor=executor)
    assert driver.run(agent, "Go", additional_args={"x": 2}) == 6
    assert str(action(agent).observations).startswith("Execution logs:\ny is 3\n")
    assert id(agent.python_executor) == id(executor)
    assert set(executor.tools) == {"add", "final_answer"}
    assert (threading.get_ident() in executor.threads) == (driver.name == "sync")


@both_drivers
@pytest.mark.parametrize(
    ("last", "told"),
    [
        ("1 / 0", "division by zero"),
        ("raise SystemExit('bye')", "bye"),
        ("raise KeyError(10 ** 5_000)", "KeyError that cannot be shown"),
    ],
)
def test_what_it_raises_is_the_error_of_the_step(
    make: Make, driver: Driver, last: str, told: str
) -> None:
    agent = make([code("print('before')", last), ANSWER], executor=PlainExecutor())
    assert driver.run(agent, "Go") == "done"
    step = action(agent)
    assert isinstance(step.error, AgentExecutionError)
    assert told in str(step.error)
    assert step.observations == "Execution logs:\nbefore"


@both_drivers
def test_faults_of_the_plumbing_are_raised(make: Make, driver: Driver) -> None:
    class Gone(PlainExecutor):
        def __call__(self, code_action: str) -> Any:
            raise SandboxUnavailable("no machine")

    with pytest.raises(SandboxUnavailable, match="no machine"):
        driver.run(make([ANSWER], executor=Gone()), "Go")


def test_a_result_of_another_form_is_the_executors_fault(make: Make) -> None:
    with pytest.raises(TypeError, match="function returned str; an executor returns CodeOutput"):
        make([ANSWER], executor=lambda code: code).run("Go")
    with pytest.raises(TypeError, match="an executor is called with code; int cannot be"):
        make([ANSWER], executor=5).run("Go")


def test_it_is_shared_by_the_runs_and_ended_with_the_agent(make: Make) -> None:
    executor = PlainExecutor()
    agent = make(
        [code("kept = 1", "final_answer(0)"), code("final_answer(kept)")], executor=executor
    )
    agent.run("First")
    assert agent.run("Second") == 1
    assert executor.ended == 0
    agent.cleanup()
    assert executor.ended == 1


@both_drivers
def test_an_executor_of_ours_can_be_given(make: Make, driver: Driver) -> None:
    doubled: Mapping[str, Any] = {"double": lambda number: number * 2}
    with LocalPythonExecutor(["numpy"], additional_functions=doubled) as executor:
        agent = make(
            [code("import numpy", "x = double(add(1, 2))"), code("final_answer(x)")],
            [add],
            executor=executor,
        )
        assert driver.run(agent, "Go") == 6
        assert executor("x").output == 6
        other = make([code("final_answer(x + 1)")], executor=executor)
        assert driver.run(other, "Go") == 7


@both_drivers
def test_functions_of_the_executor_can_come_together(make: Make, driver: Driver) -> None:
    meeting = threading.Barrier(3, timeout=20)
    settings = {"additional_functions": {"meet": meeting.wait}}
    together = code(
        "from concurrent.futures import ThreadPoolExecutor",
        "with ThreadPoolExecutor(3) as pool:",
        "    final_answer(sorted(f.result() for f in [pool.submit(meet) for _ in range(3)]))",
    )
    agent = make([together], executor_kwargs=settings, additional_authorized_imports=["concurrent"])
    assert driver.run(agent, "Go") == [0, 1, 2]


def test_the_executor_of_an_agent_can_be_used_by_hand(make: Make) -> None:
    agent = make([ANSWER], [add])
    assert agent.python_executor("x = 20\nx + 1").output == 21
    assert agent.python_executor("add(x, 1)").output == 21
    agent.python_executor.send_variables({"y": 5})
    agent.python_executor.send_tools({"triple": lambda number: number * 3})
    assert agent.python_executor("triple(x + y)").output == 75


@pytest.mark.parametrize(
    ("most", "printed", "told"), [(None, 45_000, 45_000), (100_000, 90_000, 90_000), (50, 90, 49)]
)
def test_what_code_prints_is_told_up_to_the_limit(
    make: Make, most: int | None, printed: int, told: int
) -> None:
    agent = make([code(f"print('#' * {printed})"), ANSWER], max_print_outputs_length=most)
    agent.run("Go")
    step = agent.memory.steps[1]
    assert isinstance(step, ActionStep)
    assert (step.observations or "").count("#") == told
    assert ("cut out here" in (step.observations or "")) == (told < printed)


def test_what_an_executor_of_somebody_else_prints_is_cut_as_well(make: Make) -> None:
    class Loud(PlainExecutor):
        def __call__(self, *args: Any) -> Any:
            return (None, "a" * 60_000, False)

    agent = make([code("1"), "An answer."], executor=Loud())
    agent.run("Go", max_steps=1)
    step = agent.memory.steps[1]
    assert isinstance(step, ActionStep)
    assert "9000 characters of 60000 are cut out here" in (step.observations or "")


def test_a_subclass_makes_its_own(make: Make) -> None:
    made: list[PythonExecutor] = []

    class Mine(CodeAgent):
        def create_python_executor(self) -> PythonExecutor:
            made.append(create_executor("inprocess"))
            return made[-1]

    with Mine(
        [add],
        ScriptedModel([code("final_answer(add(1, 2))")] * 2),
        executor_type="mine",
        verbosity_level=LogLevel.OFF,
    ) as agent:
        assert agent.run("Go") == 3
        assert agent.python_executor is made[0]
        assert agent.run("Go") == 3
        assert len(made) == 2


@both_drivers
def test_variables_are_sent_once(make: Make, driver: Driver) -> None:
    agent = make([code("x = 5"), code("final_answer(x)")])
    assert driver.run(agent, "Go", additional_args={"x": 1}) == 5


def test_contradictions_are_refused(make: Make) -> None:
    executor = PlainExecutor()
    with pytest.raises(ValueError, match="executor= says all"):
        make([ANSWER], executor=executor, executor_type="docker")
    with pytest.raises(ValueError, match="executor= says all"):
        make([ANSWER], executor=executor, executor_kwargs={"timeout_seconds": 3})
    with pytest.raises(ValueError, match="contradicts executor_type='docker'"):
        make([ANSWER], use_e2b_executor=True, executor_type="docker")
    with pytest.raises(ValueError, match="no executor type 'moon'"):
        make([ANSWER], executor_type="moon")
    with pytest.raises(TypeError, match="memory_gigabytes"):
        make([ANSWER], executor_kwargs={"memory_gigabytes": 3})
