"""Sandboxes of Modal, by its own SDK."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._machine import MachineBackend, Sink

if TYPE_CHECKING:
    from modal import Image, Sandbox
    from modal.container_process import ContainerProcess

_APP = "sanderling-executor"


class ModalMachine:
    """A sandbox of Modal."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox: Sandbox | None = sandbox
        # At exit the SDK stops earlier than what was registered before it was imported.
        atexit.register(self.end)
        self._process: ContainerProcess[bytes] | None = None

    def run(self, command: str, said: Sink) -> None:
        """Runs a command to its end."""
        if self._sandbox is None:
            raise RuntimeError("the sandbox has been ended")
        self._process = self._sandbox.exec("sh", "-c", command, text=False)
        for output in self._process.stdout:
            said(output)

    def write(self, data: bytes) -> None:
        """Sends to its standard input."""
        if self._process is None:
            raise RuntimeError("nothing runs in the sandbox")
        self._process.stdin.write(data)
        self._process.stdin.drain()

    def go_offline(self) -> None:
        """Does nothing: it has had no network from the start."""

    def stay(self) -> None:
        """Does nothing: it stays while the command runs."""

    def end(self) -> None:
        """Ends the sandbox. May be called again."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            atexit.unregister(self.end)
            sandbox.terminate()
            sandbox.detach()


class ModalBackend(MachineBackend):
    """Starts sandboxes of Modal, one at a time.

    Packages go into the image, so no sandbox needs a network.

    Args:
        app_name: The app that they belong to; made if it is not there.
        image: What they are made of, with Python; by default Debian with what is to be imported.
        timeout: Seconds that one lives at most.
        idle_timeout: Seconds that one stays when nothing runs in it, as after the host's death.
        imports: See `MachineBackend`; where an image is given, it has to have them.
        packages: See there; added to the image.
        allow_weaker: See there.
        **create_kwargs: Further arguments of ``modal.Sandbox.create``.
    """

    def __init__(
        self,
        *,
        app_name: str = _APP,
        image: Image | None = None,
        timeout: int = 3600,
        idle_timeout: int = 60,
        imports: Sequence[str] = (),
        packages: Sequence[str] | None = None,
        allow_weaker: bool = False,
        **create_kwargs: Any,
    ) -> None:
        super().__init__(imports=imports, packages=packages, allow_weaker=allow_weaker)
        self._app_name = app_name
        self._image = image
        self._create_kwargs = {
            "timeout": timeout,
            "idle_timeout": idle_timeout,
            "block_network": not allow_weaker,
            **create_kwargs,
        }

    @property
    def name(self) -> str:
        """The executor type."""
        return "modal"

    @property
    def ways_out(self) -> str:
        """What somebody can do who gets no sandbox."""
        return (
            "Ways out: MODAL_TOKEN_ID and MODAL_TOKEN_SECRET of an account, or `modal setup`; or "
            'executor_type="local", which needs no account.'
        )

    def _arguments(self) -> dict[str, object]:
        return {**super()._arguments(), "packages": [], "imports": {}}

    def _create(self) -> ModalMachine:
        self.check()
        import modal

        app = modal.App.lookup(self._app_name, create_if_missing=True)
        image, packages = self._image, self._packages
        if image is None:
            image = modal.Image.debian_slim()
            packages = [*packages, *self._imports.values()]
        if packages:
            image = image.pip_install(*packages)
        return ModalMachine(modal.Sandbox.create(app=app, image=image, **self._create_kwargs))
