"""Runs code in children that have locked themselves: as this user, and as nobody if we are root."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sanderling.sandbox.lockdown

NOBODY = 65534
SYSTEM_PYTHON = "/usr/bin/python3"
STATION = Path(__file__).with_name("locked_station.py")


@dataclass(frozen=True)
class Ended:
    """How a child ended (a negative status is a signal), and what its code said."""

    status: int
    said: str


class Station:
    """A process of one user that forks locked children; `secret` and `outside` lie around them."""

    def __init__(self, python: str, user: int, home: Path) -> None:
        self.python = python
        self.user = user
        self.home = home
        self.package = home / "lockdown"
        self.secret = home / "secret.txt"
        self.outside = home / "outside"
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        self._process = subprocess.Popen(
            [*(as_user if user != os.getuid() else []), python, "-I", "-B", home / STATION.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={},
        )

    def run(
        self,
        code: str,
        *,
        lock: bool = True,
        seconds: float = 20,
        names: Mapping[str, str] | None = None,
        **policy: object,
    ) -> Ended:
        """Runs `code` in a new child and work folder; `said` is what it leaves under that name.

        An OSError of the code is said by the name of its errno, another exception by its class.
        """
        with self.folder() as workdir:
            order = {
                "code": code,
                "lock": lock,
                "seconds": seconds,
                "policy": {"workdir": str(workdir), "namespaces": False, **policy},
                "names": {
                    "secret": str(self.secret),
                    "outside": str(self.outside),
                    "package": str(self.package),
                    "workdir": str(workdir),
                    **(names or {}),
                },
            }
            if self._process.stdin is None or self._process.stdout is None:
                raise RuntimeError("the station has no pipes")
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the host process of the locked child is gone after:\n{code}")
        return Ended(**json.loads(answer))

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A new folder of the station's user."""
        with tempfile.TemporaryDirectory(dir=self.home) as name:
            _give(Path(name), self.user)
            yield Path(name)

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


@contextmanager
def station(user: int) -> Iterator[Station]:
    """Starts a station of this user, or as root of `NOBODY` with the system's Python."""
    with tempfile.TemporaryDirectory(prefix="locked") as name:
        home = Path(name)
        home.chmod(0o755)
        source = Path(str(sanderling.sandbox.lockdown.__file__)).parent
        shutil.copytree(source, home / "lockdown", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(STATION, home)
        # Open to all: it is the walls that must keep them, not the modes of the files.
        (home / "secret.txt").write_text("keep this")
        (home / "secret.txt").chmod(0o666)
        (home / "outside").mkdir(mode=0o777)
        (home / "outside").chmod(0o777)
        _give(home, user)
        _give(home / "secret.txt", user)
        started = Station(sys.executable if user == os.getuid() else SYSTEM_PYTHON, user, home)
        try:
            yield started
        finally:
            started.close()


def _give(path: Path, user: int) -> None:
    if user != os.getuid():
        os.chown(path, user, user)


def why_not_as_nobody() -> str | None:
    """Returns why no station of `NOBODY` can be had here; None if it can."""
    if os.getuid() != 0:
        return "only root can become another user"
    if shutil.which("setpriv") is None:
        return "setpriv (util-linux) is not installed"
    if not Path(SYSTEM_PYTHON).is_file():
        return f"{SYSTEM_PYTHON} is not there"
    found = subprocess.run(
        [SYSTEM_PYTHON, "-I", "-c", "import sys; print(sys.version_info >= (3, 11))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return None if found.stdout.strip() == "True" else f"{SYSTEM_PYTHON} is older than 3.11"
