"""Processes of this machine, which the stand-ins of the providers hand out as machines."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_PIECE = 64 << 10


@dataclass
class Process:
    """A process with pipes; its output can be followed by one reader."""

    popen: subprocess.Popen[bytes]
    _output: queue.SimpleQueue[tuple[str, bytes] | None] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        assert self.popen.stdin is not None
        self._input = self.popen.stdin
        self._left = 2
        self._lock = threading.Lock()
        for name in ("stdout", "stderr"):
            threading.Thread(target=self._follow, args=(name,), daemon=True).start()

    @property
    def pid(self) -> int:
        return self.popen.pid

    def _follow(self, name: str) -> None:
        stream = getattr(self.popen, name)
        while data := os.read(stream.fileno(), _PIECE):
            self._output.put((name, data))
        stream.close()
        with self._lock:
            self._left -= 1
            if not self._left:
                self.popen.wait()
                with contextlib.suppress(BrokenPipeError):
                    self._input.close()
                self._output.put(None)

    def output(self) -> Iterator[tuple[str, bytes]]:
        """Yields what it writes, by stream, until it ends."""
        while (piece := self._output.get()) is not None:
            yield piece

    def write(self, data: bytes) -> None:
        """Sends to its standard input.

        Raises:
            BrokenPipeError: It has ended.
        """
        if self._input.closed:
            raise BrokenPipeError
        self._input.write(data)
        self._input.flush()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class Machines:
    """What a provider has running, and what it was asked for.

    Attributes:
        asked: The requests, as far as a test may want to see them.
        processes: Those of each machine, by the machine's id.
        refuse: Makes the next machine impossible, for this reason.
        programs: Where machines have their Python.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, object]] = []
        self.processes: dict[str, list[Process]] = {}
        self.refuse = ""
        self.programs = str(Path(sys.executable).parent)
        self._count = 0
        self._folder = tempfile.TemporaryDirectory(prefix="machines-", ignore_cleanup_errors=True)

    def create(self) -> str:
        self._count += 1
        name = f"sb-{self._count}"  # as Modal wants them
        self.processes[name] = []
        return name

    def start(self, machine: str, *command: str) -> Process:
        environment = {
            "PATH": f"{self.programs}:{os.defpath}",
            "TMPDIR": self._folder.name,
            "PROVIDER_TOKEN": "hidden",
        }
        popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        self.processes[machine].append(Process(popen))
        return self.processes[machine][-1]

    def end(self, machine: str) -> bool:
        processes = self.processes.pop(machine, None)
        for process in processes or ():
            process.kill()
        return processes is not None

    def alive(self) -> list[str]:
        """The machines that have not been ended."""
        return list(self.processes)

    def close(self) -> None:
        """Ends all machines, and removes what they had on their disks."""
        for machine in self.alive():
            self.end(machine)
        self._folder.cleanup()
