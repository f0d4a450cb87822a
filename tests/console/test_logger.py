from __future__ import annotations

import subprocess
import sys

import pytest
from rich.panel import Panel

from console.screen import Screen
from sanderling.console import AgentLogger, LogLevel
from sanderling.messages import ChatMessage, MessageRole

HOSTILE = "[bold red]x[/bold red] [link=http://evil]y[/link] :smile: \x1b]0;pwned\x07 \x9b2J \r!"
SHOWN = "[bold red]x[/bold red] [link=http://evil]y[/link] :smile: \\x1b]0;pwned\\x07 \\x9b2J \\r!"


def print_everything(logger: AgentLogger) -> None:
    logger.log("info")
    logger.log("debug", level=LogLevel.DEBUG)
    logger.log_error("error")
    logger.log_markdown("markdown", title="title")
    logger.log_code("code title", "pass")
    logger.log_rule("rule")
    logger.log_task("task", "subtitle")
    logger.log_messages([ChatMessage(MessageRole.USER, "message")])
    logger.log_messages([{"role": "user", "content": "message of a dict"}])


@pytest.mark.parametrize(
    ("level", "shown", "hidden"),
    [
        (LogLevel.OFF, [], ["error", "info", "debug", "rule", "task", "message"]),
        (LogLevel.ERROR, ["error"], ["info", "debug", "rule", "task", "message", "markdown"]),
        (LogLevel.INFO, ["error", "info", "rule", "task", "markdown"], ["debug", "message"]),
        (LogLevel.DEBUG, ["error", "info", "debug", "rule", "task", "message", "user"], []),
    ],
)
def test_a_level_shows_what_is_important_enough(
    level: LogLevel, shown: list[str], hidden: list[str]
) -> None:
    screen = Screen(level)
    print_everything(screen.logger)
    assert [word for word in shown if word not in screen.text] == []
    assert [word for word in hidden if word in screen.text] == []


def test_levels_have_names() -> None:
    screen = Screen()
    screen.logger.log("shown", level="info")
    screen.logger.log("hidden", level="debug")
    screen.logger.level = "debug"  # type: ignore[assignment]  # by a user's settings
    screen.logger.log("shown, too", level="DEBUG")
    assert screen.lines == ["shown", "shown, too"]
    with pytest.raises(ValueError, match="'loud' is no LogLevel; there is: OFF"):
        screen.logger.log("x", level="loud")


def test_the_level_can_be_changed() -> None:
    screen = Screen()
    screen.logger.level = LogLevel.OFF
    print_everything(screen.logger)
    assert screen.raw == ""
    screen.logger.level = LogLevel.INFO
    screen.logger.log("back")
    assert screen.raw == "back\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_no_text_is_read_as_markup_or_steers_the_terminal(terminal: bool) -> None:
    screen = Screen(LogLevel.DEBUG, terminal, width=200)
    logger = screen.logger
    logger.log(HOSTILE)
    logger.log_error(HOSTILE)
    logger.log_markdown(HOSTILE, title=HOSTILE)
    logger.log_code(HOSTILE, HOSTILE)
    logger.log_rule(HOSTILE)
    logger.log_task(HOSTILE, HOSTILE, HOSTILE)
    logger.log_messages([ChatMessage(MessageRole.USER, HOSTILE)])
    assert screen.text.count(SHOWN) == 11
    assert not set(screen.text) & set("\x1b\x07\x9b\r")


def test_a_pipe_gets_plain_lines_as_they_are() -> None:
    screen = Screen(width=80)
    line = "https://example.com/" + "x" * 300
    screen.logger.log(line, style="bold red")
    screen.logger.log_code("Code:", f"url = '{line}'\nprint(url)")
    assert screen.raw.splitlines() == [
        line,
        "─ Code: " + "─" * 72,
        f"url = '{line}'",
        "print(url)",
        "─" * 80,
    ]


def test_a_terminal_gets_colours() -> None:
    screen = Screen(terminal=True)
    screen.logger.log_code("Code:", "import math")
    screen.logger.log_error("bad")
    assert "\x1b[38;2;255;70;137;48;2;39;40;34mimport\x1b[0m" in screen.raw
    assert "\x1b[1;31mbad\x1b[0m" in screen.raw


def test_an_output_that_knows_few_characters_gets_escapes() -> None:
    screen = Screen(encoding="ascii", width=30)
    screen.logger.log("naïve 🎉 \ud800")
    screen.logger.log_code("Code:", "x = '€'")
    screen.logger.log_task("tâsk", "model")
    screen.logger.log_rule("Step 1")
    text = screen.raw
    assert "na\\xefve \\U0001f389 \\ud800" in text
    assert "x = '\\u20ac'" in text
    assert "t\\xe2sk" in text
    assert "Step 1" in text


def test_huge_texts_are_cut_and_say_so() -> None:
    screen = Screen()
    screen.logger.log_error("e" * 1_000_000)
    screen.logger.log_code("Code:", "c" * 1_000_000)
    screen.logger.log_task("t" * 1_000_000, "model")
    assert len(screen.raw) < 80_000
    assert screen.raw.count("… 980,000 characters are not shown …") == 3


def test_the_panel_of_a_run() -> None:
    screen = Screen(width=40)
    screen.logger.log_task("What is 25 times 31?", "OpenAIModel - gpt-5", "solver")
    assert screen.lines == [
        "╭────────── New run - solver ──────────╮",
        "│                                      │",
        "│ What is 25 times 31?                 │",
        "│                                      │",
        "╰─ OpenAIModel - gpt-5 ────────────────╯",
    ]


def test_renderables_and_other_values_can_be_logged() -> None:
    screen = Screen(width=20)
    screen.logger.log(Panel("in a box"))
    screen.logger.log({"a": ["[b]"]}, 1, "text")
    assert screen.lines[1:] == [
        "│ in a box         │",
        "╰──────────────────╯",
        "{'a': ['[b]']} 1 text",
    ]


@pytest.mark.parametrize("level", ["OFF", "ERROR"])
def test_rich_is_not_imported_before_something_is_printed(level: str) -> None:
    script = (
        "import sys; from sanderling.console import AgentLogger, LogLevel, RunPrinter, Monitor; "
        "from sanderling.loop import RunStarted, StepStarted; "
        "from sanderling.messages import ChatMessageStreamDelta; "
        f"printer = RunPrinter(AgentLogger(LogLevel.{level})); "
        "[printer.show(e) for e in (RunStarted('t'), StepStarted(1), ChatMessageStreamDelta('x'))];"
        "printer.close(); print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"False\n"
