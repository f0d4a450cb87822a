"""A container: the same kernel, behind the walls of a Docker engine and, inside, of our own.

It is driven by the ``docker`` command, which knows contexts, remote engines, TLS and logins, and
which takes apart the engine's stream of output; no library or port is needed. The protocol runs
over the container's standard streams, so the engine may be another machine: nothing is mounted.
"""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sanderling.errors import SandboxUnavailable
from sanderling.sandbox._limits import LIBRARY_THREADS, Limits, Usage

from ._contained import GREETING
from ._docker_command import Docker, tail
from ._docker_image import PYTHON, Image
from ._docker_options import ContainerOptions, Value
from ._packages import packages_for
from ._parcel import boot, parcel

if TYPE_CHECKING:
    from sanderling.sandbox._backend import Link

_START = 120.0
_FAREWELL = 3.0
_ENGINE_FAILED, _NOT_EXECUTABLE, _NOT_FOUND = 125, 126, 127  # exit statuses of `docker run`
_WAYS_OUT = (
    "Ways out: a Docker engine that the command `docker version` reaches, or host=; an image with "
    f'Python 3.9 or newer as {PYTHON}; or executor_type="local", which needs no engine.'
)


class _NotStarted(Exception):  # noqa: N818 - not for anybody outside
    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


class DockerLink:
    """A kernel in a container."""

    def __init__(
        self,
        docker: Docker,
        name: str,
        process: subprocess.Popen[bytes],
        connection: socket.socket,
    ) -> None:
        self._docker = docker
        self._name = name
        self._process = process
        self._started = False
        self._signals: list[subprocess.Popen[bytes]] = []
        self._rest = connection.dup()
        self.socket = connection

    def interrupt(self) -> None:
        """Sends SIGINT, without waiting for the engine."""
        self._signals.append(self._docker.start("kill", "--signal=INT", self._name))

    def kill(self) -> str:
        """Ends the kernel: its guard sees standard input end. Tells how, if it did so before.

        It does not wait for the engine; `finish` does.
        """
        ended = self._hung_up()
        with contextlib.suppress(OSError):  # the other end is gone
            self._rest.shutdown(socket.SHUT_WR)
        try:
            status = self._process.wait(_FAREWELL if ended else 0)
        except subprocess.TimeoutExpired:
            return "it hung up"
        if status <= 128:
            return f"exit status {status}"
        try:
            name = signal.Signals(status - 128).name
        except ValueError:
            return f"exit status {status}"
        return f"{name}, perhaps for want of memory" if name == "SIGKILL" else name

    def _hung_up(self) -> bool:
        try:
            return self._rest.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def finish(self) -> None:
        """Waits until the container is gone; removes it by force if it does not go."""
        said = ""
        # What the guard sees end may be kept from it by what was sent before and is not read.
        if not self._is_gone(_FAREWELL):
            said = self._remove()
            self._is_gone(_FAREWELL)
        self._process.kill()
        self._process.wait()
        for sender in self._signals:
            sender.wait()
        self._rest.close()
        if said and self._started:
            what = f"the container {self._name} may be left behind: {tail(said)}"
            warnings.warn(what, RuntimeWarning, stacklevel=2)

    def _is_gone(self, seconds: float) -> bool:
        """Waits for docker to end, which it does after the container; reads what nobody wants."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(OSError):
            while (left := deadline - time.monotonic()) > 0:
                self._rest.settimeout(left)
                if not self._rest.recv(1 << 16):
                    break
        try:
            status = self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return 0 <= status != _ENGINE_FAILED

    def _remove(self) -> str:
        """Removes the container by force; tells why, where it does not go."""
        try:
            done = self._docker.run("rm", "--force", self._name)
        except SandboxUnavailable as error:
            return str(error)
        if "No such container" in done.stderr or "already in progress" in done.stderr:
            return ""
        return done.stderr if done.returncode else ""

    def greet(self, parcel: bytes) -> None:
        """Sends what shall run and waits until it does.

        Raises:
            OSError: It does not.
        """
        said = b""
        self.socket.settimeout(_START)
        self.socket.sendall(parcel)
        while len(said) < len(GREETING) and (part := self.socket.recv(len(GREETING))):
            said += part
        if said != GREETING:
            raise ConnectionError("it said nothing, or something else than expected")
        self._started = True


class DockerBackend:
    """Starts containers, one at a time: no network, no capability, nothing of the host's files.

    The walls of this library are built inside as well, where the engine lets us; `layers` tells.
    The work folder lies in the memory of the container, and ends with it.

    Args:
        image: An image with Python 3.9 or newer. By default one is built.
        build_new_image: Whether an image may be built. It is built once, and found by its content.
        dockerfile_content: How to build it; ``python:3.11-slim`` by default.
        imports: What the code may import. The packages that it needs go into the image that is
            built, where neither an image is given nor `dockerfile_content` nor `packages`.
        packages: Requirements for pip, installed when the image is built.
        memory_bytes: Memory of the container.
        file_bytes: Largest size of one file.
        workdir_bytes: Size of the work folder.
        workdir_files: How many files and folders it may hold.
        open_files: Number of descriptors.
        max_threads: Threads at a time, those of numeric libraries not counted. (The container may
            have 32 processes and threads more.)
        cpus: Processors; None for all.
        host: The engine, such as ``"ssh://me@there"``; what the docker command uses by default.
        container_run_kwargs: Further options of ``docker run``, by their long names or those of the
            Docker SDK, such as ``{"cpuset_cpus": "0,1", "environment": {"LANG": "de_DE.UTF-8"}}``.
            Only such as leave the walls standing: read-only volumes, no devices, no network.
        allow_weaker: Lets those options be any. The walls are then what the engine makes of them,
            for those of this library are left out.

    Raises:
        ValueError: A setting cannot be used, or weakens the walls though that is not allowed.
    """

    def __init__(
        self,
        *,
        image: str | None = None,
        build_new_image: bool = True,
        dockerfile_content: str | None = None,
        imports: Sequence[str] = (),
        packages: Sequence[str] | None = None,
        memory_bytes: int = 1 << 30,
        file_bytes: int = 256 << 20,
        workdir_bytes: int = 256 << 20,
        workdir_files: int = 65_536,
        open_files: int = 256,
        max_threads: int = 32,
        cpus: float | None = None,
        host: str | None = None,
        container_run_kwargs: Mapping[str, Value] | None = None,
        allow_weaker: bool = False,
    ) -> None:
        if packages is None:
            given = image is not None or dockerfile_content is not None
            packages = () if given else list(packages_for(imports).values())
        self._image = Image(image, dockerfile_content, packages, build_new_image)
        limits = Limits(
            memory_bytes=memory_bytes,
            file_bytes=file_bytes,
            workdir_bytes=workdir_bytes,
            workdir_files=workdir_files,
            open_files=open_files,
            max_threads=max_threads,
        )
        self._options = ContainerOptions(
            memory=memory_bytes,
            cpus=cpus,
            pids_limit=max_threads + LIBRARY_THREADS,
            workdir=workdir_bytes,
            workdir_files=workdir_files,
            extra=dict(container_run_kwargs or {}),
            allow_weaker=allow_weaker,
        )
        self.limits = replace(limits, memory_bytes=self._options.memory_bytes)
        self._arguments = {
            "limits": {
                "memory": self._options.memory_bytes,
                "file_bytes": file_bytes,
                "open_files": open_files,
            },
            "volumes": self._options.volumes(),
            "weaker": allow_weaker,
        }
        self._host = host
        self._lock = threading.Lock()
        self._link: DockerLink | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """The executor type."""
        return "docker"

    @property
    def ways_out(self) -> str:
        """What somebody can do whose machine cannot start a container."""
        return _WAYS_OUT

    @property
    def grace(self) -> float:
        """Seconds that a step has to stop when it is interrupted, by way of the engine."""
        return 3.0

    @property
    def files_remain(self) -> bool:
        """The work folder ends with the container."""
        return False

    @property
    def is_warm(self) -> bool:
        """Whether a kernel starts within milliseconds."""
        return False

    def check(self) -> None:
        """Looks for the command, and asks the engine for its version.

        Raises:
            SandboxUnavailable: There is no command, or no engine that answers.
        """
        self._require_engine(Docker(self._host))

    def start(self) -> DockerLink:
        """Starts a container, in the place of the one before.

        Raises:
            SandboxUnavailable: There is no docker command, no engine, no image or no Python in it.
        """
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("The interpreter was closed before it started.")
            self._end()
            docker = Docker(self._host)
            try:
                self._link = self._run(docker)
            except _NotStarted as failure:
                if failure.status != _ENGINE_FAILED or self._image.is_there(docker):
                    raise self._unavailable(docker, failure) from failure
                self._require_engine(docker)
                self._image.make(docker)
                try:
                    self._link = self._run(docker)
                except _NotStarted as second:
                    raise self._unavailable(docker, second) from second
            return self._link

    def _run(self, docker: Docker) -> DockerLink:
        name = f"sanderling-{secrets.token_hex(8)}"
        command = [f"--entrypoint={PYTHON}", self._image.name, "-I", "-B", "-X", "utf8"]
        ours, theirs = socket.socketpair()
        with contextlib.ExitStack() as undo, tempfile.TemporaryFile() as complaints:
            undo.callback(ours.close)
            with theirs:
                process = docker.start(
                    *("run", *self._options.flags(name), *command, "-c", boot()),
                    streams=theirs.fileno(),
                    complaints=complaints,
                )
            link = DockerLink(docker, name, process, ours)
            undo.callback(link.finish)
            undo.callback(link.kill)
            try:
                link.greet(parcel("contained", self._arguments))
            except OSError as error:
                undo.close()
                complaints.seek(0)
                said = complaints.read(1 << 16).decode("utf-8", "replace")
                raise _NotStarted(process.returncode, tail(said) or str(error)) from error
            undo.pop_all()
        return link

    def _unavailable(self, docker: Docker, failure: _NotStarted) -> SandboxUnavailable:
        if failure.status in (_NOT_EXECUTABLE, _NOT_FOUND):
            return SandboxUnavailable(
                f"the image {self._image.name} has no {PYTHON} that runs: {failure.said}."
            )
        if failure.status == _ENGINE_FAILED:
            self._require_engine(docker)
        return SandboxUnavailable(f"no container could be started: {failure.said}.")

    def _require_engine(self, docker: Docker) -> None:
        """Asks the engine for its version.

        Raises:
            SandboxUnavailable: It does not answer.
        """
        asked = docker.run("version", "--format={{.Server.Version}}")
        if asked.returncode:
            raise SandboxUnavailable(f"the Docker engine does not answer: {tail(asked.stderr)}.")

    def usage(self, link: Link) -> Usage:
        """Sees nothing: the container may run on another machine. Its limits are the engine's."""
        return Usage()

    def close(self) -> None:
        """Ends the container and removes it. May be called again."""
        with self._lock:
            self._closed = True
            self._end()

    def _end(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.kill()
            link.finish()
