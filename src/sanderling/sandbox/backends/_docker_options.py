"""The options of ``docker run`` that make a container's walls, and those that may be added."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ._contained import WORKDIR

Value: TypeAlias = "str | int | float | bool | list[str] | dict[str, object] | None"

USER = "65534:65534"
LABEL = "sanderling"
_SIZE = re.compile(r"(\d+)([bkmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

# What smolagents, which uses the Docker SDK, calls otherwise than the docker command.
_SDK_NAMES = {
    "environment": "env",
    "labels": "label",
    "mem_limit": "memory",
    "nano_cpus": "cpus",
    "volumes": "volume",
}
# What adds nothing to what the code can reach. All else is for those who allow weaker walls.
_HARMLESS = {
    "cpu_period",
    "cpu_quota",
    "cpu_shares",
    "cpus",
    "cpuset_cpus",
    "env",
    "hostname",
    "label",
    "memory",
    "pids_limit",
    "platform",
    "runtime",
    "volume",
}
# Folders that hold sockets of the engine and of other services, or the machine itself.
_SYSTEM = re.compile(r"/|/(dev|etc|proc|root|run|sys|var|var/lib|var/run)(/.*)?")
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")


def size(text: str | int) -> int:
    """Returns the bytes that a size such as ``"512m"`` or ``"1g"`` stands for.

    Raises:
        ValueError: It is no size.
    """
    found = _SIZE.fullmatch(str(text))
    if found is None:
        raise ValueError(f'{text!r} is no size: write bytes, or such as "512m" or "1g"')
    return int(found[1]) * _UNITS[found[2].lower()]


@dataclass(frozen=True)
class ContainerOptions:
    """How a container is run.

    Attributes:
        memory: Its memory, in bytes.
        cpus: Its processors; None for all.
        pids_limit: Its processes and threads.
        workdir: Size of the work folder in bytes; it lies in the memory.
        workdir_files: How many files and folders it may hold.
        extra: Further options; see `DockerBackend`.
        allow_weaker: Whether those may be any.

    Raises:
        ValueError: An option is none, or weakens the walls though that is not allowed.
    """

    memory: int
    cpus: float | None
    pids_limit: int
    workdir: int
    workdir_files: int
    extra: Mapping[str, Value] = field(default_factory=dict)
    allow_weaker: bool = False

    def __post_init__(self) -> None:
        for name, value in self._extra().items():
            if not re.fullmatch(r"[a-z][a-z0-9_]+", name):
                raise ValueError(f"container_run_kwargs: {name!r} is no option of docker run")
            if not self.allow_weaker and not _is_harmless(name, value):
                raise ValueError(
                    f"container_run_kwargs: {name}={value!r} may weaken the walls around the code. "
                    "If that is meant, say allow_weaker=True."
                )

    @property
    def memory_bytes(self) -> int:
        """The memory of the container."""
        return size(str(self._options()["memory"]))

    def volumes(self) -> list[str]:
        """Returns the folders of the container that volumes are mounted on."""
        return [volume.split(":")[1] for volume in _volumes(self._extra().get("volume"))]

    def flags(self, name: str) -> list[str]:
        """Returns the options of the container `name`, as arguments of ``docker run``."""
        return [
            "--interactive",
            "--rm",
            f"--name={name}",
            "--pull=never",
            "--log-driver=none",
            f"--workdir={WORKDIR}",
            *(
                f"--{option.replace('_', '-')}{text}"
                for option, value in self._options().items()
                for text in _texts(value)
            ),
        ]

    def _extra(self) -> dict[str, Value]:
        return {_SDK_NAMES.get(name, name): value for name, value in self.extra.items()}

    def _options(self) -> dict[str, Value]:
        extra = self._extra()
        environment: dict[str, object] = {
            # The docker command hands its user's proxies on, passwords included.
            **dict.fromkeys((*_PROXIES, *map(str.upper, _PROXIES)), ""),
            "HOME": WORKDIR,
            "TMPDIR": WORKDIR,
            "LANG": "C.UTF-8",
            "MPLBACKEND": "agg",
            "MPLCONFIGDIR": WORKDIR,
        }
        folder = f"{WORKDIR}:rw,noexec,nosuid,nodev,mode=0700,uid=65534,gid=65534"
        options: dict[str, Value] = {
            "network": "none",
            "ipc": "none",
            "read_only": True,
            "tmpfs": f"{folder},size={self.workdir},nr_inodes={self.workdir_files}",
            "cap_drop": "ALL",
            "security_opt": "no-new-privileges",
            "user": USER,
            "memory": str(self.memory),
            "cpus": self.cpus,
            "pids_limit": self.pids_limit,
            **extra,
            "label": [LABEL, *_pairs(extra.get("label"))],
            "env": [*_pairs(environment), *_pairs(extra.get("env"))],
            "volume": [*_volumes(extra.get("volume"))],
        }
        options.setdefault("memory_swap", options["memory"])  # no swap beside it
        return options


def _texts(value: Value) -> Iterator[str]:
    if value is True:
        yield ""
    elif value is False:
        yield "=false"
    elif isinstance(value, (list, dict)):
        yield from (f"={item}" for item in _pairs(value))
    elif value is not None:
        yield f"={value}"


def _pairs(value: Value) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{key}={item}" for key, item in value.items())
    elif isinstance(value, list):
        yield from value
    elif value is not None:
        yield str(value)


def _volumes(value: Value) -> Iterator[str]:
    """Reads volumes as the docker command writes them, and as the Docker SDK does."""
    if not isinstance(value, dict):
        yield from _pairs(value)
        return
    for source, target in value.items():
        if isinstance(target, dict):
            yield f"{source}:{target['bind']}:{target.get('mode', 'rw')}"
        else:
            yield f"{source}:{target}"


def _is_harmless(name: str, value: Value) -> bool:
    if name == "network":
        return value == "none"
    if name == "volume":
        return all(map(_is_harmless_volume, _volumes(value)))
    return name in _HARMLESS


def _is_harmless_volume(volume: str) -> bool:
    source, _, rest = volume.partition(":")
    plain = "/" + source.strip("/") if source.startswith("/") else source
    return (
        rest.endswith(":ro")
        and ".." not in source.split("/")
        and not source.endswith(".sock")
        and not _SYSTEM.fullmatch(plain)
    )
