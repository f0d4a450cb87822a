"""What the loop itself costs: construction, each further step of a run, and many runs at once."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from sanderling import (
    CodeAgent,
    LogLevel,
    Model,
    MultiStepAgent,
    ScriptedModel,
    Tool,
    ToolCallingAgent,
    tool,
)
from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageLike,
    MessageRole,
    TokenUsage,
)

from .figures import Figure, show

LENGTHS = (1, 10, 50, 200, 1_000)
FLEETS = (200, 1_000)
FLEET_STEPS = 5
REPLY = 0.05  # seconds that a model of the fleet takes


@tool
def add(a: int, b: int) -> int:
    """Adds.

    Args:
        a: One number.
        b: Another one.
    """
    return a + b


@tool
async def add_async(a: int, b: int) -> int:
    """Adds, as a tool does that waits for a server.

    Args:
        a: One number.
        b: Another one.
    """
    return a + b


def _bare(steps: int) -> int:
    """The same work without a framework: the same model, the same tool, a list of messages."""
    model = Replies(_tool_replies(steps))
    messages = [ChatMessage(MessageRole.USER, "go")]
    while True:
        reply = model.generate(messages)
        messages.append(reply)
        for call in reply.tool_calls or ():
            arguments: Any = call.function.arguments
            if call.function.name == "final_answer":
                return len(messages)
            messages.append(_told(call, add(**arguments)))


async def _bare_with_threads(steps: int) -> int:
    """The same under asyncio: the model is awaited, and the sync tool called in a worker thread."""
    model = Replies(_tool_replies(steps))
    messages = [ChatMessage(MessageRole.USER, "go")]
    while True:
        reply = await model.agenerate(messages)
        messages.append(reply)
        for call in reply.tool_calls or ():
            arguments: Any = call.function.arguments
            if call.function.name == "final_answer":
                return len(messages)
            messages.append(_told(call, await asyncio.to_thread(add, **arguments)))


def _told(call: ChatMessageToolCall, value: object) -> ChatMessage:
    return ChatMessage(MessageRole.TOOL_RESPONSE, str(value), tool_call_id=call.id)


def _tool_replies(steps: int, name: str = "add") -> list[ChatMessage]:
    replies = [_call(name, a=number, b=1) for number in range(steps - 1)]
    return [*replies, _call("final_answer", answer="done")]


def _call(name: str, **arguments: object) -> ChatMessage:
    function = ChatMessageToolCallFunction(arguments, name)
    call = ChatMessageToolCall(function, f"{name}{arguments}")
    return ChatMessage(MessageRole.ASSISTANT, None, [call], token_usage=TokenUsage(10, 2))


def _code(text: str) -> ChatMessage:
    return ChatMessage(
        MessageRole.ASSISTANT, f"<code>\n{text}\n</code>", token_usage=TokenUsage(10, 2)
    )


def _tool_agent(steps: int, called: Tool) -> ToolCallingAgent:
    model = Replies(_tool_replies(steps, called.name))
    return ToolCallingAgent([called], model, max_steps=steps, verbosity_level=LogLevel.OFF)


def _tool_run(steps: int) -> None:
    _check(_tool_agent(steps, add).run("go"))


def _async_tool_run(steps: int, called: Tool) -> None:
    _check(asyncio.run(_tool_agent(steps, called).arun("go")))


def _check(answer: object) -> None:
    if answer != "done":
        raise RuntimeError(f"the run went wrong: {answer!r}")


def _code_run(steps: int) -> None:
    replies = [_code(f"x = add(a={number}, b=1)") for number in range(steps - 1)]
    model = Replies([*replies, _code("final_answer('done')")])
    with CodeAgent(
        [add], model, max_steps=steps, executor_type="inprocess", verbosity_level=LogLevel.OFF
    ) as agent:
        _check(agent.run("go"))


def _cpu(work: Callable[[], object], rounds: int) -> float:
    """Returns the least CPU seconds of several rounds: the least disturbed one."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


class Replies(Model):
    """Gives replies in turn, and looks at no message: what grows with them is then the loop's."""

    takes_tool_messages = True  # as models of providers say; others get copies of all messages

    def __init__(self, replies: list[ChatMessage]) -> None:
        super().__init__(model_id="replies")
        self._replies = iter(replies)

    def generate(self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any) -> ChatMessage:
        """Gives the next reply."""
        return next(self._replies)

    async def agenerate(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> ChatMessage:
        """Gives the next reply."""
        return next(self._replies)


def _growth(
    name: str, run: Callable[[int], object], bare: float | None = None, goal: float = 30
) -> list[Figure]:
    """Measures runs of several lengths; `bare` is what 50 steps of the bare loop cost."""
    run(5)
    costs = {n: _cpu(lambda n=n: run(n), 3 if n > 200 else 7) for n in LENGTHS}  # type: ignore[misc]  # binds n early
    further = {
        (start, end): (costs[end] - costs[start]) / (end - start) * 1e6
        for start, end in ((10, 50), (50, 200), (200, 1_000))
    }
    early = further[10, 50]
    figures = [Figure(f"{name}: a run of 1 step, CPU", costs[1] * 1e6, "µs")]
    floor = None if bare is None else bare / 50 * 1e6
    figures.append(
        Figure(
            f"{name}: a step of 50, CPU",
            costs[50] / 50 * 1e6,
            "µs",
            floor,
            None if floor is None else goal,
            goal_is_ratio=True,
        )
    )
    figures += [
        Figure(
            f"{name}: a further step, {start} to {end}",
            cost,
            "µs",
            None if start == 10 else early,
            None if start == 10 else 1.2,
            goal_is_ratio=True,
        )
        for (start, end), cost in further.items()
    ]
    return figures


class Slow(Model):
    """Takes its time, as a server does: without keeping the processor busy, or what it was sent."""

    takes_tool_messages = True

    def __init__(self, reply: Callable[[int], ChatMessage]) -> None:
        super().__init__(model_id="slow")
        self._reply = reply

    async def agenerate(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> ChatMessage:
        """Answers after a while."""
        await asyncio.sleep(REPLY)
        # A system prompt and a task; a reply and an observation for each step.
        return self._reply(len(messages) // 2 - 1)


def _nth_tool_reply(said: int) -> ChatMessage:
    last = said == FLEET_STEPS - 1
    return _call("final_answer", answer="done") if last else _call("add_async", a=said, b=1)


def _nth_code_reply(said: int) -> ChatMessage:
    return _code("final_answer('done')" if said == FLEET_STEPS - 1 else f"x = add(a={said}, b=1)")


def _fleet(agent: MultiStepAgent, runs: int) -> float:
    """Returns the wall seconds of many runs of one agent at once."""

    async def main() -> float:
        start = time.perf_counter()
        answers = await asyncio.gather(*(agent.arun("go") for _ in range(runs)))
        if set(answers) != {"done"}:
            raise RuntimeError("a run went wrong")
        return time.perf_counter() - start

    return asyncio.run(main())


def _fleets() -> list[Figure]:
    ideal = REPLY * FLEET_STEPS
    figures = []
    for runs in FLEETS:
        agent = ToolCallingAgent([add_async], Slow(_nth_tool_reply), verbosity_level=LogLevel.OFF)
        wall = min(_fleet(agent, runs) for _ in range(3))
        name = f"{runs:,} runs of {FLEET_STEPS} tool steps at once, wall"
        figures.append(Figure(name, wall, "s", ideal, 1.6, goal_is_ratio=True))
    for runs in FLEETS:
        coder = CodeAgent(
            [add], Slow(_nth_code_reply), executor_type="inprocess", verbosity_level=LogLevel.OFF
        )
        wall = min(_fleet(coder, runs) for _ in range(2))
        name = f"{runs:,} runs of {FLEET_STEPS} code steps in process, wall"
        # No goal: each run has a thread of its own, so the processor's cores decide.
        figures.append(Figure(name, wall, "s", ideal))
    return figures


def _waiting_memory(runs: int = 500) -> Figure:
    """Measures what a run holds that waits for its model."""
    agent = ToolCallingAgent([add], Stalled([]), verbosity_level=LogLevel.OFF)

    async def main() -> float:
        await _waiting(agent, 1)  # what is loaded once is no part of it
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        tasks = await _waiting(agent, runs, cancel=False)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return float(after - before) / runs / 1024

    return Figure("memory of a waiting run, no sandbox", asyncio.run(main()), "KiB", goal=100)


class Stalled(ScriptedModel):
    """Never answers."""

    async def agenerate(
        self, messages: Sequence[MessageLike], *args: Any, **kwargs: Any
    ) -> ChatMessage:
        """Waits for ever."""
        await asyncio.Event().wait()
        raise RuntimeError("nobody was to wake it")


async def _waiting(
    agent: MultiStepAgent, runs: int, cancel: bool = True
) -> list[asyncio.Task[Any]]:
    tasks = [asyncio.create_task(agent.arun("go")) for _ in range(runs)]
    for _ in range(10):
        await asyncio.sleep(0)
    if cancel:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return tasks


def _recorded() -> list[Figure]:
    """Measures the JSON form of the steps, which must grow with their number and no faster."""
    sizes = {}
    for steps in (30, 300):
        model = ScriptedModel(_tool_replies(steps))
        agent = ToolCallingAgent([add], model, max_steps=steps, verbosity_level=LogLevel.OFF)
        agent.run("go")
        sizes[steps] = len(json.dumps(agent.memory.get_succinct_steps(), default=str))
    return [
        Figure("get_full_steps of 30 steps", sizes[30] / 1024, "KiB"),
        Figure(
            "get_full_steps of 300 steps",
            sizes[300] / 1024,
            "KiB",
            sizes[30] * 10 / 1024,
            1.1,
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
    """Returns construction, cost and growth of steps, many runs at once, and what is kept."""
    bare = _cpu(lambda: [_bare(50) for _ in range(20)], 5) / 20
    threads = _cpu(lambda: asyncio.run(_bare_with_threads(50)), 15)
    return [
        *_construction(),
        *_growth("tool step, sync", _tool_run, bare),
        *_growth("tool step, async", lambda steps: _async_tool_run(steps, add_async), bare),
        *_growth("sync tool, async", lambda steps: _async_tool_run(steps, add), threads, 3),
        *_growth("code step in process, sync", _code_run),
        *_fleets(),
        _waiting_memory(),
        *_recorded(),
    ]


def main() -> bool:
    """Prints the figures."""
    return show("Loop (floor: a bare loop, or the step cost from 10 to 50)", measure())


if __name__ == "__main__":
    main()
