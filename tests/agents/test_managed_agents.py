"""Agents that call agents: from code and from JSON, alone and at once, under both drivers."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sanderling import (
    ActionStep,
    AgentToolExecutionError,
    ChatMessage,
    CodeAgent,
    FinalAnswerStep,
    LogLevel,
    MessageRole,
    MultiStepAgent,
    NestedEvent,
    RunResult,
    RunStarted,
    ScriptedModel,
    TaskStep,
    ToolCallingAgent,
    tool,
)
from support.drivers import Driver, both_drivers
from support.play import says

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)


def code(*lines: str) -> str:
    return "Thinking.\n<code>\n" + "\n".join(lines) + "\n</code>"


def coder(replies: Any, name: str | None = None, **kwargs: Any) -> CodeAgent:
    model = replies if isinstance(replies, ScriptedModel) else ScriptedModel(replies)
    kwargs.setdefault("executor_type", "inprocess")
    return CodeAgent(
        tools=kwargs.pop("tools", []),
        model=model,
        name=name,
        description=name and f"It does {name}.",
        verbosity_level=LogLevel.OFF,
        **kwargs,
    )


def caller(replies: Any, name: str | None = None, **kwargs: Any) -> ToolCallingAgent:
    return ToolCallingAgent(
        tools=kwargs.pop("tools", []),
        model=ScriptedModel(replies),
        name=name,
        description=name and f"It does {name}.",
        verbosity_level=LogLevel.OFF,
        **kwargs,
    )


def answers(value: str) -> ChatMessage:
    return says(None, ("final_answer", {"answer": value}))


def task_of(messages: list[ChatMessage]) -> str:
    return messages[1].text


@both_drivers
@pytest.mark.parametrize("word", ["task", "request"])
@pytest.mark.parametrize("executor", ["inprocess", "local"])
def test_code_calls_an_agent_and_is_told_its_report(
    driver: Driver, word: str, executor: str
) -> None:
    child = caller([answers("42 pages")], "reader")
    manager = coder(
        [code(f"said = reader({word}='Count the pages.')", "final_answer(said.upper())")],
        managed_agents=[child],
        executor_type=executor,
    )
    with manager:
        answer = driver.run(manager, "How long is it?")
    assert answer.startswith("THIS IS THE FINAL ANSWER OF YOUR ASSISTANT")
    assert "42 PAGES" in answer
    assert isinstance(child.model, ScriptedModel)
    briefing = task_of(list(child.model.requests[0].messages))
    assert "reader" in briefing
    assert "Count the pages." in briefing


@both_drivers
def test_a_json_call_passes_variables_and_images_by_name(driver: Driver) -> None:
    child = coder([code("final_answer(sum(table))")], "adder")
    call = {"task": "Add.", "additional_args": {"table": "numbers"}, "images": ["photo", PIXEL]}
    manager = caller([says(None, ("adder", call)), answers("done")], managed_agents=[child])
    driver.run(manager, "Go.", additional_args={"numbers": [1, 2, 3], "photo": PIXEL})
    step = manager.memory.steps[1]
    assert isinstance(step, ActionStep)
    assert "6" in (step.observations or "")
    assert isinstance(child.model, ScriptedModel)
    request = child.model.requests[0].messages[1]
    assert [part.dict()["type"] for part in request.parts] == ["text", "image", "image"]
    assert "table (list): [1, 2, 3]" in request.text


@both_drivers
def test_a_path_that_the_model_wrote_is_never_read_as_an_image(
    driver: Driver, tmp_path: Path
) -> None:
    private = tmp_path / "private.png"
    private.write_bytes(base64.b64decode(PIXEL.partition(",")[2]))
    child = coder([code("final_answer('seen')")], "viewer")
    calls = [{"task": "Look.", "images": [image]} for image in (str(private), "photo")]
    manager = caller(
        [*(says(None, ("viewer", call)) for call in calls), answers("done")],
        managed_agents=[child],
    )
    driver.run(manager, "Go.", additional_args={"photo": str(private)})
    for step in manager.memory.steps[1:3]:
        assert isinstance(step, ActionStep)
        assert "files are not read" in str(step.error)
    assert isinstance(child.model, ScriptedModel)
    assert child.model.requests == []


@both_drivers
def test_objects_go_to_the_agent_and_come_back_as_they_are(driver: Driver) -> None:
    child = coder([code("final_answer({'twice': [n * 2 for n in numbers]})")], "doubler")
    manager = coder(
        [code("r = doubler('Double.', additional_args={'numbers': [1, 2]})", "final_answer(r)")],
        managed_agents=[child],
    )
    assert driver.run(manager, "Go.") == {"twice": [2, 4]}


@both_drivers
def test_events_of_a_deep_tree_come_with_their_path(driver: Driver) -> None:
    leaf = coder([code("print('in the leaf')", "final_answer('leaf')")], "leaf")
    middle = caller(
        [says(None, ("leaf", {"task": "Go on."})), answers("middle")],
        "middle",
        managed_agents=[leaf],
    )
    top = coder([code("final_answer(middle(task='Begin.'))")], "top", managed_agents=[middle])
    events = driver.events(top, "Go.")
    nested = [event for event in events if isinstance(event, NestedEvent)]
    assert {event.path for event in nested} == {"top/middle", "top/middle/leaf"}
    inner = [event for event in nested if event.path == "top/middle/leaf"]
    assert [type(event.event).__name__ for event in inner] == [
        *["RunStarted", "StepStarted", "ModelReply", "ToolCall", "CodeOutputDelta"],
        *["ActionOutput", "ActionStep", "FinalAnswerStep"],
    ]
    assert {event.call_id.count("/") for event in inner} == {1}
    own = [event for event in events if not isinstance(event, NestedEvent)]
    assert [type(event).__name__ for event in own] == [
        *["RunStarted", "StepStarted", "ModelReply", "ToolCall"],
        *["ActionOutput", "ActionStep", "FinalAnswerStep"],
    ]
    assert not any(isinstance(event.event, NestedEvent) for event in nested)


@both_drivers
def test_what_the_tree_cost_is_in_the_total(driver: Driver) -> None:
    child = caller([answers("1"), answers("2")], "child")  # 12 tokens a reply
    calls = says(None, ("child", {"task": "a"}), ("child", {"task": "b"}))
    manager = caller([calls, answers("done")], managed_agents=[child])
    result = driver.run(manager, "Go.", return_full_result=True)
    assert isinstance(result, RunResult)
    assert result.token_usage is not None
    assert result.token_usage.total_tokens == 4 * 12


def echo(messages: list[ChatMessage]) -> ChatMessage:
    """Plays a worker: remembers its number in a variable, then answers with it."""
    number = task_of(messages).partition("Number ")[2].split(".")[0]
    steps = sum(message.role is MessageRole.ASSISTANT for message in messages)
    text = code(f"mine = '{number}'") if steps == 0 else code("final_answer(f'number {mine}!')")
    return ChatMessage(MessageRole.ASSISTANT, text)


@both_drivers
def test_calls_of_one_agent_at_once_are_not_mixed_up(driver: Driver) -> None:
    child = coder(ScriptedModel(echo), "worker")
    calls = [("worker", {"task": f"Number {n}."}) for n in range(12)]
    manager = caller([says(None, *calls), answers("done")], managed_agents=[child])
    memory, state = child.memory, child.state
    events = driver.events(manager, "Go.")
    step = next(event for event in events if isinstance(event, ActionStep))
    lines = [line for line in (step.observations or "").splitlines() if "number" in line]
    assert lines == [f"number {n}!" for n in range(12)]
    by_call: dict[str, list[Any]] = {}
    for event in events:
        if isinstance(event, NestedEvent):
            by_call.setdefault(event.call_id, []).append(event.event)
    assert len(by_call) == 12
    for told in by_call.values():
        assert isinstance(told[0], RunStarted)
        number = told[0].task.partition("Number ")[2].split(".")[0]
        assert isinstance(told[-1], FinalAnswerStep)
        assert told[-1].output == f"number {number}!"
    assert child.memory is memory
    assert child.state is state
    assert memory.steps == []


@both_drivers
def test_code_calls_one_agent_from_several_threads(driver: Driver) -> None:
    child = coder(ScriptedModel(echo), "worker")
    manager = coder(
        [
            code(
                "from concurrent.futures import ThreadPoolExecutor",
                "with ThreadPoolExecutor(4) as pool:",
                "    said = list(pool.map(worker, [f'Number {n}.' for n in range(4)]))",
                "final_answer([s.split()[-1] for s in said])",
            )
        ],
        managed_agents=[child],
        executor_type="local",
        additional_authorized_imports=["concurrent"],
    )
    with manager:
        events = driver.events(manager, "Go.")
    assert events[-1].output == [f"{n}!" for n in range(4)]
    nested = [event for event in events if isinstance(event, NestedEvent)]
    assert len({event.call_id for event in nested}) == 4
    assert sum(isinstance(event.event, FinalAnswerStep) for event in nested) == 4


@both_drivers
def test_two_managers_share_an_agent_at_the_same_time(driver: Driver) -> None:
    child = coder(ScriptedModel(echo), "worker")
    managers = [
        coder([code(f"final_answer(worker('Number {n}.'))")], managed_agents=[child])
        for n in range(2)
    ]
    said: dict[int, Any] = {}

    def run(n: int) -> None:
        said[n] = driver.run(managers[n], "Go.")

    threads = [threading.Thread(target=run, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ["number 0!" in said[0], "number 1!" in said[1]] == [True, True]


@both_drivers
def test_a_callback_of_a_managed_agent_finds_the_steps_of_each_call(driver: Driver) -> None:
    def keep(step: FinalAnswerStep, agent: MultiStepAgent) -> None:
        calls.append([type(each).__name__ for each in agent.memory.steps])

    calls: list[list[str]] = []
    child = coder(
        [code("x = 1"), code("final_answer(x)"), code("final_answer(2)")],
        "worker",
        step_callbacks={FinalAnswerStep: keep},
    )
    replies = [code("worker('One.')"), code("worker('Two.')"), code("final_answer(3)")]
    manager = coder(replies, managed_agents=[child])
    driver.run(manager, "Go.")
    assert calls == [["TaskStep", "ActionStep", "ActionStep"], ["TaskStep", "ActionStep"]]
    assert manager.managed_agents["worker"].memory.steps == []


@both_drivers
def test_the_summary_of_the_work_comes_with_the_report(driver: Driver) -> None:
    @tool
    def look(where: str) -> str:
        """Looks.

        Args:
            where: There.
        """
        return "x" * 3_000

    child = caller(
        [says(None, ("look", {"where": "behind the sofa"})), answers("a coin")],
        "seeker",
        tools=[look],
        provide_run_summary=True,
    )
    manager = coder([code("final_answer(seeker('Seek.'))")], managed_agents=[child])
    answer = driver.run(manager, "Go.")
    assert "a coin" in answer
    summary = answer.partition("<summary_of_work>")[2]
    assert "behind the sofa" in summary
    assert "more characters" in summary
    assert len(summary) < 3_000


@both_drivers
def test_what_goes_wrong_within_is_told_to_the_manager(driver: Driver) -> None:
    child = caller([ConnectionError("the server is down")], "child")
    manager = caller(
        [says(None, ("child", {"task": "Go."})), says(None, ("child", {"job": 1})), answers("ok")],
        managed_agents=[child],
    )
    assert driver.run(manager, "Go.") == "ok"
    first, second = manager.memory.steps[1:3]
    assert isinstance(first, ActionStep)
    assert isinstance(second, ActionStep)
    assert "the server is down" in str(first.error)
    assert "'job'" in str(second.error)
    assert not isinstance(second.error, AgentToolExecutionError)


def test_an_agent_can_be_called_directly() -> None:
    child = coder([code("final_answer(n + 1)"), code("final_answer(0)")], "adder")
    assert "final answer of your assistant 'adder':\n8" in child(
        "Add one.", additional_args={"n": 7}
    )
    task = child.memory.steps[0]
    assert isinstance(task, TaskStep)
    assert "Add one." in task.task
    assert child(request="Zero.").endswith("0")
    with pytest.raises(TypeError, match="task"):
        child()


def test_the_prompts_show_managed_agents() -> None:
    child = caller([answers("x")], "reader")
    for make in (coder, caller):
        prompt = make([answers("x")], managed_agents=[child]).system_prompt
        assert "reader" in prompt
        assert "It does reader." in prompt
        assert "task" in prompt


def named(name: str | None, description: str | None = "d") -> MultiStepAgent:
    agent = caller([answers("x")])
    agent.name, agent.description = name, description
    return agent


@pytest.mark.parametrize(
    ("agents", "tools", "message"),
    [
        ([None], [], "needs a name"),
        (["a", "a"], [], "two managed agents"),
        (["look"], ["look"], "tool and a managed agent"),
        (["final_answer"], [], "tool and a managed agent"),
    ],
)
def test_names_that_collide_are_refused(
    agents: list[str | None], tools: list[str], message: str
) -> None:
    def look() -> str:
        """Looks."""
        return ""

    functions: list[Callable[..., Any]] = [look for _ in tools]
    with pytest.raises(ValueError, match=message):
        coder([""], tools=functions, managed_agents=[named(name) for name in agents])
    with pytest.raises(ValueError, match="description"):
        coder([""], managed_agents=[named("a", None)])


def test_cancelling_the_task_ends_the_whole_tree() -> None:
    ended = []

    @tool
    async def wait() -> str:
        """Waits for ever."""
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            ended.append("tool")
        return ""

    child = coder([code("wait()")], "child", tools=[wait], executor_type="local")
    manager = coder([code("child('Go.')")], managed_agents=[child], executor_type="local")
    started: asyncio.Event

    async def main() -> None:
        nonlocal started
        started = asyncio.Event()
        task = asyncio.create_task(manager.arun("Go."))
        await asyncio.wait_for(started.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with manager:
        asyncio.run(main())
    assert ended == ["tool"]
