"""Where attacks are tried: starts the attacked hosts, sends them cases, judges what came of it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import sanderling
from sandbox.attacks.estate import ENVIRONMENT
from support.locked import NOBODY, SYSTEM_PYTHON, why_not_as_nobody

if TYPE_CHECKING:
    from sandbox.attacks.case import Case

_HERE = Path(__file__).parent
_LAST_LINE = re.compile(r"^([\w.]+)(?::|$)")
# What the system says no with, and how libraries pass that on.
_REFUSALS = {
    *("PermissionError", "FileNotFoundError", "NotADirectoryError", "BlockingIOError", "OSError"),
    "ConnectionRefusedError",
    *("gaierror", "URLError", "urllib.error.URLError", "socket.gaierror", "ProcessLookupError"),
}
_ENDS = {
    "SandboxCrashed": "ended",
    "SandboxViolation": "violation",
    "SandboxTimeout": "limited",
    "SandboxLimitExceeded": "limited",
}


WITHOUT_NAMESPACES = "all but namespaces"
"""What `lockdown.lock` builds on a machine that gives a process no namespaces."""


@dataclass(frozen=True)
class Outcome:
    """What came of one attack.

    Attributes:
        end: One of `case.End`; ``"through"`` for an attack that did what it must not; ``"absent"``
            where this machine has nothing to attack; ``"broken"`` for one that did not even try.
        why: What was seen, for people.
    """

    end: str
    why: str


Outcomes: TypeAlias = dict[str, Outcome]


class Field:
    """One attacked host of one user, and the way to try things on it."""

    def __init__(self, user: int, home: Path) -> None:
        self.user = user
        home.mkdir()
        home.parent.chmod(0o755)
        library = home / "library"
        keep_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(sanderling.__file__).parent, library / "sanderling", ignore=keep_out)
        shutil.copytree(_HERE, library / "sandbox" / "attacks", ignore=keep_out)
        estate = home / "estate"
        estate.mkdir()
        os.chown(estate, user, user)
        home.chmod(0o755)
        subprocess.run(["chmod", "-R", "a+rX", str(library)], check=True)
        mine = user == os.getuid()
        self.python = sys.executable if mine else SYSTEM_PYTHON
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        program = library / "sandbox" / "attacks" / "host.py"
        self._process = subprocess.Popen(
            [*([] if mine else become), self.python, "-I", "-B", program, library, estate],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={ENVIRONMENT: f"canary-environment-{secrets.token_hex(12)}"},
        )
        self._read()

    def has(self, package: str) -> bool:
        """Whether the attacked host's Python has this package, or the machine is this one."""
        if package == os.uname().machine:
            return True
        if self.user == os.getuid():
            return importlib.util.find_spec(package) is not None
        tried = [self.python, "-I", "-c", f"import {package}"]
        return subprocess.run(tried, capture_output=True, check=False).returncode == 0

    def run(self, case: Case, walls: str = "all") -> Outcome:
        """Tries a case behind these walls, and judges."""
        if self._process.stdin is None:
            raise RuntimeError("the host has no pipe")
        order = {
            "steps": case.steps,
            "seconds": case.seconds,
            "options": dict(case.options),
            "notes": case.notes,
            "fresh": case.fresh,
            "walls": walls,
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return judge(self._read(), walls)

    def _read(self) -> Any:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError("the attacked host is dead")
        return json.loads(line)

    def close(self) -> None:
        """Ends the host."""
        self._process.communicate()


def judge(answer: dict[str, Any], walls: str) -> Outcome:
    """Says what an answer of the attacked host means, which ran the attack behind these walls."""
    why = "; ".join((*answer["damage"], *answer["trouble"])) or answer["told"] or answer["claim"]
    if answer["damage"] or answer["trouble"] or answer["claim"] == "through":
        return Outcome("through", why or "the code says so")
    if answer["error"] in _ENDS:
        return Outcome(_ENDS[answer["error"]], why)
    if answer["claim"] == "reached":
        return Outcome("contained", why)
    if answer["claim"]:
        return Outcome(answer["claim"], why)
    last = _LAST_LINE.match(answer["told"].split("\nHint: ")[0].rpartition("\n")[2])
    if walls == "process" and "[Errno 38]" in answer["told"]:
        return Outcome("absent", why)
    if last is not None and last[1] in _REFUSALS:
        return Outcome("refused", why)
    return Outcome("broken", why)


class Fields:
    """The fields of all users that can be had here, to try a case on all of them at once.

    Attributes:
        users: Fields by the user's name.
    """

    def __init__(self, users: dict[str, Field]) -> None:
        self.users = users
        self._pool = ThreadPoolExecutor(2)

    def try_case(self, case: Case, walls: Iterable[str] = ("all",)) -> dict[str, Outcomes]:
        """Tries a case behind each of these walls; returns the outcomes by user and walls.

        A user whose Python lacks what the case needs is left out.
        """
        running = {
            name: self._pool.submit(_try_behind, field, case, tuple(walls))
            for name, field in self.users.items()
            if all(map(field.has, case.needs))
        }
        return {name: tried.result() for name, tried in running.items()}

    def close(self) -> None:
        """Ends the hosts."""
        self._pool.shutdown()
        for field in self.users.values():
            field.close()


def _try_behind(field: Field, case: Case, walls: tuple[str, ...]) -> Outcomes:
    return {wall: field.run(case, wall) for wall in walls}


def stopped_by(outcomes: Outcomes) -> set[str]:
    """Returns which layers stopped a case that was tried behind each of them alone."""
    stopping = {walls for walls, outcome in outcomes.items() if outcome.end != "through"}
    if "process" in stopping:
        return {"process"}
    alone = stopping - {WITHOUT_NAMESPACES}
    return alone or ({"together"} if WITHOUT_NAMESPACES in stopping else set())


@contextmanager
def fields() -> Iterator[Fields]:
    """Starts an attacked host of this user and, as root, one of a user without privileges."""
    users = {"root" if os.getuid() == 0 else "this user": os.getuid()}
    if why_not_as_nobody() is None:
        users["nobody"] = NOBODY
    with tempfile.TemporaryDirectory(prefix="attacked-") as name:
        made = Fields({})
        for user, number in users.items():
            made.users[user] = Field(number, Path(name, user.replace(" ", "-")))
        try:
            yield made
        finally:
            made.close()
