"""The first place with walls that works here: a locked process, a container, or WebAssembly."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from sanderling._warn import warn
from sanderling.errors import SandboxError, SandboxUnavailable
from sanderling.sandbox._backend import Checked, FolderBackend
from sanderling.sandbox._interpreter import no_folder
from sanderling.sandbox._limits import Limits, Usage, require_kept

from ._docker import DockerBackend
from ._wasm import DENO_VERSION, PYODIDE_VERSION, WasmBackend

if TYPE_CHECKING:
    from sanderling.sandbox._backend import Backend, Link
    from sanderling.sandbox.lockdown import Layer

Make: TypeAlias = "Callable[..., Backend]"


def _local(**settings: Any) -> Backend:
    from ._local import LocalBackend  # it is of Linux alone

    return LocalBackend(**settings)


PLACES: dict[str, Make] = {"local": _local, "docker": DockerBackend, "wasm": WasmBackend}
"""In the order in which they are tried."""

_COMMANDS = {
    "darwin": "Two commands that help, one is enough: `brew install --cask docker` (start it then) "
    f"or `pip install deno=={DENO_VERSION}` with `npm install --prefix ~/.cache/sanderling "
    f"pyodide@{PYODIDE_VERSION}`.",
    "win32": "Two commands that help: `wsl --install` sets up a Linux on Windows, and `pip install "
    "sanderling` installs this library there.",
}


class _Choice:
    """What this process has decided on."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.place: str | None = None


_choice = _Choice()


class AutoBackend:
    """Becomes `LocalBackend`, `DockerBackend` or `WasmBackend` when the first kernel starts.

    All interpreters of a process become the same. Nothing without walls is ever chosen.

    Args:
        imports: What the code may import.
        **settings: Limits. A place that cannot keep one of them is passed over.

    Raises:
        ValueError: A setting is no limit: what else a place has can be set by its own name only.
    """

    def __init__(self, *, imports: Sequence[str] = (), **settings: Any) -> None:
        self._unfit: dict[str, str] = {}
        self._candidates: dict[str, Backend] = {}
        for place in PLACES:
            if sys.platform == "win32" or (place == "local" and sys.platform != "linux"):
                self._unfit[place] = f"it does not run on {sys.platform}."
                continue
            try:
                require_kept(place, settings)
            except ValueError as error:
                self._unfit[place] = str(error)
                continue
            given = {name: value for name, value in settings.items() if name != "cpu_seconds"}
            if place == "local":
                given["imports"] = imports
            try:
                self._candidates[place] = PLACES[place](**given)
            except TypeError as error:
                raise ValueError(
                    f'executor_type="auto" takes limits that each place knows: {error}. '
                    "Name the place to set what is its own."
                ) from error
        if not self._candidates and sys.platform == "win32":
            raise SandboxUnavailable(
                f"There is no place with walls for code on Windows itself. {_COMMANDS['win32']}"
            )
        if not self._candidates:
            raise ValueError(" ".join(self._unfit.values()))
        self._decided = False
        self._backend = next(iter(self._candidates.values()))

    @property
    def name(self) -> str:
        """The executor type that it became; ``"auto"`` before that."""
        return self._backend.name if self._decided else "auto"

    @property
    def limits(self) -> Limits:
        """What a kernel may use up there."""
        return self._backend.limits

    @property
    def ways_out(self) -> str:
        """What somebody can do on whose machine there is no such place."""
        if self._decided:
            return self._backend.ways_out
        return 'Or executor_type="inprocess", which has no walls, for code you trust.'

    @property
    def files_remain(self) -> bool:
        """Whether the work folder outlives the kernel."""
        return self._backend.files_remain

    @property
    def is_warm(self) -> bool:
        """Whether a kernel starts within milliseconds."""
        return self._backend.is_warm

    @property
    def grace(self) -> float:
        """Seconds that a step has to stop when it is interrupted."""
        return self._backend.grace

    def check(self) -> None:
        """Looks for a place that has what it needs, as far as that costs nothing.

        Raises:
            SandboxUnavailable: There is none.
        """
        with _choice.lock:
            if _choice.place is not None:
                self._become(_choice.place)
        candidates = {self.name: self._backend} if self._decided else self._candidates
        refusals = dict(self._unfit)
        for place, backend in candidates.items():
            try:
                if place == "local":
                    _require_walls()
                elif isinstance(backend, Checked):
                    backend.check()
            except SandboxUnavailable as error:
                refusals[place] = f"{str(error).rstrip('.')}. {backend.ways_out}"
            else:
                return
        raise self._nowhere(refusals)

    def start(self) -> Link:
        """Starts a kernel; the first one in this process decides where.

        Raises:
            SandboxUnavailable: It cannot be started; if nothing is decided yet, in no place.
        """
        if not self._decided:
            with _choice.lock:
                if _choice.place is None:
                    return self._decide()
                self._become(_choice.place)
        return self._backend.start()

    def _decide(self) -> Link:
        """Starts a kernel in the first place that can."""
        refusals = dict(self._unfit)
        for place, backend in self._candidates.items():
            try:
                if place == "local":
                    _require_walls()
                link = backend.start()
            except SandboxUnavailable as error:
                refusals[place] = f"{str(error).rstrip('.')}. {backend.ways_out}"
                continue
            _choice.place = place
            self._become(place)
            if sys.platform != "linux":
                warn(f'Code runs in executor_type="{place}": "local" takes Linux.')
            return link
        raise self._nowhere(refusals)

    def _nowhere(self, refusals: Mapping[str, str]) -> SandboxUnavailable:
        ordered = [(place, refusals[place]) for place in PLACES if place in refusals]
        reasons = " ".join(f"{place}: {reason}" for place, reason in ordered)
        commands = _COMMANDS.get(sys.platform, "")
        return SandboxUnavailable(
            f"there is no place with walls for code on this machine. {commands} {reasons}"
        )

    def _become(self, place: str) -> None:
        if place not in self._candidates:
            raise SandboxUnavailable(f"this process runs code in {place!r}: {self._unfit[place]}")
        self._backend, self._decided = self._candidates[place], True

    def usage(self, link: Link) -> Usage:
        """Looks at what a kernel uses up, as far as that can be seen from here."""
        return self._backend.usage(link)

    def work_folder(self, *, make: bool) -> str | None:
        """Returns the work folder, as `LocalBackend` does.

        With `make`, it decides for a locked process where that works and nothing is decided yet.

        Raises:
            SandboxError: Code runs where the folder is out of reach.
        """
        if make and not self._decided:
            with _choice.lock:
                if _choice.place is None and "local" in self._candidates:
                    with contextlib.suppress(SandboxUnavailable):
                        _require_walls()
                        _choice.place = "local"
                if _choice.place is not None:
                    self._become(_choice.place)
        backend = self._backend
        if not isinstance(backend, FolderBackend) or (make and not self._decided):
            raise SandboxError(no_folder(self.name))
        return backend.work_folder(make=make)

    def __getattr__(self, name: str) -> Any:
        """Has what else the place has: `CopyableBackend` is for those that can copy kernels."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._backend, name)

    def close(self) -> None:
        """Ends the kernel and removes all that is left behind. May be called again."""
        for backend in self._candidates.values():
            backend.close()


def probe() -> tuple[Layer, ...]:
    """Looks which layers of walls this machine has. See `lockdown.probe`."""
    from sanderling.sandbox import lockdown  # it is of Linux alone

    return tuple(lockdown.probe())


def _require_walls() -> None:
    """Looks whether a process can be locked here, which is else found out when it has started.

    Raises:
        SandboxUnavailable: A required layer is missing.
    """
    missing = [layer for layer in probe() if layer.required and not layer.available]
    if missing:
        told = "; ".join(f"{layer.name}: {layer.detail}. {layer.remedy}" for layer in missing)
        raise SandboxUnavailable(told)
