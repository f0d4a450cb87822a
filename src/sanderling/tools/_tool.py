"""Tools: what an agent can do, described so that a model can ask for it."""

from __future__ import annotations

import functools
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ._arguments import Arguments
from ._construction import check_tool
from ._render import code_prompt, signature_text, tool_calling_prompt
from .agent_types import handle_agent_output_types

if TYPE_CHECKING:
    from sanderling.messages import JSONObject, JSONValue


class BaseTool(ABC):
    """Anything that has a name and can be called."""

    name: str

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the tool."""


class Tool(BaseTool):
    """A tool. Subclass it, set the attributes, and write ``forward``.

    ::

        class Weather(Tool):
            name = "weather"
            description = "Tells the weather of a city."
            inputs = {"city": {"type": "string", "description": "The city's name."}}
            output_type = "string"

            def forward(self, city: str) -> str: ...

    `forward` may be ``async def``. A new tool is checked as soon as its ``__init__`` is done.

    Attributes:
        name: What code and models call it by: a Python identifier.
        description: What it does and when to use it, for the model.
        inputs: JSON schema of each argument, with a ``description``. An argument that may be left
            out has ``"nullable": True``. ``type`` is one of `AUTHORIZED_TYPES`.
        output_type: What it returns, one of `AUTHORIZED_TYPES`.
        output_schema: JSON schema of what it returns, where that is known better.
        output_description: What it returns, in words for the model.
        skip_forward_signature_validation: Set it where `forward` takes ``**kwargs``.
        thread_bound: Set it where `forward` must run in the thread of the event loop (it holds a
            connection or a window that belongs to that thread). It then blocks the loop.
        is_initialized: Whether `setup` is done.
    """

    name: str
    description: str
    inputs: dict[str, dict[str, JSONValue]]
    output_type: str
    output_schema: JSONObject | None = None
    output_description: str = ""
    skip_forward_signature_validation: bool = False
    thread_bound: bool = False
    is_initialized: bool = False

    # One lock per class and none per instance: a tool stays an object that can be copied.
    _setup_lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self) -> None:
        """Makes the tool; a subclass that has its own ``__init__`` need not call this one."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._setup_lock = threading.RLock()
        cls.__init__ = _checked(cls, cls.__init__)  # type: ignore[method-assign]  # adds the check

    def setup(self) -> None:
        """Prepares what is slow to make, such as a model or a connection.

        Called once, before the first `forward`, in the thread (or event loop) that `forward` uses.
        If it raises, the next call tries again.
        """

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Does the work. Write it in the subclass, with the arguments that `inputs` names."""
        raise NotImplementedError(f"Write `def forward(self, ...)` in {type(self).__name__}.")

    def __call__(self, *args: Any, sanitize_inputs_outputs: bool = False, **kwargs: Any) -> Any:
        """Calls the tool as a Python function; an async tool returns an awaitable.

        Args:
            *args: Positional arguments; or one dict of arguments by name.
            sanitize_inputs_outputs: Whether to check the arguments first, as `call` does, and to
                return what `handle_agent_output_types` makes of the result.
            **kwargs: Arguments by name.
        """
        lone = args[0] if len(args) == 1 and not kwargs else None
        if isinstance(lone, dict) and self._arguments.spreads(lone):
            args, kwargs = (), lone
        if sanitize_inputs_outputs:
            args, kwargs = (), self.validate_arguments(self.bind(args, kwargs))
        if self.is_async:
            running = self._run_async(args, kwargs)
            return self._as_agent_type(running) if sanitize_inputs_outputs else running
        self._prepare()
        result = self.forward(*args, **kwargs)
        if not sanitize_inputs_outputs:
            return result
        if _is_pending(result):
            return self._as_agent_type(result)
        return handle_agent_output_types(result, self.output_type)

    def call(self, arguments: object) -> object:
        """Checks the arguments, runs the tool in this thread, and returns its result.

        An async tool runs in a private event loop while this thread waits.

        Args:
            arguments: By name; a lone value where the tool has one argument.

        Raises:
            ValueError: An argument is unknown or missing, or not among the values allowed.
            TypeError: An argument is of a wrong type.
        """
        return self.invoke(self._arguments.validate(arguments))

    async def acall(self, arguments: object) -> object:
        """Does what `call` does without blocking the event loop.

        An async tool runs in the caller's loop; any other in a worker thread that sees the
        caller's context variables, unless it is `thread_bound`.

        Raises:
            ValueError: An argument is unknown or missing, or not among the values allowed.
            TypeError: An argument is of a wrong type.
        """
        return await self.ainvoke(self._arguments.validate(arguments))

    def invoke(self, arguments: Mapping[str, object]) -> object:
        """Runs the tool as `call` does, with arguments that `validate_arguments` returned."""
        if self.is_async:
            return _wait_for(self._run_async((), arguments))
        result = self._run(arguments)
        return _wait_for(_finish(result)) if _is_pending(result) else result

    def begin(self, arguments: Mapping[str, object]) -> object:
        """Calls the tool in this thread, with arguments that `validate_arguments` returned.

        Returns:
            The result; an awaitable where the tool is async.
        """
        return self._run(arguments)

    async def ainvoke(self, arguments: Mapping[str, object]) -> object:
        """Runs the tool as `acall` does, with arguments that `validate_arguments` returned."""
        if self.is_async:
            return await self._run_async((), arguments)
        if self.thread_bound:
            result = self._run(arguments)
        else:
            from sanderling._bridge import in_thread

            result = await in_thread(functools.partial(self._run, arguments))
        return await result if _is_pending(result) else result

    @functools.cached_property
    def is_async(self) -> bool:
        """Whether `forward` is a coroutine function."""
        return inspect.iscoroutinefunction(self.forward)

    @property
    def signature(self) -> inspect.Signature:
        """The arguments as Python sees them, with types and defaults."""
        return self._arguments.signature

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_arguments"}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', None)}>"

    @property
    def signature_text(self) -> str:
        """The signature as Python source: ``(city: str, days: int = 3) -> str``."""
        return signature_text(self.signature)

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Names the positional arguments of a call that code made.

        Raises:
            TypeError: There are too many, or one comes twice.
        """
        return self._arguments.bind(args, kwargs)

    def validate_arguments(self, arguments: object) -> dict[str, object]:
        """Returns arguments that `forward` can be called with.

        Values are converted where the type hint asks for more than JSON has, such as a dict for a
        dataclass. Null stands for the default of an argument that may be left out.

        Raises:
            ValueError: An argument is unknown or missing, or not among the values allowed.
            TypeError: An argument is of a wrong type.
        """
        return self._arguments.validate(arguments)

    def take_arguments(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Returns what `forward` is called with where code calls it.

        Code passes whatever Python has. What has the form that is declared, or can be brought into
        it without loss (a tuple as a list, ``"5"`` as a number), is passed in that form; a value of
        another type is passed as it is, unless the type hint asks for more than JSON's types.

        Raises:
            ValueError: An argument is unknown or missing, or not among the values allowed.
            TypeError: An argument is None and must not be, or not what its type hint asks for.
        """
        return self._arguments.validate(arguments, in_code=True)

    def to_json_schema(self) -> JSONObject:
        """Returns the tool as an entry of the ``tools`` of an OpenAI chat request.

        https://platform.openai.com/docs/guides/function-calling
        """
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self._arguments.parameters_schema(),
            },
        }

    def to_code_prompt(self) -> str:
        """Returns the tool as a Python function without a body, for a model that writes code."""
        return code_prompt(self)

    def to_tool_calling_prompt(self) -> str:
        """Returns the tool as text, for a model that reads its tools in the prompt."""
        return tool_calling_prompt(self)

    @functools.cached_property
    def _arguments(self) -> Arguments:
        return Arguments(
            self.name,
            self.inputs,
            self.output_type,
            self._declared_forward(),
            declared_only=self.skip_forward_signature_validation,
        )

    def _declared_forward(self) -> Callable[..., object]:
        """Returns what names the arguments: a wrapper in the place of `forward` need not."""
        own = getattr(self, "__wrapped__", None) or type(self).forward.__get__(self)
        for forward in (self.forward, own):
            if inspect.signature(forward).parameters.keys() == self.inputs.keys():
                return forward
        return self.forward

    def _prepare(self) -> None:
        if self.is_initialized:
            return
        with self._setup_lock:
            if not self.is_initialized:
                self.setup()
                self.is_initialized = True

    def _run(self, arguments: Mapping[str, object]) -> Any:
        self._prepare()
        return self.forward(**arguments)

    async def _as_agent_type(self, result: Awaitable[Any]) -> Any:
        return handle_agent_output_types(await result, self.output_type)

    async def _run_async(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Any:
        self._prepare()
        return await self.forward(*args, **kwargs)


def _wait_for(coroutine: Coroutine[Any, Any, object]) -> object:
    from sanderling._bridge import wait_for  # asyncio is slow to import, and most tools need none

    return wait_for(coroutine)


def _is_pending(result: object) -> bool:
    # A decorator beneath @tool may hide that the function is async.
    return hasattr(type(result), "__await__")


async def _finish(awaitable: Any) -> Any:
    return await awaitable


def _checked(cls: type[Tool], init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def checked_init(self: Tool, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        # Only the outermost: the __init__ of a subclass may set attributes after its super().
        if type(self) is cls:
            check_tool(self, Tool.forward)

    return checked_init


def get_tool_json_schema(tool: Tool) -> JSONObject:
    """Returns `Tool.to_json_schema` of a tool."""
    return tool.to_json_schema()


def validate_tool_arguments(tool: Tool, arguments: object) -> None:
    """Raises what `Tool.validate_arguments` raises, if the arguments do not fit the tool.

    Raises:
        ValueError: An argument is unknown or missing, or not among the values allowed.
        TypeError: An argument is of a wrong type.
    """
    tool.validate_arguments(arguments)
