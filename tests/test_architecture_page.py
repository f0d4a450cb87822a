"""The page for newcomers tells the truth: the way to the model, the files, the example."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sanderling
from sanderling import LogLevel, Model, ToolCallingAgent
from support.play import says

if TYPE_CHECKING:
    from sanderling import ChatMessage

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SOURCE = Path(sanderling.__file__).parent
MOST_HOPS = 8


class Watched(Model):
    """Notes the way to the place where it is chosen in which thread the model is asked."""

    way: list[str]

    @property
    def prefers_async(self) -> bool:
        frame: Any = sys._getframe(1)
        self.way = []
        while frame is not None and frame.f_code.co_qualname != type(self).ask.__qualname__:
            if frame.f_globals["__name__"].startswith("sanderling."):
                self.way.append(frame.f_code.co_qualname)
            frame = frame.f_back
        self.way.reverse()
        return False

    def ask(self) -> object:
        return ToolCallingAgent([], self, verbosity_level=LogLevel.OFF).run("Go.")

    def generate(self, messages: Sequence[Any], *args: Any, **kwargs: Any) -> ChatMessage:
        return says(None, ("final_answer", {"answer": 1}))


def test_the_way_from_a_run_to_its_model_is_that_of_the_page() -> None:
    model = Watched()
    assert model.ask() == 1
    assert model.way == [
        "MultiStepAgent.run",
        "Run.answer",
        "Run._go_on",
        "drive",
        "EffectHandler.handle",
        "EffectHandler._carry_out",
        "ModelCalls.generate",
    ]
    hops = [*model.way[1:], "ModelThread.ask", "model.generate"]
    assert len(hops) <= MOST_HOPS
    for name in hops:
        assert name.split(".")[-1] in PAGE


def test_the_files_of_the_page_are_there() -> None:
    files = re.findall(r"(?<!/)\b((?:agents|runtime|loop|models|sandbox)/[\w/]*(?:\.py)?)", PAGE)
    assert len(files) > 15
    for file in files:
        assert (SOURCE / file).exists(), file


def test_the_example_shows_the_loop() -> None:
    script = ROOT / "examples" / "own_loop.py"
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "1: 'double 20' -> 'double returned 40'",
        "2: 'add 40' -> 'add returned 41'",
        "3: 'answer 41' -> None",
        "The answer: 41",
    ]
