"""Makes interpreters by the name of the place where code shall run."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from ._interpreter import Interpreter

ExecutorType: TypeAlias = Literal["local", "docker", "wasm", "inprocess", "auto"]
DEFAULT_OUTPUT = 50_000
_BACKENDS = {
    "auto": (".backends._local", "LocalBackend"),
    "local": (".backends._local", "LocalBackend"),
    "docker": (".backends._docker", "DockerBackend"),
    "wasm": (".backends._wasm", "WasmBackend"),
}


def create_interpreter(
    executor_type: ExecutorType | str = "local",
    *,
    additional_authorized_imports: Sequence[str] = (),
    timeout_seconds: float | None = 30,
    max_print_outputs_length: int | None = None,
    **executor_kwargs: Any,
) -> Interpreter:
    """Makes an interpreter; its sandbox starts with the first step.

    Args:
        executor_type: ``"local"``: a process of this machine, locked by the operating system.
            ``"docker"``: a container of a Docker engine.
            ``"wasm"``: Pyodide, which is CPython in WebAssembly, under Deno.
            ``"inprocess"``: this very process, without walls, for code that you trust.
            ``"auto"``: the first of those with walls that works here, which today is ``"local"``.
        additional_authorized_imports: What the code may import beside `BASE_BUILTIN_MODULES`:
            ``"pandas"`` (with its submodules), ``"pkg.*"``, or ``"*"`` for all.
        timeout_seconds: How long a step may run, tool calls not counted; None for no limit.
        max_print_outputs_length: Characters that a step may print; 50,000 by default.
        **executor_kwargs: Settings of the place: see `LocalBackend` for ``"local"``,
            `DockerBackend` for ``"docker"`` and `WasmBackend` for ``"wasm"``.

    Raises:
        ValueError: There is no such place.
    """
    if isinstance(additional_authorized_imports, str):
        raise ValueError("additional_authorized_imports is a list of names, not one string")
    length = DEFAULT_OUTPUT if max_print_outputs_length is None else max_print_outputs_length
    if executor_type in _BACKENDS:
        from ._remote import RemoteInterpreter

        module, name = _BACKENDS[executor_type]
        backend = getattr(import_module(module, __package__), name)
        return RemoteInterpreter(
            backend(**executor_kwargs),
            imports=additional_authorized_imports,
            timeout_seconds=timeout_seconds,
            max_output=length,
        )
    if executor_type == "inprocess":
        from .backends._inprocess import InProcessInterpreter

        return InProcessInterpreter(
            imports=additional_authorized_imports,
            timeout_seconds=timeout_seconds,
            max_output=length,
            **executor_kwargs,
        )
    raise ValueError(
        f"There is no executor type {executor_type!r}. "
        'Choose "local", "docker", "wasm", "inprocess" or "auto".'
    )
