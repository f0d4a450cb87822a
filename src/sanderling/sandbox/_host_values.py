"""Values of the host that are more than data: how they enter a sandbox, and how they come back.

Functions, classes and instances go in as copies. Any other object stays here: the sandbox gets a
reference to it, which it can give back to tools. Nothing that comes back is ever unpickled.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import itertools
import secrets
import threading
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

from . import kernel
from ._instances import Rebuilder
from ._interpreter import ToolSpec
from ._texts import Holder, described, stand_in


class HostObject(Holder):
    """Lets code in a sandbox use an object that stays on the host, such as a database connection.

    Given as a variable, or returned by a tool, it appears in the sandbox as an object that has what
    is listed here and nothing else. A call of a method is carried out on the host, in the thread
    that the tools run in, and may be a coroutine; what it returns crosses as what a tool returns.
    Given to a tool, it is the very object. ::

        agent.run("How many orders are open?", additional_args={
            "db": HostObject(connection, methods=["query"], attributes=["tables"]),
        })

    An object that is not wrapped can be given to tools, too, but it has no methods in the sandbox.
    The model's code may call the methods listed with whatever it likes. Approval, limits and
    policies hold for these calls as for those of tools. No such object is shown by its `repr`.

    Args:
        obj: The object.
        methods: What may be called.
        attributes: What may be read. It is read anew each time.

    Raises:
        ValueError: A name is private.
        AttributeError: The object has no such attribute.
        TypeError: What is listed as a method cannot be called.
    """

    def __init__(
        self, obj: object, methods: Iterable[str] = (), attributes: Iterable[str] = ()
    ) -> None:
        super().__init__(obj)
        self.methods = tuple(methods)
        self.attributes = tuple(attributes)
        for name in (*self.methods, *self.attributes):
            if not name.isidentifier() or name.startswith("_"):
                raise ValueError(f"{name!r} cannot be listed: public names only")
            if name in self.methods and not callable(getattr(obj, name)):
                raise TypeError(f"{name!r} cannot be called; list it under attributes")

    def __repr__(self) -> str:
        names = ", ".join((*self.methods, *self.attributes)) or "nothing that can be used"
        return f"<{type(self.obj).__name__} object of the host: it has {names}>"

    def specs(self) -> list[tuple[str, str, str]]:
        """Returns name, signature and docstring of each method.

        Defaults that may be secrets, which is any but `None`, bools and numbers, are ``...``.
        """
        specs = []
        for name in self.methods:
            method = getattr(self.obj, name)
            spec = ToolSpec.of(name, safe_signature(method), inspect.getdoc(method) or "")
            specs.append((spec.name, spec.signature, spec.doc))
        return specs

    def member(self, name: str) -> Callable[..., object]:
        """Returns a method, or a function that reads an attribute.

        Raises:
            KeyError: It is not listed.
        """
        if name in self.methods:
            method: Callable[..., object] = getattr(self.obj, name)
            return method
        if name in self.attributes:
            return lambda: getattr(self.obj, name)
        raise KeyError(name)


def safe_signature(method: Callable[..., object]) -> Callable[..., object] | inspect.Signature:
    """Returns the signature of a function, whose defaults are ``...`` where they may be secrets.

    A function that has none, as some that are written in C, is returned itself.
    """
    try:
        signature = inspect.signature(method)
    except ValueError:  # some functions written in C do not have one
        return method
    shown = (type(None), bool, int, float)
    parameters = [
        one if one.default is one.empty or type(one.default) in shown else one.replace(default=...)
        for one in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters)


class _Items(HostObject):
    """Lets code iterate over what a tool returned, some items at a time."""

    def member(self, name: str) -> Callable[..., object]:
        if name == "next":
            return self._next
        return super().member(name)

    def _next(self, count: int) -> list[object]:
        items: Any = self.obj
        return list(itertools.islice(items, min(count, kernel.MOST_AT_ONCE)))


def iterable(value: object) -> object:
    """Returns what a tool returned as what code can iterate over, where it is a generator."""
    return _Items(value) if isinstance(value, _GENERATORS) else value


_GENERATORS = (GeneratorType, map, filter, zip)


class HostValues:
    """The values of one conversation that a sandbox may name. All methods may be called at once.

    Names of objects cannot be guessed, and end with the conversation.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._objects: dict[str, HostObject] = {}
        self._ids: dict[tuple[object, ...], str] = {}
        self._code: dict[int, object] = {}
        self._keys: dict[int, int] = {}
        self._classes: dict[int, bytes] = {}  # as they were pickled

    def encode(self, value: object) -> tuple[dict[str, object], list[kernel.Blob]]:
        """Makes the fields of a frame, and its blobs.

        Raises:
            CodecError: The value is too large or too deep, or a library's type cannot cross.
        """
        outgoing = _Outgoing(self)
        encoder = kernel.Encoder(outgoing)
        fields: dict[str, object] = {"v": encoder.value(value, 0)}
        if outgoing.code:
            fields["code"] = list(outgoing.code.values())
        return fields, encoder.blobs

    def encode_variable(
        self, name: str, value: object
    ) -> tuple[dict[str, object], list[kernel.Blob]]:
        """Does the same for a variable. Where its value cannot cross, it is a reference to it."""
        try:
            fields, blobs = self.encode({name: value})
            kernel.pack("set", fields, blobs)
        except kernel.CodecError as error:
            return {"v": {name: self.refer(value, str(error))}}, []
        return fields, blobs

    def refer(self, value: object, why: str = "") -> dict[str, object]:
        """Makes what stands for an object that stays here.

        Args:
            value: The object; a `HostObject` for one whose methods can be called.
            why: Told to the model, where somebody might expect a value.
        """
        wrapped = value if isinstance(value, HostObject) else HostObject(value)
        identity = (type(wrapped), id(wrapped.obj), wrapped.methods, wrapped.attributes)
        with self._lock:
            key = self._ids.get(identity)
            if key is None:
                key = self._ids[identity] = secrets.token_hex(16)
                self._objects[key] = wrapped
        about: dict[str, object] = {"$": "host", "id": key, "type": type(wrapped.obj).__name__}
        if wrapped.methods:
            about["methods"] = [list(spec) for spec in wrapped.specs()]
        if wrapped.attributes:
            about["attributes"] = list(wrapped.attributes)
        if isinstance(wrapped, _Items):
            about["iterates"] = True
        if why:
            about["why"] = why
        return about

    def find(self, key: object) -> HostObject:
        """Returns what a sandbox names.

        Raises:
            KeyError: There is no such object.
        """
        return self._objects[typing.cast("str", key)]

    def key_of(self, code: object) -> int:
        """Numbers a function or a class."""
        with self._lock:
            key = self._keys.setdefault(id(code), len(self._keys) + 1)
            self._code[key] = code  # which keeps its id() from being used again
            return key

    def code(self, key: object) -> object:
        """Returns the function or class of a number.

        Raises:
            KeyError: There is none.
        """
        return self._code[typing.cast("int", key)]

    def pickled(self, code: object) -> bytes:
        """Pickles a function or a class; what it refers to and may not be copied stays here.

        Raises:
            Exception: Whatever a part of it raises that cannot be pickled.
        """
        key = self.key_of(code)
        known = self._classes.get(key)
        if known is not None:
            return known
        from ._pickling import dump  # cloudpickle is not needed by most

        pickled = dump(code, self.refer)
        if isinstance(code, type):
            self._classes[key] = pickled
        return pickled


class _Outgoing(kernel.Extension):
    """What one frame carries into the sandbox beside data."""

    def __init__(self, values: HostValues) -> None:
        self._values = values
        self.code: dict[int, tuple[int, int, dict[str, object]]] = {}

    def write(self, encoder: kernel.Encoder, value: object) -> object:
        if is_code(value):
            try:
                return {"$": "code", "n": self._define(encoder, value)}
            except Exception as error:  # whatever its parts raise when they are pickled
                return self._values.refer(value, described(error))
        return self._values.refer(value)

    def class_key(self, encoder: kernel.Encoder, kind: type) -> int | None:
        try:
            return self._define(encoder, kind)
        except Exception:  # it stays a record of its fields, which says so itself
            return None

    def _define(self, encoder: kernel.Encoder, code: object) -> int:
        key = self._values.key_of(code)
        if key not in self.code:
            place = encoder.blob(self._values.pickled(code))
            self.code[key] = (key, place, self._values.refer(code))
        return key


class Incoming(kernel.Extension):
    """Reads what a sandbox says of the host's values.

    The host's objects and functions come back as they are, by themselves or in lists, tuples and
    dicts. Nothing that can be called becomes an attribute of an instance, or a part of an array or
    a table: the host's code might call it there without having asked for a function.
    """

    def __init__(self, values: HostValues) -> None:
        self._values = values
        self._rebuilders: dict[int, Rebuilder] = {}  # by the number of the class
        self._arrays = 0  # around the value that is read
        self.readers = {
            "host": self._host,
            "code": self._code,
            "record": self._record,
            "namedtuple": self._named_tuple,
            "namespace": self._namespace,
            "exception": self._exception,
            **dict.fromkeys(_ARRAYS, self._array),
        }

    def _host(self, decoder: kernel.Decoder, value: kernel.Message, depth: int) -> object:
        return self._found(self._values.find(value["id"]).obj)

    def _code(self, decoder: kernel.Decoder, value: kernel.Message, depth: int) -> object:
        return self._found(self._values.code(value["n"]))

    def _found(self, value: object) -> object:
        return stand_in(value) if self._arrays else value

    def _array(self, decoder: kernel.Decoder, value: kernel.Message, depth: int) -> object:
        self._arrays += 1
        try:
            return _ARRAYS[typing.cast("str", value["$"])](decoder, value, depth)
        finally:
            self._arrays -= 1

    def _record(self, decoder: kernel.Decoder, value: kernel.Message, depth: int) -> object:
        record = decoder.record(value, depth)
        fields = record.record_fields
        uncalled = {name: _uncalled(one) for name, one in fields.items() if callable(one)}
        fields.update(uncalled)
        return record if uncalled else self._rebuilt(value, fields, record)

    def _named_tuple(self, decoder: kernel.Decoder, value: kernel.Message, depth: int) -> object:
        made = decoder.named_tuple(value, depth)
        if any(map(callable, made)):
            return tuple.__new__(type(made), map(_uncalled, made))
        return self._rebuilt(value, dict(zip(made._fields, made, strict=True)), made)

    def _namespace(self, decoder: kernel.Decoder, value: kernel.Message, depth: int) -> object:
        made = decoder.namespace(value, depth)
        vars(made).update({name: _uncalled(one) for name, one in vars(made).items()})
        return made

    def _exception(self, decoder: kernel.Decoder, value: kernel.Message, depth: int) -> object:
        self._arrays += 1
        try:
            return decoder.exception(value, depth)
        finally:
            self._arrays -= 1

    def _rebuilt(self, value: kernel.Message, fields: Mapping[str, Any], made: object) -> object:
        """Returns an instance of the host's class with these fields, or what was made without."""
        if "class" not in value:
            return made
        key: Any = value["class"]
        kind = self._values.code(key)
        if not isinstance(kind, type):
            return made
        if key not in self._rebuilders:
            self._rebuilders[key] = Rebuilder(kind)
        return self._rebuilders[key].made(fields, made)


_KINDS = ("objects", "index", "series", "table")
_ARRAYS = {kind: kernel._READERS[kind] for kind in _KINDS}


def _uncalled(value: object) -> object:
    return stand_in(value) if callable(value) else value


def is_code(value: object) -> bool:
    """Tells whether a value goes into a sandbox as a copy of code."""
    if isinstance(value, functools.partial):
        return is_code(value.func)
    if isinstance(value, BuiltinFunctionType):
        return isinstance(value.__self__, ModuleType)
    if isinstance(value, MethodType):  # of an instance, it would change a copy of that
        return isinstance(value.__self__, type)
    return isinstance(value, type | FunctionType)


@functools.cache
def cloudpickle_source() -> bytes:
    """Returns the source of cloudpickle, with which a sandbox reads what this module sends."""
    spec = importlib.util.find_spec("cloudpickle")
    if spec is None or spec.origin is None:
        return b""
    return Path(spec.origin).with_name("cloudpickle.py").read_bytes()
