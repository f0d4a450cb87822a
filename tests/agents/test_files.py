"""Files that come with a task, and files that its code has written."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sanderling import (
    AgentGenerationError,
    CodeAgent,
    LogLevel,
    OpenAIModel,
    RunResult,
    SandboxError,
    ScriptedModel,
    ToolCallingAgent,
)
from sanderling.console import AgentLogger
from support.drivers import Driver, both_drivers


def code(*lines: str) -> str:
    return "\n".join(["<code>", *lines, "</code>"])


def agent_for(*replies: Any, **kwargs: Any) -> CodeAgent:
    return CodeAgent([], ScriptedModel(replies), **{"verbosity_level": LogLevel.OFF, **kwargs})


DONE = "final_answer('done')"
WRITES = code(
    "import os",
    "open('out.csv', 'w').write('a,b\\n')",
    "os.mkdir('plots')",
    "open('plots/a.png', 'wb').write(b'\\x89PNG')",
    DONE,
)
IMPORTS: dict[str, Any] = {"additional_authorized_imports": ["os"]}


@both_drivers
def test_files_go_in_and_are_told(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x\n1\n")
    (tmp_path / "more" / "deep").mkdir(parents=True)
    (tmp_path / "more" / "deep" / "b.txt").write_text("beta")
    read = code(
        "final_answer(open('data.csv').read() + open('more/deep/b.txt').read())",
    )
    with agent_for(read) as agent:
        files = [str(tmp_path / "data.csv"), tmp_path / "more"]
        assert driver.run(agent, "Read.", files=files) == "x\n1\nbeta"
        task = str(agent.memory.steps[0].dict()["task"])
    assert "data.csv (4 bytes)" in task
    assert "more/deep/b.txt (4 bytes)" in task
    assert str(tmp_path) not in task
    assert (tmp_path / "data.csv").read_text() == "x\n1\n"


@both_drivers
def test_what_code_changes_is_a_copy(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("mine")
    (tmp_path / "kept.csv").write_text("same")
    with agent_for(code("open('data.csv', 'a').write(' and yours')", DONE)) as agent:
        files = [tmp_path / "data.csv", tmp_path / "kept.csv"]
        result = driver.run(agent, "Write.", files=files, return_full_result=True)
        assert [(one.name, one.read()) for one in result.files] == [("data.csv", b"mine and yours")]
    assert (tmp_path / "data.csv").read_text() == "mine"


@both_drivers
def test_a_later_run_gets_its_files_anew(driver: Driver, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("first")
    link = code("import os", "os.remove('data.csv')", "os.symlink('/etc', 'data.csv')", DONE)
    with agent_for(link, code("final_answer(open('data.csv').read())"), **IMPORTS) as agent:
        driver.run(agent, "One.", files=[data])
        data.write_text("second")
        assert driver.run(agent, "Two.", files=[data], reset=False) == "second"


@both_drivers
def test_a_result_lists_what_was_written(driver: Driver, tmp_path: Path) -> None:
    with agent_for(WRITES, **IMPORTS) as agent:
        result = driver.run(agent, "Write.", return_full_result=True)
        assert isinstance(result, RunResult)
        assert [(one.name, one.size, one.type) for one in result.files] == [
            ("out.csv", 4, "text/csv"),
            ("plots/a.png", 4, "image/png"),
        ]
        table, plot = result.files
        assert table.read() == b"a,b\n"
        assert plot.save_to(tmp_path) == tmp_path / "a.png"
        assert plot.save_to(tmp_path / "b.png").read_bytes() == b"\x89PNG"
        assert table.dict() == {"name": "out.csv", "size": 4, "type": "text/csv"}
        assert result.dict()["files"] == [table.dict(), plot.dict()]
        assert copy.deepcopy(result).files == result.files
        assert pickle.loads(pickle.dumps(result.files))[0].read() == b"a,b\n"
    with pytest.raises(SandboxError, match="keep_files"):
        table.read()


@both_drivers
def test_files_are_kept_where_that_was_asked_for(driver: Driver, tmp_path: Path) -> None:
    with agent_for(WRITES, **IMPORTS) as agent:
        driver.run(agent, "Write.", keep_files=tmp_path / "of" / "run")
    assert (tmp_path / "of" / "run" / "plots" / "a.png").read_bytes() == b"\x89PNG"
    (tmp_path / "of" / "run" / "out.csv").write_text("old")
    with agent_for(WRITES, keep_files=tmp_path / "of" / "run", **IMPORTS) as agent:
        driver.run(agent, "Write.")
    assert (tmp_path / "of" / "run" / "out.csv").read_text() == "a,b\n"


def test_no_link_leads_out_of_the_folder_that_keeps(tmp_path: Path) -> None:
    outside, kept = tmp_path / "outside", tmp_path / "kept"
    outside.mkdir()
    kept.mkdir()
    (kept / "plots").symlink_to(outside)
    (kept / "out.csv").symlink_to(outside / "out.csv")
    with agent_for(WRITES, **IMPORTS) as agent, pytest.warns(RuntimeWarning, match="plots/a.png"):
        agent.run("Write.", keep_files=kept)
    assert list(outside.iterdir()) == []
    assert not (kept / "out.csv").is_symlink()
    assert (kept / "out.csv").read_text() == "a,b\n"


def test_links_and_hostile_names_are_not_listed() -> None:
    hostile = code(
        "import os",
        "os.symlink('/etc/passwd', 'link.txt')",
        "os.symlink('/etc', 'folder')",
        "open('evil\\x1b[2J.txt', 'w').write('x')",
        "open(b'\\xff.txt', 'w').write('x')",
        "open('.hidden', 'w').write('x')",
        "os.mkdir('__pycache__'); open('__pycache__/a.pyc', 'w').write('x')",
        "open('good.txt', 'w').write('x')",
        DONE,
    )
    with agent_for(hostile, **IMPORTS) as agent:
        result = agent.run("Write.", return_full_result=True)
        assert [one.name for one in result.files] == ["good.txt"]


@pytest.mark.parametrize(
    "swap",
    [
        "os.remove('d/a.txt'); os.symlink('/etc/passwd', 'd/a.txt')",
        "os.rename('d', 'e'); os.symlink('/etc', 'd')",
        "os.remove('d/a.txt'); os.mkdir('d/a.txt')",
    ],
)
def test_what_is_swapped_for_a_link_is_not_read(swap: str, tmp_path: Path) -> None:
    write = code("import os", "os.mkdir('d'); open('d/a.txt', 'w').write('x')", DONE)
    with agent_for(write, code(f"import os; {swap}", DONE), **IMPORTS) as agent:
        (file,) = agent.run("Write.", return_full_result=True).files
        agent.run("Swap.", reset=False)
        with pytest.raises(SandboxError, match="not there any more"):
            file.read()
        with pytest.raises(SandboxError, match="not there any more"):
            file.save_to(tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_many_files_are_listed_up_to_a_bound() -> None:
    many = code("for n in range(1_100): open(f'{n:04}.txt', 'w').close()", DONE)
    with agent_for(many) as agent:
        result = agent.run("Write.", return_full_result=True)
    assert len(result.files) == 1_000


def test_a_file_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with agent_for(code(DONE)) as agent:
        with pytest.raises(FileNotFoundError, match=r"files\[0\].*none\.csv"):
            agent.run("Read.", files=[tmp_path / "none.csv"])
        with pytest.raises(TypeError, match=r"files=\[\.\.\.\]"):
            agent.run("Read.", files="data.csv")
        with pytest.raises(TypeError, match=r"files\[0\] is a path, not a int"):
            agent.run("Read.", files=[3])  # type: ignore[list-item]
        (tmp_path / "file").write_text("")
        with pytest.raises(NotADirectoryError):
            agent.run("Write.", keep_files=tmp_path / "file")
        assert agent.memory.steps == []
        assert agent.run("Go.") == "done"


def test_two_files_of_one_name_and_links_in_folders_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text("")
    (tmp_path / "a" / "link").symlink_to("/etc/passwd")
    with agent_for(code(DONE)) as agent:
        with pytest.raises(ValueError, match=r"two of files= are called 'x\.csv'"):
            agent.run("Read.", files=[tmp_path / "a" / "x.csv", tmp_path / "b" / "x.csv"])
        with pytest.raises(ValueError, match="link within a folder"):
            agent.run("Read.", files=[tmp_path / "a"])


def test_files_too_large_for_the_folder_are_refused_at_once(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2 << 20)
    small = agent_for(code(DONE), executor_kwargs={"workdir_bytes": 1 << 20})
    with small, pytest.raises(ValueError, match="workdir_bytes"):
        small.run("Read.", files=[tmp_path / "large"])
    (tmp_path / "many").mkdir()
    for number in range(9):
        (tmp_path / "many" / str(number)).touch()
    few = agent_for(code(DONE), executor_kwargs={"workdir_files": 9})
    with few, pytest.raises(ValueError, match="workdir_files"):
        few.run("Read.", files=[tmp_path / "many"])


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"executor_type": "docker"}, "executor_type='docker'"),
        ({"executor_type": "wasm"}, "executor_type='wasm'"),
        ({"executor_type": "inprocess"}, 'executor_type="inprocess"'),
        ({"executor_kwargs": {"workdir_in_memory": True}}, "workdir_in_memory"),
        ({"executor": lambda code, state: (None, "")}, "function"),
    ],
)
@pytest.mark.parametrize("argument", ["files", "keep_files"])
def test_where_no_folder_can_be_reached_that_is_said(
    settings: dict[str, Any], named: str, argument: str, tmp_path: Path
) -> None:
    value: Any = [] if argument == "files" else tmp_path / "kept"
    with agent_for(code(DONE), **settings) as agent, pytest.raises(SandboxError) as caught:
        agent.run("Go.", **{argument: value})
    assert named in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_agent_without_code_takes_no_files(tmp_path: Path) -> None:
    agent = ToolCallingAgent([], ScriptedModel([]), verbosity_level=LogLevel.OFF)
    with pytest.raises(TypeError, match="runs no code, and has no work folder"):
        agent.run("Go.", files=[tmp_path])


@both_drivers
def test_the_user_is_told_what_is_left_behind(driver: Driver, tmp_path: Path) -> None:
    shown = io.StringIO()
    logger = AgentLogger(console=Console(file=shown, width=200))
    with agent_for(WRITES, WRITES, code(DONE), logger=logger, **IMPORTS) as agent:
        driver.run(agent, "Write.")
        left = shown.getvalue()
        driver.run(agent, "Write.", keep_files=tmp_path)
        kept = shown.getvalue().removeprefix(left)
        driver.run(agent, "Nothing.")
        nothing = shown.getvalue().removeprefix(left + kept)
    assert "2 files are left in the sandbox" in left
    assert 'out.csv, plots/a.png. run(..., keep_files="folder")' in left
    assert f"2 files are kept in {tmp_path}" in kept
    assert "keep_files" not in kept + nothing


def test_files_of_a_managed_agent_are_kept(tmp_path: Path) -> None:
    worker = agent_for(WRITES, name="worker", description="Works.", keep_files=tmp_path, **IMPORTS)
    boss = agent_for(code("final_answer(worker('Write.'))"), managed_agents=[worker])
    with boss, worker:
        boss.run("Write.")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "plots"]


def test_an_agent_that_is_called_takes_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    read = code("final_answer(open('a.txt').read())")
    with agent_for(read, name="reader", description="Reads.") as agent:
        assert "alpha" in agent("Read.", files=[tmp_path / "a.txt"])


def test_a_single_step_finds_files_and_keeps_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    with agent_for(code("final_answer(open('a.txt').read())")) as agent:
        assert agent.run("Read.", single_step=True, files=[tmp_path / "a.txt"]) == "alpha"
        with pytest.raises(ValueError, match="single_step"):
            agent.run("Read.", single_step=True, keep_files=tmp_path)


def test_a_run_that_ends_with_an_error_keeps_files_too(tmp_path: Path) -> None:
    write = code("open('out.csv', 'w').write('x')", "1 / 0")
    agent = agent_for(write, ValueError("no model"))
    with agent, pytest.raises(AgentGenerationError, match="no model"):
        agent.run("Write.", keep_files=tmp_path)
    assert (tmp_path / "out.csv").read_text() == "x"


def test_a_form_does_not_choose_where_files_go() -> None:
    form = CodeAgent([], OpenAIModel("m", api_key="k"), keep_files=Path("out")).to_dict()
    assert form["keep_files"] == "out"
    with pytest.raises(ValueError, match="keep_files"):
        CodeAgent.from_dict(form, model=ScriptedModel([]))
    assert CodeAgent.from_dict(form, model=ScriptedModel([]), keep_files=None).keep_files is None


@pytest.mark.parametrize("call", ["open('sales.csv')", "pandas.read_csv('data/sales.csv')"])
def test_a_relative_path_that_is_not_there_says_what_is(call: str) -> None:
    listing = code("open('sale.csv', 'w').write('x')", "import pandas", call)
    with agent_for(listing, code(DONE), additional_authorized_imports=["pandas"]) as agent:
        agent.run("Read.")
        error = str(agent.memory.steps[1].dict()["error"])
    assert "has \\'sale.csv\\'" in error
    assert "files=" in error
