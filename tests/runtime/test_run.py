"""A run as an object: driven in every way, ended from outside, resumed, carried by its errors."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import pickle
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from sanderling import (
    ActionStep,
    AgentError,
    AgentGenerationError,
    AgentInterruptedError,
    AgentLimitError,
    AgentStoppedError,
    ChatMessage,
    CodeAgent,
    FinalAnswerStep,
    LogLevel,
    MultiStepAgent,
    NestedEvent,
    Run,
    RunLimits,
    RunResult,
    RunStarted,
    ScriptedModel,
    StepStarted,
    ToolCallingAgent,
    tool,
)
from sanderling.runtime import Allow, ApprovalRequest
from support.play import says
from support.tools import add

PATIENCE = 15.0
QUIET: dict[str, Any] = {"verbosity_level": LogLevel.OFF}


def code(text: str) -> str:
    return f"<code>\n{text}\n</code>"


def coder(*replies: Any, **kwargs: Any) -> CodeAgent:
    kwargs = {"executor_type": "inprocess", **QUIET, **kwargs}
    return CodeAgent([add], ScriptedModel(replies), **kwargs)


THREE = code("x = 1"), code("x = add(a=x, b=1)"), code("final_answer(x)")


@pytest.fixture(params=["sync", "async"])
def finish(request: pytest.FixtureRequest) -> Callable[[Run], Any]:
    if request.param == "sync":
        return lambda run: run.result()
    return lambda run: asyncio.run(run.aresult())


def test_nothing_happens_until_a_run_is_driven() -> None:
    agent = coder(*THREE)
    agent.run("First.", max_steps=3)
    memory = agent.memory
    agent.model = ScriptedModel(THREE)
    run = agent.start("Second.")
    assert (run.status, run.task, run.agent) == ("created", "Second.", agent)
    assert agent.memory is memory
    assert run.memory.steps == []
    assert run.result().output == 2
    assert run.status == "success"
    assert agent.memory is run.memory is run.session.memory
    assert run.usage.total_tokens == agent.monitor.get_total_token_counts().total_tokens


@pytest.mark.parametrize("drive", ["answer", "aanswer"])
def test_the_answer_alone(drive: str) -> None:
    run = coder(*THREE).start("Count.")
    answer = run.answer() if drive == "answer" else asyncio.run(run.aanswer())
    assert answer == run.output == 2


def test_a_run_is_stepped_by_hand_then_iterated_then_finished() -> None:
    run = coder(*THREE).start("Count.")
    first = run.step()
    assert first is not None
    assert first.code_action == "x = 1"
    assert run.status == "running"
    for event in run:
        if isinstance(event, StepStarted):
            assert event.step_number == 2
            break
    result = run.result()
    assert (result.output, result.state, result.run) == (2, "success", run)
    assert [step["type"] for step in result.steps] == ["TaskStep"] + ["ActionStep"] * 3
    assert list(run) == []
    assert run.step() is None
    assert run.result().output == 2


def test_a_run_changes_between_drivers_after_a_step() -> None:
    run = coder(*THREE).start("Count.")
    assert run.step() is not None
    second = asyncio.run(run.astep())
    assert second is not None
    assert second.step_number == 2
    assert run.result().output == 2


def test_a_run_does_not_change_between_drivers_amid_a_step() -> None:
    run = coder(*THREE).start("Count.")
    for event in run:
        if isinstance(event, StepStarted):
            break
    with pytest.raises(RuntimeError, match="midst of a step"):
        asyncio.run(run.astep())
    assert run.status == "running"
    assert run.result().output == 2


def test_a_run_is_awaited_event_by_event() -> None:
    async def main() -> list[Any]:
        return [event async for event in coder(*THREE).start("Count.")]

    events = asyncio.run(main())
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], FinalAnswerStep)


def test_one_driver_at_a_time() -> None:
    seen: list[str] = []

    def again(step: ActionStep, agent: MultiStepAgent) -> None:
        assert agent.current_run is not None
        with pytest.raises(RuntimeError, match="driven already"):
            agent.current_run.step()
        seen.append("refused")

    assert coder(*THREE, step_callbacks=[again]).run("Count.") == 2
    assert seen == ["refused"] * 3


def test_a_run_that_is_closed_gives_its_session_back() -> None:
    agent = coder(*THREE, code("final_answer(x)"))
    run = agent.start("Count.")
    run.step()
    with pytest.raises(AgentError, match="under way"):
        agent.run("Go on.", reset=False)
    run.close()
    assert run.status == "stopped"
    with pytest.raises(AgentStoppedError, match="closed"):
        run.result()
    assert agent.run("Go on.", reset=False) == 2


def test_a_run_that_is_closed_before_it_began_never_begins() -> None:
    with coder(*THREE).start("Count.") as run:
        pass
    assert run.status == "stopped"
    assert list(run) == []


class Gate:
    """A tool that lets the first of two runs wait until both are under way."""

    def __init__(self) -> None:
        self.inside = threading.Barrier(3)

    @property
    def tool(self) -> Any:
        gate = self

        @tool
        async def wait(name: str) -> str:
            """Waits to be ended.

            Args:
                name: Who waits.
            """
            await asyncio.to_thread(gate.inside.wait, PATIENCE)
            if name == "other":
                return "done"
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

        return wait


def reply(messages: list[ChatMessage]) -> ChatMessage:
    """Each run calls `wait` with its own name, and answers when that returns."""
    name = "one" if "one" in messages[1].text else "other"
    if "broken" in messages[-1].text:
        raise ConnectionError("no network")
    waited = any("done" in message.text for message in messages[2:])
    return says(None, ("final_answer", {"answer": name}) if waited else ("wait", {"name": name}))


def in_threads(finish: Callable[[Run], Any], *runs: Run) -> list[threading.Thread]:
    def work(run: Run) -> None:
        with contextlib.suppress(AgentError):  # the status of the run tells
            finish(run)

    threads = [threading.Thread(target=work, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.parametrize("end", ["handle", "agent in a thread"])
def test_of_two_runs_of_one_agent_each_is_interrupted_by_itself(
    finish: Callable[[Run], Any], end: str
) -> None:
    gate = Gate()
    agent = ToolCallingAgent([gate.tool], ScriptedModel(reply), **QUIET)
    one, other = agent.start("This is one."), agent.start("This is other.")
    threads = in_threads(finish, one, other)
    gate.inside.wait(PATIENCE)
    if end == "handle":
        one.interrupt()
    else:
        thread = threading.Thread(target=one.interrupt)
        thread.start()
        thread.join()
    for thread in threads:
        thread.join(PATIENCE)
    assert (one.status, other.status) == ("interrupted", "success")
    assert other.output == "other"
    assert one.memory is not other.memory
    assert "This is one." in str(one.memory.steps[0])


def test_two_runs_in_one_event_loop_each_end_by_themselves() -> None:
    gate = Gate()
    agent = ToolCallingAgent([gate.tool], ScriptedModel(reply), **QUIET)

    async def main() -> tuple[Any, Any]:
        one, other = agent.start("This is one."), agent.start("This is other.")
        tasks = [asyncio.create_task(run.aresult()) for run in (one, other)]
        await asyncio.to_thread(gate.inside.wait, PATIENCE)
        one.interrupt()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        return results[0], results[1]

    error, result = asyncio.run(main())
    assert isinstance(error, AgentInterruptedError)
    assert error.result.state == "interrupted"
    assert result.output == "other"


def test_of_two_runs_one_fails_and_is_resumed(finish: Callable[[Run], Any]) -> None:
    def answers(messages: list[ChatMessage]) -> ChatMessage:
        if "fail" in messages[1].text and len(messages) == 2:
            raise ConnectionError("no network")
        return says(None, ("final_answer", {"answer": len(messages)}))

    agent = ToolCallingAgent([], ScriptedModel(answers), **QUIET)
    failing, fine = agent.session(), agent.session()
    with pytest.raises(AgentGenerationError, match="no network") as caught:
        finish(failing.start("Please fail."))
    assert finish(fine.start("Please work.")).output == 2
    run = caught.value.run
    assert run.status == "failed"
    assert run.session is failing
    resumed = finish(run.session.start("Go on."))
    assert resumed.output > 2
    assert [step["type"] for step in resumed.steps].count("TaskStep") == 2


def failures() -> dict[str, tuple[MultiStepAgent, type[AgentError]]]:
    def stop(step: ActionStep, agent: MultiStepAgent) -> None:
        agent.interrupt()

    def refuse(request: ApprovalRequest) -> Any:
        return "perhaps"

    return {
        "generation": (coder(OSError("no network")), AgentGenerationError),
        "interrupt": (coder(*THREE, step_callbacks=[stop]), AgentInterruptedError),
        "limit": (coder(*THREE, limits=RunLimits(steps=1)), AgentLimitError),
        "seconds": (coder(*THREE, limits=RunLimits(seconds=0)), AgentLimitError),
        "policy": (coder(*THREE, approve=refuse), AgentStoppedError),
        "typed": (coder("a", "b", "c", max_steps=1, output_type=int), AgentError),
    }


@pytest.mark.parametrize("kind", failures())
def test_every_error_that_leaves_a_run_carries_it(kind: str, finish: Callable[[Run], Any]) -> None:
    agent, error_class = failures()[kind]
    run = agent.start("Go.")
    with pytest.raises(error_class) as caught:
        finish(run)
    error = caught.value
    assert error.run is run
    assert run.memory.steps
    assert pickle.loads(pickle.dumps(error)).run is None
    assert copy.copy(error).run is None
    with pytest.raises(error_class) as again:
        run.result()
    assert again.value is error


def test_an_error_of_a_child_run_that_ends_its_parent_carries_the_parent() -> None:
    child = coder(*THREE, name="child", description="Counts.")
    calls = says(None, ("child", {"task": "Count."}))
    manager = ToolCallingAgent(
        [], ScriptedModel([calls]), managed_agents=[child], limits=RunLimits(steps=2), **QUIET
    )
    run = manager.start("Go.")
    with pytest.raises(AgentLimitError) as caught:
        run.result()
    assert caught.value.run is run


def test_a_result_is_data_without_its_run() -> None:
    result = coder(*THREE).run("Count.", return_full_result=True)
    assert isinstance(result.run, Run)
    loaded = pickle.loads(pickle.dumps(result))
    assert isinstance(loaded, RunResult)
    assert loaded == result
    assert loaded.run is None
    assert "run" not in result.dict()


def test_children_inherit_path_policies_usage_and_cancelling(
    finish: Callable[[Run], Any],
) -> None:
    asked: list[tuple[str, str]] = []

    def approve(request: ApprovalRequest) -> Allow:
        asked.append((request.agent, request.name))
        return Allow()

    replies = says("", ("add", {"a": 1, "b": 2})), says(None, ("final_answer", {"answer": 3}))
    child = ToolCallingAgent(
        [add], ScriptedModel(replies), name="child", description="Adds.", **QUIET
    )
    manager = ToolCallingAgent(
        [],
        ScriptedModel(
            [says(None, ("child", {"task": "1 + 2?"})), says(None, ("final_answer", {"answer": 1}))]
        ),
        managed_agents=[child],
        name="boss",
        approve=approve,
        limits=RunLimits(tool_calls=5),
        **QUIET,
    )
    run = manager.start("Go.")
    result = finish(run)
    assert asked == [("boss", "child"), ("boss/child", "add")]
    assert result.token_usage.output_tokens == 8
    assert child.memory.steps == []


def test_a_child_run_is_started_and_ends_with_its_parent() -> None:
    child = coder(*THREE, name="child")
    parent = coder(name="parent").start("Manage.")
    run = parent.start_child(child, "Count.", variables={"y": 5})
    assert run.path == "parent/child"
    assert run.status == "created"
    assert run.step() is not None
    parent.interrupt()
    with pytest.raises(AgentInterruptedError) as caught:
        run.result()
    assert caught.value.run is run
    assert parent.usage == run.usage


def test_events_of_children_come_out_of_the_parent() -> None:
    child = coder(*THREE, name="child", description="Counts.")
    replies = [code("y = child(task='Count.')"), code("final_answer(y)")]
    with closing(coder(*replies, managed_agents=[child]).start("Go.")) as run:
        nested = [event for event in run if isinstance(event, NestedEvent)]
    assert sum(isinstance(event.event, ActionStep) for event in nested) == 3


def test_a_tool_is_called_in_a_run() -> None:
    run = coder(*THREE).start("Count.", variables={"one": 1})
    run.step()
    assert run.call_tool("add", {"a": "one", "b": 2}) == 3
    assert run.result().output == 2
    assert run.call_tool("add", {"a": 2, "b": 2}) == 4


def test_a_method_of_the_agent_is_in_its_run() -> None:
    class Counting(CodeAgent):
        steps = 0

        def step(self, memory_step: ActionStep) -> Any:
            self.steps += 1  # an attribute of the agent, whichever run this is
            assert self.current_run is not None
            assert self.current_run.memory is self.memory
            answer = super().step(memory_step)
            return None if answer is None else (self.state["name"], answer)

    def model(messages: list[ChatMessage]) -> str:
        return code("final_answer(name)")

    agent = Counting([], ScriptedModel(model), executor_type="inprocess", **QUIET)

    async def main() -> list[Any]:
        runs = [agent.start("Go.", variables={"name": name}) for name in "abc"]
        return [result.output for result in await asyncio.gather(*(r.aresult() for r in runs))]

    assert asyncio.run(main()) == [("a", "a"), ("b", "b"), ("c", "c")]
    assert agent.steps == 3
    assert agent.current_run is None
