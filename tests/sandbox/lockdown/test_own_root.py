"""The root of its own: what is in it, and what is not."""

from pathlib import Path

import pytest

from support.locked import Station


@pytest.fixture(autouse=True)
def _needs_an_own_root(own_root: bool) -> None:
    """Skips where the machine does not let us."""


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/../etc/passwd",
        "/home",
        "/proc/self",
        "/proc/1",
        "/sys/kernel",
        "/run",
        "/var",
    ],
)
def test_what_is_not_listed_does_not_exist(locked: Station, path: str) -> None:
    ended = locked.run("import os; said = os.stat(path)", namespaces=True, names={"path": path})

    assert ended.said == "ENOENT"


@pytest.mark.parametrize("folder", ["/", "/etc", "/dev", "/usr/lib"])
def test_nothing_else_can_be_written(locked: Station, folder: str) -> None:
    ended = locked.run(
        "import os; said = os.mkdir(folder + '/new')", namespaces=True, names={"folder": folder}
    )

    assert ended.said in ("EROFS", "EACCES")


def test_files_of_the_work_folder_stay_with_the_host(locked: Station) -> None:
    with locked.folder() as kept:
        (kept / "given.txt").write_text("from the host")
        (kept / "given.txt").chmod(0o666)
        ended = locked.run(
            "said = open('given.txt').read(); open('made.txt', 'w').write('from inside')",
            workdir=str(kept),
            namespaces=True,
        )

        assert ended.said == "from the host"
        assert (kept / "made.txt").read_text() == "from inside"


def test_with_a_quota_the_work_folder_is_empty_and_goes_away(locked: Station) -> None:
    with locked.folder() as kept:
        (kept / "given.txt").write_text("from the host")
        ended = locked.run(
            "import os; said = os.listdir(); open('made.txt', 'w').write('from inside')",
            workdir=str(kept),
            namespaces=True,
            workdir_bytes=1 << 20,
        )

        assert ended.said == "[]"
        assert [path.name for path in kept.iterdir()] == ["given.txt"]


@pytest.mark.parametrize("quota", [None, 1 << 20])
def test_code_of_the_work_folder_cannot_be_mapped(locked: Station, quota: int | None) -> None:
    ended = locked.run(
        "import mmap; f = open('x.so', 'w+b'); f.truncate(4096)\n"
        "said = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
        namespaces=True,
        workdir_bytes=quota,
    )

    assert ended.said == "EPERM"


def test_links_on_the_way_are_kept(locked: Station) -> None:
    with locked.folder() as kept:
        real = kept / "real" / "deep"
        real.mkdir(parents=True)
        (real / "data.txt").write_text("found")
        (kept / "absolute").symlink_to(kept / "real")
        (kept / "real" / "relative").symlink_to("../real/deep")
        listed = str(kept / "absolute" / "relative" / "data.txt")
        ended = locked.run(
            "import os; said = open(listed).read(), os.path.realpath(listed)",
            namespaces=True,
            extra_read=[listed],
            names={"listed": listed},
        )

        assert ended.said == str(("found", str(real / "data.txt")))


def test_a_listed_folder_within_the_work_folder_is_read_only(locked: Station) -> None:
    with locked.folder() as kept:
        (kept / "venv").mkdir(mode=0o777)
        (kept / "venv" / "module.py").write_text("x = 1")
        ended = locked.run(
            "open('mine.txt', 'w').close(); said = open('venv/module.py').read()\n"
            "try: open('venv/new.py', 'w')\n"
            "except OSError as error: said += '; ' + error.strerror",
            workdir=str(kept),
            namespaces=True,
            extra_read=[str(kept / "venv")],
        )

        assert ended.said == "x = 1; Read-only file system"


def test_the_host_sees_no_mount(locked: Station) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    locked.run("", namespaces=True, workdir_bytes=1 << 20)

    assert Path("/proc/self/mountinfo").read_text() == before


def test_the_machine_has_another_name(locked: Station) -> None:
    ended = locked.run("import os; said = os.uname().nodename", namespaces=True)

    assert ended.said == "sandbox"
