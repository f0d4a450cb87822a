from __future__ import annotations

import pytest

from console.screen import Screen
from sanderling.console import AgentLogger, LogLevel
from sanderling.errors import AgentParsingError
from sanderling.memory import (
    ActionStep,
    AgentMemory,
    FinalAnswerStep,
    MemoryStep,
    PlanningStep,
    TaskStep,
    ToolCall,
)
from sanderling.messages import ChatMessage, MessageRole

HOSTILE = "[red]x[/red]\x1b]0;pwned\x07"


class Note(MemoryStep):
    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        return [ChatMessage(MessageRole.USER, "a note")]


def lived() -> AgentMemory:
    memory = AgentMemory("the system prompt")
    memory.steps = [
        TaskStep("count the [dim]sheep[/dim]"),
        PlanningStep(memory.messages(), plan="1. count", facts="sheep exist"),
        ActionStep(1, model_output="thinking", error=AgentParsingError("no code " + HOSTILE)),
        ActionStep(
            2,
            model_input_messages=memory.messages(),
            code_action="len(sheep)",
            tool_calls=[ToolCall("python_interpreter", "len(sheep)", "call_2")],
            observations="7",
            observations_images=["https://example.org/sheep.png"],
        ),
        ActionStep(
            3,
            code_action="final_answer(7)",
            tool_calls=[ToolCall("lookup", {"what": "sheep"}, "call_3")],
            action_output=7,
            is_final_answer=True,
        ),
        Note(),
        FinalAnswerStep(7),
    ]
    return memory


@pytest.mark.parametrize("level", [LogLevel.ERROR, LogLevel.INFO, LogLevel.DEBUG])
def test_everything_that_happened_is_shown_in_order(level: LogLevel) -> None:
    screen = Screen(level)
    lived().replay(screen.logger)
    shown = ["count the [dim]sheep[/dim]", "sheep exist", "1. count", "Step 1", "thinking"]
    shown += ["no code [red]x[/red]\\x1b]0;pwned\\x07", "Step 2", "len(sheep)", "7", "1 image(s)"]
    shown += ["Step 3", "'lookup' with arguments: {'what': 'sheep'}", "a note", "Final answer"]
    place = 0
    for text in shown:
        assert text in screen.text[place:], text
        place = screen.text.index(text, place)
    assert "the system prompt" not in screen.text


def test_a_plan_has_one_heading_unless_facts_come_before() -> None:
    for facts, titles in (("", ["Plan"]), ("sheep exist", ["Plan", "Facts", "Plan"])):
        screen = Screen()
        memory = AgentMemory("the system prompt")
        memory.steps = [PlanningStep(memory.messages(), plan="1. count", facts=facts)]
        memory.replay(screen.logger)
        lines = [line.strip("━─ ") for line in screen.lines]
        assert [line for line in lines if line in ("Plan", "Facts")] == titles


def test_in_detail_it_shows_what_the_model_was_sent() -> None:
    screen = Screen()
    lived().replay(screen.logger, detailed=True)
    assert screen.text.count("the system prompt") == 3  # itself, and as sent in two of the steps


def test_steps_are_called_as_they_were_while_they_ran() -> None:
    screen = Screen()
    memory = AgentMemory("p")
    memory.steps = [ActionStep(1), ActionStep(2), ActionStep()]
    memory.replay(AgentLogger(console=screen.logger.console, first_step=0))
    assert [line.strip("━ ") for line in screen.lines] == ["Step 0", "Step 1", "Step"]


def test_off_stays_off() -> None:
    screen = Screen(LogLevel.OFF)
    lived().replay(screen.logger, detailed=True)
    assert screen.text == ""


def test_the_code_of_all_steps_is_one_script() -> None:
    assert lived().return_full_code() == "len(sheep)\n\nfinal_answer(7)"
    assert AgentMemory("p").return_full_code() == ""


def test_a_summary_leaves_out_prompt_reasoning_and_plans() -> None:
    memory = lived()
    texts = "\n".join(message.text for message in memory.to_messages(summary_mode=True))
    assert "sheep exist" in texts
    assert "no code" in texts
    for left_out in ("the system prompt", "thinking", "1. count"):
        assert left_out not in texts
    assert memory.to_messages() == memory.messages()[:]
