"""What code may use up: the limits of a place, those of a step, and a look at what is used."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

LIBRARY_THREADS = 32
"""Threads beside those that are counted: of numeric libraries, and on their way out."""

LESS_TIME = "Do it in smaller steps, or faster."
_FEWER_THREADS = "Use a pool, such as concurrent.futures.ThreadPoolExecutor(8)."
_LESS_MEMORY = "Delete large variables, or work in pieces."
_FEWER_FILES = (
    "Remove files that are not needed any more. Until then each step ends with an error, and one "
    "that adds to them is stopped."
)
LOOKS_EVERY = 0.1
"""Seconds between two looks at a step that runs."""

_SHARE, _SHARE_AT_END = 10, 50  # a look may take one part in so many of the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an interpreter may use up, in all of its steps together; None where there is no limit.

    Attributes:
        memory_bytes: Memory.
        file_bytes: Largest size of one file.
        workdir_bytes: All that lies in the work folder.
        workdir_files: Files and folders in the work folder.
        open_files: Descriptors.
        max_threads: Threads at a time, the main one included.

    Raises:
        ValueError: One is no positive whole number.
    """

    memory_bytes: int | None = None
    file_bytes: int | None = None
    workdir_bytes: int | None = None
    workdir_files: int | None = None
    open_files: int | None = None
    max_threads: int | None = None

    def __post_init__(self) -> None:
        for name, value in self.known().items():
            require_positive(name, value, whole=True)

    @property
    def bytes_ceiling(self) -> int | None:
        """Bytes in the work folder past which no code runs: it had a moment to exceed the limit."""
        return None if self.workdir_bytes is None else 2 * self.workdir_bytes + (256 << 20)

    @property
    def files_ceiling(self) -> int | None:
        """Files and folders past which no code runs."""
        return None if self.workdir_files is None else 2 * self.workdir_files + 10_000

    def known(self) -> dict[str, int]:
        """Returns those that there are, by name."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value is not None}


def require_positive(name: str, value: object, *, whole: bool = False) -> None:
    """Checks the value of a limit.

    Raises:
        ValueError: It is no positive number, or no whole one.
    """
    kinds = (int,) if whole else (int, float)
    if type(value) not in kinds or not value > 0:  # type: ignore[operator]  # a number, as of the first part
        number = "a whole number" if whole else "a number"
        raise ValueError(f"{name} must be {number} larger than 0, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an interpreter has used up; None where that cannot be seen from here.

    Attributes:
        cpu_seconds: Processor time since it started.
        threads: Threads, those of libraries included.
        memory_bytes: Memory, with that of copies, where there are any.
        workdir_bytes: What the files in the work folder take.
        workdir_files: How many files and folders there are.
    """

    cpu_seconds: float | None = None
    threads: int | None = None
    memory_bytes: int | None = None
    workdir_bytes: int | None = None
    workdir_files: int | None = None


@dataclass(frozen=True, slots=True)
class Excess:
    """What a step did that it may not.

    Attributes:
        did: In words that go behind "The step".
        advice: What to do instead.
        final: Whether it does not end with the step: then the interpreter has to.
    """

    did: str
    advice: str
    final: bool = False


_NOTHING = Usage()


class StepWatch:
    """Looks at what a step uses up, where the system keeps no such limit itself.

    It looks when a step begins, ten times a second while it runs, and when it ends. A look takes
    0.1 ms, or much longer where there are many files. So it looks less often where that would take
    more than a tenth of the time; and not at the end of a step where it would take more than a
    fiftieth since the last look.

    Code has written what is found to be too much, so it needs a step in which to remove it. In a
    full work folder a step runs, but it is stopped if it adds to the folder, and ends with an error
    if it leaves it full. Far beyond the limit the interpreter ends, and no step runs.

    Args:
        look: Looks.
        limits: Of the place.
        cpu_seconds: Processor time of one step.
        now: The clock.
    """

    def __init__(
        self,
        look: Callable[[], Usage],
        limits: Limits,
        cpu_seconds: float | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._limits = limits
        self._cpu_seconds = cpu_seconds
        self._now = now
        self._next = self._next_at_end = 0.0
        self._too_much = False
        self._usage = Usage()
        self._before = Usage()
        kept = (limits.workdir_bytes, limits.workdir_files, limits.max_threads, cpu_seconds)
        self.needed = any(limit is not None for limit in kept)
        """Whether there is anything to look for."""

    def start_step(self) -> str:
        """Looks at what was used up before, if it is time to.

        Returns:
            Why the step must not run, if it must not.
        """
        if not self.needed:
            return ""
        if self._now() >= self._next or self._cpu_seconds is not None or self._too_much:
            self._look_now()
        self._before = self._usage
        if not self._is_hopeless():
            return ""
        return (
            f"The work folder holds far more than its {self._over()}, so no more code runs in this "
            "sandbox. Start another one, or remove files from outside."
        )

    def excess(self, *, ended: bool = False) -> Excess | None:
        """Looks, if it is time to; tells what a step did that it may not.

        Args:
            ended: Whether the step has ended by itself.
        """
        if not self.needed:
            return None
        due = self._now() >= (self._next_at_end if ended else self._next)
        if not due and not self._too_much:
            return None
        self._look_now()
        if did := self._threads():
            return Excess(did, _FEWER_THREADS, final=True)
        if did := self._folder(ended):
            return Excess(did, _FEWER_FILES, final=self._is_hopeless())
        if did := self._processor():
            return Excess(did, LESS_TIME)
        if did := self._memory():
            return Excess(did, _LESS_MEMORY)
        return None

    def _look_now(self) -> None:
        begun = self._now()
        self._usage = self._look()
        ended = self._now()
        took = ended - begun
        self._next = ended + max(LOOKS_EVERY, _SHARE * took)
        self._next_at_end = min(self._next, ended + _SHARE_AT_END * took)
        self._too_much = bool(self._threads() or self._over())

    def _processor(self) -> str:
        used, before = self._usage.cpu_seconds, self._before.cpu_seconds
        if None in (used, before, self._cpu_seconds) or used - before <= self._cpu_seconds:  # type: ignore[operator]  # none is None
            return ""
        return f"used more than its {self._cpu_seconds:g} s of processor time"

    def _threads(self) -> str:
        most, threads = self._limits.max_threads, self._usage.threads
        if most is None or threads is None or threads <= most + LIBRARY_THREADS:
            return ""
        return f"had {threads:,} threads; it may have {most:,}"

    def _memory(self) -> str:
        most, used = self._limits.memory_bytes, self._usage.memory_bytes
        if most is None or used is None or used <= most:
            return ""
        return f"used, with the snapshots of its interpreter, more than {size_text(most)} of memory"

    def _folder(self, ended: bool) -> str:
        if limit := self._over(self._before):
            return f"filled the work folder past its {limit}"
        if ended and (limit := self._over()):
            return f"left more in the work folder than its {limit}"
        return ""

    def _over(self, before: Usage = _NOTHING) -> str:
        """Returns the limit of the work folder that it is over, if it has grown since `before`."""
        used, limits = self._usage, self._limits
        if _is_more(used.workdir_bytes, before.workdir_bytes, limits.workdir_bytes):
            return size_text(limits.workdir_bytes or 0)
        if _is_more(used.workdir_files, before.workdir_files, limits.workdir_files):
            return f"{limits.workdir_files:,} files"
        return ""

    def _is_hopeless(self) -> bool:
        used, limits = self._usage, self._limits
        return _is_more(used.workdir_bytes, 0, limits.bytes_ceiling) or _is_more(
            used.workdir_files, 0, limits.files_ceiling
        )


def _is_more(used: int | None, before: int | None, limit: int | None) -> bool:
    return used is not None and limit is not None and used > max(limit, before or 0)


_UNITS = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}


def size_text(count: int) -> str:
    """Writes a number of bytes as people do: ``"256 MiB"``."""
    for unit, size in _UNITS.items():
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:,} bytes"


# What a setting is called that a place cannot keep, and why. The documentation has the whole table.
_HOSTED = dict.fromkeys(
    ("cpu_seconds", "workdir_in_memory", *(field.name for field in fields(Limits))),
    "what a machine has is the provider's business: its own settings say how large it is",
)
_NOT_KEPT: Mapping[str, Mapping[str, str]] = {
    "e2b": _HOSTED,
    "modal": _HOSTED,
    "blaxel": _HOSTED,
    "docker": {
        "cpu_seconds": "nobody outside a container sees the processor time of a step: "
        "use timeout_seconds, and cpus for its share of the processors",
    },
    "wasm": {
        "file_bytes": "its files lie in its memory: use memory_bytes",
        "workdir_bytes": "its files lie in its memory: use memory_bytes",
        "workdir_files": "its files lie in its memory: use memory_bytes",
        "open_files": "its descriptors are its own, and none of this machine's",
        "max_threads": "it has no threads",
    },
    "inprocess": dict.fromkeys(
        ("cpu_seconds", "workdir_in_memory", *(field.name for field in fields(Limits))),
        "it has no walls. What it keeps is timeout_seconds, max_print_outputs_length and "
        "max_tool_calls",
    ),
}
LIMIT_NAMES = frozenset({"cpu_seconds", "max_processes", *(field.name for field in fields(Limits))})
"""The settings that are limits: None stands for what the place has by default."""

_NO_PROCESSES = "code cannot start processes in any sandbox, so there is nothing to limit"


def require_kept(place: str, settings: Mapping[str, object]) -> None:
    """Refuses limits that a place cannot keep, rather than to ignore them.

    Raises:
        ValueError: One of the settings is such a limit; None stands for no limit, and passes.
    """
    reasons = {**_NOT_KEPT.get(place, {}), "max_processes": _NO_PROCESSES}
    for name, why in reasons.items():
        if settings.get(name) is not None:
            raise ValueError(f'executor_type="{place}" cannot keep {name}: {why}.')
