"""What a notebook is given to display: one output for each part of a step, for every theme."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from console.test_printer import code_step, deltas, finished, show
from sanderling.console import AgentLogger, LogLevel
from sanderling.errors import AgentExecutionError
from sanderling.loop import CodeOutputDelta, RunStarted, StepStarted
from sanderling.memory import ToolCall

# Of Rich for a colour that was not chosen, and of its "red": a dark page hides both.
HIDDEN_IN_THE_DARK = ("#000000", "#800000")


@dataclass
class Page:
    """The outputs of one cell, as `IPython.display.display` makes them."""

    logger: AgentLogger = field(
        default_factory=lambda: AgentLogger(
            LogLevel.INFO, Console(force_jupyter=True, color_system="truecolor", highlight=False)
        )
    )
    outputs: list[dict[str, str]] = field(default_factory=list)

    def display(self, shown: Any, *, raw: bool = False, display_id: bool = False) -> Handle | None:
        self.outputs.append(shown if raw else shown._repr_mimebundle_([], []))
        return Handle(self.outputs, len(self.outputs) - 1) if display_id else None

    @property
    def texts(self) -> list[str]:
        """What a reader sees."""
        tags = [re.sub(r"<[^>]*>", "", output["text/html"]) for output in self.outputs]
        return [text.replace("&lt;", "<").replace("&gt;", ">").strip() for text in tags]

    @property
    def html(self) -> str:
        return "".join(output["text/html"] for output in self.outputs)


@dataclass
class Handle:
    outputs: list[dict[str, str]]
    place: int

    def update(self, shown: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.outputs[self.place] = shown


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    page = Page()
    package, module = ModuleType("IPython"), ModuleType("IPython.display")
    module.display = page.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return page


def test_a_run_of_two_steps_is_nine_outputs(page: Page) -> None:
    show(page, RunStarted("x", None, "m"), code_step(streamed=False), code_step(streamed=False))
    begins = [text.splitlines()[0].strip("━─ ") for text in page.texts[1:]]
    step = ["Step 1", "Executing this code:", "Execution logs:", "Out - Final answer: 775"]
    assert begins == [*step, *step]


def test_code_is_coloured_on_a_ground_of_its_own(page: Page) -> None:
    page.logger.log_code("Code", "for x in 'text': pass")
    keyword = re.search(r'<span style="([^"]*)">for</span>', page.html)
    assert keyword is not None
    assert "background-color: #" in keyword[1]
    assert keyword[1].startswith("color: #")


def test_no_text_has_a_colour_that_a_dark_page_hides(page: Page) -> None:
    show(
        page,
        RunStarted("x", "helper", "m"),
        StepStarted(1),
        ToolCall("python_interpreter", "1 / 0", "call_1"),
        CodeOutputDelta("text\n"),
        finished(error=AgentExecutionError("ZeroDivisionError"), code_action="1 / 0"),
        finished(code_action="x", action_output=1),
    )
    assert not [colour for colour in HIDDEN_IN_THE_DARK if colour in page.html]


def test_printed_lines_and_streamed_replies_grow_in_one_output(page: Page) -> None:
    show(page, deltas("Thought:\nI count.\n"), [CodeOutputDelta(f"line {n}\n") for n in range(50)])
    assert page.texts[0] == "Thought:\nI count."
    assert page.texts[1].splitlines()[:2] == ["Execution logs:", "  line 0"]
    assert page.texts[1].splitlines()[-1] == "  line 49"
    assert len(page.outputs) == 2
    assert page.outputs[1]["text/plain"].startswith("Execution logs:\n  line 0\n")


def test_nothing_printed_is_read_as_html(page: Page) -> None:
    show(page, deltas("<img src=x>\n"), CodeOutputDelta("<script>x</script>\x1b[2J\n"))
    assert "<img" not in page.html
    assert "<script" not in page.html
    assert page.texts == ["<img src=x>", "Execution logs:\n  <script>x</script>\\x1b[2J"]


def test_long_lines_are_broken_and_moved(page: Page) -> None:
    show(page, CodeOutputDelta("x" * 300 + "\n"), finished(error=AgentExecutionError("y " * 150)))
    for text in page.texts:
        lines = [line for line in text.splitlines()[1:] if line[:1] != "["]
        assert len(lines) > 1
        assert all(line.startswith("  ") and len(line) <= 115 for line in lines)
