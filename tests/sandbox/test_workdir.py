from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sanderling.sandbox import _workdir
from sanderling.sandbox._workdir import (
    UNKNOWN_SIZE,
    WorkFolder,
    clear_up_after,
    measure,
    remove_tree,
)
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
    remove_tree(str(root), 60)
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


def _refilled(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Has code go on making folders in a folder while it is removed."""
    real, made = os.rmdir, itertools.count()

    def rmdir(name: str, **options: int) -> None:
        real(name, **options)
        (folder / f"more{next(made)}").mkdir()

    (folder / "first").mkdir(parents=True)
    monkeypatch.setattr(os, "rmdir", rmdir)


def test_removing_has_an_end_where_code_goes_on_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _refilled(monkeypatch, tmp_path / "root")
    with pytest.raises(TimeoutError):
        remove_tree(str(tmp_path / "root"), 0.05)


def test_what_cannot_be_removed_in_time_is_left_for_the_next_sweep(
    tmpdir_of_ours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = WorkFolder()
    with monkeypatch.context() as patched:
        _refilled(patched, Path(folder.path))
        folder.remove(0.05)
    (left,) = tmpdir_of_ours.iterdir()
    folder.remove()  # it does not try again
    assert left.exists()
    WorkFolder().remove()
    assert list(tmpdir_of_ours.iterdir()) == []


def test_removing_many_files_of_one_folder_has_a_time_limit(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    for n in range(100):
        (tmp_path / "root" / str(n)).touch()
    with pytest.raises(TimeoutError):
        remove_tree(str(tmp_path / "root"), 0)
    assert len(list((tmp_path / "root").iterdir())) >= 98


def test_a_sweep_has_a_time_limit(tmpdir_of_ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = left_behind(tmpdir_of_ours)
    with monkeypatch.context() as patched:
        patched.setattr(_workdir, "_SWEEP_SECONDS", 0)
        WorkFolder().remove()
    assert dead.exists()
    _workdir._sweep.cache_clear()
    WorkFolder().remove()
    assert not dead.exists()


MAKE = """
from pathlib import Path
from sanderling.sandbox._workdir import WorkFolder
folder = WorkFolder()
Path(folder.path, "file").write_text("x")
print(folder.path, flush=True)
input()
"""


@pytest.fixture
def tmpdir_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, which this process has not swept yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    _workdir._sweep.cache_clear()
    yield tmp_path
    _workdir._sweep.cache_clear()


@contextlib.contextmanager
def maker(tmpdir: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that has made a work folder with a file in it, and that folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE],
        env={**os.environ, "TMPDIR": str(tmpdir)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        made = Path(process.stdout.readline().strip()).relative_to(tmpdir)
        yield process, tmpdir / made.parts[0]
    finally:
        process.kill()
        process.communicate()


def left_behind(tmpdir: Path) -> Path:
    """The work folder of a process that was killed."""
    with maker(tmpdir) as (_, folder):
        return folder


def sweep(tmpdir: Path) -> None:
    """Does all that removes folders which other processes have left behind."""
    WorkFolder().remove()
    for entry in tmpdir.iterdir():
        if (pid := entry.name.split("-")[1]).isdecimal():
            clear_up_after(int(pid), str(tmpdir))


def test_a_folder_of_a_dead_process_is_swept(tmpdir_of_ours: Path) -> None:
    with maker(tmpdir_of_ours) as (_, living):
        dead = left_behind(tmpdir_of_ours)
        assert dead.exists()
        WorkFolder().remove()
        assert not dead.exists()
        assert [path.name for path in living.glob("*/file")] == ["file"]


def test_a_folder_of_a_dead_process_is_cleared_up_by_its_guard(tmpdir_of_ours: Path) -> None:
    with maker(tmpdir_of_ours) as (process, living):
        clear_up_after(process.pid, str(tmpdir_of_ours))
        assert [path.name for path in living.glob("*/file")] == ["file"]
        process.kill()
        process.wait()
        clear_up_after(process.pid + 1, str(tmpdir_of_ours))
        assert living.exists()
        clear_up_after(process.pid, str(tmpdir_of_ours))
        assert not living.exists()


def test_a_process_that_has_the_number_of_a_dead_one_does_not_keep_its_folder(
    tmpdir_of_ours: Path,
) -> None:
    with maker(tmpdir_of_ours) as (process, dead):
        marker = (dead / "owner").read_text()
    again = dead.with_name(f"sanderling-{os.getpid()}-{dead.name[-8:]}")
    (dead / "owner").write_text(marker.replace(f" {process.pid} ", f" {os.getpid()} "))
    dead.rename(again)
    WorkFolder().remove()
    assert not again.exists()


def test_no_folder_of_a_user_is_ever_swept(tmpdir_of_ours: Path) -> None:
    names = "main", "0.1.0", "venv", "1234", "1234-abcdefgh", f"{os.getpid()}-abcdefgh", "é-*"
    kept = [tmpdir_of_ours / f"sanderling-{name}" for name in names]
    for folder in kept:
        (folder / "files" / "src").mkdir(parents=True)
        folder.chmod(0o700)
        (folder / "files" / "src" / "mine.py").write_text("x")
        os.utime(folder, (0, 0))
    empty = tmpdir_of_ours / "sanderling-1-emptyone"
    empty.mkdir(mode=0o700)
    file = tmpdir_of_ours / "sanderling-1-justfile"
    file.write_text("x")
    sweep(tmpdir_of_ours)
    assert all((folder / "files" / "src" / "mine.py").exists() for folder in kept)
    assert empty.exists()
    assert file.exists()


def _renamed(dead: Path) -> Path:
    return dead.rename(dead.with_name("sanderling-main"))


def _of_another_number(dead: Path) -> Path:
    return dead.rename(dead.with_name(f"sanderling-1{dead.name.removeprefix('sanderling-')}"))


def _opened_to_others(dead: Path) -> Path:
    dead.chmod(0o755)
    return dead


def _with_a_file_beside(dead: Path) -> Path:
    (dead / "notes.txt").write_text("x")
    return dead


def _with_another_marker(dead: Path) -> Path:
    (dead / "owner").write_text("the user\n")
    return dead


def _with_a_link_as_marker(dead: Path) -> Path:
    (dead / "owner").rename(dead.parent / "owner")
    (dead / "owner").symlink_to(dead.parent / "owner")
    return dead


def _with_a_marker_of_another_machine(dead: Path) -> Path:
    words = (dead / "owner").read_text().rstrip().rpartition(" ")
    (dead / "owner").write_text(f"{words[0]} {'0' * len(words[2])}\n")
    return dead


def _linked_to(dead: Path) -> Path:
    moved = dead.rename(dead.parent / "elsewhere")
    dead.symlink_to(moved)
    return dead


CHANGES = (
    _renamed,
    _of_another_number,
    _opened_to_others,
    _with_a_file_beside,
    _with_another_marker,
    _with_a_link_as_marker,
    _with_a_marker_of_another_machine,
    _linked_to,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_a_folder_that_somebody_has_changed_is_not_swept(
    tmpdir_of_ours: Path, change: Callable[[Path], Path]
) -> None:
    kept = change(left_behind(tmpdir_of_ours))
    WorkFolder().remove()
    pid = kept.name.split("-")[1]
    clear_up_after(int(pid) if pid.isdecimal() else 1, str(tmpdir_of_ours))
    assert [path.name for path in kept.glob("*/file")] == ["file"]


def test_a_folder_that_a_process_holds_is_not_swept(tmpdir_of_ours: Path) -> None:
    dead = left_behind(tmpdir_of_ours)  # a fork of that process, say, or one in another container
    holder = os.open(dead, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        WorkFolder().remove()
        assert dead.exists()
    finally:
        os.close(holder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_swept(tmpdir_of_ours: Path) -> None:
    dead = left_behind(tmpdir_of_ours)
    os.chown(dead, 65534, 65534)
    WorkFolder().remove()
    assert dead.exists()


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
