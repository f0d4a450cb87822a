"""Tools that code in this process calls, under asyncio."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from sanderling import (
    ActionStep,
    AgentInterruptedError,
    CodeAgent,
    LogLevel,
    ScriptedModel,
    Tool,
    tool,
)

PATIENCE = 30.0


def agent_of(tools: list[Tool], *codes: str, **kwargs: Any) -> CodeAgent:
    return CodeAgent(
        tools,
        ScriptedModel([f"<code>\n{code}\n</code>" for code in codes]),
        executor_type="inprocess",
        verbosity_level=LogLevel.OFF,
        **kwargs,
    )


who = contextvars.ContextVar("who", default="nobody")


@tool
def caller() -> str:
    """Tells who calls, and changes that for itself."""
    name = who.get()
    who.set("the tool")
    return name


def test_a_tool_sees_the_context_variables_of_the_run() -> None:
    agent = agent_of([caller], "final_answer([caller(), caller()])")

    async def main() -> object:
        who.set("the run")
        return await agent.arun("go"), who.get()

    assert asyncio.run(main()) == (["the run", "the run"], "the run")


@tool
def later() -> Any:
    """Promises something, on the loop of the run."""

    async def there() -> str:
        return "of the run" if asyncio.get_running_loop() is loops[-1] else "of another loop"

    return there()


loops: list[asyncio.AbstractEventLoop] = []


def test_what_a_tool_promises_is_awaited_in_the_loop_of_the_run() -> None:
    agent = agent_of([later], "final_answer(later())")

    async def main() -> object:
        loops.append(asyncio.get_running_loop())
        return await agent.arun("go")

    assert asyncio.run(main()) == "of the run"


@tool
def promised(number: int) -> Any:
    """Promises a number.

    Args:
        number: Which.
    """

    async def there() -> int:
        return number

    return there()


def test_what_a_tool_with_arguments_promises_is_awaited() -> None:
    agent = agent_of([promised], "final_answer(promised(1) + promised(number=2))")
    assert asyncio.run(agent.arun("go")) == 3


@tool
def broken(number: int) -> int:
    """Fails.

    Args:
        number: Any.
    """
    raise LookupError(f"no {number}")


def test_the_code_hears_of_errors() -> None:
    codes = [
        "try:\n    broken(number=1)\nexcept Exception as error:\n    print(repr(error))",
        "broken(None)",
        "broken(1)",
        "final_answer('done')",
    ]
    agent = agent_of([broken], *codes)
    assert asyncio.run(agent.arun("go")) == "done"
    steps = agent.memory.get_full_steps()
    told = [str(step.get("observations") or step.get("error")) for step in steps[1:]]
    assert "LookupError('no 1')" in told[0]
    assert "must be an integer" in told[1]
    assert "broken(1)\\nLookupError: no 1" in told[2]


@tool
def leave() -> None:
    """Wants the whole process to end."""
    raise SystemExit("enough")


def test_an_exit_is_an_error_of_the_tool() -> None:
    agent = agent_of([leave], "leave()", "final_answer('done')")
    assert asyncio.run(agent.arun("go")) == "done"
    step = agent.memory.steps[1]
    assert isinstance(step, ActionStep)
    assert str(step.error).endswith("ToolError: The tool 'leave' raised SystemExit: enough")


def test_a_tool_that_blocks_does_not_keep_the_run_from_ending() -> None:
    begun, release, over = threading.Event(), threading.Event(), threading.Event()

    @tool
    def block() -> None:
        """Blocks."""
        begun.set()
        release.wait(PATIENCE)
        over.set()

    agent = agent_of(
        [block],
        "seen = [1]\nblock()\nseen.append(2)",
        "final_answer(seen)",
    )

    async def main() -> object:
        run = asyncio.create_task(agent.arun("go"))
        await asyncio.to_thread(begun.wait, PATIENCE)
        agent.interrupt()
        with pytest.raises(AgentInterruptedError):
            await run
        assert not over.is_set()
        seen = await agent.arun("go on", reset=False)
        release.set()
        await asyncio.to_thread(over.wait, PATIENCE)
        return seen

    try:
        assert asyncio.run(asyncio.wait_for(main(), PATIENCE)) == [1]
    finally:
        release.set()
    assert over.is_set()


def test_what_code_prints_comes_before_what_it_calls_and_after() -> None:
    agent = agent_of([caller], "print(1)\ncaller()\nprint(2)\nfinal_answer(3)")
    assert asyncio.run(agent.arun("go")) == 3
    assert "1\n2" in str(agent.memory.get_full_steps()[-1]["observations"])
