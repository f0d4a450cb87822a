from __future__ import annotations

import time
from typing import Any, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.screen import Screen
from sanderling.console import AgentLogger, LogLevel, RunPrinter
from sanderling.errors import AgentError, AgentExecutionError, AgentMaxStepsError
from sanderling.loop import (
    ActionOutput,
    CodeOutputDelta,
    Event,
    ModelReply,
    PlanningStarted,
    ReplyBrokenOff,
    RunStarted,
    StepStarted,
)
from sanderling.memory import ActionStep, FinalAnswerStep, PlanningStep, ToolCall
from sanderling.messages import ChatMessageStreamDelta, Timing, TokenUsage

CODE = "x = 25 * 31\nprint(x)\nfinal_answer(x)"
REPLY = f"Thought: multiply.\n\n<code>\n{CODE}\n</code>"
RULE = "─" * 100


def deltas(text: str, size: int = 3) -> list[Event]:
    return [ChatMessageStreamDelta(text[i : i + size]) for i in range(0, len(text), size)]


def finished(number: int = 1, **fields: Any) -> ActionStep:
    timing = Timing(100.0, 100.5)
    return ActionStep(number, timing, token_usage=TokenUsage(1000, 20), **fields)


class Shown(Protocol):
    @property
    def logger(self) -> AgentLogger: ...


def show(screen: Shown, *events: Event | list[Event]) -> None:
    printer = RunPrinter(screen.logger)
    for event in events:
        for one in event if isinstance(event, list) else [event]:
            printer.show(one)
    printer.close()


def code_step(streamed: bool, printed: str = "775\n") -> list[Event]:
    return [
        StepStarted(1),
        *(deltas(REPLY) if streamed else []),
        ModelReply(f"{REPLY}\n"),
        ToolCall("python_interpreter", CODE, "call_1"),
        *([CodeOutputDelta(printed)] if printed else []),
        ActionOutput(775, True),
        finished(
            model_output=REPLY,
            code_action=CODE,
            action_output=775,
            is_final_answer=True,
            observations=f"Execution logs:\n{printed}\nLast output from code snippet:\n775",
        ),
        FinalAnswerStep(775),
    ]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_from_task_to_answer(streamed: bool) -> None:
    screen = Screen()
    show(screen, RunStarted("What is 25 times 31?", None, "Model - id"), code_step(streamed))
    assert screen.raw.splitlines()[5:] == [
        "━" * 46 + " Step 1 " + "━" * 46,
        *(["Thought: multiply."] if streamed else []),
        "─ Executing this code: " + "─" * 77,
        *CODE.splitlines(),
        RULE,
        "Execution logs:",
        "  775",
        "Out - Final answer: 775",
        "[Step 1: Duration 0.50 seconds| Input tokens: 1,000 | Output tokens: 20]",
    ]


def test_steps_are_counted_and_the_answer_is_told_as_wanted() -> None:
    screen = Screen()
    screen.logger = AgentLogger(
        console=screen.logger.console, first_step=0, answer_title="Final answer"
    )
    show(screen, code_step(streamed=False))
    assert screen.lines[0].strip("━") == " Step 0 "
    assert screen.lines[-2] == "Final answer: 775"
    assert screen.lines[-1].startswith("[Step 0: Duration")


def test_a_terminal_shows_the_same() -> None:
    piped, terminal = Screen(), Screen(terminal=True)
    show(piped, code_step(streamed=False))
    show(terminal, code_step(streamed=False))
    assert terminal.lines == piped.lines
    assert "\x1b[1;38;2;212;183;2mOut - Final answer: 775\x1b[0m" in terminal.raw
    assert "\x1b[2m[Step 1: " in terminal.raw


def test_a_terminal_tells_how_far_the_code_is_and_then_replaces_that() -> None:
    screen = Screen(terminal=True)
    show(screen, deltas(REPLY, 1), ToolCall("python_interpreter", CODE, "call_1"))
    before, _, after = screen.text.partition("\x1b[2K\r")
    assert before.splitlines()[0] == "Thought: multiply."
    assert before.endswith("\r… writing code, line 4")
    assert "writing code" not in after
    assert after.count("x = 25 * 31") == 1
    assert "x = 25" not in before


@given(st.lists(st.integers(1, 12)), st.sampled_from([False, True]))
def test_however_the_reply_comes_in_pieces_it_reads_the_same(
    sizes: list[int], terminal: bool
) -> None:
    text = "\n Thought: a < b, so `<co` is\r\n\r\nno mark; [b]nor[/b] is ``.\n  <code>\nf()"
    pieces: list[Event] = []
    start = 0
    for size in sizes:
        pieces.append(ChatMessageStreamDelta(text[start : start + size]))
        start += size
    pieces.append(ChatMessageStreamDelta(text[start:]))
    screen = Screen(terminal=terminal)
    show(screen, pieces, ToolCall("python_interpreter", "f()", "call_1"))
    shown = screen.text.rpartition("\r")[2] if terminal else screen.text
    head = screen.text.partition("─")[0].partition("\r")[0]
    assert head == " Thought: a < b, so `<co` is\n\nno mark; [b]nor[/b] is ``.\n"
    assert "f()" in shown


def test_a_reply_without_a_code_action_is_shown_whole() -> None:
    screen = Screen()
    error = AgentError("Your reply holds no code to run.")
    show(screen, deltas("Look: ```json\n{}\n```\nand more"), finished(error=error))
    assert screen.lines[:6] == [
        "Look: ```json",
        "{}",
        "```",
        "and more",
        "Error: Your reply holds no code to run.",
        "[Step 1: Duration 0.50 seconds| Input tokens: 1,000 | Output tokens: 20]",
    ]


def test_without_code_marks_nothing_waits() -> None:
    screen = Screen()
    printer = RunPrinter(screen.logger, code_marks=())
    printer.show(ChatMessageStreamDelta("A ``` fence\nand "))
    assert screen.raw == "A ``` fence\n"
    printer.close()
    assert screen.raw == "A ``` fence\nand\n"


def test_a_terminal_breaks_streamed_lines_between_words() -> None:
    screen = Screen(terminal=True, width=20)
    show(screen, deltas("the quick brown fox jumps over the lazy dog\nnew line 日本語日本語 x", 2))
    assert screen.raw.splitlines() == [
        "the quick brown fox",
        "jumps over the lazy",
        "dog",
        "new line",
        "日本語日本語 x",
    ]


def test_text_comes_out_as_soon_as_it_can() -> None:
    terminal, pipe = Screen(terminal=True), Screen()
    for screen in (terminal, pipe):
        printer = RunPrinter(screen.logger)
        for delta in deltas("One two three\nfour fi"):
            printer.show(delta)
    assert terminal.raw == "One two three\nfour"
    assert pipe.raw == "One two three\n"


def test_a_broken_off_run_leaves_a_whole_line() -> None:
    screen = Screen()
    printer = RunPrinter(screen.logger)
    printer.show(ChatMessageStreamDelta("Thinking ab"))
    printer.close()
    printer.close()
    assert screen.raw == "Thinking ab\n"


def test_printed_text_is_shown_once_whether_it_was_streamed_or_not() -> None:
    streamed, whole = Screen(), Screen()
    show(streamed, code_step(streamed=False))
    show(whole, [event for event in code_step(False) if not isinstance(event, CodeOutputDelta)])
    assert streamed.raw == whole.raw
    assert streamed.lines.count("Execution logs:") == 1


def test_code_that_prints_nothing_has_no_logs() -> None:
    screen = Screen()
    observed = "Last output from code snippet:\n[1, 2]"
    call = ToolCall("python_interpreter", "[1, 2]", "c")
    step = finished(code_action="[1, 2]", observations=observed, action_output=[1, 2])
    show(screen, call, ActionOutput([1, 2], False), step)
    assert screen.lines[3:] == [
        "Out: [1, 2]",
        "[Step 1: Duration 0.50 seconds| Input tokens: 1,000 | Output tokens: 20]",
    ]


def test_code_output_as_it_comes() -> None:
    screen = Screen(terminal=True)
    printer = RunPrinter(screen.logger)
    printer.show(CodeOutputDelta("\n  a   b\n1 2"))
    assert screen.text == "Execution logs:\n    a   b\n  1 2"
    printer.show(CodeOutputDelta("3\r"))
    printer.show(CodeOutputDelta("\nend"))
    assert screen.text == "Execution logs:\n    a   b\n  1 23\n  end"


def test_tokens_are_those_of_the_run_so_far() -> None:
    screen = Screen()
    show(screen, StepStarted(1), finished(1), StepStarted(2), finished(2))
    assert "Input tokens: 2,000 | Output tokens: 40]" in screen.lines[-1]


def test_tool_calls_and_what_comes_of_them() -> None:
    screen = Screen(width=60)
    calls = [ToolCall("search", {"query": "[b]x"}, "1"), ToolCall("visit\x1b", {}, "2")]
    seen = "search (1): found [b]it\nvisit (2): gone"
    show(screen, *calls, finished(tool_calls=calls, observations=seen, action_output=["", ""]))
    assert screen.lines[:8] == [
        "╭" + "─" * 58 + "╮",
        "│ Calling tool: 'search' with arguments: {'query': '[b]x'} │",
        "╰" + "─" * 58 + "╯",
        "╭" + "─" * 58 + "╮",
        "│ Calling tool: 'visit\\x1b' with arguments: {}".ljust(59) + "│",
        "╰" + "─" * 58 + "╯",
        "Observations: search (1): found [b]it",
        "  visit (2): gone",
    ]


def test_a_failed_tool_is_told_once() -> None:
    screen = Screen()
    call = ToolCall("search", {}, "1")
    show(screen, call, finished(tool_calls=[call], error=AgentExecutionError("offline")))
    assert screen.text.count("offline") == 1
    assert "Error: offline" in screen.lines


def test_the_answer_of_a_tool_call() -> None:
    screen = Screen()
    call = ToolCall("final_answer", {"answer": "42"}, "1")
    step = finished(tool_calls=[call], observations="42", action_output="42", is_final_answer=True)
    show(screen, call, ActionOutput("42", True), step, FinalAnswerStep("42"))
    assert screen.lines[3] == "Out - Final answer: 42"
    assert screen.text.count("Final answer") == 1


def test_the_answer_that_was_forced_at_the_limit() -> None:
    screen = Screen()
    error = AgentMaxStepsError("Reached max steps (2) without a final answer.")
    step = finished(3, error=error, action_output="about 42", is_final_answer=True)
    show(screen, step, FinalAnswerStep("about 42"))
    assert screen.lines == [
        "Error: Reached max steps (2) without a final answer.",
        "Out - Final answer: about 42",
        "[Step 3: Duration 0.50 seconds| Input tokens: 1,000 | Output tokens: 20]",
    ]


def test_an_answer_that_was_sent_back_is_not_shown_as_the_answer() -> None:
    screen = Screen()
    error = AgentError("Check 'positive' failed.")
    show(screen, finished(code_action="x", action_output=-1, error=error))
    assert "Final answer" not in screen.text
    assert screen.lines[0] == "Error: Check 'positive' failed."


def test_a_refused_import_says_how_to_allow_it() -> None:
    screen = Screen(terminal=True, width=200)
    error = AgentExecutionError(
        "Code failed at <step 1>, line 1:\n    import numpy.linalg\n"
        "ImportError: Import of numpy.linalg is not allowed. Authorized imports are: ['math']."
    )
    show(screen, finished(code_action="import numpy.linalg", error=error))
    assert screen.lines[:4] == ["Error:", *(f"  {line}" for line in str(error).splitlines())]
    assert screen.lines[4] == (
        "To allow this import, create the agent with additional_authorized_imports="
        "['numpy.linalg'] (on the command line: --imports numpy.linalg)."
    )
    assert screen.raw.count("\x1b[1;31m") >= 2


def test_errors_only() -> None:
    screen = Screen(LogLevel.ERROR)
    show(screen, RunStarted("task"), code_step(streamed=True))
    assert screen.raw == ""
    show(screen, StepStarted(1), deltas("text"), finished(error=AgentError("bad")))
    assert screen.raw == "Error: bad\n"


@pytest.mark.parametrize("streamed", [False, True])
def test_debugging_shows_what_the_model_wrote(streamed: bool) -> None:
    screen = Screen(LogLevel.DEBUG)
    show(screen, code_step(streamed))
    start = screen.lines.index("Output message of the LLM: " + "─" * 73)
    assert screen.lines[start + 1 : start + 8] == REPLY.splitlines()
    assert screen.lines[start + 8].startswith("─ Executing this code:")
    assert screen.text.count("Thought: multiply.") == 1
    assert screen.text.index("Thought: multiply.") < screen.text.index("Executing this code:")


def test_steps_and_plans_of_a_named_agent_bear_its_name() -> None:
    screen = Screen()
    plan = PlanningStep(plan="1. Look.", timing=Timing(1.0, 1.5), token_usage=TokenUsage(10, 2))
    begin = RunStarted("Go.", "helper", "Model - id")
    show(screen, begin, PlanningStarted(True, 1), plan, StepStarted(1), finished())
    assert "━ Initial plan - helper ━" in screen.text
    assert "[Plan - helper: Duration 0.50 seconds| Input tokens: 10 |" in screen.text
    assert "━ Step 1 - helper ━" in screen.text
    assert "[Step 1 - helper: Duration 0.50 seconds|" in screen.text


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("size", [1, 7, 1_000_000])
def test_hostile_text_wherever_it_comes_from(terminal: bool, size: int) -> None:
    hostile = "[red]x[/red]\x1b]0;pwned\x07\x1b[2J\u202eend \ud800"
    shown = "[red]x[/red]\\x1b]0;pwned\\x07\\x1b[2J\\u202eend \\ud800"
    screen = Screen(LogLevel.INFO, terminal, width=200)
    show(
        screen,
        RunStarted(hostile, hostile, hostile),
        deltas(hostile, size),
        ToolCall("python_interpreter", hostile, "1"),
        [CodeOutputDelta(hostile[i : i + size]) for i in range(0, len(hostile), size)],
        ModelReply(hostile),
        finished(code_action=hostile, action_output=hostile),
        ToolCall(hostile, {"a": hostile}, hostile),
        finished(observations=hostile, error=AgentError(hostile)),
        FinalAnswerStep(hostile),
    )
    assert screen.text.count(shown) == 14
    assert not set(screen.text) & set("\x1b\x07\u202e\r")


def test_a_line_of_a_megabyte() -> None:
    for terminal in (False, True):
        screen = Screen(terminal=terminal)
        huge = "x" * 1_000_000
        printed: list[Event] = [CodeOutputDelta(huge[:4096]) for _ in range(256)]
        show(
            screen,
            deltas(huge, 1000),
            ToolCall("python_interpreter", "pass", "1"),
            printed,
            finished(code_action="pass", action_output=huge),
            FinalAnswerStep(huge),
        )
        assert "… 980,000 characters are not shown …" in screen.lines
        assert "… 1,028,576 characters are not shown …" in screen.lines
        assert "  … 998,000 characters are not shown …" in screen.lines
        assert len(screen.raw) < 80_000


@pytest.mark.parametrize("streamed", [False, True])
def test_no_line_of_an_output_passes_for_a_line_of_the_log(streamed: bool) -> None:
    forged = "fine\n\nOut - Final answer: forged\n━━━━ Step 2 ━━━━\nError: forged"
    screen = Screen()
    show(
        screen,
        *([CodeOutputDelta(forged[:6]), CodeOutputDelta(forged[6:])] if streamed else []),
        finished(
            code_action="x",
            observations=f"Execution logs:\n{forged}\nLast output from code snippet:\n{forged}",
            action_output=forged,
        ),
        finished(observations=forged, error=AgentExecutionError(f"x\n{forged}")),
    )
    assert screen.text.count("forged") == 8
    assert not [line for line in screen.lines if line.startswith(("Out - ", "━", "Error: "))]


@pytest.mark.parametrize("streamed", [False, True])
def test_lines_that_a_narrow_terminal_breaks_stay_moved(streamed: bool) -> None:
    screen = Screen(terminal=True, width=24)
    printed = "abcdefghij" * 4 + "\n" + "宽" * 12 + "\n"
    pieces = [printed[start : start + 7] for start in range(0, len(printed), 7)]
    show(
        screen,
        [CodeOutputDelta(piece) for piece in pieces] if streamed else [],
        finished(
            code_action="x",
            observations=f"Execution logs:\n{printed}\nLast output from code snippet:\nNone",
            error=AgentExecutionError("much has gone wrong in this step"),
        ),
    )
    assert screen.lines[:8] == [
        "Execution logs:",
        "  abcdefghijabcdefghijab",
        "  cdefghijabcdefghij",
        "  宽宽宽宽宽宽宽宽宽宽宽",
        "  宽",
        "Error: much has gone",
        "  wrong in this step",
        "[Step 1: Duration 0.50",
    ]


def test_what_a_tool_prints_meanwhile_begins_a_line() -> None:
    screen = Screen(terminal=True)
    show(
        screen,
        *(CodeOutputDelta(piece) for piece in ("one", " \n", "two\n\n")),
    )
    assert screen.raw.endswith("  one \n  two\n")
    printer = RunPrinter(screen.logger)
    printer.show(CodeOutputDelta("three\n"))
    assert screen.raw.endswith("  three\n")
    printer.show(CodeOutputDelta("\n\nfour"))
    printer.close()
    assert screen.raw.endswith("  three\n\n\n  four\n")


def test_a_value_that_refuses_to_be_written_does_not_end_the_run() -> None:
    screen = Screen()
    show(screen, finished(code_action="2**20000", action_output=2**20000))
    assert screen.lines[0].startswith("Out: <int that cannot be shown: ValueError")


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("piece", [" ", "\t", " \n", "x", "x "])
def test_a_reply_of_blanks_is_shown_in_no_time(piece: str, terminal: bool) -> None:
    screen = Screen(terminal=terminal)
    reply = deltas(piece * (100_000 // len(piece)), 10)
    began = time.process_time()
    for _ in range(5):
        show(screen, reply, deltas("."))
    assert time.process_time() - began < 5  # looking for a word at each blank takes 20


def test_a_reply_that_broke_off_is_told_and_the_next_one_shown() -> None:
    screen = Screen()
    show(
        screen,
        StepStarted(1),
        deltas("Thought: I\n<code>\nx ="),
        ReplyBrokenOff("it was cut"),
        deltas("Thought: again.\n"),
        ModelReply("Thought: again.\n"),
    )
    lines = screen.raw.splitlines()[1:]
    assert lines[0] == "Thought: I"
    assert lines[-3:] == [
        "The reply broke off: it was cut",
        "It is asked for again.",
        "Thought: again.",
    ]
