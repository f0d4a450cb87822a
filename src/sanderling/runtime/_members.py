"""Calls of what a `HostObject` lists, which the runtime carries out like calls of tools."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import BoundArguments, Parameter, Signature

_ANYTHING = Signature(
    [Parameter("args", Parameter.VAR_POSITIONAL), Parameter("kwargs", Parameter.VAR_KEYWORD)]
)


class Member:
    """A method of a host's object, or the reading of an attribute.

    Args:
        name: The object's class, a dot, and its own name.
        function: Carries the call out; may be a coroutine function.
    """

    def __init__(self, name: str, function: Callable[..., object]) -> None:
        self.name = name
        self._function = function
        try:
            self._signature = inspect.signature(function)
        except ValueError:  # some functions written in C do not have one
            self._signature = _ANYTHING

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Names the arguments of a call that code made; those of ``*args`` are one tuple.

        Raises:
            TypeError: They do not fit.
        """
        return dict(self._signature.bind(*args, **kwargs).arguments)

    def validate_arguments(self, arguments: object) -> dict[str, object]:
        """Returns arguments as `bind` does, if the member can be called with them.

        Raises:
            TypeError: It cannot, or they are not given by name.
        """
        if not isinstance(arguments, Mapping):
            raise TypeError("its arguments are a dict by parameter name")
        known = self._signature.parameters
        unknown = [name for name in arguments if name not in known]
        if unknown:
            raise TypeError(f"it has no argument {unknown[0]!r}. Its arguments are: {[*known]}")
        args, kwargs = self._split(arguments)
        return self.bind(args, kwargs)

    def begin(self, arguments: Mapping[str, object]) -> object:
        """Calls it in this thread, with arguments that `validate_arguments` returned.

        Returns:
            The result; an awaitable where it is async.
        """
        args, kwargs = self._split(arguments)
        return self._function(*args, **kwargs)

    async def ainvoke(self, arguments: Mapping[str, object]) -> object:
        """Awaits it, or calls it in a worker thread where it is no coroutine function."""
        if inspect.iscoroutinefunction(self._function):
            value = self.begin(arguments)
        else:
            from sanderling._bridge import in_thread

            value = await in_thread(partial(self.begin, arguments))
        return await value if inspect.isawaitable(value) else value

    def _split(
        self, arguments: Mapping[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        bound = BoundArguments(self._signature, OrderedDict(arguments))
        return bound.args, bound.kwargs
