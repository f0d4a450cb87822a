"""Sandboxes of Blaxel, by its own SDK."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._machine import MachineBackend, Sink

if TYPE_CHECKING:
    from blaxel.core.sandbox import SyncSandboxInstance

_IMAGE = "blaxel/jupyter-notebook:latest"  # the one that has Python
_PROCESS = "sanderling"
_PATIENCE = 60.0
_WHEN_IDLE = {"expiration_policies": [{"type": "ttl-idle", "value": "10m", "action": "delete"}]}


class BlaxelMachine:
    """A sandbox of Blaxel."""

    def __init__(self, sandbox: SyncSandboxInstance) -> None:
        self._sandbox = sandbox
        self._client = sandbox.process.get_client()

    def run(self, command: str, said: Sink) -> None:
        """Runs a command to its end."""
        self._sandbox.process.exec(
            {
                "name": _PROCESS,
                "command": command,
                "stdin": True,
                "keep_alive": True,
                "timeout": 0,
                "wait_for_completion": True,
                "on_stdout": said,
            }
        )

    def write(self, data: bytes) -> None:
        """Sends to its standard input."""
        # As `process.write_stdin` does, which makes a new connection each time.
        answer = self._client.post(
            f"/process/{_PROCESS}/stdin",
            content=data,
            headers={"Content-Type": "application/octet-stream"},
            timeout=_PATIENCE,
        )
        self._sandbox.process.handle_response_error(answer)

    def go_offline(self) -> None:
        """Does nothing: the provider has no such switch."""

    def stay(self) -> None:
        """Does nothing: that the command runs is enough."""

    def end(self) -> None:
        """Deletes the sandbox."""
        self._client.close()
        self._sandbox.delete()  # type: ignore[attr-defined]  # the SDK adds it to the class


class BlaxelBackend(MachineBackend):
    """Starts sandboxes of Blaxel, one at a time.

    Args:
        sandbox_name: Names the sandbox; made up by default.
        image: What it is made of, with Python.
        memory: Its memory, in megabytes.
        ttl: How long it lives at most, such as ``"24h"``. Ten minutes after its last use it is
            deleted in any case.
        region: Where it runs; ``BL_REGION`` by default.
        imports: See `MachineBackend`.
        packages: See there.
        allow_weaker: See there.
        **create_kwargs: Further fields of Blaxel's ``SandboxCreateConfiguration``.
    """

    def __init__(
        self,
        *,
        sandbox_name: str | None = None,
        image: str = _IMAGE,
        memory: int = 4096,
        ttl: str | None = None,
        region: str | None = None,
        imports: Sequence[str] = (),
        packages: Sequence[str] | None = None,
        allow_weaker: bool = False,
        **create_kwargs: Any,
    ) -> None:
        super().__init__(imports=imports, packages=packages, allow_weaker=allow_weaker)
        self._name = sandbox_name
        settings = {"image": image, "memory": memory, "ttl": ttl, "region": region}
        self._settings: Mapping[str, object] = {
            "lifecycle": _WHEN_IDLE,
            **{name: value for name, value in settings.items() if value is not None},
            **create_kwargs,
        }

    @property
    def name(self) -> str:
        """The executor type."""
        return "blaxel"

    @property
    def ways_out(self) -> str:
        """What somebody can do who gets no sandbox."""
        return (
            "Ways out: BL_API_KEY and BL_WORKSPACE of an account, or `bl login`; or "
            'executor_type="local", which needs no account.'
        )

    def _create(self) -> BlaxelMachine:
        self.check()
        from blaxel.core.sandbox import SyncSandboxInstance

        name = self._name or f"sanderling-{secrets.token_hex(6)}"
        return BlaxelMachine(SyncSandboxInstance.create({"name": name, **self._settings}))
