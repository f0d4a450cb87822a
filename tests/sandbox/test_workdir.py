from __future__ import annotations

import contextlib
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sanderling.sandbox import _workdir
from sanderling.sandbox._workdir import UNKNOWN_SIZE, WorkFolder, measure, remove_tree
from support.processes import descriptors


def test_a_folder_is_private_and_goes_with_all_in_it() -> None:
    folder = WorkFolder()
    path = Path(folder.path)
    assert path.stat().st_mode & 0o777 == 0o700
    (path / "a" / "b").mkdir(parents=True)
    (path / "a" / "file").write_text("x")
    folder.remove()
    assert not path.exists()
    folder.remove()


def test_hostile_trees_are_removed(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "file").write_text("x")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(keep)
    (root / "dangling").symlink_to("/nowhere")
    (root / "locked").mkdir()
    (root / "locked" / "inner").mkdir()
    (root / "locked").chmod(0)
    os.mkfifo(root / "pipe")
    here = os.open(root, os.O_RDONLY)
    for _ in range(2_000):  # deeper than a path or a recursion can reach
        os.mkdir("d" * 50, dir_fd=here)
        inner = os.open("d" * 50, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    remove_tree(str(root))
    assert not root.exists()
    assert (keep / "file").read_text() == "x"
    remove_tree(str(root))


def test_what_is_put_in_the_place_of_a_folder_is_removed_itself(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    (keep / "inner").mkdir(parents=True, mode=0o755)
    (keep / "file").write_text("x")
    keep.chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to(keep)
    remove_tree(str(link))
    assert not link.is_symlink()
    assert (keep / "file").read_text() == "x"
    assert (keep / "inner").is_dir()
    assert keep.stat().st_mode & 0o777 == 0o755


def _swapped(monkeypatch: pytest.MonkeyPatch, folder: Path, target: Path) -> None:
    """Has code put a link in the place of a folder, just when its list of names has been read."""
    real = os.scandir
    waits = {folder.stat().st_ino}

    @contextlib.contextmanager
    def scandir(place: int) -> Iterator[Iterator[os.DirEntry[str]]]:
        with real(place) as entries:
            listed = list(entries)
        if os.fstat(place).st_ino in waits:
            waits.clear()
            folder.rename(folder.with_name("moved"))
            folder.symlink_to(target)
        yield iter(listed)

    monkeypatch.setattr(os, "scandir", scandir)


def test_a_folder_swapped_for_a_link_does_not_lead_the_removal_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = tmp_path / "keep"
    for root in (tmp_path / "root", keep):
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "b" / "file").write_text("x")
    _swapped(monkeypatch, tmp_path / "root" / "a", keep / "a")
    remove_tree(str(tmp_path / "root"))
    assert not (tmp_path / "root").exists()
    assert (keep / "a" / "b" / "file").read_text() == "x"


def test_removing_has_an_end_where_code_goes_on_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    (root / "first").mkdir(parents=True)
    real, made = os.rmdir, itertools.count()

    def rmdir(name: str, **options: int) -> None:
        real(name, **options)
        (root / f"more{next(made)}").mkdir()

    monkeypatch.setattr(os, "rmdir", rmdir)
    with pytest.raises(TimeoutError):
        remove_tree(str(root), 0.05)


MAKE = """
from sanderling.sandbox._workdir import WorkFolder
print(WorkFolder().path, flush=True)
input()
"""


def test_folders_of_dead_processes_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    _workdir._sweep.cache_clear()
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    paths = []
    for fate in ("dies", "lives"):
        maker = subprocess.Popen(
            [sys.executable, "-c", MAKE],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert maker.stdout is not None
        path = Path(maker.stdout.readline().strip())
        (path / "file").write_text("x")
        os.utime(path, (time.time() - 3600,) * 2)
        paths.append(path)
        if fate == "dies":
            maker.kill()
            maker.communicate()
    young = tmp_path / "sanderling-young"
    young.mkdir()
    mine = WorkFolder()
    try:
        assert not paths[0].exists()
        assert (paths[1] / "file").exists()
        assert young.exists()
    finally:
        mine.remove()
        maker.kill()
        maker.communicate()
        _workdir._sweep.cache_clear()


def test_what_a_folder_holds_is_measured(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "large").write_bytes(bytes(1 << 20))
    (tmp_path / "a" / "sparse").touch()
    os.truncate(tmp_path / "a" / "sparse", 1 << 40)
    os.link(tmp_path / "a" / "large", tmp_path / "again")
    (tmp_path / "way_out").symlink_to("/usr")
    used, count = measure(str(tmp_path), 1_000)
    assert count == 6
    assert 1 << 20 <= used < (1 << 20) + (64 << 10)
    assert measure(str(tmp_path), 3)[1] == 4
    assert measure(str(tmp_path / "none"), 9) == (0, 0)
    (tmp_path / "a" / "b" / "inner").write_bytes(bytes(1 << 20))
    (tmp_path / "a" / "b").chmod(0)
    assert measure(str(tmp_path), 1_000)[0] >= 2 << 20


def test_a_folder_nested_deeper_than_any_path_is_measured(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d" * 100, dir_fd=here)
        inner = os.open("d" * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    file = os.open("deep", os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(file, bytes(1 << 20))
    os.close(file)
    os.close(here)
    before = descriptors()
    used, count = measure(str(tmp_path), 1_000)
    assert count == 61
    assert 1 << 20 <= used < 2 << 20
    assert descriptors() == before
    remove_tree(str(tmp_path))


def test_a_folder_swapped_for_a_link_does_not_lead_the_measuring_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    (outside / "b").mkdir(parents=True)
    (outside / "b" / "large").write_bytes(bytes(1 << 20))
    (root / "a" / "b").mkdir(parents=True)
    _swapped(monkeypatch, root / "a", outside)
    used, count = measure(str(root), 1_000)
    assert count == 2
    assert used < 1 << 20


def test_what_cannot_be_looked_into_counts_as_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "scandir", refuse)
    assert measure(str(tmp_path), 10) == (UNKNOWN_SIZE, 0)


def test_a_folder_that_cannot_be_locked_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    WorkFolder().remove()  # all is loaded, and the sweep is over
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken, hard))
    hold: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                hold.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(OSError, match="Too many open files"):
            WorkFolder()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in hold:
            os.close(descriptor)
    assert list(tmp_path.iterdir()) == []
