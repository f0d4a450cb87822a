"""Machines of E2B, by its own SDK."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sanderling.errors import SandboxUnavailable

from ._machine import MachineBackend, Sink

if TYPE_CHECKING:
    from e2b import Sandbox

_TEMPLATE = "code-interpreter-v1"  # the one that has NumPy, pandas and their like


class E2BMachine:
    """A sandbox of E2B.

    Args:
        sandbox: Made by the SDK.
        timeout: Seconds until it ends by itself, counted from the last sign of life.
        online: Whether it has a network.
    """

    def __init__(self, sandbox: Sandbox, timeout: int, online: bool) -> None:
        self._sandbox = sandbox
        self._timeout = timeout
        self._online = online
        self._process = 0

    def run(self, command: str, said: Sink) -> None:
        """Runs a command to its end."""
        process = self._sandbox.commands.run(
            command, background=True, stdin=True, timeout=0, retain_output=False
        )
        self._process = process.pid
        for output, _, _ in process:
            if output:
                said(output)

    def write(self, data: bytes) -> None:
        """Sends to its standard input."""
        self._sandbox.commands.send_stdin(self._process, data)

    def go_offline(self) -> None:
        """Takes the network away."""
        if self._online:
            self._sandbox.update_network({"allow_internet_access": False})

    def stay(self) -> None:
        """Puts the end off."""
        self._sandbox.set_timeout(self._timeout)

    def end(self) -> None:
        """Ends the sandbox."""
        self._sandbox.kill()


class E2BBackend(MachineBackend):
    """Starts machines of E2B, one at a time.

    Args:
        template: What they are made of; by default E2B's own template for code.
        timeout: Seconds that a machine outlives this process, if that ends without a farewell.
        api_key: The key; that of ``E2B_API_KEY`` by default. It does not go into the machine.
        imports: See `MachineBackend`.
        packages: See there.
        allow_weaker: See there.
        **sandbox_kwargs: Further arguments of ``e2b.Sandbox.create``.
    """

    def __init__(
        self,
        *,
        template: str = _TEMPLATE,
        timeout: int = 300,
        api_key: str | None = None,
        imports: Sequence[str] = (),
        packages: Sequence[str] | None = None,
        allow_weaker: bool = False,
        **sandbox_kwargs: Any,
    ) -> None:
        super().__init__(imports=imports, packages=packages, allow_weaker=allow_weaker)
        if sandbox_kwargs.get("allow_internet_access") and not allow_weaker:
            raise ValueError("a network takes allow_weaker=True: it weakens the walls of the code")
        self._template = template
        self._timeout = timeout
        self._api_key = api_key
        self._sandbox_kwargs = sandbox_kwargs

    @property
    def name(self) -> str:
        """The executor type."""
        return "e2b"

    @property
    def ways_out(self) -> str:
        """What somebody can do who gets no machine."""
        return (
            "Ways out: the key of an account in E2B_API_KEY, or api_key=; or "
            'executor_type="local", which needs no account.'
        )

    def check(self) -> None:
        """Looks for the package and for a key.

        Raises:
            MissingExtraError: There is no package.
            SandboxUnavailable: There is no key.
        """
        super().check()
        if not (self._api_key or os.environ.get("E2B_API_KEY")):
            raise SandboxUnavailable("there is no key: E2B_API_KEY is not set.")

    def _create(self) -> E2BMachine:
        self.check()
        from e2b import Sandbox

        online = self._allow_weaker or bool(self._packages or self._imports)
        sandbox = Sandbox.create(
            self._template,
            timeout=self._timeout,
            api_key=self._api_key,
            **{"allow_internet_access": online, **self._sandbox_kwargs},
        )
        return E2BMachine(sandbox, self._timeout, online)
