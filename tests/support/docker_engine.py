"""A Docker engine of our own for the tests, and an image made of this machine's Python.

``.ci/docker`` installs the engine's programs. Nothing is downloaded here: the image holds the
system's Python, and NumPy and Pillow where the tests' own Python has the same version.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SYSTEM_PYTHON = "/usr/bin/python3"
IMAGE = "sanderling-test-python"
EMPTY_IMAGE = "sanderling-test-empty"
PROGRAMS = os.environ.get("SANDERLING_DOCKER_PROGRAMS", "")  # a folder, in front of the PATH
_START = 30.0
_LIBRARIES = ("numpy", "numpy.libs", "PIL", "pillow.libs")


@dataclass(frozen=True)
class Engine:
    """A running engine: its address, and whether the container may hold NumPy and Pillow."""

    host: str
    libraries: bool

    def docker(self, *arguments: str) -> str:
        """Runs the docker command, which must succeed; returns what it printed."""
        command = ["docker", "--host", self.host, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"docker {arguments[0]} failed: {done.stderr}")
        return done.stdout.strip()

    def containers(self) -> list[str]:
        """The names of the containers of this library, dead or alive."""
        found = self.docker("ps", "--all", "--filter=label=sanderling", "--format={{.Names}}")
        return found.split()


def skip_without(reason: str) -> None:
    """Skips the test; fails it where SANDERLING_REQUIRE names docker."""
    if "docker" in os.environ.get("SANDERLING_REQUIRE", "").split(","):
        pytest.fail(f"docker is required, and {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[Engine]:
    """An engine with an image; skips the test where that is not possible."""
    path = os.pathsep.join(filter(None, (PROGRAMS, os.environ.get("PATH", ""))))
    if os.getuid() != 0:
        skip_without("only root can start a Docker engine")
    for program in ("docker", "dockerd", "containerd", "runc", "setpriv"):
        if shutil.which(program, path=path) is None:
            skip_without(f"{program} is not installed: run .ci/docker")
    with tempfile.TemporaryDirectory(prefix="engine-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "daemon.json").write_text("{}")  # in the place of the machine's
        host = f"unix://{folder}/s"
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig=TERM", "dockerd"),
                    f"--host={host}",
                    f"--data-root={folder}/data",
                    f"--exec-root={folder}/exec",
                    f"--pidfile={folder}/pid",
                    f"--config-file={folder}/daemon.json",
                    *("--iptables=false", "--ip6tables=false", "--ip-forward=false"),
                    "--bridge=none",
                    f"--storage-driver={os.environ.get('SANDERLING_DOCKER_STORAGE', 'overlay2')}",
                ],
                env={**os.environ, "PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _await_engine(process, host, folder / "log")
            libraries = _import_images(host)
            yield Engine(host, libraries)
        finally:
            process.terminate()
            process.wait()


def _await_engine(process: subprocess.Popen[bytes], host: str, log: Path) -> None:
    deadline = time.monotonic() + _START
    ask = ["docker", "--host", host, "version"]
    while subprocess.run(ask, capture_output=True, check=False).returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            said = log.read_text("utf-8", "replace").splitlines()
            skip_without(f"the Docker engine did not start: {' | '.join(said[-3:])[:600]}")


def _import_images(host: str) -> bool:
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            libraries = _add_python(archive)
        _import_image(host, file.fileno(), IMAGE)
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("nothing"))
        _import_image(host, file.fileno(), EMPTY_IMAGE)
    return libraries


def _import_image(host: str, archive: int, name: str) -> None:
    os.lseek(archive, 0, os.SEEK_SET)
    command = ["docker", "--host", host, "import", "-", name]
    subprocess.run(command, stdin=archive, capture_output=True, check=True)


def _add_python(archive: tarfile.TarFile) -> bool:
    """Adds the system's Python with its libraries; returns whether NumPy and Pillow are there."""
    asked = "import sys, sysconfig as s; print(*sys.version_info[:2], s.get_path('stdlib'))"
    found = subprocess.run(
        [SYSTEM_PYTHON, "-Ic", asked], capture_output=True, text=True, check=True
    )
    major, minor, standard_library = found.stdout.split()
    for folder in ("tmp", "work", "proc", "sys", "dev", "etc"):
        made = tarfile.TarInfo(folder)
        made.type, made.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(made)
    libraries = (int(major), int(minor)) == sys.version_info[:2]
    python = Path(SYSTEM_PYTHON).resolve()
    needed = [python, *Path(standard_library, "lib-dynload").glob("*.so")]
    archive.add(standard_library, filter=_without_tests)
    packages = Path(f"/usr/local/lib/python{major}.{minor}/dist-packages")
    if libraries:
        for name in _LIBRARIES:
            source = Path(sysconfig.get_path("purelib"), name)
            if source.is_dir():
                archive.add(source, packages / name, filter=_without_tests)
                needed += source.rglob("*.so*")
    for path in sorted(_shared_libraries(needed)):
        archive.add(path.resolve(), path)
    archive.add(python, SYSTEM_PYTHON)
    return libraries


def _without_tests(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    skipped = {"__pycache__", "tests", "test", "idlelib", "lib2to3", "tkinter"}
    return None if Path(entry.name).name in skipped else entry


def _shared_libraries(programs: list[Path]) -> set[Path]:
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    found = {Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+)", told, re.MULTILINE)}
    # Those inside packages come with them.
    return {path for path in found if path.is_file() and "site-packages" not in path.parts}
