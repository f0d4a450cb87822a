"""What the model is sent in long runs: history processors and compaction."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import pytest

from sanderling import (
    ActionStep,
    ChatMessage,
    CodeAgent,
    Compaction,
    LogLevel,
    MessageRole,
    ScriptedModel,
    ToolCallingAgent,
    tool,
)
from support.drivers import Driver, both_drivers
from support.play import says


def code(*lines: str) -> str:
    return "Thinking.\n<code>\n" + "\n".join(lines) + "\n</code>"


@tool
def page(number: int) -> str:
    """Shows a page.

    Args:
        number: Which.
    """
    return f"page {number} says {number * 7919}. " + "lorem ipsum " * 200


def size(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.text) for message in messages)


def shared(before: Sequence[ChatMessage], after: Sequence[ChatMessage]) -> int:
    """Returns how many characters of `before` are a prefix of `after`."""
    same = 0
    for old, new in zip(before, after, strict=False):
        if old.dict() != new.dict():
            break
        same += len(old.text)
    return same


@both_drivers
def test_processors_change_what_is_sent_and_not_the_memory(driver: Driver) -> None:
    def shout(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        return [ChatMessage(one.role, one.text.upper()) for one in messages]

    async def add(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        return [*messages, ChatMessage(MessageRole.USER, "(one more)")]

    model = ScriptedModel([says(None, ("final_answer", {"answer": 1}))])
    agent = ToolCallingAgent(
        [], model, history_processors=[shout, add], verbosity_level=LogLevel.OFF
    )
    assert driver.run(agent, "Whisper.") == 1
    sent = model.requests[0].messages
    assert "WHISPER." in sent[1].text
    assert sent[2].text == "(one more)"
    assert "Whisper." in agent.memory.messages()[1].text


@both_drivers
def test_a_processor_must_return_messages(driver: Driver) -> None:
    agent = ToolCallingAgent(
        [],
        ScriptedModel(["x"]),
        history_processors=[lambda messages: None],
        verbosity_level=LogLevel.OFF,
    )
    with pytest.raises(TypeError, match="list of ChatMessage"):
        driver.run(agent, "Go.")


def long_run(driver: Driver, steps: int, compaction: Compaction) -> tuple[ScriptedModel, Any]:
    replies = [says(f"Page {n}.", ("page", {"number": n})) for n in range(steps)]
    model = ScriptedModel([*replies, says(None, ("final_answer", {"answer": "done"}))])
    agent = ToolCallingAgent(
        [page],
        model,
        history_processors=[compaction],
        max_steps=steps + 1,
        verbosity_level=LogLevel.OFF,
    )
    assert driver.run(agent, "Read all pages.") == "done"
    return model, agent


@both_drivers
def test_a_long_run_stays_small_and_its_prefix_stable(driver: Driver) -> None:
    model, _ = long_run(driver, 200, Compaction(max_tokens=30_000, keep_steps=3))
    sent = [request.messages for request in model.requests]
    assert max(map(size, sent)) < 4 * 30_000 + 1_000  # a token counts as four characters
    total = sum(map(size, sent[:-1]))
    kept = sum(shared(before, after) for before, after in itertools.pairwise(sent))
    assert kept > 0.9 * total
    for number, messages in enumerate(sent[1:]):
        assert messages[0] is sent[0][0]
        assert messages[1] is sent[0][1]
        assert f"says {number * 7919}" in messages[-1].text


@both_drivers
def test_large_last_steps_do_not_change_the_prefix_with_every_request(driver: Driver) -> None:
    limit = 14_000  # of which the last 20 steps would fill nearly all
    model, _ = long_run(driver, 100, Compaction(max_tokens=limit, keep_steps=20))
    sent = [request.messages for request in model.requests]
    changes = sum(shared(a, b) < size(a) for a, b in itertools.pairwise(sent))
    assert 0 < changes < len(sent) / 5
    assert max(map(size, sent)) < 4 * limit + 1_000


@both_drivers
def test_every_fact_that_was_left_out_can_be_recalled(driver: Driver) -> None:
    model, agent = long_run(driver, 100, Compaction(max_tokens=5_000, keep_steps=2))
    last = model.requests[-1].messages
    numbers = [int(found) for one in last for found in re.findall(r"recall\((\d+)\)", one.text)]
    assert len(numbers) == 99
    looking = ScriptedModel(
        [
            *[says(None, ("recall", {"number": number})) for number in numbers],
            says(None, ("recall", {"number": 9_999})),
            says(None, ("final_answer", {"answer": "done"})),
        ]
    )
    agent.model = looking
    driver.run(agent, "Look again.", reset=False, max_steps=200)
    steps = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    seen = [step.observations or "" for step in steps[101:200]]
    assert all(f"page {n} says {n * 7919}." in text for n, text in enumerate(seen))
    assert "no observation has the number 9999" in str(steps[200].error)


@both_drivers
def test_code_can_recall_too(driver: Driver) -> None:
    replies = [
        code("print(page(1))"),
        code("x = 1"),
        code("x = 2"),
        code("print('7919' in recall(1))"),
        code("final_answer(1)"),
    ]
    model = ScriptedModel(replies)
    agent = CodeAgent(
        [page],
        model,
        history_processors=[Compaction(max_tokens=700, keep_steps=1)],
        verbosity_level=LogLevel.OFF,
    )
    with agent:
        driver.run(agent, "Go.")
    step = agent.memory.steps[4]
    assert isinstance(step, ActionStep)
    assert "True" in (step.observations or "")
    assert "recall(1)" in model.requests[2].messages[3].text
    assert "recall" in agent.system_prompt
    assert len(model.requests[2].messages[3].text) < 500


@both_drivers
def test_images_of_old_steps_are_left_out(driver: Driver) -> None:
    def photograph(step: ActionStep) -> None:
        step.observations_images = ["https://example.org/x.png"]

    model = ScriptedModel(
        [
            *[says(None, ("page", {"number": n})) for n in range(4)],
            says(None, ("final_answer", {"answer": 1})),
        ]
    )
    agent = ToolCallingAgent(
        [page],
        model,
        history_processors=[Compaction(max_tokens=1_500, keep_steps=1)],
        step_callbacks=[photograph],
        verbosity_level=LogLevel.OFF,
    )
    driver.run(agent, "Go.")
    last = model.requests[-1].messages
    pictures = [part for one in last for part in one.parts if type(part).__name__ == "ImagePart"]
    assert len(pictures) == 1


def test_settings_that_mean_nothing_and_taken_names_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Compaction(max_tokens=0)
    with pytest.raises(ValueError, match="excerpt"):
        Compaction(excerpt=1_000)

    def recall() -> str:
        """Recalls."""
        return ""

    with pytest.raises(ValueError, match=r"'recall'.* Compaction.* give yours another name"):
        ToolCallingAgent([recall], ScriptedModel([]), history_processors=[Compaction()])
