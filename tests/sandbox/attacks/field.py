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
_PACKAGES = (
    *("annotated_types", "cloudpickle", "jinja2", "markdown_it", "markupsafe", "mdurl", "pydantic"),
    *("pydantic_core", "pygments", "rich", "tenacity", "typing_extensions", "typing_inspection"),
    "yaml",
)
_ENDS = {
    "SandboxCrashed": "ended",
    "SandboxViolation": "violation",
    "SandboxTimeout": "limited",
    "SandboxLimitExceeded": "limited",
    "AgentLimitError": "limited",
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
    """One attacked host of one user, and the way to try things on it.

    Args:
        user: The number of the user.
        home: Folder to make for it.
        namespaces: Whether the machine gives the host namespaces; False is as in most containers.
    """

    def __init__(self, user: int, home: Path, *, namespaces: bool = True) -> None:
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
        self._python = sys.executable if mine else SYSTEM_PYTHON
        become = [] if mine else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        if not mine:
            _lend_packages(library)
        looks = f"import sys; sys.path.insert(0, {str(library)!r}); import sanderling.agents"
        tried = subprocess.run(
            [*become, self._python, "-I", "-c", looks], capture_output=True, check=False
        )
        self.runs_agents = tried.returncode == 0
        program = library / "sandbox" / "attacks" / "host.py"
        names = "with" if namespaces else "without"
        self._process = subprocess.Popen(
            [*become, self._python, "-I", "-B", program, library, estate, names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={ENVIRONMENT: f"canary-environment-{secrets.token_hex(12)}"},
        )
        self._read()

    def can_try(self, case: Case) -> bool:
        """Whether the attacked host has what a case needs."""
        return all(map(self._has, case.needs)) and (self.runs_agents or not case.agent)

    def _has(self, package: str) -> bool:
        if package == os.uname().machine:
            return True
        if self._python == sys.executable:
            return importlib.util.find_spec(package) is not None
        tried = [self._python, "-I", "-c", f"import {package}"]
        return subprocess.run(tried, capture_output=True, check=False).returncode == 0

    def run(self, case: Case, walls: str = "all") -> Outcome:
        """Tries a case behind these walls, and judges."""
        order = {
            "steps": case.steps,
            "seconds": case.seconds,
            "options": dict(case.options),
            "notes": case.notes,
            "fresh": case.fresh,
            "growth": case.growth,
            "agent": case.agent,
            "walls": walls,
        }
        return judge(self._ask(order), walls)

    def make_calls(self, seed: int, count: int) -> Any:
        """Lets code make so many system calls at random; returns what `random_calls` does."""
        return self._ask({"seed": seed, "calls": count})

    def _ask(self, order: dict[str, object]) -> Any:
        if self._process.stdin is None:
            raise RuntimeError("the host has no pipe")
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError("the attacked host is dead")
        return json.loads(line)

    def close(self) -> None:
        """Ends the host."""
        self._process.communicate()


def _lend_packages(library: Path) -> None:
    """Lets another Python import what this library's agents need, if it can."""
    for name in _PACKAGES:
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            origin = Path(found.origin)
            source = origin.parent if origin.name == "__init__.py" else origin
            (library / source.name).symlink_to(source)


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
        without_namespaces: The same, of hosts that get no namespaces.
    """

    def __init__(self, home: Path) -> None:
        users = {"root" if os.getuid() == 0 else "this user": os.getuid()}
        if why_not_as_nobody() is None:
            users["nobody"] = NOBODY
        self._pool = ThreadPoolExecutor(2)
        self.users, self.without_namespaces = (
            dict(
                zip(
                    users,
                    self._pool.map(
                        lambda user, names=names: Field(
                            user, home / f"{user}-{names}", namespaces=names
                        ),
                        users.values(),
                    ),
                    strict=True,
                )
            )
            for names in (True, False)
        )

    def try_case(self, case: Case, walls: Iterable[str] = ("all",)) -> dict[str, Outcomes]:
        """Tries a case behind each of these walls; returns the outcomes by user and walls.

        A user whose Python lacks what the case needs is left out.
        """
        return self._try(self.users, case, walls)

    def try_without_namespaces(self, case: Case) -> dict[str, Outcomes]:
        """Tries a case behind all walls that a host without namespaces can build."""
        return self._try(self.without_namespaces, case, ("all",))

    def _try(
        self, users: dict[str, Field], case: Case, walls: Iterable[str]
    ) -> dict[str, Outcomes]:
        running = {
            name: self._pool.submit(_try_behind, field, case, tuple(walls))
            for name, field in users.items()
            if field.can_try(case)
        }
        return {name: tried.result() for name, tried in running.items()}

    def close(self) -> None:
        """Ends the hosts."""
        self._pool.shutdown()
        for field in (*self.users.values(), *self.without_namespaces.values()):
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
    with tempfile.TemporaryDirectory(prefix="attacked-") as name:
        made = Fields(Path(name))
        try:
            yield made
        finally:
            made.close()
