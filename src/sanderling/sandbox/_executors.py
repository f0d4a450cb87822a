"""The executors of this library, by the names and parameters that smolagents gave them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._create import create_interpreter
from ._executor import InterpreterExecutor

if TYPE_CHECKING:
    from ._serving import Function


class LocalPythonExecutor(InterpreterExecutor):
    """Runs code in a locked process of this machine; functions are called back in this one.

    ::

        with LocalPythonExecutor(["numpy"]) as python:
            python("import numpy").output
            python("numpy.arange(3).sum()").output

    Args:
        additional_authorized_imports: What may be imported beside `BASE_BUILTIN_MODULES`.
        max_print_outputs_length: Characters that a piece of code may print; 50,000 by default.
        additional_functions: Functions that are there beside the tools.
        timeout_seconds: How long a piece of code may run; None for no limit.
        **executor_kwargs: Settings of the sandbox, such as ``memory_bytes``.
    """

    def __init__(
        self,
        additional_authorized_imports: Sequence[str] = (),
        max_print_outputs_length: int | None = None,
        additional_functions: Mapping[str, Function] | None = None,
        timeout_seconds: float | None = 30,
        **executor_kwargs: Any,
    ) -> None:
        super().__init__(
            create_interpreter(
                "local",
                additional_authorized_imports=additional_authorized_imports,
                timeout_seconds=timeout_seconds,
                max_print_outputs_length=max_print_outputs_length,
                **executor_kwargs,
            ),
            additional_functions,
        )


class RemotePythonExecutor(InterpreterExecutor):
    """Runs code elsewhere; functions are called back in this process.

    Args:
        kind: The executor type of `create_interpreter`.
        additional_imports: What may be imported beside `BASE_BUILTIN_MODULES`.
        logger: Accepted so that code written for smolagents keeps working; nothing is logged.
        allow_pickle: Accepted for the same reason; nothing that comes back is ever unpickled.
        additional_functions: Functions that are there beside the tools.
        **settings: All else that `create_interpreter` takes; None leaves one as it is.
    """

    def __init__(
        self,
        kind: str,
        additional_imports: Sequence[str] = (),
        logger: object = None,
        allow_pickle: bool = False,
        additional_functions: Mapping[str, Function] | None = None,
        **settings: Any,
    ) -> None:
        del logger, allow_pickle
        given = {name: value for name, value in settings.items() if value is not None}
        if "timeout_seconds" in settings:  # of which None means something
            given["timeout_seconds"] = settings["timeout_seconds"]
        super().__init__(
            create_interpreter(kind, additional_authorized_imports=additional_imports, **given),
            additional_functions,
        )


class DockerExecutor(RemotePythonExecutor):
    """Runs code in a container. No port is published, so none is needed.

    Args:
        additional_imports: See `RemotePythonExecutor`.
        logger: See there.
        allow_pickle: See there.
        host: The engine, such as ``"ssh://me@there"``. An address without a scheme, where
            smolagents publishes a port, is left aside.
        port: Left aside.
        image_name: An image with Python; built where it is not given.
        build_new_image: See `DockerBackend`.
        container_run_kwargs: See there.
        dockerfile_content: See there.
        **settings: Further settings of `create_interpreter` and `DockerBackend`.
    """

    def __init__(
        self,
        additional_imports: Sequence[str] = (),
        logger: object = None,
        allow_pickle: bool = False,
        host: str | None = None,
        port: int | None = None,
        image_name: str | None = None,
        build_new_image: bool = True,
        container_run_kwargs: Mapping[str, Any] | None = None,
        dockerfile_content: str | None = None,
        **settings: Any,
    ) -> None:
        del port
        super().__init__(
            "docker",
            additional_imports,
            logger,
            allow_pickle,
            host=host if host and "://" in host else None,
            image=image_name or settings.pop("image", None),
            build_new_image=build_new_image,
            container_run_kwargs=container_run_kwargs,
            dockerfile_content=dockerfile_content,
            **settings,
        )


class WasmExecutor(RemotePythonExecutor):
    """Runs code in Pyodide under Deno.

    Args:
        additional_imports: See `RemotePythonExecutor`.
        logger: See there.
        allow_pickle: See there.
        deno_path: The program; by default that of this environment or of the PATH.
        timeout: Seconds that a piece of code may run.
        **settings: Further settings of `create_interpreter` and `WasmBackend`.
    """

    def __init__(
        self,
        additional_imports: Sequence[str] = (),
        logger: object = None,
        allow_pickle: bool = False,
        deno_path: str | None = None,
        timeout: float | None = None,
        **settings: Any,
    ) -> None:
        if timeout is not None:
            settings.setdefault("timeout_seconds", timeout)
        settings.setdefault("deno", deno_path)
        super().__init__("wasm", additional_imports, logger, allow_pickle, **settings)


class E2BExecutor(RemotePythonExecutor):
    """Runs code in a machine of E2B.

    As in smolagents 1.4, ``E2BExecutor(additional_imports, tools, logger)`` is taken as well.

    Args:
        additional_imports: See `RemotePythonExecutor`.
        logger: See there.
        allow_pickle: See there.
        tools: What the code can call: a list of what has a ``name``, or by name.
        **settings: Settings of `create_interpreter` and `E2BBackend`: ``template``, ``api_key``…
    """

    def __init__(
        self,
        additional_imports: Sequence[str] = (),
        logger: object = None,
        allow_pickle: object = False,
        tools: Mapping[str, Function] | Sequence[Function] = (),
        **settings: Any,
    ) -> None:
        if isinstance(logger, Mapping | Sequence):
            tools, logger, allow_pickle = logger, allow_pickle, False
        super().__init__("e2b", additional_imports, logger, bool(allow_pickle), **settings)
        if tools:
            self.send_tools(tools if isinstance(tools, Mapping) else _by_name(tools))


class ModalExecutor(RemotePythonExecutor):
    """Runs code in a sandbox of Modal. No port is opened, so none is needed.

    Args:
        additional_imports: See `RemotePythonExecutor`.
        logger: See there.
        allow_pickle: See there.
        app_name: The app of Modal that the sandbox belongs to; made if it is not there.
        port: Left aside.
        create_kwargs: Arguments of ``modal.Sandbox.create``, such as ``image`` and ``timeout``.
        **settings: Further settings of `create_interpreter` and `ModalBackend`.
    """

    def __init__(
        self,
        additional_imports: Sequence[str] = (),
        logger: object = None,
        allow_pickle: bool = False,
        app_name: str | None = None,
        port: int | None = None,
        create_kwargs: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        del port
        settings.update(app_name=app_name, **(create_kwargs or {}))
        super().__init__("modal", additional_imports, logger, allow_pickle, **settings)


class BlaxelExecutor(RemotePythonExecutor):
    """Runs code in a sandbox of Blaxel.

    Args:
        additional_imports: See `RemotePythonExecutor`.
        logger: See there.
        allow_pickle: See there.
        sandbox_name: Names the sandbox; made up by default.
        image: The image of Blaxel that it runs.
        memory: Its memory, in megabytes.
        ttl: How long it lives at most, such as ``"24h"``.
        region: Where it runs.
        create_kwargs: Further fields of Blaxel's sandbox configuration.
        **settings: Further settings of `create_interpreter` and `BlaxelBackend`.
    """

    def __init__(
        self,
        additional_imports: Sequence[str] = (),
        logger: object = None,
        allow_pickle: bool = False,
        sandbox_name: str | None = None,
        image: str | None = None,
        memory: int | None = None,
        ttl: str | None = None,
        region: str | None = None,
        create_kwargs: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        settings.update(sandbox_name=sandbox_name, image=image, memory=memory, ttl=ttl)
        settings.update(region=region, **(create_kwargs or {}))
        super().__init__("blaxel", additional_imports, logger, allow_pickle, **settings)


def _by_name(tools: Sequence[Function]) -> dict[str, Function]:
    return {str(getattr(tool, "name", getattr(tool, "__name__", ""))): tool for tool in tools}


_EXECUTORS: dict[str, Callable[..., InterpreterExecutor]] = {
    "local": LocalPythonExecutor,
    "docker": DockerExecutor,
    "wasm": WasmExecutor,
    "e2b": E2BExecutor,
    "modal": ModalExecutor,
    "blaxel": BlaxelExecutor,
}


def create_executor(
    executor_type: str = "local",
    additional_imports: Sequence[str] = (),
    additional_functions: Mapping[str, Function] | None = None,
    **settings: Any,
) -> InterpreterExecutor:
    """Makes an executor by the name of the place where code shall run.

    Args:
        executor_type: One of those of `create_interpreter`.
        additional_imports: What may be imported beside `BASE_BUILTIN_MODULES`.
        additional_functions: Functions that are there beside the tools.
        **settings: What the executor of that place takes, and what `create_interpreter` takes.

    Raises:
        ValueError: There is no such place.
        TypeError: It has no such setting.
    """
    make = _EXECUTORS.get(executor_type)
    if make is not None:
        return make(additional_imports, additional_functions=additional_functions, **settings)
    interpreter = create_interpreter(
        executor_type, additional_authorized_imports=additional_imports, **settings
    )
    return InterpreterExecutor(interpreter, additional_functions)
