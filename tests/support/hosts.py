"""Runs programs that use the library: as other users, and without namespaces."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import sanderling
from sanderling.sandbox.lockdown._linux import PR_SET_NO_NEW_PRIVS, prctl
from sanderling.sandbox.lockdown._rules import ALLOW, Rule, fail
from sanderling.sandbox.lockdown._seccomp import load
from support.locked import NOBODY, SYSTEM_PYTHON, why_not_as_nobody

_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Host:
    """Where a program runs."""

    user: int
    namespaces: bool

    def __str__(self) -> str:
        user = {0: "root", NOBODY: "nobody"}.get(self.user, "this user")
        return f"{user}, {'with' if self.namespaces else 'without'} namespaces"

    def run(self, program: Path, scenario: str) -> subprocess.CompletedProcess[str]:
        """Runs a scenario of a program of the tests, which finds it with `scenario_of_host`."""
        # Not in pytest's own folders, which each run of pytest closes to other users.
        with tempfile.TemporaryDirectory(prefix="host-") as folder:
            return self._run(program, scenario, Path(folder))

    def _run(self, program: Path, scenario: str, home: Path) -> subprocess.CompletedProcess[str]:
        library = home / "library"
        keep_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(sanderling.__file__).parent, library / "sanderling", ignore=keep_out)
        shutil.copytree(_TESTS / "support", library / "support", ignore=keep_out)
        copy = library / program.name
        shutil.copy(program, copy)
        work = home / "tmp"
        work.mkdir()
        os.chown(work, self.user, self.user)
        subprocess.run(["chmod", "-R", "a+rX", str(library)], check=True)
        home.chmod(0o711)
        mine = self.user == os.getuid()
        become = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        python = sys.executable if mine else SYSTEM_PYTHON
        names = "with" if self.namespaces else "without"
        return subprocess.run(
            [*([] if mine else become), python, "-B", "-X", "dev", copy, scenario, names],
            env={"PYTHONPATH": str(library), "TMPDIR": str(work), "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def hosts() -> list[Host]:
    """Returns all that can be had here."""
    users = [os.getuid()] + [NOBODY] * (why_not_as_nobody() is None and os.getuid() != NOBODY)
    return [Host(user, namespaces) for user in users for namespaces in (True, False)]


def scenario_of_host() -> str:
    """Returns the scenario to run, in a process that has no namespaces if that was asked for."""
    scenario, names = sys.argv[1:3]
    if names == "without":
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        load([Rule("unshare", "as in a container", fail(errno.EPERM))], otherwise=ALLOW)
    return scenario
