"""Texts for values of the host: data is shown, everything else is named by its class.

An object that stays on the host may hold a key, which its ``repr()`` may show. So neither is called
for a text that a model, a sandbox or a file gets to see.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from sanderling import _show
from sanderling.errors import AgentError, AgentToolCallError, AgentToolExecutionError

from . import kernel

if TYPE_CHECKING:
    from .kernel import Blob, Extension

_SCALARS = (type(None), bool, int, float, complex, str, bytes)
_ERROR_TEXTS = (BaseException.__str__, KeyError.__str__)  # which show the arguments
_MAX_DEPTH = 6
_MAX_ITEMS = 10_000  # of one text
_CONTAINERS = (dict, list, tuple, set, frozenset)
_CODE = (FunctionType, BuiltinFunctionType, MethodType)


class Holder:
    """Wraps an object that stays on the host, whatever its class is.

    Args:
        obj: The object.
    """

    def __init__(self, obj: object) -> None:
        self.obj = obj
        if type(obj) in (*_SCALARS, tuple):  # Python may use one object for all that are equal
            return
        try:
            _held[id(obj)] = obj
        except TypeError:  # it takes no weak references: it is known for as long as this wrapper
            _held[id(obj)] = self


_held: WeakValueDictionary[int, object] = WeakValueDictionary()  # by id()


def stays_on_host(value: object) -> bool:
    """Tells whether a value was wrapped to stay on the host, although it may be data."""
    held = _held.get(id(value))
    return held is value is not None or (isinstance(held, Holder) and held.obj is value)


def text_of(value: object, write: Callable[[object], str] = str, most: int | None = None) -> str:
    """Returns `str(value)`, or the reason why it cannot be written.

    Data that it would take seconds to write, such as an array of many short dimensions, is not.

    Args:
        value: Anything.
        write: `str` or `repr`.
        most: How long writing it may take, in microseconds as they are estimated.
    """
    try:
        is_too_large = kernel.takes_long_to_write(value, most)
    except Exception:  # whatever the value's own code raises
        is_too_large = False  # writing it fails as well, and says why
    if is_too_large:
        return f"<{type(value).__name__} that is too large to be shown>"
    return _show.text_of(value, write)


def safe_repr(value: object, most: int | None = None) -> str:
    """Returns the `repr()` of data; what is none is named by its class, as are its parts.

    Data is what crosses between host and sandbox by itself: see `sanderling.sandbox.kernel`.

    Args:
        value: Anything.
        most: How long writing it may take, in microseconds as they are estimated; None for what
            `text_of` allows.
    """
    return data_repr(value, most) if _is_data(value) else _Text().of(value, 0)


def data_repr(value: object, most: int | None = None) -> str:
    """Returns `safe_repr` of what is known to be data."""
    text = text_of(value, repr, most)
    return text if type(value) in _SCALARS else kernel.without_addresses(text)


def safe_str(value: object) -> str:
    """Returns the `str()` of data, and of an object whose class defines one for people to read.

    Everything else is as in `safe_repr`.
    """
    if isinstance(value, BaseException) and type(value).__str__ in _ERROR_TEXTS:
        if all(map(_is_data, value.args)):
            return text_of(value)
        return _Text().of(value.args[0] if len(value.args) == 1 else value.args, 0)
    if _is_data(value) or _is_for_people(value):
        return text_of(value)
    return _Text().of(value, 0)


def error_text(error: BaseException) -> str:
    """Returns `safe_str` of an error, whatever its own code raises."""
    try:
        return safe_str(error)
    except Exception as problem:
        return f"<{type(error).__name__} that cannot be shown: {type(problem).__name__}>"


def described(error: BaseException) -> str:
    """Returns the class and the text of an error: ``KeyError: 'x'``."""
    return f"{type(error).__name__}: {error_text(error)}"


def failure(error: BaseException) -> tuple[str, str]:
    """Returns what code is told of a call that raised, for `Interpreter.fail`.

    Returns:
        The text, and the name of the builtin class that the error is of; empty where it is of none.
        Where it is of no class of its own, the text is the error's alone.
    """
    raised: BaseException = error
    if isinstance(error, AgentToolExecutionError | AgentToolCallError):
        raised = error.__cause__ or error
    names = (kind.__name__ for kind in type(raised).__mro__ if kind.__module__ == "builtins")
    name = next((name for name in names if name in kernel.BUILTIN_ERRORS), "")
    if type(raised).__name__ == name and not isinstance(error, AgentToolCallError):
        return error_text(raised), name
    return error_text(error) if isinstance(error, AgentError) else described(error), name


def _is_for_people(value: object) -> bool:
    """Tells whether a class defines a text, and one that does not show the objects within."""
    numpy = sys.modules.get("numpy")
    if stays_on_host(value) or isinstance(value, _CONTAINERS) or _parts(value) is not None:
        return False
    if numpy is not None and isinstance(value, numpy.ndarray):
        return False
    return type(value).__str__ not in (object.__str__, type.__str__, *_ERROR_TEXTS)


def encode_on_host(value: object, extension: Extension) -> tuple[object, list[Blob]]:
    """Makes JSON data of a value, as `kernel.encode` does, that is read on the host again.

    What is no data, or was wrapped to stay on the host, leaves its class alone.
    """
    encoder = HostEncoder(extension, _form)
    try:
        return encoder.value(value, 0), encoder.blobs
    except kernel.CodecError:
        return _form(value), []


def without_objects(value: object) -> object:
    """Returns a value as data alone: everything else in it is a `SandboxValue`."""
    data, blobs = encode_on_host(value, kernel.Extension())
    if data is value:
        return value
    views = [memoryview(blob) for blob in blobs]
    return kernel.Frame("value", {"v": data}, views, tagged=True).value("v")


def stand_in(value: object) -> kernel.SandboxValue:
    """Makes what stands for a value that stays on the host, where only data may be."""
    text = safe_repr(value)
    shown = "it stayed on the host" if text == _named(value) else text[: kernel.MAX_REPR]
    return kernel.SandboxValue(type(value).__name__, shown)


def _form(value: object) -> object:
    return kernel.encode(stand_in(value))[0]


class HostEncoder(kernel.Encoder):
    """Encodes data, unless it was wrapped to stay on the host."""

    def _is_plain(self, value: object, depth: int) -> bool:
        return not stays_on_host(value) and super()._is_plain(value, depth)

    def _container(self, value: object, depth: int) -> object:
        if not stays_on_host(value):
            return super()._container(value, depth)
        if self._stay is None:
            raise kernel.CodecError("it stays on the host")
        return self._stay(value)


def _is_data(value: object) -> bool:
    if type(value) in _SCALARS:
        return True
    if stays_on_host(value):
        return False
    images = sys.modules.get("PIL.Image")
    if images is not None and isinstance(value, images.Image):
        return True  # its text does not show its pixels, which need not be read
    if type(value).__module__.startswith("sanderling.") and _parts(value) is None:
        return True  # the library's own class says how it is shown
    try:
        HostEncoder().value(value, 0)
    except kernel.CodecError:
        return False
    return True


def _parts(value: object) -> Iterable[tuple[str, object]] | None:
    """Returns the fields by which an instance is shown; None of a value without fields."""
    models = sys.modules.get("pydantic.main")
    if isinstance(value, kernel.Record):
        return value.record_fields.items()
    if models is not None and isinstance(value, models.BaseModel):
        declared: Any = type(value).model_fields
        fields = {**vars(value), **(value.model_extra or {})}
        hidden = {name for name, field in declared.items() if not field.repr}
        return [(name, one) for name, one in fields.items() if name not in hidden]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.repr]
        return [(name, getattr(value, name)) for name in names if hasattr(value, name)]
    return None


def _named(value: object) -> str:
    if isinstance(value, type):
        return type.__repr__(value)
    if isinstance(value, _CODE):
        return f"<function {value.__name__}>"
    return f"<{type(value).__name__} object of the host>"


class _Text:
    """Writes one text, within bounds of depth and items."""

    def __init__(self) -> None:
        self._left = _MAX_ITEMS

    def of(self, value: object, depth: int) -> str:
        """Returns the text of a value that is within so many others."""
        if type(value) in _SCALARS:
            return text_of(value, repr)
        if stays_on_host(value):
            return _named(value)
        inner = depth + 1
        parts = _parts(value)
        if parts is not None:
            name = value.record_type if isinstance(value, kernel.Record) else type(value).__name__
            fields = (f"{field}={self.of(one, inner)}" for field, one in parts)
            return kernel.one_line(f"{name}({self._joined(fields, depth)})")
        if isinstance(value, dict):
            pairs = (f"{self.of(key, inner)}: {self.of(one, inner)}" for key, one in value.items())
            return f"{{{self._joined(pairs, depth)}}}"
        if isinstance(value, _CONTAINERS):
            items = self._joined((self.of(one, inner) for one in value), depth)
            match value:
                case list():
                    return f"[{items}]"
                case tuple():
                    return f"({items}{',' * (len(value) == 1)})"
                case set():
                    return f"{{{items}}}"
            return f"frozenset({{{items}}})"
        return safe_repr(value) if _is_data(value) else _named(value)

    def _joined(self, texts: Iterator[str], depth: int) -> str:
        if depth == _MAX_DEPTH:
            return "..."
        shown = []
        for text in texts:
            self._left -= 1
            shown.append(text if self._left >= 0 else "...")
            if self._left < 0:
                break
        return ", ".join(shown)
