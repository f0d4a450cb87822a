"""The files of a work folder, seen from the host, with code at work in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sanderling.errors import SandboxError
from sanderling.sandbox import WorkFiles, create_interpreter, incoming_files, keep_files
from sanderling.sandbox._limits import Limits


class Folder:
    """A backend that is no more than its folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.limits = Limits(workdir_bytes=1 << 20, workdir_files=100)

    def work_folder(self, *, make: bool) -> str | None:
        if make:
            self.path.mkdir(exist_ok=True)
        return str(self.path) if self.path.exists() else None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def files(folder: Path) -> WorkFiles:
    return WorkFiles(Folder(folder))


def test_nothing_is_made_for_a_look(files: WorkFiles, folder: Path, tmp_path: Path) -> None:
    assert files.written() == ()
    files.check(incoming_files([]))
    files.bring(incoming_files([]))
    assert not folder.exists()


@pytest.mark.parametrize("trap", ["link", "link to a folder", "broken link", "file"])
def test_nothing_is_written_through_what_code_has_put_there(
    files: WorkFiles, folder: Path, tmp_path: Path, trap: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "data.csv").write_text("precious")
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "data.csv").write_text("mine")
    (tmp_path / "data.csv").write_text("mine")
    folder.mkdir()
    match trap:
        case "link":
            (folder / "data.csv").symlink_to(outside / "data.csv")
            (folder / "in").symlink_to(outside)
        case "link to a folder":
            (folder / "data.csv").symlink_to(outside)
            (folder / "in").mkdir()
            (folder / "in" / "deep").symlink_to(outside)
        case "broken link":
            (folder / "data.csv").symlink_to(outside / "new")
            (folder / "in").symlink_to(outside / "new")
        case "file":
            (folder / "in").write_text("in the way")
    files.bring(incoming_files([tmp_path / "data.csv", tmp_path / "in"]))
    assert (folder / "data.csv").read_text() == (folder / "in/deep/data.csv").read_text() == "mine"
    assert not (folder / "data.csv").is_symlink()
    assert [path.name for path in outside.iterdir()] == ["data.csv"]
    assert (outside / "data.csv").read_text() == "precious"
    assert files.written() == ()


def test_a_folder_in_the_place_of_a_file_is_an_error(
    files: WorkFiles, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "data.csv").write_text("mine")
    (folder / "data.csv" / "inner").mkdir(parents=True)
    with pytest.raises(SandboxError, match=r"'data\.csv' of files="):
        files.bring(incoming_files([tmp_path / "data.csv"]))


def test_only_files_are_listed_and_read(files: WorkFiles, folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / "pipe.txt")
    (folder / "closed").mkdir(mode=0)
    (folder / "a.txt").write_text("alpha")
    (file,) = files.written()
    assert file.name == "a.txt"
    (folder / "a.txt").unlink()
    os.mkfifo(folder / "a.txt")
    with pytest.raises(SandboxError, match="not there any more"):
        file.read()


def test_a_file_that_grew_past_all_limits_is_not_read(
    files: WorkFiles, folder: Path, tmp_path: Path
) -> None:
    folder.mkdir()
    (folder / "a.txt").write_text("alpha")
    (file,) = files.written()
    with (folder / "a.txt").open("r+b") as opened:
        opened.truncate(1 << 40)
    with pytest.raises(SandboxError, match="1,099,511,627,776 bytes by now"):
        file.read()
    with pytest.raises(SandboxError, match="by now"):
        file.save_to(tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work"]


def test_sparse_files_do_not_fill_the_folder_that_keeps(
    files: WorkFiles, folder: Path, tmp_path: Path
) -> None:
    folder.mkdir()
    for name in ("a", "b"):
        with (folder / name).open("wb") as opened:
            opened.truncate(600 << 10)
    (tmp_path / "kept").mkdir()
    failures = keep_files(files.written(), tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["a"]
    assert failures == ["b: the files are larger than a work folder may be"]


def test_depth_is_bounded(files: WorkFiles, folder: Path) -> None:
    deep = folder
    for _ in range(25):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "lost.txt").write_text("x")
    (deep.parents[10] / "found.txt").write_text("x")
    assert [file.name.rpartition("/")[2] for file in files.written()] == ["found.txt"]


def test_a_folder_that_is_swapped_for_a_link_is_not_listed(
    files: WorkFiles, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("x")
    folder.symlink_to(tmp_path / "outside")
    assert files.written() == ()


def test_files_can_be_put_before_and_between_the_starts(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("mine")
    python = create_interpreter("local")
    try:
        python.work_files.bring(incoming_files([tmp_path / "data.csv"]))
        for _ in range(2):
            execution = python.execute("open('data.csv').read()")
            with pytest.raises(StopIteration) as done:
                next(execution)
            assert done.value.value.output == "mine"
    finally:
        python.close()


def test_auto_takes_files_where_it_becomes_a_locked_process(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("mine")
    python = create_interpreter("auto")
    try:
        python.work_files.check(incoming_files([tmp_path / "data.csv"]))
        python.work_files.bring(incoming_files([tmp_path / "data.csv"]))
        python.open()
        assert python.layers["executor"] == "local"
    finally:
        python.close()
