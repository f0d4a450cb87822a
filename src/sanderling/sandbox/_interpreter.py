"""What the runtime drives: one live sandbox, and what it says and is told."""

from __future__ import annotations

import ast
import functools
import inspect
import math
import typing
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from . import kernel

if TYPE_CHECKING:
    from sanderling.errors import SandboxError

    from ._work_files import WorkFiles

FINAL_ANSWER = "final_answer"
_LITERALS = (
    *(type(None), bool, int, float, complex, str, bytes),
    *(tuple, list, set, dict),
)
_MAX_INT_BITS = 10_000  # Python refuses to write integers that are much longer
_MAX_DEPTH = 10


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the code sees of a tool: it can be called by name, read with ``help`` and no more.

    Attributes:
        name: An identifier.
        signature: Such as ``(city: str, days: int = 3) -> str``. A default that is no literal stays
            with the host, and is shown as ``...``.
        doc: The docstring.
        final: Whether a call that succeeds ends the step, with its value as the final answer.

    Raises:
        ValueError: The name or the signature cannot be read.
    """

    name: str
    signature: str
    doc: str
    final: bool = False

    def __post_init__(self) -> None:
        kernel.binder(self.name, self.signature)

    @classmethod
    def of(
        cls, name: str, like: Callable[..., object] | inspect.Signature, doc: str = ""
    ) -> ToolSpec:
        """Describes a tool by the signature of a function; ``final_answer`` is the final one.

        Annotations that do not read as Python are left out; so are all, where nothing is known.
        """
        if not isinstance(like, inspect.Signature):
            try:
                like = inspect.signature(like)
            except ValueError:  # some functions written in C tell nothing about themselves
                return cls(name, "(*args, **kwargs)", doc, final=name == FINAL_ANSWER)
        return cls(name, _signature_text(like), doc, final=name == FINAL_ANSWER)


@dataclass(frozen=True, slots=True)
class Printed:
    """The code printed this."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """The code calls a tool, and waits for `Interpreter.reply` or `Interpreter.fail`.

    Attributes:
        id: Names the call; unique within the life of the interpreter.
        name: The tool.
        args: Positional arguments, as the code wrote them.
        kwargs: Keyword arguments, as the code wrote them.
        alone: Whether the code has no other thread that could call meanwhile: then the tool may run
            in the thread that drives, which is the one that things bound to a thread belong to.
        method: What to call, where it is a member of a `HostObject` and no tool. It may be a
            coroutine function. `name` is then that of the object's class, a dot, and its own.
    """

    id: str
    name: str
    args: tuple[object, ...]
    kwargs: dict[str, object]
    alone: bool
    method: Callable[..., object] | None = None


@dataclass(frozen=True, slots=True)
class CodeResult:
    """What came of one step of code.

    Attributes:
        output: The final answer, or the value of the last statement. A value that cannot leave the
            sandbox is a `SandboxValue`.
        text: What ``str()`` says of it.
        logs: What the code printed.
        is_final_answer: Whether the step gave the final answer.
        error: Why it failed: `InterpreterError` with the traceback, `SandboxTimeout`,
            `SandboxCrashed` or `SandboxViolation`.
        threads: How many threads of the code still run.
    """

    output: object = None
    text: str = ""
    logs: str = ""
    is_final_answer: bool = False
    error: SandboxError | None = None
    threads: int = field(default=0, compare=False)


class Interpreter(Protocol):
    """One live sandbox: the Python of one run. Variables stay from step to step.

    It starts when the first step needs it. If it has to be killed, the next step finds the
    variables as they were before, where the sandbox can be copied; or else a new one, which gets
    the same tools and the variables of `set_variables`.
    """

    @property
    def layers(self) -> Mapping[str, object]:
        """The walls in force; empty before the first step."""

    def open(self) -> None:
        """Starts the sandbox now rather than with the first step.

        Raises:
            SandboxUnavailable: It cannot be started, or not be locked.
        """

    async def aopen(self) -> None:
        """Does the same under asyncio."""

    @property
    def work_files(self) -> WorkFiles:
        """The files of the work folder.

        Raises:
            SandboxError: It has none that this process can reach; the message names the place.
        """

    def set_tools(self, specs: Sequence[ToolSpec]) -> None:
        """Puts these tools in the place of those before, from the next step on."""

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """Sets variables, from the next step on.

        Data, functions, classes and instances of dataclasses and pydantic models are copied. A
        `HostObject`, and whatever else cannot be copied, stays here: the variable refers to it.
        """

    def execute(self, code: str) -> Generator[ToolRequest | Printed, None, CodeResult]:
        """Runs one step in the calling thread.

        Yields:
            What the code prints, and the tools it calls. All that is ready comes before the next
            wait, so that several calls can be answered at once, from any thread.

        Returns:
            The result. Faults of the code are in it, not raised.

        Raises:
            SandboxUnavailable: The sandbox cannot be started.
            RuntimeError: A step runs already, or the interpreter is closed.
        """

    def aexecute(self, code: str) -> AsyncGenerator[ToolRequest | Printed | CodeResult, None]:
        """Does the same under asyncio; the result is the last item."""

    def reply(self, request: ToolRequest, value: object) -> None:
        """Answers a call, from any thread. A value that cannot enter the sandbox is an error there.

        A call that does not wait any more, because its step has ended, is left alone.
        """

    def fail(self, request: ToolRequest, error: str, kind: str = "") -> None:
        """Makes a call raise in the sandbox, from any thread.

        Args:
            request: The call.
            error: What the code is told.
            kind: The builtin class that the code can catch the error by, such as ``"KeyError"``,
                beside ``ToolError``; none where empty.
        """

    def interrupt(self) -> None:
        """Ends the step in progress, from any thread: from when `execute` was called."""

    def close(self) -> None:
        """Ends the sandbox and removes its work folder. May be called again."""

    async def aclose(self) -> None:
        """Does the same under asyncio."""


def no_folder(place: str) -> str:
    """Returns why files cannot go in and out of a place, and what to do instead."""
    return (
        f"executor_type={place!r} has no work folder that this machine can reach, so that files= "
        "and keep_files= do not go with it. Pass what is in the files with additional_args= (bytes "
        "or text), and have the code give what it makes to final_answer or to a tool; or use "
        'executor_type="local".'
    )


class _Verbatim:
    """Shows itself as a text, where `inspect.Signature` writes an annotation."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _signature_text(signature: inspect.Signature) -> str:
    parameters = [
        parameter.replace(annotation=_shown(parameter.annotation, parameter.empty))
        for parameter in signature.parameters.values()
    ]
    returns = _shown(signature.return_annotation, signature.empty)
    parameters = [
        parameter
        if parameter.default is parameter.empty
        else parameter.replace(default=_Verbatim(literal_text(parameter.default)))
        for parameter in parameters
    ]
    return str(signature.replace(parameters=parameters, return_annotation=returns))


def literal_text(value: object) -> str:
    """Returns a value as the literal that spells it, or ``...`` where it is no plain data."""
    return repr(value) if _is_literal(value) else "..."


def _is_literal(value: object, depth: int = 0) -> bool:
    if type(value) not in _LITERALS or depth > _MAX_DEPTH:
        return False
    match value:
        case int():
            return value.bit_length() <= _MAX_INT_BITS
        case float() | complex():
            return math.isfinite(value.real) and math.isfinite(value.imag)
        case dict():
            return all(_is_literal(item, depth + 1) for item in value.items())
        case tuple() | list() | set():
            return all(_is_literal(item, depth + 1) for item in value)
    return True


def _shown(thing: object, otherwise: object) -> object:
    if thing is inspect.Signature.empty:
        return otherwise
    if typing.get_origin(thing) is typing.Annotated:
        thing = typing.get_args(thing)[0]
    text = thing if isinstance(thing, str) else inspect.formatannotation(thing)
    # The rest of `Annotated` is for the host, and may be any object.
    shown = "Annotated[" not in text and _reads_as_python(text)
    return _Verbatim(text) if shown else otherwise


@functools.lru_cache(256)
def _reads_as_python(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
