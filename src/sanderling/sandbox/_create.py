"""Makes interpreters by the name of the place where code shall run."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from sanderling.errors import SandboxUnavailable

from ._limits import LIMIT_NAMES, require_kept, require_positive
from .backends._packages import require_installed

if TYPE_CHECKING:
    from ._interpreter import Interpreter

ExecutorType: TypeAlias = Literal[
    "local", "docker", "wasm", "e2b", "modal", "blaxel", "inprocess", "auto"
]
DEFAULT_OUTPUT = 50_000
DEFAULT_TOOL_CALLS = 10_000
_SETTINGS = ("timeout_seconds", "max_print_outputs_length", "max_tool_calls")
_BACKENDS = {
    "auto": (".backends._auto", "AutoBackend"),
    "local": (".backends._local", "LocalBackend"),
    "docker": (".backends._docker", "DockerBackend"),
    "wasm": (".backends._wasm", "WasmBackend"),
    "e2b": (".backends._e2b", "E2BBackend"),
    "modal": (".backends._modal", "ModalBackend"),
    "blaxel": (".backends._blaxel", "BlaxelBackend"),
}


def create_interpreter(
    executor_type: ExecutorType | str = "local",
    *,
    additional_authorized_imports: Sequence[str] = (),
    timeout_seconds: float | None = 30,
    max_print_outputs_length: int | None = None,
    max_tool_calls: int | None = None,
    restore_after_kill: bool = True,
    **executor_kwargs: Any,
) -> Interpreter:
    """Makes an interpreter; its sandbox starts with the first step.

    Args:
        executor_type: ``"local"``: a process of this machine, locked by the operating system.
            ``"docker"``: a container of a Docker engine.
            ``"wasm"``: Pyodide, which is CPython in WebAssembly, under Deno.
            ``"e2b"``, ``"modal"``, ``"blaxel"``: a machine of theirs, with an account of yours.
            ``"inprocess"``: this very process, without walls, for code that you trust.
            ``"auto"``: the first of the three before that works on this machine, decided when the
            first of such interpreters starts, and the same for all later ones of this process. It
            is never ``"inprocess"``. `Interpreter.layers` tells which it became.
        additional_authorized_imports: What the code may import beside `BASE_BUILTIN_MODULES`:
            ``"pandas"`` (with its submodules), ``"pkg.*"``, or ``"*"`` for all. Where the place
            can, the packages that these need are installed; ``packages=`` says otherwise. With
            ``"local"`` and ``"inprocess"`` they have to be installed here.
        timeout_seconds: How long a step may run, tool calls not counted; None for no limit.
        max_print_outputs_length: Characters that a step may print; 50,000 by default.
        max_tool_calls: Tool calls that a step may make; 10,000 by default.
        restore_after_kill: Whether variables are what they were before a step that had to be killed
            or ended its interpreter; or a few steps before it, as the error says, where steps
            followed one another without a pause. With ``"local"``; elsewhere they are gone.
        **executor_kwargs: Further limits, such as ``cpu_seconds`` (processor time of a step),
            ``memory_bytes`` and ``workdir_bytes``, and what else can be set there: see
            `LocalBackend` for ``"local"``, `DockerBackend` for ``"docker"``, and so on.

    Raises:
        ValueError: There is no such place, it cannot keep such a limit, or the code runs with this
            Python and a module that it may import is not installed.
        TypeError: The place has no such setting.
        SandboxUnavailable: The system is not one of the place.
    """
    if isinstance(additional_authorized_imports, str):
        raise ValueError("additional_authorized_imports is a list of names, not one string")
    if not all(isinstance(name, str) for name in additional_authorized_imports):
        raise ValueError(
            "additional_authorized_imports is a list of names, such as 'pandas', not of "
            f"{additional_authorized_imports!r}"
        )
    length = DEFAULT_OUTPUT if max_print_outputs_length is None else max_print_outputs_length
    calls = DEFAULT_TOOL_CALLS if max_tool_calls is None else max_tool_calls
    cpu_seconds = executor_kwargs.get("cpu_seconds")
    require_kept(executor_type, executor_kwargs)
    require_positive("max_print_outputs_length", length, whole=True)
    require_positive("max_tool_calls", calls, whole=True)
    for name, seconds in (("timeout_seconds", timeout_seconds), ("cpu_seconds", cpu_seconds)):
        if seconds is not None:
            require_positive(name, seconds)
    settings = {
        name: value
        for name, value in executor_kwargs.items()
        if not (name in LIMIT_NAMES and value is None)
    }
    if executor_type == "local" and sys.platform != "linux":
        raise SandboxUnavailable(
            f'There are no walls for {sys.platform}: executor_type="local" takes Linux. '
            'executor_type="auto" takes the first place that works here.'
        )
    if executor_type in ("local", "inprocess"):
        require_installed(additional_authorized_imports)
    if executor_type in _BACKENDS:
        from ._remote import RemoteInterpreter

        module, name = _BACKENDS[executor_type]
        backend = getattr(import_module(module, __package__), name)
        on_imports: Callable[[frozenset[str]], object] | None = None
        if executor_type in ("local", "auto") and sys.platform == "linux":
            from .backends._local import preload

            on_imports = preload
        if executor_type != "wasm":
            settings = {"imports": additional_authorized_imports, **settings}
        if executor_type != "auto":
            settings.pop("cpu_seconds", None)  # the interpreter's business, where it can be kept
        _require_known(executor_type, backend, settings)
        return RemoteInterpreter(
            backend(**settings),
            imports=additional_authorized_imports,
            timeout_seconds=timeout_seconds,
            cpu_seconds=cpu_seconds,
            max_output=length,
            max_tool_calls=calls,
            on_imports=on_imports,
            restore_after_kill=restore_after_kill,
        )
    if executor_type == "inprocess":
        from .backends._inprocess import InProcessInterpreter

        _require_known(executor_type, InProcessInterpreter, settings)
        return InProcessInterpreter(
            imports=additional_authorized_imports,
            timeout_seconds=timeout_seconds,
            max_output=length,
            max_tool_calls=calls,
            **settings,
        )
    known = '", "'.join(get_args(ExecutorType))
    raise ValueError(f'There is no executor type {executor_type!r}. Choose of: "{known}".')


def _require_known(
    executor_type: str, make: Callable[..., object], settings: Iterable[str]
) -> None:
    parameters = inspect.signature(make).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return
    for setting in settings:
        if setting not in parameters:
            known = sorted({*parameters, *_SETTINGS} - {"imports", "max_output"})
            close = difflib.get_close_matches(setting, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise TypeError(
                f'executor_type="{executor_type}" has no setting {setting!r}.{hint} '
                f"Its settings are: {', '.join(known)}."
            )
