"""The ways in which a model may write a code action."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.errors import AgentExecutionError, AgentParsingError, InterpreterError
from sanderling.loop import CodeAction, CodeTags, ExecuteCode, Generate, RunState, react
from sanderling.loop._code_reply import CodeReply
from sanderling.memory import ActionStep, AgentMemory, TaskStep
from sanderling.sandbox import CodeResult
from support.play import Player, says

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage

TAGS = CodeTags()
FINAL = says("<code>\nfinal_answer(1)\n</code>")


def run_code(effect: ExecuteCode) -> CodeResult:
    if effect.code.count('"') % 2:
        return CodeResult(error=InterpreterError("SyntaxError: unterminated string literal"))
    if "broken" in effect.code:
        return CodeResult(logs="so far\n", error=InterpreterError("it broke"))
    return CodeResult(1, "1", is_final_answer="final_answer" in effect.code)


def play(
    *replies: ChatMessage, action: CodeAction | None = None
) -> tuple[list[ActionStep], Player]:
    memory = AgentMemory("system")
    memory.steps.append(TaskStep("task"))
    player = Player(replies, execute=run_code)
    player.play(react(RunState("task", memory, 5), action or CodeAction(), lambda run: []))
    return [step for step in memory.steps if isinstance(step, ActionStep)], player


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (says("x", ("python_interpreter", {"code": "f()"})), "f()"),
        (says("", ("python_interpreter", '{"code": "f()"}')), "f()"),
        (says(None, ("python", "f()\ng()")), "f()\ng()"),
        (says(None, ("code_interpreter", {"input": "f()"})), "f()"),
        (says(None, ("final_answer", {"answer": [1, None]})), "final_answer(answer=[1, None])"),
        (
            says(None, ("search", {"q": "it's"}), ("final_answer", {"answer": 1})),
            'print(search(q="it\'s"))\nfinal_answer(answer=1)',
        ),
        (says('{"name": "python_interpreter", "arguments": {"code": "f()"}}'), "f()"),
        (says('<tool_call>{"name": "search", "arguments": {"q": 1}}</tool_call>'), "search(q=1)"),
        (says('```json\n{"thought": "t", "code": "f()"}\n```'), "f()"),
        (says('{"code": "```python\\nf()\\n```"}'), "f()"),
        (
            says(
                "<|channel|>analysis<|message|>Hm, <code>no()</code><|end|><|start|>assistant"
                "<|channel|>commentary to=python code<|message|>f()<|call|>"
            ),
            "f()",
        ),
        (says("<|channel|>final<|message|>Go.\n<code>f()</code><|return|>"), "f()"),
        (says("I look. <|python_tag|>f()<|eom_id|>"), "f()"),
        (says("<think>\n<code>no()</code>\n</think>\n<code>f()</code>"), "f()"),
    ],
)
def test_code_is_found_wherever_it_stands(reply: ChatMessage, code: str) -> None:
    first, *_ = play(reply, FINAL)[0]
    assert first.code_action == code
    assert first.error is None


@pytest.mark.parametrize(
    "reply",
    [
        says("The answer is 42."),
        says('{"name": "Ada", "age": 36}'),
        says(None, ("not a name", {"a": 1})),
        says(None, ("f", {"class": 1})),
        says(None, ("python", {"code": "\n"})),
        says(""),
    ],
)
def test_what_holds_no_code_is_corrected(reply: ChatMessage) -> None:
    first, second = play(reply, FINAL)[0]
    assert isinstance(first.error, AgentParsingError)
    assert "<code>\nfinal_answer(" in str(first.error)
    assert second.is_final_answer


def test_a_native_call_is_told_again_in_the_form_that_was_asked_for() -> None:
    steps, _ = play(says("I look.", ("python", {"code": "f()"})), FINAL)
    assert steps[0].model_output == "I look.\n<code>\nf()\n</code>"
    messages = steps[0].to_messages()
    assert [message.role.value for message in messages] == ["assistant", "tool-response"]
    assert all(not message.tool_calls and not message.tool_call_id for message in messages)


@pytest.mark.parametrize("rest", ["", "\n", "\n</", "\n</code", "\n</code\n", "<end_co"])
def test_a_block_that_ends_within_its_mark_is_closed(rest: str) -> None:
    first, *_ = play(says(f"Go.\n<code>\nf()\n{rest}"), FINAL)[0]
    assert first.code_action == "f()"
    assert first.model_output is not None
    assert first.model_output.split() == ["Go.", "<code>", "f()", "</code>"]


def test_a_name_at_the_end_of_a_block_is_no_half_mark() -> None:
    action = CodeAction(CodeTags("BEGIN", "END"))
    first, *_ = play(says("BEGIN\nx = EN"), FINAL, action=action)[0]
    assert first.code_action == "x = EN"


def test_thinking_is_not_told_again() -> None:
    steps, _ = play(says("<think>long</think>Go.\n<code>f()</code>"), FINAL)
    assert steps[0].model_output == "Go.\n<code>f()</code>"
    assert steps[0].model_output_message is not None
    assert "long" in steps[0].model_output_message.text


@pytest.mark.parametrize(
    "reply",
    [
        says("<code>\nprint(1", finish_reason="length"),
        says("<think>and so on", finish_reason="length"),
        says("x", ("python", '{"code": "f('), finish_reason="length"),
        says('{"thought": "t", "code": "f(', finish_reason="length"),
    ],
)
@pytest.mark.parametrize("structured", [False, True])
def test_a_reply_that_was_cut_off_is_not_run(reply: ChatMessage, structured: bool) -> None:
    final = says('{"thought": "t", "code": "final_answer(1)"}') if structured else FINAL
    steps, player = play(reply, final, action=CodeAction(structured=structured))
    assert "cut off" in str(steps[0].error)
    assert len([effect for effect in player.effects if isinstance(effect, ExecuteCode)]) == 1


def test_code_that_fails_keeps_what_it_printed() -> None:
    steps, _ = play(says("<code>broken()</code>"), FINAL)
    assert isinstance(steps[0].error, AgentExecutionError)
    assert steps[0].observations == "Execution logs:\nso far"


def test_a_mark_in_a_string_at_which_the_model_was_stopped_is_explained() -> None:
    steps, _ = play(says('<code>\nhtml = "<b>'), says('<code>\nhtml = "<b>\n</code>'), FINAL)
    assert "'</cod' + 'e>'" in str(steps[0].error)
    assert "'Observation:'" in str(steps[0].error)  # it may have been that
    assert "</cod'" not in str(steps[1].error)  # a plain mistake


def test_a_structured_reply_is_asked_for_and_read() -> None:
    reply = says('{"thought": "Two lines.", "code": "f()\\ng()"}')
    final = says('{"thought": "", "code": "<code>final_answer(1)</code>"}')
    steps, player = play(reply, final, action=CodeAction(structured=True))
    assert [step.code_action for step in steps] == ["f()\ng()", "final_answer(1)"]
    assert steps[0].model_output == reply.text
    asked = next(effect for effect in player.effects if isinstance(effect, Generate))
    schema = asked.options["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["thought", "code"]
    assert asked.stop_sequences == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('Sure: {"thought": "t", "code": "f()"} there', "f()"),
        ('{"thought": "t", "code": "f()\ng()"}', "f()\ng()"),  # line ends as they are
        ("t\n<code>f()</code>", "f()"),
        ("```python\nf()\n```", "f()"),
    ],
)
def test_a_structured_reply_out_of_form_is_understood(text: str, code: str) -> None:
    assert CodeReply.of(says(text), TAGS, structured=True).code(TAGS, structured=True) == code


@pytest.mark.parametrize("text", ["", "prose", '{"thought": "t"}', '{"code": 1}', '{"code": " "}'])
def test_a_structured_reply_without_code_is_corrected(text: str) -> None:
    with pytest.raises(AgentParsingError, match='"code": "final_answer'):
        CodeReply.of(says(text), TAGS, structured=True).code(TAGS, structured=True)


def test_a_native_call_in_answer_to_a_structured_request_keeps_its_form() -> None:
    read = CodeReply.of(says("t", ("python", {"code": "f()"})), TAGS, structured=True)
    assert json.loads(read.text) == {"thought": "t", "code": "f()"}


printable = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=30)


@given(printable, printable, st.booleans())
def test_a_structured_reply_comes_out_as_it_went_in(thought: str, text: str, fenced: bool) -> None:
    code = f"x = {text!r}\nprint(x)"
    written = json.dumps({"thought": thought, "code": code})
    reply = f"```json\n{written}\n```" if fenced else written
    assert CodeReply.of(says(reply), TAGS, structured=True).code(TAGS, structured=True) == code


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)
names = st.sampled_from(["python", "f", "final_answer", "a b"])


MARKS = ["<|channel|>", "<|message|>", "<|start|>", "<|python_tag|>", "to=f ", "final", "{}", "<"]


@given(
    st.none() | st.text(max_size=40) | st.lists(st.sampled_from(MARKS)).map("".join),
    st.lists(st.tuples(names, anything), max_size=3),
    st.sampled_from([None, "stop", "length"]),
    st.booleans(),
)
def test_any_reply_gives_code_or_a_correction(
    text: str | None, calls: list[tuple[str, Any]], finish: str | None, structured: bool
) -> None:
    read = CodeReply.of(says(text, *calls, finish_reason=finish), TAGS, structured=structured)
    with suppress(AgentParsingError):
        assert read.code(TAGS, structured=structured).strip()
