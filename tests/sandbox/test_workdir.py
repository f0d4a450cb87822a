from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sanderling.sandbox import _workdir
from sanderling.sandbox._workdir import WorkFolder, remove_tree

if TYPE_CHECKING:
    import pytest


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
