"""The ``docker`` command, which reaches an engine wherever it is."""

from __future__ import annotations

import shutil
import subprocess
from typing import IO

from sanderling.errors import SandboxUnavailable

_ANSWER = 30.0  # seconds for what an engine knows by heart
_SHOWN = 1_000  # characters of what docker said


class Docker:
    """The docker command.

    Raises:
        SandboxUnavailable: There is none.
    """

    def __init__(self, host: str | None) -> None:
        command = shutil.which("docker")
        if command is None:
            raise SandboxUnavailable("there is no docker command on the PATH.")
        self._command = [command] if host is None else [command, "--host", host]

    def start(
        self,
        *arguments: str,
        streams: int = subprocess.DEVNULL,
        complaints: IO[bytes] | int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Starts it, out of reach of the terminal's signals.

        Raises:
            SandboxUnavailable: This machine does not let us.
        """
        try:
            return subprocess.Popen(  # noqa: S603 - no shell; options come from the owner
                [*self._command, *arguments],
                stdin=streams,
                stdout=streams,
                stderr=complaints,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxUnavailable(f"the docker command does not start: {error}.") from error

    def run(
        self, *arguments: str, text: str = "", seconds: float = _ANSWER
    ) -> subprocess.CompletedProcess[str]:
        """Runs it to its end.

        Raises:
            SandboxUnavailable: It took longer, or this machine does not let us.
        """
        try:
            return subprocess.run(  # noqa: S603 - as above
                [*self._command, *arguments],
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SandboxUnavailable(
                f"the Docker engine took more than {seconds:g} s for `docker {arguments[0]}`."
            ) from error
        except OSError as error:
            raise SandboxUnavailable(f"the docker command does not start: {error}.") from error


def tail(said: str) -> str:
    """Returns the end of what docker said, which tells why it failed."""
    said = said.strip().rstrip(".?!")
    return said if len(said) <= _SHOWN else "…" + said[-_SHOWN:]
