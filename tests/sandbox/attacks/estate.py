"""What the attacked host owns, and what has become of it: standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

ENVIRONMENT = "HOST_API_KEY"
_VICTIM = "import sys\nfor line in sys.stdin: print(flush=True)"
_PR_SET_CHILD_SUBREAPER = 36
_LAST_BREATH = 30.0  # seconds for a process that was killed to end, on a busy machine
_FILES = {
    "private/secret.txt": "",
    "home/.ssh/id_ed25519": "",
    "home/.bashrc": "# the host's\n",
    "project/.git/hooks/pre-commit.sample": "#!/bin/sh\n",
    "project/agent.json": '{"tools": []}\n',
    "outside/there.txt": "there\n",
}


@dataclass(frozen=True)
class Targets:
    """Where everything is: the code in the sandbox gets these as variables."""

    secret_file: str
    outside: str
    home: str
    project: str
    library: str
    memory_at: int
    memory_size: int
    host: int
    victim: int
    tcp: int
    udp: int
    stream_path: str
    datagram_path: str
    abstract: str


class Estate:
    """Files, a process and servers that hostile code would like to reach.

    Args:
        root: Folder that will hold the files; all that may be open to all is.
        library: Folder with the host's own source.

    Attributes:
        helpers: Child processes that are meant to be there.
        fork_servers: More of them, which are meant to have no children but helpers.
    """

    def __init__(self, root: Path, library: Path) -> None:
        self.helpers: set[int] = set()
        self.fork_servers: set[int] = set()
        self._root = root
        self._library = library
        self._secrets = {kind: f"canary-{kind}-{secrets.token_hex(12)}" for kind in _KINDS}
        self._secrets["environment"] = os.environ[ENVIRONMENT]
        self._memory = ctypes.create_string_buffer(self._secrets["memory"].encode())
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans come to us
        self._furnish()
        self._servers = self._open_servers()
        # One that a careless child would inherit.
        self._descriptor = os.open(root / "private/secret.txt", os.O_RDONLY)
        os.set_inheritable(self._descriptor, True)
        self._start_victim()
        self._files = self._survey()
        self.admit()

    def admit(self) -> None:
        """Counts the sandboxes that there are now to what belongs to the host."""
        self.helpers.update(*map(children, self.fork_servers))
        self._work_folders = self._look_for_work_folders()
        self._descriptors = _descriptors()

    @property
    def key(self) -> str:
        """A secret in the memory of this process."""
        return self._secrets["memory"]

    def targets(self) -> dict[str, object]:
        """Returns `Targets` by name."""
        servers = self._servers
        return asdict(
            Targets(
                secret_file=str(self._root / "private/secret.txt"),
                outside=str(self._root / "outside"),
                home=str(self._root / "home"),
                project=str(self._root / "project"),
                library=str(self._library),
                memory_at=ctypes.addressof(self._memory),
                memory_size=len(self._memory),
                host=os.getpid(),
                victim=self._victim.pid,
                tcp=servers["TCP"].getsockname()[1],
                udp=servers["UDP"].getsockname()[1],
                stream_path=servers["Unix stream"].getsockname(),
                datagram_path=servers["Unix datagram"].getsockname(),
                abstract=servers["abstract Unix"].getsockname()[1:].decode(),
            )
        )

    def _furnish(self) -> None:
        for name, text in _FILES.items():
            path = self._root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text or self._secrets["file"])
        for path in (self._root, *self._root.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)  # it is the walls that must keep them

    def _open_servers(self) -> dict[str, socket.socket]:
        places: dict[str, tuple[int, int, object]] = {
            "TCP": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "UDP": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "Unix stream": (socket.AF_UNIX, socket.SOCK_STREAM, f"{self._root}/outside/s"),
            "Unix datagram": (socket.AF_UNIX, socket.SOCK_DGRAM, f"{self._root}/outside/d"),
            "abstract Unix": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{secrets.token_hex(8)}"),
        }
        servers = {}
        for name, (family, kind, address) in places.items():
            server = servers[name] = socket.socket(family, kind)
            server.bind(address)  # type: ignore[arg-type]  # each family has its own kind
            if kind == socket.SOCK_STREAM:
                server.listen()
            server.setblocking(False)
            if isinstance(address, str) and address.startswith("/"):
                Path(address).chmod(0o777)
        return servers

    def _start_victim(self) -> None:
        command = [sys.executable, "-I", "-S", "-c", _VICTIM]
        self._victim = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if not self._victim_answers():
            raise RuntimeError("the victim did not start")
        self._looks = self._look()

    def _victim_answers(self) -> bool:
        """Asks the victim: one that was sent a deadly signal dies before it can answer."""
        if self._victim.stdin is None or self._victim.stdout is None:
            raise RuntimeError("the victim has no pipes")
        try:
            self._victim.stdin.write(b"?\n")
            self._victim.stdin.flush()
        except BrokenPipeError:
            return False
        return bool(self._victim.stdout.readline())

    def _end_victim(self) -> None:
        self._victim.kill()
        self._victim.communicate()

    def _look(self) -> list[object]:
        return [
            (
                os.sched_getaffinity(pid),
                os.getpriority(os.PRIO_PROCESS, pid),
                *(resource.prlimit(pid, kind) for kind in range(16)),
            )
            for pid in (os.getpid(), self._victim.pid)
        ]

    def _look_for_work_folders(self) -> set[Path]:
        return set((self._root / "tmp").iterdir())

    def _survey(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for top in (*(self._root / name for name in _FOLDERS), self._library):
            for path in sorted((top, *top.rglob("*"))):
                info = path.lstat()
                # The system sets the time of the last change, and lets nobody set it.
                found[str(path)] = (info.st_ctime_ns, info.st_mtime_ns, info.st_size, info.st_ino)
        return found

    # What has become of it

    def reset_peak(self) -> None:
        """Starts measuring the host's own memory anew."""
        Path("/proc/self/clear_refs").write_text("5")
        self._resident = _resident("VmRSS")

    def damage(self, said: str, growth: int = 1 << 30) -> list[str]:
        """Returns what the attack did to the host; an empty list where it did nothing.

        Args:
            said: All that came out of the sandbox.
            growth: Bytes that it may have added to the host's memory at its peak.
        """
        found = [f"the secret in the {kind} is out" for kind in self._leaks(said)]
        if self._memory.value.decode() != self._secrets["memory"]:
            found.append("the host's memory was changed")
        if os.environ[ENVIRONMENT] != self._secrets["environment"]:
            found.append("the host's environment was changed")
        found += self._changed_files()
        found += self._visited_servers()
        if not self._victim_answers():
            found.append("the victim is dead")
        elif self._look() != self._looks:
            found.append("a process of the host was changed")
        found += [f"process {pid} was left behind" for pid in self._strangers()]
        if self._look_for_work_folders() - self._work_folders:
            found.append("a work folder was left behind")
        if _descriptors() > self._descriptors:
            found.append("the host holds more descriptors")
        grown = _resident("VmHWM") - self._resident
        if grown > growth:
            found.append(f"the host's own memory grew by {grown >> 20} MiB")
        return found

    def _leaks(self, said: str) -> list[str]:
        return [kind for kind, secret in self._secrets.items() if secret in said]

    def _changed_files(self) -> list[str]:
        now = self._survey()
        names = sorted(self._files.keys() | now.keys())
        return [f"{name} changed" for name in names if self._files.get(name) != now.get(name)]

    def _visited_servers(self) -> list[str]:
        ready, _, _ = select.select(list(self._servers.values()), [], [], 0)
        return [f"{name} was reached" for name, server in self._servers.items() if server in ready]

    def _strangers(self) -> list[int]:
        """Returns the children that nobody of us made, or that did not go away."""
        known = {self._victim.pid, *self.helpers, *self.fork_servers}
        own = [pid for pid in children(os.getpid()) if pid not in known]
        # Those of a zygote that were told to end may still be at it.
        theirs = (
            pid for zygote in self.fork_servers for pid in children(zygote) if pid not in known
        )
        return own + [pid for pid in theirs if not _ends(pid)]

    def restore(self) -> None:
        """Repairs what is broken, for the next attack."""
        for pid in self._strangers():
            os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # a zygote's, which waits for it
                os.waitpid(pid, 0)
        self._memory.value = self._secrets["memory"].encode()
        self._end_victim()
        self._start_victim()
        for server in self._servers.values():
            server.close()
        for name in (*_FOLDERS, "tmp"):
            shutil.rmtree(self._root / name, ignore_errors=True)
        (self._root / "tmp").mkdir(mode=0o700)
        self._furnish()
        self._servers = self._open_servers()
        self._files = self._survey()

    def close(self) -> None:
        """Ends the victim."""
        self._end_victim()


_KINDS = ("memory", "file")
_FOLDERS = ("home", "outside", "private", "project")


def _resident(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"the system does not tell {name}")


def _ends(pid: int) -> bool:
    """Waits for the end of a process; returns whether it came."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], _LAST_BREATH)[0])
    finally:
        os.close(descriptor)


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def children(parent: int) -> list[int]:
    """Returns the child processes of `parent`, dead or alive."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # The name in parentheses may hold anything; the parent is the second word after it.
        if int(status.rpartition(")")[2].split()[1]) == parent:
            found.append(int(entry.name))
    return found
