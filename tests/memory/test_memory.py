from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from sanderling.errors import AgentExecutionError
from sanderling.memory import (
    ActionStep,
    AgentMemory,
    FinalAnswerStep,
    MemoryStep,
    SystemPromptStep,
    TaskStep,
    ToolCall,
)
from sanderling.messages import ChatMessage, MessageRole, Timing, TokenUsage

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)


def step(number: int) -> ActionStep:
    return ActionStep(
        step_number=number,
        model_output=f"thought {number}",
        code_action=f"f({number})",
        tool_calls=[ToolCall("python_interpreter", f"f({number})", f"call_{number}")],
        observations=f"saw {number}",
    )


def filled(steps: int) -> AgentMemory:
    memory = AgentMemory("be good")
    memory.steps.append(TaskStep("count"))
    memory.steps.extend(step(number) for number in range(1, steps + 1))
    return memory


def said(messages: list[ChatMessage]) -> list[tuple[str, str]]:
    return [(message.role.value, message.text) for message in messages]


def test_a_run_reads_as_messages_in_order() -> None:
    assert said(filled(1).messages()[:]) == [
        ("system", "be good"),
        ("user", "New task:\ncount"),
        ("assistant", "thought 1"),
        ("tool-response", "Observation:\nsaw 1"),
    ]


def test_an_error_is_told_with_its_call_and_asks_for_another_try() -> None:
    failed = ActionStep(
        model_output="try",
        tool_calls=[ToolCall("lookup", {"what": "x"}, "call_9")],
        observations="printed before",
        error=AgentExecutionError("it broke"),
    )
    roles, texts = zip(*said(failed.to_messages()), strict=True)
    assert roles == ("assistant", "tool-call", "tool-response", "tool-response")
    assert "lookup" in texts[1]
    assert texts[2] == "Observation:\nprinted before"
    assert texts[3].startswith("Call id: call_9\nError:\nit broke\n")
    assert "try again" in texts[3]


def test_summary_mode_leaves_out_the_prompt_and_the_reasoning_but_not_the_calls() -> None:
    assert SystemPromptStep("be good").to_messages(summary_mode=True) == []
    summary = said(step(1).to_messages(summary_mode=True))
    assert [role for role, _ in summary] == ["tool-call", "tool-response"]
    assert "f(1)" in summary[0][1]


def test_images_come_before_the_observation() -> None:
    seen = ActionStep(observations_images=[PIXEL], observations="a page").to_messages()
    assert [message.role for message in seen] == [MessageRole.USER, MessageRole.TOOL_RESPONSE]
    assert TaskStep("look", [PIXEL]).to_messages()[0].dict()["content"] == [
        {"type": "text", "text": "New task:\nlook"},
        {"type": "image", "url": PIXEL},
    ]


def test_the_messages_of_a_step_are_a_prefix_of_the_next() -> None:
    memory = filled(0)
    before = memory.messages()
    for number in range(1, 51):
        memory.steps.append(step(number))
        after = memory.messages()
        assert all(new is old for new, old in zip(after, before, strict=False))
        assert len(after) == len(before) + 2
        before = after


def test_only_what_is_new_is_rendered() -> None:
    rendered: list[int] = []

    class Counting(ActionStep):
        def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
            rendered.append(self.step_number or 0)
            return super().to_messages(summary_mode)

    memory = filled(0)
    for number in range(1, 6):
        memory.steps.append(Counting(step_number=number, observations="x"))
        memory.messages()
    assert rendered == [1, 2, 3, 4, 5]
    second = memory.steps[2]
    assert isinstance(second, ActionStep)
    second.observations = "edited"
    assert said(memory.messages()[:])[3] == ("tool-response", "Observation:\nedited")
    assert rendered == [1, 2, 3, 4, 5, 2]


def test_an_edit_renders_no_other_memory_anew() -> None:
    rendered = []

    @dataclass(eq=False)
    class Note(MemoryStep):
        text: str

        def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
            rendered.append(self.text)
            return [ChatMessage(MessageRole.USER, self.text)]

    first, second = AgentMemory("first"), AgentMemory("second")
    shared = Note("shared")
    first.steps += [shared, Note("a")]
    second.steps += [shared, Note("b")]
    first.messages()
    second.messages()
    rendered.clear()
    cast("Note", second.steps[1]).text = "changed"
    assert first.messages()[-1].text == "a"
    assert rendered == []
    shared.text = "for both"
    assert ("user", "for both") in said(first.messages()[:])
    assert ("user", "for both") in said(second.messages()[:])
    assert rendered == ["for both", "changed"]


def test_an_old_history_stays_as_it_was_when_a_step_is_edited() -> None:
    memory = filled(3)
    before = memory.messages()
    old = before[:]
    first = memory.steps[1]
    assert isinstance(first, ActionStep)
    first.observations = None
    assert before == old
    assert len(memory.messages()) == len(old) - 1


def test_the_list_of_steps_may_be_changed_in_every_way() -> None:
    memory = filled(4)
    memory.messages()
    memory.steps.pop(1)
    memory.steps.insert(1, step(9))
    assert [text for role, text in said(memory.messages()[:]) if role == "assistant"] == [
        "thought 9",
        "thought 2",
        "thought 3",
        "thought 4",
    ]
    memory.steps[-1] = step(7)
    assert memory.messages()[-2].text == "thought 7"
    memory.steps = filled(1).steps
    assert len(memory.messages()) == 4
    memory.reset()
    assert said(memory.messages()[:]) == [("system", "be good")]


def test_a_new_system_prompt_is_said() -> None:
    memory = filled(1)
    memory.messages()
    memory.system_prompt = SystemPromptStep("be better")
    assert memory.messages()[0].text == "be better"
    memory.system_prompt.system_prompt = "be best"
    assert memory.messages()[0].text == "be best"


def test_a_history_is_read_like_a_list() -> None:
    history = filled(1).messages()
    assert history[-1] is history[3]
    assert history[1:3] == list(history)[1:3]
    assert history == list(history)
    assert [*history, *history] == history + list(history)
    assert len(history) == 4


def test_steps_have_a_json_form() -> None:
    memory = filled(1)
    done = ActionStep(
        step_number=2,
        timing=Timing(1.0, 2.0),
        model_output_message=ChatMessage(MessageRole.ASSISTANT, "x"),
        token_usage=TokenUsage(3, 4),
        error=AgentExecutionError("no"),
        action_output=object(),
        model_input_messages=memory.messages(),
    )
    memory.steps.append(done)
    data = json.loads(json.dumps(memory.dict()))
    assert data["version"] == 1
    assert [entry["type"] for entry in data["steps"]] == ["TaskStep", "ActionStep", "ActionStep"]
    assert data["steps"][2]["error"] == {"type": "AgentExecutionError", "message": "no"}
    assert data["steps"][2]["timing"]["duration"] == 1.0
    (light,) = json.loads(json.dumps(memory.get_succinct_steps()))[2:]
    assert "object" in light["action_output"]
    assert "model_input_messages" not in light


def test_the_json_form_grows_with_the_run_and_not_with_its_square() -> None:
    def size(steps: int) -> int:
        memory = filled(0)
        for number in range(1, steps + 1):
            new = step(number)
            new.model_input_messages = memory.messages()
            memory.steps.append(new)
        return len(json.dumps(memory.dict()))

    assert size(300) < 11 * size(30)


def test_a_final_answer_says_nothing_to_the_model() -> None:
    assert FinalAnswerStep("42").to_messages() == []


def test_a_step_of_ones_own_can_be_remembered() -> None:
    class Note(MemoryStep):
        def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
            return [ChatMessage(MessageRole.USER, "note")]

    memory = AgentMemory("p")
    memory.steps.append(Note())
    assert memory.messages()[-1].text == "note"


def test_images_that_are_taken_out_of_a_list_are_gone_for_the_model() -> None:
    memory = filled(3)
    task, _, second, third = memory.steps
    assert isinstance(task, TaskStep)
    assert isinstance(second, ActionStep)
    assert isinstance(third, ActionStep)
    task.task_images, second.observations_images = [PIXEL], [PIXEL, PIXEL]

    def shown() -> int:
        return sum(len(message.parts) - bool(message.text) for message in memory.messages())

    assert shown() == 3
    before = memory.messages()
    assert memory.messages().shared_with(before) == len(before)
    second.observations_images.clear()
    assert shown() == 1
    third.observations_images = [PIXEL]
    assert shown() == 2
    third.observations_images.append(PIXEL)
    task.task_images.pop()
    assert shown() == 2
    again = memory.messages()
    assert memory.messages().shared_with(again) == len(again)
