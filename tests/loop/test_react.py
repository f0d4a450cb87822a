from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sanderling.errors import (
    AgentGenerationError,
    AgentMaxStepsError,
    AgentParsingError,
    AgentToolCallError,
)
from sanderling.loop import CallTool, CheckAnswer, Generate, RunState, Together, ToolAction, react
from sanderling.memory import ActionStep, AgentMemory, TaskStep
from sanderling.messages import ChatMessage, MessageRole, TokenUsage
from sanderling.tools.agent_types import AgentAudio, AgentImage, AgentText
from support.play import Player, says


def a_run(max_steps: int = 5) -> RunState:
    memory = AgentMemory("system")
    memory.steps.append(TaskStep("task"))
    return RunState("task", memory, max_steps)


def forced(run: RunState) -> list[ChatMessage]:
    return [ChatMessage(MessageRole.USER, f"answer {run.task}")]


def play(player: Player, run: RunState, action: ToolAction | None = None) -> Any:
    return player.play(react(run, action or ToolAction(("add", "final_answer")), forced))


def an_image() -> Image.Image:
    return Image.new("L", (2, 2), 7)


def actions(run: RunState) -> list[ActionStep]:
    return [step for step in run.memory.steps if isinstance(step, ActionStep)]


def add(effect: CallTool) -> Any:
    if effect.name == "final_answer":
        return effect.arguments["answer"]
    if effect.name != "add":
        raise AgentToolCallError(f"no tool {effect.name}")
    return effect.arguments["a"] + effect.arguments["b"]


def test_events_come_in_order_and_the_answer_last() -> None:
    player = Player(
        [says("I add", ("add", {"a": 1, "b": 2})), says(None, ("final_answer", {"answer": 3}))],
        call=add,
    )
    run = a_run()
    assert play(player, run) == 3
    step = ["StepStarted", "ModelReply", "ToolCall", "ToolOutput", "ActionOutput", "ActionStep"]
    assert player.names == [*step, *step, "FinalAnswerStep"]
    assert player.events[-1].output == 3
    first, second = actions(run)
    assert (first.step_number, first.observations, first.is_final_answer) == (1, "3", False)
    assert (second.step_number, second.action_output, second.is_final_answer) == (2, 3, True)
    assert run.usage == TokenUsage(20, 4)
    assert run.status == "success"


def test_the_clock_is_asked_from_outside() -> None:
    run = a_run()
    play(Player([says(None, ("final_answer", {"answer": 3}))], call=add), run)
    timing = actions(run)[0].timing
    assert timing is not None
    assert (timing.start_time, timing.end_time) == (1.0, 2.0)


def test_each_request_carries_the_history_and_the_tools() -> None:
    player = Player(
        [says("x", ("add", {"a": 1, "b": 2})), says(None, ("final_answer", {"answer": 3}))],
        call=add,
    )
    play(player, a_run())
    asked = [effect for effect in player.effects if isinstance(effect, Generate)]
    assert [effect.tools for effect in asked] == [("add", "final_answer")] * 2
    assert asked[1].messages[: len(asked[0].messages)] == asked[0].messages[:]
    assert asked[1].messages[-1].text == "3"


def test_a_mistake_of_the_model_is_shown_to_it_and_the_run_goes_on() -> None:
    player = Player(
        [
            says("no call at all"),
            says("", ("nope", {})),
            says(None, ("final_answer", {"answer": 1})),
        ],
        call=add,
    )
    run = a_run()
    assert play(player, run) == 1
    errors = [step.error for step in actions(run)]
    assert [type(error) for error in errors] == [AgentParsingError, AgentToolCallError, type(None)]
    last = [effect for effect in player.effects if isinstance(effect, Generate)][-1]
    assert "no tool nope" in last.messages[-1].text


def test_a_fault_of_the_plumbing_ends_the_run_and_keeps_the_earlier_steps() -> None:
    player = Player(
        [says("x", ("add", {"a": 1, "b": 2})), AgentGenerationError("the server is down")], call=add
    )
    run = a_run()
    with pytest.raises(AgentGenerationError, match="server is down"):
        play(player, run)
    done, failed = actions(run)
    assert done.observations == "3"
    assert "server is down" in str(failed.error)
    assert failed.timing is not None
    assert failed.timing.end_time is not None


def test_a_fault_in_the_middle_of_a_step_keeps_what_the_model_said() -> None:
    class Breaking(Player):
        def _perform(self, effect: Any) -> Any:
            if isinstance(effect, Together):
                raise OSError("the disk is gone")
            return super()._perform(effect)

    run = a_run()
    with pytest.raises(OSError, match="disk is gone"):
        play(Breaking([says("I add", ("add", {"a": 1, "b": 2}))]), run)
    assert [step.model_output for step in actions(run)] == ["I add"]


def test_without_an_answer_at_the_limit_the_model_is_made_to_give_one() -> None:
    last_word = says("<think>so</think>three")
    player = Player([says("x", ("add", {"a": 1, "b": 2}))] * 2 + [last_word], call=add)
    run = a_run(max_steps=2)
    assert play(player, run) == "three"
    assert run.status == "max_steps_error"
    last = actions(run)[-1]
    assert isinstance(last.error, AgentMaxStepsError)
    assert (last.step_number, last.action_output, last.is_final_answer) == (3, "three", True)
    assert player.names[-2:] == ["ActionStep", "FinalAnswerStep"]
    assert player.events[-2] is last
    assert run.usage == TokenUsage(30, 6)


@pytest.mark.parametrize(
    ("last_word", "told"),
    [
        (says("", finish_reason="length"), r"limit \(2 tokens\).*Raise the model's max_tokens"),
        (says("<think>and so on", finish_reason="length"), "output limit"),
        (says(""), "The model's answer was empty"),
    ],
)
def test_an_answer_at_the_limit_without_a_word_is_told_as_such(
    last_word: ChatMessage, told: str
) -> None:
    player = Player([says("x", ("add", {"a": 1, "b": 2})), last_word], call=add)
    run = a_run(max_steps=1)
    assert re.search(told, play(player, run))
    assert re.search(f"Reached max steps.*{told}", str(actions(run)[-1].error))


def test_a_refused_answer_goes_back_to_the_model() -> None:
    def check(effect: CheckAnswer) -> str | None:
        return "too small" if effect.answer < 5 else None

    player = Player(
        [says(None, ("final_answer", {"answer": n})) for n in (3, 7)], call=add, check=check
    )
    run = a_run()
    assert play(player, run) == 7
    refused, accepted = actions(run)
    assert (str(refused.error), refused.is_final_answer) == ("too small", False)
    assert accepted.is_final_answer
    assert player.names.count("ActionOutput") == 1


def test_several_calls_are_made_together_and_answered_in_their_order() -> None:
    player = Player(
        [
            says("", ("add", {"a": 1, "b": 1}), ("add", {"a": 2, "b": 2})),
            says(None, ("final_answer", {"answer": 0})),
        ],
        call=add,
    )
    run = a_run()
    play(player, run)
    together = [effect for effect in player.effects if isinstance(effect, Together)]
    assert [len(effect.effects) for effect in together] == [2, 1]
    step = actions(run)[0]
    assert step.action_output == [2, 4]
    assert step.observations == "add (id_0): 2\nadd (id_1): 4"


def test_one_failing_call_keeps_the_results_of_the_others() -> None:
    player = Player(
        [
            says("", ("nope", {}), ("add", {"a": 2, "b": 2})),
            says(None, ("final_answer", {"answer": 0})),
        ],
        call=add,
    )
    run = a_run()
    play(player, run)
    step = actions(run)[0]
    assert step.observations == "nope (id_0): no tool nope\nadd (id_1): 4"
    assert "1 of 2 calls failed" in str(step.error)
    assert step.tool_calls is not None
    assert len(step.tool_calls) == 2


def test_an_answer_among_other_calls_has_to_wait_for_their_results() -> None:
    both = says("", ("final_answer", {"answer": "early"}), ("add", {"a": 2, "b": 2}))
    player = Player([both, says(None, ("final_answer", {"answer": 4}))], call=add)
    run = a_run()
    assert play(player, run) == 4
    observations = (actions(run)[0].observations or "").splitlines()
    assert "alone" in observations[0]
    assert observations[1] == "add (id_1): 4"
    assert actions(run)[0].action_output == [4]


def test_an_answer_among_calls_that_tell_nothing_comes_after_them() -> None:
    def call(effect: CallTool) -> Any:
        return None if effect.name == "save" else add(effect)

    both = says("", ("final_answer", {"answer": "saved"}), ("save", {}))
    player = Player([both], call=call)
    run = a_run()
    assert play(player, run) == "saved"
    together = [effect for effect in player.effects if isinstance(effect, Together)]
    assert [[one.name for one in effect.effects] for effect in together] == [
        ["save"],
        ["final_answer"],
    ]
    assert actions(run)[0].observations == "final_answer (id_0): saved\nsave (id_1): None"


def test_an_answer_waits_when_another_call_failed() -> None:
    both = says("", ("nope", {}), ("final_answer", {"answer": "saved"}))
    player = Player([both, says(None, ("final_answer", {"answer": 4}))], call=add)
    run = a_run()
    assert play(player, run) == 4
    assert "1 of 1 calls failed" in str(actions(run)[0].error)
    assert "alone" in (actions(run)[0].observations or "")


def test_of_several_answers_the_first_counts() -> None:
    player = Player(
        [says("", ("final_answer", {"answer": 1}), ("final_answer", {"answer": 2}))], call=add
    )
    run = a_run()
    assert play(player, run) == 1
    assert "only the first" in (actions(run)[0].observations or "")


def test_images_and_audio_are_kept_under_names_of_their_own() -> None:
    made = {"draw": an_image(), "paint": an_image(), "sing": AgentAudio([0.5])}

    def call(effect: CallTool) -> Any:
        return made.get(effect.name) or add(effect)

    player = Player(
        [says("", *((name, {}) for name in made)), says(None, ("final_answer", {"answer": 1}))],
        call=call,
    )
    run = a_run()
    play(player, run)
    assert run.state == {
        "image.png": made["draw"],
        "image_2.png": made["paint"],
        "audio.mp3": made["sing"],
    }
    for name in run.state:
        assert f"'{name}'" in (actions(run)[0].observations or "")


def test_an_image_that_is_the_answer_is_not_kept_again() -> None:
    image = an_image()
    player = Player([says(None, ("final_answer", {"answer": image}))], call=add)
    run = a_run()
    answer = play(player, run)
    assert isinstance(answer, AgentImage)
    assert answer.tobytes() == image.tobytes()
    assert actions(run)[0].action_output is image
    assert run.state == {}


def test_what_a_tool_returns_is_the_image_or_audio_that_it_declares(tmp_path: Path) -> None:
    private = tmp_path / "private.png"
    an_image().save(private)
    made: dict[str, Any] = {
        "bytes": private.read_bytes(),
        "samples": [0.5],
        "number": 5,
        "path": str(private),
    }
    action = ToolAction(
        ("add",),
        media={"bytes": "image", "samples": "audio", "number": "image", "path": "image"},
    )
    player = Player(
        [says("", *((name, {}) for name in made)), says(None, ("final_answer", {"answer": 1}))],
        call=lambda effect: made.get(effect.name, 1),
    )
    run = a_run()
    play(player, run, action)
    assert {name: type(value) for name, value in run.state.items()} == {
        "image.png": AgentImage,
        "audio.mp3": AgentAudio,
    }
    said = actions(run)[0].tool_responses or []
    assert "'image.png'" in said[0]
    assert "'audio.mp3'" in said[1]
    assert said[2].startswith("The tool 'number' did not return the image that it should: a int")
    assert said[3] == str(private)  # a text is no path to be read


def test_the_answer_comes_as_what_smolagents_makes_of_it() -> None:
    for answer, kind in (("yes", AgentText), (5, int), (None, type(None)), ([1], list)):
        player = Player([says(None, ("final_answer", {"answer": answer}))], call=add)
        given = play(player, a_run())
        assert (given, type(given)) == (answer, kind)
        assert type(player.events[-1].output) is kind


def test_calls_that_the_provider_made_are_told_natively() -> None:
    player = Player(
        [
            says("I add", ("add", {"a": 1, "b": 1}), ("nope", {})),
            says("", ("nope", {})),
            says(None, ("final_answer", {"answer": 0})),
        ],
        call=add,
    )
    run = a_run()
    play(player, run)
    asked = [effect for effect in player.effects if isinstance(effect, Generate)]
    told = asked[-1].messages[2:]
    assert [message.role.value for message in told] == [
        "assistant",
        *["tool-response"] * 3,
        "assistant",
        "tool-response",
    ]
    assert [call.id for call in told[0].tool_calls or ()] == ["id_0", "id_1"]
    assert told[0].text == "I add"
    assert [message.tool_call_id for message in told[1:4]] == ["id_0", "id_1", None]
    assert [message.text for message in told[1:3]] == ["2", "no tool nope"]
    assert told[3].text.startswith("Error:\n1 of 2 calls failed")
    assert told[4].content is None
    assert told[5].tool_call_id == "id_0"
    assert told[5].text.startswith("Error:\nno tool nope")


def test_calls_that_stand_in_the_text_are_told_as_text() -> None:
    player = Player(
        [
            says('{"name": "add", "arguments": {"a": 1, "b": 2}}'),
            says(None, ("final_answer", {"answer": 3})),
        ],
        call=add,
    )
    play(player, a_run())
    told = [effect for effect in player.effects if isinstance(effect, Generate)][-1].messages[2:]
    assert [message.role.value for message in told] == ["assistant", "tool-call", "tool-response"]
    assert told[-1].text == "Observation:\n3"
    assert not any(message.tool_calls or message.tool_call_id for message in told)


def test_calls_in_the_channels_of_the_model_are_understood() -> None:
    said = (
        '<|channel|>analysis<|message|>{"name": "nope"}<|end|>'
        "<|start|>assistant to=functions.add<|channel|>commentary json<|message|>"
        '{"a": 1, "b": 2}<|call|>'
    )
    run = a_run()
    play(Player([says(said), says(None, ("final_answer", {"answer": 3}))], call=add), run)
    first = actions(run)[0]
    assert (first.action_output, first.model_output) == (3, "")
    assert first.to_messages()[0].text.startswith("Calling tools:")


def test_ids_that_are_made_up_are_free() -> None:
    calls = says("", ("add", {"a": 1, "b": 1}), ("add", {"a": 2, "b": 2}))
    (calls.tool_calls or [])[0].id, (calls.tool_calls or [])[1].id = "call_1_2", ""
    run = a_run()
    play(Player([calls, says(None, ("final_answer", {"answer": 0}))], call=add), run)
    assert actions(run)[0].action_output == [2, 4]


def test_thinking_before_a_call_is_not_read_as_one() -> None:
    said = '<think>{"name": "nope"}</think>{"name": "final_answer", "arguments": {"answer": 3}}'
    assert play(Player([says(said)], call=add), a_run()) == 3


def test_calls_in_the_text_and_arguments_in_json_text_are_understood() -> None:
    player = Player(
        [
            says('I call {"name": "add", "arguments": {"a": 1, "b": 2}}'),
            says(None, ("final_answer", '{"answer": 3}')),
        ],
        call=add,
    )
    run = a_run()
    assert play(player, run) == 3
    calls = actions(run)[0].tool_calls
    assert calls is not None
    assert calls[0].id == "call_1_1"


def test_calls_that_share_an_id_are_told_apart() -> None:
    twice = says("", ("add", {"a": 1, "b": 1}), ("add", {"a": 5, "b": 5}))
    for call in twice.tool_calls or []:
        call.id = "same"
    run = a_run()
    play(Player([twice, says(None, ("final_answer", {"answer": 0}))], call=add), run)
    calls = actions(run)[0].tool_calls
    assert calls is not None
    assert len({call.id for call in calls}) == 2
    assert actions(run)[0].action_output == [2, 10]


def test_a_reply_that_was_cut_off_is_named_as_such() -> None:
    cut = says('{"name": "add", "argum', finish_reason="length")
    run = a_run()
    play(Player([cut, says(None, ("final_answer", {"answer": 0}))], call=add), run)
    error = str(actions(run)[0].error)
    assert "cut off" in error
    assert "2 tokens" in error
    assert "max_tokens" in error


def test_closing_early_leaves_no_half_step() -> None:
    run = a_run()
    loop = react(run, ToolAction(("add",)), forced)
    next(loop)
    loop.close()
    assert actions(run) == []
