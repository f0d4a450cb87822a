"""What the loop itself costs: construction, and each further step of a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from statistics import median

from sanderling import CodeAgent, LogLevel, ScriptedModel, ToolCallingAgent, tool
from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    TokenUsage,
)

from .figures import Figure, show

LENGTHS = (10, 50, 200)


@tool
def add(a: int, b: int) -> int:
    """Adds.

    Args:
        a: One number.
        b: Another one.
    """
    return a + b


def _bare(steps: int) -> int:
    """The same work without a framework: a dict of replies, a tool, a list of messages."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    for number in range(steps):
        call = {"name": "add", "arguments": {"a": number, "b": 1}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        value = {"add": lambda a, b: a + b}["add"](**call["arguments"])  # type: ignore[arg-type]  # a floor
        messages.append({"role": "tool", "content": str(value)})
    return len(messages)


def _call(name: str, **arguments: object) -> ChatMessage:
    function = ChatMessageToolCallFunction(arguments, name)
    call = ChatMessageToolCall(function, f"{name}{arguments}")
    return ChatMessage(MessageRole.ASSISTANT, None, [call], token_usage=TokenUsage(10, 2))


def _code(text: str) -> ChatMessage:
    return ChatMessage(
        MessageRole.ASSISTANT, f"<code>\n{text}\n</code>", token_usage=TokenUsage(10, 2)
    )


def _tool_run(steps: int, driver: str) -> None:
    replies = [_call("add", a=number, b=1) for number in range(steps - 1)]
    model = ScriptedModel([*replies, _call("final_answer", answer="done")])
    agent = ToolCallingAgent([add], model, max_steps=steps, verbosity_level=LogLevel.OFF)
    answer = agent.run("go") if driver == "run" else asyncio.run(agent.arun("go"))
    if answer != "done":
        raise RuntimeError(f"the run went wrong: {answer!r}")


def _code_run(steps: int) -> None:
    replies = [_code(f"x = add(a={number}, b=1)") for number in range(steps - 1)]
    model = ScriptedModel([*replies, _code("final_answer('done')")])
    with CodeAgent(
        [add], model, max_steps=steps, executor_type="inprocess", verbosity_level=LogLevel.OFF
    ) as agent:
        if agent.run("go") != "done":
            raise RuntimeError("the run went wrong")


def _cpu(work: Callable[[], object], rounds: int) -> float:
    """Returns the least CPU seconds of several rounds: the least disturbed one."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def _growth(name: str, run: Callable[[int], object]) -> list[Figure]:
    run(5)
    costs = {n: _cpu(lambda n=n: run(n), 7) for n in LENGTHS}  # type: ignore[misc]  # binds n early
    bare = _cpu(lambda: [_bare(50) for _ in range(20)], 5) / 20
    early = (costs[50] - costs[10]) / 40
    late = (costs[200] - costs[50]) / 150
    return [
        Figure(f"{name}: a step of 50, CPU", costs[50] / 50 * 1e6, "µs", bare / 50 * 1e6),
        Figure(f"{name}: a further step, 10 to 50", early * 1e6, "µs"),
        Figure(
            f"{name}: a further step, 50 to 200",
            late * 1e6,
            "µs",
            early * 1e6,
            1.2,
            goal_is_ratio=True,
        ),
    ]


def _construction() -> list[Figure]:
    model = ScriptedModel(["x"])
    figures = []
    for kind in (CodeAgent, ToolCallingAgent):
        times = []
        for _ in range(200):
            start = time.perf_counter()
            kind([add], model, verbosity_level=LogLevel.OFF)
            times.append(time.perf_counter() - start)
        figures.append(Figure(f"construct a {kind.__name__}", median(times) * 1e3, "ms", goal=1.0))
    return figures


def measure() -> list[Figure]:
    """Returns construction, then cost and growth of steps under each driver."""
    return [
        *_construction(),
        *_growth("tool step, sync", lambda steps: _tool_run(steps, "run")),
        *_growth("tool step, async", lambda steps: _tool_run(steps, "arun")),
        *_growth("code step in process, sync", _code_run),
    ]


def main() -> bool:
    """Prints the figures."""
    return show("Loop (floor: a bare loop, or the step cost from 10 to 50)", measure())


if __name__ == "__main__":
    main()
