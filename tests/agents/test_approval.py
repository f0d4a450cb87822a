"""Approval of code and tool calls, under both drivers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from sanderling import (
    ActionStep,
    AgentStoppedError,
    Allow,
    ApprovalRequest,
    CodeAgent,
    CodeOutput,
    Deny,
    Edit,
    LogLevel,
    PythonExecutor,
    ScriptedModel,
    ToolCallingAgent,
    tool,
)
from support.drivers import Driver, both_drivers
from support.play import says


def code(*lines: str) -> str:
    return "Thinking.\n<code>\n" + "\n".join(lines) + "\n</code>"


@tool
def send(to: str, text: str) -> str:
    """Sends.

    Args:
        to: Whom.
        text: What.
    """
    return f"sent {text!r} to {to}"


def coder(replies: list[str], approve: Callable[..., Any], **kwargs: Any) -> CodeAgent:
    kwargs.setdefault("executor_type", "inprocess")
    return CodeAgent(
        [send], ScriptedModel(replies), approve=approve, verbosity_level=LogLevel.OFF, **kwargs
    )


def first(agent: CodeAgent | ToolCallingAgent) -> ActionStep:
    step = agent.memory.steps[1]
    assert isinstance(step, ActionStep)
    return step


@both_drivers
def test_the_policy_is_asked_for_code_and_for_each_call(driver: Driver) -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    text = "final_answer(send('Ada', text='hi'))"
    with coder([code(text)], approve, name="clerk") as agent:
        assert driver.run(agent, "Write.") == "sent 'hi' to Ada"
    assert [(one.kind, one.name, one.arguments) for one in asked] == [
        ("code", "python_interpreter", text),
        ("tool", "send", {"to": "Ada", "text": "hi"}),
    ]
    assert {(one.agent, one.task) for one in asked} == {("clerk", "Write.")}


@both_drivers
def test_denied_code_is_not_run_and_the_model_reads_why(driver: Driver) -> None:
    def approve(request: ApprovalRequest) -> Allow | Deny:
        return Deny("no loops, please") if "while" in str(request.arguments) else Allow()

    replies = [code("while True: pass"), code("final_answer(1)")]
    with coder(replies, approve) as agent:
        assert driver.run(agent, "Go.") == 1
    assert "no loops, please" in str(first(agent).error)
    assert isinstance(agent.model, ScriptedModel)
    assert "no loops, please" in agent.model.requests[1].messages[-1].text


@both_drivers
def test_a_denied_call_raises_in_the_code_which_may_go_on(driver: Driver) -> None:
    async def approve(request: ApprovalRequest) -> Deny | bool:
        await asyncio.sleep(0)
        return Deny("not to Eve") if request.kind == "tool" else True

    text = code(
        "try:",
        "    send('Eve', 'hi')",
        "except Exception as error:",
        "    final_answer(str(error))",
    )
    with coder([text], approve, executor_type="local") as agent:
        assert "not to Eve" in driver.run(agent, "Go.")


@both_drivers
def test_arguments_and_code_can_be_edited(driver: Driver) -> None:
    def approve(request: ApprovalRequest) -> Edit:
        if request.kind == "code":
            return Edit(request.arguments.replace("'Eve'", "'Bob'"))
        return Edit({**request.arguments, "text": "bye"})

    replies = [code("print(send('Eve', 'hi'))"), code("final_answer(1)")]
    with coder(replies, approve) as agent:
        driver.run(agent, "Go.")
    observed = first(agent).observations or ""
    assert "sent 'bye' to Bob" in observed
    assert "The code was changed before it was run" in observed
    last = agent.memory.steps[-1]
    assert isinstance(last, ActionStep)
    assert "changed" not in (last.observations or "")  # an edit that changes nothing is none


@both_drivers
def test_json_calls_are_asked_for_too_and_the_others_go_on(driver: Driver) -> None:
    def approve(request: ApprovalRequest) -> bool:
        return bool(request.arguments["to"] == "Ada")

    calls = says(None, ("send", {"to": "Ada", "text": "1"}), ("send", {"to": "Eve", "text": "2"}))
    agent = ToolCallingAgent(
        [send],
        ScriptedModel([calls, says(None, ("final_answer", {"answer": "done"}))]),
        approve=approve,
        verbosity_level=LogLevel.OFF,
    )
    assert driver.run(agent, "Go.") == "done"
    observed = first(agent).observations or ""
    assert "sent '1' to Ada" in observed
    assert "refused" in observed


@both_drivers
def test_edited_arguments_are_checked_like_any_others(driver: Driver) -> None:
    agent = ToolCallingAgent(
        [send],
        ScriptedModel(
            [
                says(None, ("send", {"to": "Ada", "text": "1"})),
                says(None, ("final_answer", {"answer": 1})),
            ]
        ),
        approve=lambda request: Edit({"to": 7, "text": "x"}),
        verbosity_level=LogLevel.OFF,
    )
    driver.run(agent, "Go.")
    assert "must be a string" in str(first(agent).error)


@both_drivers
def test_the_sandbox_waits_as_long_as_the_decision_takes(driver: Driver) -> None:
    def approve(request: ApprovalRequest) -> bool:
        time.sleep(0.6)  # longer than the code may run
        return True

    text = code("final_answer(send('Ada', 'hi'))")
    with coder(
        [text], approve, executor_type="local", executor_kwargs={"timeout_seconds": 0.4}
    ) as agent:
        assert driver.run(agent, "Go.") == "sent 'hi' to Ada"


@both_drivers
@pytest.mark.parametrize("kind", ["code", "tool"])
@pytest.mark.parametrize("executor", ["inprocess", "local"])
def test_what_cannot_be_decided_is_not_done(driver: Driver, kind: str, executor: str) -> None:
    ran = []

    @tool
    def act() -> None:
        """Acts."""
        ran.append(1)

    for fault in (None, ConnectionError("the pager is down")):

        def approve(request: ApprovalRequest, fault: Any = fault) -> Any:
            if request.kind != kind:
                return True
            if fault is not None:
                raise fault
            return None

        agent = CodeAgent(
            [act],
            ScriptedModel([code("act()")]),
            approve=approve,
            executor_type=executor,
            verbosity_level=LogLevel.OFF,
        )
        with agent, pytest.raises(AgentStoppedError, match="approval policy"):
            driver.run(agent, "Go.")
    assert ran == []


def test_an_executor_that_calls_tools_by_itself_cannot_be_approved() -> None:
    class Foreign(PythonExecutor):
        def send_tools(self, tools: Any) -> None: ...
        def send_variables(self, variables: Any) -> None: ...
        def __call__(self, code: str, state: Any = None) -> CodeOutput:
            return CodeOutput(None, "", False)

    with pytest.raises(ValueError, match="Foreign"):
        CodeAgent([], ScriptedModel([]), executor=Foreign(), approve=lambda request: True)


@both_drivers
def test_the_policy_of_a_manager_holds_for_its_agents(driver: Driver) -> None:
    asked = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append((request.agent, request.name))
        return request.name != "send"

    child = ToolCallingAgent(
        [send],
        ScriptedModel(
            [
                says(None, ("send", {"to": "Eve", "text": "x"})),
                says(None, ("final_answer", {"answer": "could not"})),
            ]
        ),
        name="child",
        description="d",
        verbosity_level=LogLevel.OFF,
    )
    manager = ToolCallingAgent(
        [],
        ScriptedModel(
            [
                says(None, ("child", {"task": "Send."})),
                says(None, ("final_answer", {"answer": 1})),
            ]
        ),
        name="boss",
        managed_agents=[child],
        approve=approve,
        verbosity_level=LogLevel.OFF,
    )
    assert driver.run(manager, "Go.") == 1
    assert asked == [("boss", "child"), ("boss/child", "send")]
