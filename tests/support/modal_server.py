"""Modal on the loopback: its control plane, and the command router of its workers.

It speaks gRPC with the messages of the SDK. The sandboxes are processes of this machine.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.machines import Machines, Process

TOKEN_ID, TOKEN_SECRET = "ak-0123456789", "as-0123456789"


class ModalServer(Machines):
    """What the SDK talks to.

    Attributes:
        url: Of the control plane and of the command router.
    """

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.commands: dict[str, Process] = {}
        self.outputs: dict[str, bytearray] = {}
        self.ended: dict[str, asyncio.Event] = {}


def _token() -> str:
    """A token that is valid for long, as far as the SDK looks at it."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + 86_400}).encode()).decode()
    return f"e30.{claims.rstrip('=')}.e30"


class _Control:
    """The control plane, as far as sandboxes need it."""

    def __init__(self, provider: ModalServer) -> None:
        self.provider = provider

    async def ClientHello(self, stream: Any) -> None:
        from modal_proto import api_pb2

        await stream.recv_message()
        await stream.send_message(api_pb2.ClientHelloResponse())

    async def AuthTokenGet(self, stream: Any) -> None:
        from modal_proto import api_pb2

        await stream.recv_message()
        await stream.send_message(api_pb2.AuthTokenGetResponse(token=_token()))

    async def AppGetOrCreate(self, stream: Any) -> None:
        from modal_proto import api_pb2

        request = await stream.recv_message()
        self.provider.asked.append(("AppGetOrCreate", request.app_name))
        await stream.send_message(api_pb2.AppGetOrCreateResponse(app_id="ap-1"))

    async def EnvironmentGetOrCreate(self, stream: Any) -> None:
        from modal_proto import api_pb2

        await stream.recv_message()
        settings = api_pb2.EnvironmentSettings(image_builder_version="2025.06")
        metadata = api_pb2.EnvironmentMetadata(name="main", settings=settings)
        await stream.send_message(
            api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata)
        )

    async def ImageGetOrCreate(self, stream: Any) -> None:
        from modal_proto import api_pb2

        request = await stream.recv_message()
        commands = "\n".join(request.image.dockerfile_commands)
        self.provider.asked.append(("ImageGetOrCreate", commands))
        done = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)
        await stream.send_message(api_pb2.ImageGetOrCreateResponse(image_id="im-1", result=done))

    async def SandboxCreateV2(self, stream: Any) -> None:
        from grpclib import GRPCError, Status
        from modal_proto import api_pb2

        request = await stream.recv_message()
        self.provider.asked.append(("SandboxCreateV2", request.definition))
        if self.provider.refuse:
            raise GRPCError(Status.FAILED_PRECONDITION, self.provider.refuse)
        name = self.provider.create()
        await stream.send_message(
            api_pb2.SandboxCreateV2Response(
                sandbox_id=name,
                task_id=name,
                command_router_access=api_pb2.CommandRouterAccess(
                    url=self.provider.url, jwt=_token()
                ),
            )
        )

    async def SandboxTerminateV2(self, stream: Any) -> None:
        from modal_proto import api_pb2

        request = await stream.recv_message()
        self.provider.asked.append(("SandboxTerminateV2", request.sandbox_id))
        self.provider.end(request.sandbox_id)
        await stream.send_message(api_pb2.SandboxTerminateResponse())


class _Router:
    """The command router, as far as commands need it."""

    def __init__(self, provider: ModalServer) -> None:
        self.provider = provider

    async def TaskExecStart(self, stream: Any) -> None:
        from modal_proto import task_command_router_pb2 as pb

        request = await stream.recv_message()
        key, provider = request.exec_id, self.provider
        provider.outputs[key] = bytearray()
        provider.ended[key] = asyncio.Event()
        process = provider.start(request.task_id, *request.command_args)
        provider.commands[key] = process
        loop = asyncio.get_running_loop()

        def follow() -> None:
            for name, data in process.output():
                if name == "stdout":
                    provider.outputs[key] += data
            loop.call_soon_threadsafe(provider.ended[key].set)

        threading.Thread(target=follow, daemon=True).start()
        await stream.send_message(pb.TaskExecStartResponse())

    async def TaskExecStdioRead(self, stream: Any) -> None:
        from modal_proto import task_command_router_pb2 as pb

        request = await stream.recv_message()
        key, offset = request.exec_id, request.offset
        if request.file_descriptor != pb.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT:
            return
        while True:
            ended = self.provider.ended[key].is_set()
            data = bytes(self.provider.outputs[key][offset:])
            if data:
                offset += len(data)
                await stream.send_message(pb.TaskExecStdioReadResponse(data=data))
            elif ended:
                return
            else:
                await asyncio.sleep(0.002)

    async def TaskExecStdinWrite(self, stream: Any) -> None:
        from grpclib import GRPCError, Status
        from modal_proto import task_command_router_pb2 as pb

        request = await stream.recv_message()
        try:
            await asyncio.to_thread(self.provider.commands[request.exec_id].write, request.data)
        except BrokenPipeError as error:
            raise GRPCError(Status.NOT_FOUND, "the command has ended") from error
        await stream.send_message(pb.TaskExecStdinWriteResponse())


def _service(own: type, base: type, provider: ModalServer) -> Any:
    """Makes a service of the SDK's protocol; what `own` does not have is not implemented."""

    async def missing(self: object, stream: Any) -> None:
        from grpclib import GRPCError, Status

        raise GRPCError(Status.UNIMPLEMENTED, "the stand-in does not know this")

    rest = {name: missing for name in base.__abstractmethods__ if not hasattr(own, name)}  # type: ignore[attr-defined]  # of abstract classes
    return type(own.__name__, (own, base), rest)(provider)


async def _serve(
    provider: ModalServer, ready: threading.Event, leave: asyncio.Future[None]
) -> None:
    from grpclib.server import Server
    from modal_proto.api_grpc import ModalClientBase
    from modal_proto.task_command_router_grpc import TaskCommandRouterBase

    services = [
        _service(_Control, ModalClientBase, provider),
        _service(_Router, TaskCommandRouterBase, provider),
    ]
    server = Server(services)
    await server.start("127.0.0.1", 0)
    port = server._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]  # it is started
    provider.url = f"http://127.0.0.1:{port}"
    ready.set()
    await leave
    server.close()
    await server.wait_closed()


@contextmanager
def modal_server() -> Iterator[ModalServer]:
    """Serves on the loopback."""
    provider = ModalServer()
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    leave = loop.create_future()
    thread = threading.Thread(
        target=loop.run_until_complete, args=(_serve(provider, ready, leave),)
    )
    thread.start()
    ready.wait(30)
    try:
        yield provider
    finally:
        provider.close()
        loop.call_soon_threadsafe(leave.set_result, None)
        thread.join()
        loop.close()
