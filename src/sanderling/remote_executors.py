"""The import path of smolagents for running code elsewhere; see `sanderling.sandbox`."""

from .sandbox import (
    BlaxelExecutor,
    DockerExecutor,
    E2BExecutor,
    ModalExecutor,
    RemotePythonExecutor,
    WasmExecutor,
)

__all__ = [
    "BlaxelExecutor",
    "DockerExecutor",
    "E2BExecutor",
    "ModalExecutor",
    "RemotePythonExecutor",
    "WasmExecutor",
]
