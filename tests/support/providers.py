"""The stand-ins of the providers of machines, as fixtures; each is skipped without its SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.blaxel_server import KEY, WORKSPACE, blaxel_server
from support.e2b_server import e2b_server
from support.modal_server import TOKEN_ID, TOKEN_SECRET, modal_server

if TYPE_CHECKING:
    from support.blaxel_server import BlaxelServer
    from support.e2b_server import E2BServer
    from support.modal_server import ModalServer


NEAR = ("NO_PROXY", "127.0.0.1")  # whatever proxy a test has in its environment


@pytest.fixture(scope="session")
def e2b_provider() -> Iterator[E2BServer]:
    """E2B on the loopback; `E2BServer.options` lead to it."""
    pytest.importorskip("e2b")
    with e2b_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(*NEAR)
        yield server


@pytest.fixture(scope="session")
def modal_provider() -> Iterator[ModalServer]:
    """Modal on the loopback, where the environment leads to."""
    modal = pytest.importorskip("modal")
    with modal_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(*NEAR)
        patch.setenv("MODAL_TOKEN_ID", TOKEN_ID)
        patch.setenv("MODAL_TOKEN_SECRET", TOKEN_SECRET)
        patch.setenv("MODAL_SERVER_URL", server.url)
        yield server
        modal.Client.from_env().close()


@pytest.fixture(scope="session")
def blaxel_provider() -> Iterator[BlaxelServer]:
    """Blaxel on the loopback, where the environment and the SDK's client lead to."""
    with blaxel_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(*NEAR)
        patch.setenv("BL_API_KEY", KEY)
        patch.setenv("BL_WORKSPACE", WORKSPACE)
        patch.setenv("BL_REGION", "loopback")
        core = pytest.importorskip("blaxel.core")
        core.client.with_base_url(server.url)
        yield server
