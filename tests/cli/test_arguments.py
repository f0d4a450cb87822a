from __future__ import annotations

import io
import sys
from typing import get_args

import pytest

from sanderling import __version__
from sanderling.cli._arguments import read_arguments
from sanderling.sandbox._create import ExecutorType


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def type_in(monkeypatch: pytest.MonkeyPatch, text: str, *, terminal: bool = False) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(text) if terminal else io.StringIO(text))


def test_a_task_alone_has_sensible_defaults() -> None:
    arguments = read_arguments(["What is 2 + 2?"])
    assert arguments.task == "What is 2 + 2?"
    assert arguments.model_type is None
    assert arguments.action_type == "code"
    assert arguments.executor_type == "local"
    assert arguments.max_steps == 20
    assert arguments.verbosity_level == 1
    assert arguments.imports == ()
    assert arguments.stream


def test_every_option_arrives() -> None:
    line = (
        "--model-type OpenAIModel --model-id gpt-x --api-base http://127.0.0.1:1/v1 --api-key k "
        "--model-path m.gguf --action-type tool_calling --executor-type inprocess --max-steps 3 "
        "--verbosity-level -1 --no-stream"
    )
    arguments = read_arguments(["Plot it", *line.split(), "--imports", "numpy", "os.path", "a.*"])
    assert arguments.model_type == "OpenAIModel"
    assert arguments.model_id == "gpt-x"
    assert arguments.model_path == "m.gguf"
    assert arguments.api_base == "http://127.0.0.1:1/v1"
    assert arguments.api_key == "k"
    assert arguments.imports == ("numpy", "os.path", "a.*")
    assert arguments.action_type == "tool_calling"
    assert arguments.executor_type == "inprocess"
    assert arguments.max_steps == 3
    assert arguments.verbosity_level == -1
    assert not arguments.stream


def test_words_without_quotes_are_one_task() -> None:
    assert read_arguments(["add", "2", "--quiet", "and", "2"]).task == "add 2 and 2"


def test_imports_add_up() -> None:
    assert read_arguments(["t", "--imports", "a", "b", "--imports", "*"]).imports == ("a", "b", "*")


def test_quiet_is_the_lowest_verbosity() -> None:
    assert read_arguments(["t", "--quiet", "--verbosity-level", "2"]).verbosity_level == -1


@pytest.mark.parametrize("argv", [["-"], []])
def test_the_task_can_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    type_in(monkeypatch, "Add\n2 and 2\n")
    assert read_arguments(argv).task == "Add\n2 and 2"


def test_a_dash_reads_what_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "typed\n", terminal=True)
    assert read_arguments(["-"]).task == "typed"


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("argv", [[], [""], ["  "]])
def test_no_task_is_an_error_with_an_example(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    terminal: bool,
) -> None:
    type_in(monkeypatch, "task of the terminal" if terminal else "", terminal=terminal)
    with pytest.raises(SystemExit) as ended:
        read_arguments(argv)
    assert ended.value.code == 2
    assert 'sanderling "What is the' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["t", "--imports", "What is 2?"], "'What is 2?' is no name of a module"),
        (["doctr"], "Did you mean sanderling doctor?"),
        (["model", "--quiet"], "Did you mean sanderling models?"),
        (["t", "--imports", "a;b"], "no name of a module"),
        (["t", "--max-steps", "0"], "must be at least 1"),
        (["t", "--max-steps", "many"], "invalid"),
        (["t", "--verbosity-level", "3"], "invalid choice"),
        (["t", "--executor-type", "cloud"], "invalid choice"),
        (["t", "--no-such-option"], "--no-such-option"),
    ],
)
def test_a_wrong_option_is_told(
    capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        read_arguments(argv)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for option, said in (("--version", f"sanderling {__version__}"), ("--help", "--model-id")):
        with pytest.raises(SystemExit) as ended:
            read_arguments([option])
        assert ended.value.code == 0
        assert said in capsys.readouterr().out


def test_code_can_run_wherever_the_library_can_run_it() -> None:
    for place in get_args(ExecutorType):
        assert read_arguments(["t", "--executor-type", place]).executor_type == place


def test_a_task_behind_imports_is_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "", terminal=True)
    arguments = read_arguments(["--imports", "pandas", "os.path", "What is 2 + 2?"])
    assert arguments.task == "What is 2 + 2?"
    assert arguments.imports == ("pandas", "os.path")


@pytest.mark.parametrize("line", [["--", "doctr"], ["doctr", "it"], ["documents"]])
def test_what_only_resembles_a_command_is_a_task(line: list[str]) -> None:
    assert read_arguments(line).task == " ".join(word for word in line if word != "--")


def test_a_task_that_could_be_a_module_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(monkeypatch, "", terminal=True)
    with pytest.raises(SystemExit) as ended:
        read_arguments(["--imports", "numpy", "t"])
    assert ended.value.code == 2
    assert "put it before the options" in " ".join(capsys.readouterr().err.split())
