"""The host's side of one kernel, without I/O: bytes go in, events and bytes come out.

Whatever comes from the sandbox may have been written by the model's code. So every frame is checked
against the state that it must fit, and the first that does not ends the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from sanderling._show import text_of
from sanderling.errors import SandboxUnavailable, SandboxViolation

from . import kernel
from ._host_values import HostValues, Incoming, cloudpickle_source, iterable
from ._interpreter import Printed, ToolRequest, ToolSpec
from ._outcome import Fault, Finished
from ._texts import described

Buffers: TypeAlias = "list[bytes | bytearray | memoryview]"
Event: TypeAlias = "Ready | Printed | ToolRequest | Finished"
_T = TypeVar("_T")

_SLACK = 1_000  # characters of notes that the kernel adds to the output
_NAMES = re.compile(r"\w{1,200}")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Ready:
    """The kernel is locked and waits for orders.

    Attributes:
        layers: The walls in force.
        versions: Of Python and of the kernel.
    """

    layers: Mapping[str, object]
    versions: Mapping[str, object]


@dataclass(slots=True)
class _OpenCall:
    """A call that waits for its reply.

    Attributes:
        key: Its number.
        size: Bytes of its frame.
        text: What the sandbox says of the final answer; None where it is another call.
        answer: The final answer, as the code gave it.
    """

    key: int
    size: int
    text: str | None = None
    answer: object = None


class Session:
    """One conversation with one kernel.

    A method that says something to the kernel returns the buffers to be sent; `received` tells what
    the kernel said. After a `SandboxViolation` the session is over.

    Args:
        max_calls: Tool calls that one step may make.
        max_output: Characters that one step may print.
        ready: Whether the kernel has said already that it is: a copy has, as what it was copied of.
        values: What the kernel may name of this process; it may know them from a session before.
    """

    def __init__(
        self,
        max_calls: int = 10_000,
        max_output: int = 50_000,
        *,
        ready: bool = False,
        values: HostValues | None = None,
    ) -> None:
        self._values = HostValues() if values is None else values
        self._incoming = Incoming(self._values)
        self._max_calls = max_calls
        self._max_output = max_output
        self._reader = kernel.FrameReader()
        self._ready = ready
        self._step: int | None = None
        self._finals: set[str] = set()
        self._last_call = 0
        self._calls_left = 0
        self._open: dict[str, _OpenCall] = {}  # calls without a reply
        self._frame_size = 0
        self._abandoned: list[int] = []
        self._printed: list[str] = []
        self._output_left = 0
        self.final: tuple[object, str | None] | None = None
        self.argument_bytes = 0
        """Bytes of the frames of the calls that wait for their reply."""

    @property
    def running(self) -> bool:
        """Whether a step is in progress."""
        return self._step is not None

    @property
    def calls(self) -> int:
        """How many calls wait for their reply."""
        return len(self._open)

    @property
    def logs(self) -> str:
        """What the step printed so far."""
        return "".join(self._printed)

    def hello(self, imports: Iterable[str], limits: Mapping[str, int] | None = None) -> Buffers:
        """Begins the conversation.

        Args:
            imports: What the code may import.
            limits: Those of the place by name, for the words about what comes up against them.
        """
        source, blobs = kernel.encode(cloudpickle_source())
        fields = {
            "imports": list(imports),
            "output": self._max_output,
            "calls": self._max_calls,
            "limits": dict(limits or {}),
            "loader": source,
        }
        return kernel.pack("hello", fields, blobs)

    def tools(self, specs: Iterable[ToolSpec]) -> Buffers:
        """Puts these tools in the place of those before."""
        known = [
            {"name": spec.name, "signature": spec.signature, "doc": spec.doc, "final": spec.final}
            for spec in specs
        ]
        self._finals = {spec.name for spec in specs if spec.final}
        return kernel.pack("tools", {"tools": known})

    def variables(self, variables: Mapping[str, object]) -> Buffers:
        """Sets variables. What cannot cross is a reference to the object here."""
        frames: Buffers = []
        for name, value in variables.items():
            frames += kernel.pack("set", *self._values.encode_variable(name, value))
        return frames

    def execute(self, step: int, code: str, *, forget: bool = False) -> Buffers:
        """Starts a step; its number must be larger than those before.

        Args:
            step: Its number.
            code: Python.
            forget: Whether an interrupt may have come too late for the last step, and must not end
                this one.

        Raises:
            CodecError: The code is larger than a frame.
        """
        self._printed, self.final = [], None  # before anything fails: they are of the last step
        late: dict[str, object] = {"forget": True} if forget else {}
        buffers = kernel.pack("exec", {"id": step, "code": code, **late})
        refusals = self._refuse(self._abandoned, "the step that made this call has ended")
        self._abandoned = []
        self._step = step
        self._calls_left = self._max_calls
        self._output_left = self._max_output + _SLACK
        return [*refusals, *buffers]

    def reply(self, request: ToolRequest, value: object) -> Buffers:
        """Answers a call. Nothing is sent where it does not wait any more."""
        call = self._open.get(request.id)
        if call is None:
            return []
        if call.text is not None:
            # The value stays here: whatever the code does with its step, this answer is the answer.
            # Printing it could take hours, so the sandbox has done that.
            self.final = self.final or (value, call.text if value is call.answer else None)
            value = None
        try:
            fields, blobs = self._values.encode(iterable(value))
            buffers = kernel.pack("ret", {"id": call.key, **fields}, blobs)
        except kernel.CodecError as error:
            return self.fail(request, f"what {request.name} returned did not arrive: {error}")
        except Exception as error:  # whatever the value's own code raises
            told = described(error)
            return self.fail(request, f"what {request.name} returned did not arrive: {told}")
        self._close(request)
        return buffers

    def fail(self, request: ToolRequest, error: str, kind: str = "") -> Buffers:
        """Answers a call with an error. Nothing is sent where it does not wait any more."""
        call = self._close(request)
        return [] if call is None else self._refuse([call.key], error, kind)

    def interrupt(self) -> Buffers:
        """Answers all calls that wait, so that no thread of the code is kept by one."""
        return self._refuse(self._close_all(), "the step was interrupted")

    def _close(self, request: ToolRequest) -> _OpenCall | None:
        call = self._open.pop(request.id, None)
        if call is not None:
            self.argument_bytes -= call.size
        return call

    def _close_all(self) -> list[int]:
        keys = [call.key for call in self._open.values()]
        self._open, self.argument_bytes = {}, 0
        return keys

    def _refuse(self, keys: Iterable[int], error: str, kind: str = "") -> Buffers:
        told = {"e": error[: kernel.MAX_SHOWN], **({"kind": kind} if kind else {})}
        return [part for key in keys for part in kernel.pack("ret", {"id": key, **told})]

    def space(self) -> memoryview:
        """Returns where the next bytes from the kernel go."""
        return self._reader.space()

    def advance(self, count: int) -> list[Event]:
        """Takes note of `count` bytes that were put into `space`.

        Raises:
            SandboxViolation: They are not what a kernel would say.
            SandboxUnavailable: The kernel says that it could not be locked.
        """
        self._frame_size += count
        try:
            frame = self._reader.advance(count)
            if frame is None:
                return []
            size, self._frame_size = self._frame_size, 0
            return list(self._read(frame, size))
        except (SandboxViolation, SandboxUnavailable):
            raise
        except Exception as error:
            raise self._violation(error) from error

    def feed(self, data: bytes) -> list[Event]:
        """Does what `space` and `advance` do, for bytes that lie elsewhere."""
        source = memoryview(data)
        events: list[Event] = []
        while source:
            space = self.space()
            count = min(len(space), len(source))
            space[:count] = source[:count]
            source = source[count:]
            events += self.advance(count)
        return events

    def _violation(self, error: Exception) -> SandboxViolation:
        told = f"{type(error).__name__}: {text_of(error)[:200]}"
        return SandboxViolation(
            f"The sandbox broke its protocol ({told}), so it was killed.", self.logs
        )

    def _read(self, frame: kernel.Frame, size: int) -> Iterator[Event]:
        fields = frame.fields
        if not self._ready:
            yield self._read_ready(frame)
            return
        step = _typed(fields["step" if frame.kind == "call" else "id"], int)
        if self._step is None or step != self._step:
            return  # of a step that is over; nobody is interested any more
        if frame.kind == "out":
            text = _typed(fields["text"], str)
            self._output_left -= len(text)
            if not text or self._output_left < 0:
                raise ValueError("more output than was agreed")
            text = _encodable(text)
            self._printed.append(text)
            yield Printed(text)
        elif frame.kind == "call":
            yield self._read_call(frame, step, size)
        elif frame.kind == "done":
            yield self._read_done(frame)
        else:
            raise ValueError("a kind of message that is not known")

    def _read_ready(self, frame: kernel.Frame) -> Ready:
        if frame.kind == "failed":
            raise SandboxUnavailable(_typed(frame.fields["reason"], str)[: kernel.MAX_SHOWN])
        if frame.kind != "ready":
            raise ValueError("spoke before it was ready")
        layers, versions = frame.fields["layers"], frame.fields["versions"]
        self._ready = True
        return Ready(MappingProxyType(_typed(layers, dict)), _typed(versions, dict))

    def _read_call(self, frame: kernel.Frame, step: int, size: int) -> ToolRequest:
        key = _typed(frame.fields["id"], int)
        if key <= self._last_call:
            raise ValueError("the id of a call was used before")
        self._last_call = key
        self._calls_left -= 1
        if self._calls_left < 0:
            raise ValueError("more calls than was agreed")
        name = _typed(frame.fields["name"], str)
        if not _NAMES.fullmatch(name):
            raise ValueError("a call of something that is no name")
        args = _typed(frame.value("args", self._incoming), list)
        kwargs = _typed(frame.value("kwargs", self._incoming), dict)
        method = None
        if "on" in frame.fields:
            owner = self._values.find(frame.fields["on"])
            method = owner.member(name)
            name = f"{type(owner.obj).__name__}.{name}"
        request = ToolRequest(
            id=f"step_{step}_call_{key}",
            name=name,
            args=tuple(args),
            kwargs={_typed(key, str): value for key, value in kwargs.items()},
            alone=_typed(frame.fields["alone"], bool),
            method=method,
        )
        call = _OpenCall(key, size)
        if method is None and name in self._finals:
            call.text = _shown(frame.fields["text"])
            call.answer = next(iter((*request.args, *request.kwargs.values())), None)
        self._open[request.id] = call
        self.argument_bytes += size
        return request

    def _read_done(self, frame: kernel.Frame) -> Finished:
        fields = frame.fields
        error = fields["error"]
        fault = None
        if error is not None:
            told = _typed(error, dict)
            fault = Fault(*(_shown(told[key]) for key in ("type", "message", "traceback")))
        finished = Finished(
            output=frame.value("v", self._incoming),
            text=_shown(fields["text"]),
            error=fault,
            interrupted=_typed(fields["interrupted"], bool),
            threads=_typed(fields["threads"], int),
            imported=_preloadable(fields.get("imported", [])),
        )
        self._abandoned += self._close_all()
        self._step = None
        return finished


def _preloadable(names: object) -> frozenset[str]:
    told = frozenset(_typed(name, str) for name in _typed(names, list))
    if not told.issubset(kernel.PRELOADABLE):
        raise ValueError("a module that nobody asked about")
    return told


def _shown(value: object) -> str:
    text = _typed(value, str)
    if len(text) > 2 * kernel.MAX_SHOWN:
        raise ValueError("a text longer than any kernel shows")
    return _encodable(text)


def _encodable(text: str) -> str:
    """Replaces lone surrogates, each by one character: no file or message takes them."""
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _typed(value: object, kind: type[_T]) -> _T:
    if type(value) is not kind:
        raise TypeError(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value
