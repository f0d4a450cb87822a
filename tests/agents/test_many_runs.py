"""One agent, many runs at once."""

from __future__ import annotations

import asyncio
import re

from sanderling import ChatMessage, CodeAgent, LogLevel, MessageRole, RunResult, ScriptedModel, tool
from support.processes import lasting, sandboxes

RUNS = 200


def reply(messages: list[ChatMessage]) -> ChatMessage:
    """Plays the model of run n: remembers n in a variable, asks a tool, answers from both."""
    number = re.findall(r"run (\d+)", messages[1].text)[0]
    script = [
        f"mine = [{number}]",
        "mine.append(twice(mine[0]))",
        "final_answer(mine)",
    ]
    said = sum(message.role is MessageRole.ASSISTANT for message in messages)
    return ChatMessage(MessageRole.ASSISTANT, f"<code>\n{script[said]}\n</code>")


def test_two_hundred_runs_at_once_are_not_mixed_up() -> None:
    @tool
    async def twice(number: int) -> int:
        """Doubles.

        Args:
            number: What to double.
        """
        await asyncio.sleep(0)
        return number * 2

    before = sandboxes()
    agent = CodeAgent([twice], ScriptedModel(reply), verbosity_level=LogLevel.OFF)

    async def main() -> list[RunResult]:
        runs = [agent.arun(f"This is run {n}.", return_full_result=True) for n in range(RUNS)]
        results: list[RunResult] = await asyncio.gather(*runs)
        return results

    results = asyncio.run(main())
    agent.cleanup()
    for number, result in enumerate(results):
        assert result.output == [number, number * 2]
        tasks = [step for step in result.steps if step["type"] == "TaskStep"]
        assert [step["task"] for step in tasks] == [f"This is run {number}."]
        assert len(result.steps) == 4
    assert lasting(sandboxes() - before) == set()
