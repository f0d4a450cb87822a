"""The program inside the sandbox: it runs the model's Python and speaks frames with the host.

One file, standard library only, CPython 3.9 or newer, so that it runs unchanged wherever a Python
and two file descriptors are. The host imports the same file for its frames and its codec.

A frame is ``u32 text length, u32 blob length, text, blobs`` (little endian). The text is one JSON
object: ``t`` is the kind of message, ``b`` the lengths of the blobs, the rest depends on the kind.

=======  ==============  ==========================================================
kind     direction       fields
=======  ==============  ==========================================================
hello    host to kernel  imports, output (characters a step may print), calls (per step)
tools    host to kernel  tools: list of name, signature, doc, final
set      host to kernel  v: variables by name
exec     host to kernel  id, code
ret      host to kernel  id of the call, and v (value) or e (error text)
ready    kernel to host  layers, versions
failed   kernel to host  reason; sent in the place of ready
out      kernel to host  id of the step, text
call     kernel to host  id, step, name, args, kwargs, alone
done     kernel to host  id of the step, v, text, error, threads, interrupted
=======  ==============  ==========================================================

Code in the sandbox shares memory and file descriptors with this kernel. So nothing here is a wall:
the walls are the operating system's, and the host checks whatever arrives.
"""

from __future__ import annotations

import ast
import builtins
import collections
import enum
import errno
import io
import json
import linecache
import math
import os
import re
import select
import signal
import struct
import sys
import threading
import traceback
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import CodeType, FrameType, TracebackType
    from typing import Any, NoReturn, TypeAlias

    Blob: TypeAlias = "bytes | bytearray | memoryview"
    Message: TypeAlias = "dict[str, object]"

BASE_BUILTIN_MODULES = (
    "collections",
    "datetime",
    "itertools",
    "math",
    "queue",
    "random",
    "re",
    "stat",
    "statistics",
    "time",
    "unicodedata",
)

MAX_JSON = 32 << 20  # bytes of a frame's text
MAX_BLOBS = 256 << 20  # bytes of a frame's blobs
MAX_RESULT = 32 << 20  # bytes of the blobs of a step's value, which is sent unasked
MAX_DEPTH = 100
MAX_ITEMS = 2_000_000
MAX_MARKS = 2 * MAX_ITEMS  # commas and opening brackets of a frame's text
MAX_BLOB_COUNT = 100_000
MAX_PIXELS = 64 << 20
MAX_SHOWN = 100_000  # characters of a value's str() and of a traceback
MAX_REPR = 2_000
MAX_COLLISIONS = 64


# --- Frames ---------------------------------------------------------------------------------------


class FrameError(ValueError):
    """Bytes that are no frame."""


class CodecError(ValueError):
    """A value that cannot cross between host and sandbox.

    Args:
        problem: What is wrong, without the place.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = ""

    def under(self, step: str) -> CodecError:
        """Puts a step of the path to the value in front of those known."""
        self.path = step + self.path
        return self

    def __str__(self) -> str:
        path = self.path.lstrip(".")
        return f"{self.problem} (at {path[:80]}{'…' * (len(path) > 80)})" if path else self.problem


class Frame:
    """One message as it came: its kind, its fields, and the blobs that belong to it."""

    __slots__ = ("blobs", "fields", "kind", "tagged")

    def __init__(self, kind: str, fields: Message, blobs: list[memoryview], tagged: bool) -> None:
        self.kind = kind
        self.fields = fields
        self.blobs = blobs
        self.tagged = tagged

    def value(self, key: str) -> object:
        """Decodes the field `key`.

        Raises:
            CodecError: The field is not what `encode` writes.
        """
        value = self.fields.get(key)
        if not self.tagged:
            _check_depth(value)
            return value
        return _Decoder(self.blobs).value(value, 0)


def _refuse_constant(name: str) -> NoReturn:
    raise FrameError(f"{name} is not JSON")


_to_json = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode
_from_json = json.JSONDecoder(parse_constant=_refuse_constant).decode
_HEADER = struct.Struct("<II")


def pack(kind: str, fields: Mapping[str, object], blobs: Sequence[Blob] = ()) -> list[Blob]:
    """Makes the frame of one message.

    Args:
        kind: The kind of message.
        fields: JSON data; values of any other type go through `encode` first.
        blobs: What `encode` put aside.

    Returns:
        Buffers to be written one after the other. Large blobs are not copied.

    Raises:
        CodecError: The frame would be larger than any reader accepts.
    """
    sizes = [len(blob) for blob in blobs]
    text = _to_json({"t": kind, "b": sizes, **fields}).encode("utf-8", "surrogatepass")
    total = sum(sizes)
    if len(text) > MAX_JSON:
        raise CodecError(f"too large: {len(text):,} bytes of text, at most {MAX_JSON:,} can cross")
    if total > MAX_BLOBS:
        raise CodecError(f"too large: {total:,} bytes, at most {MAX_BLOBS:,} can cross")
    if len(sizes) > MAX_BLOB_COUNT or _has_too_many_marks(text):
        raise CodecError("too many parts: send an array, or less of it")
    head = _HEADER.pack(len(text), total) + text
    if total < 65536:
        return [b"".join((head, *blobs))]
    return [head, *blobs]


class FrameReader:
    """Turns a stream of bytes into frames. Does no I/O and allocates no more than a frame."""

    def __init__(self) -> None:
        self._expect(None, _HEADER.size)

    def _expect(self, header: tuple[int, int] | None, size: int) -> None:
        self._header = header
        self._space = memoryview(bytearray(size))
        self._filled = 0

    def space(self) -> memoryview:
        """Returns where the next bytes go; it never reaches past the frame under way."""
        return self._space[self._filled :]

    def advance(self, count: int) -> Frame | None:
        """Takes note that `count` bytes were put into `space`.

        Returns:
            The frame, where these bytes completed one.

        Raises:
            FrameError: The bytes are no frame. Nothing read after that can be trusted.
        """
        self._filled += count
        if self._filled < len(self._space):
            return None
        if self._header is None:
            header = _HEADER.unpack(self._space)
            if not 0 < header[0] <= MAX_JSON or header[1] > MAX_BLOBS:
                raise FrameError(f"a frame of {header[0]:,} and {header[1]:,} bytes")
            self._expect(header, sum(header))
            return None
        frame = _parse(self._space, self._header[0])
        self._expect(None, _HEADER.size)
        return frame

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yields the frames that `data` completes."""
        source = memoryview(data)
        while source:
            space = self.space()
            count = min(len(space), len(source))
            space[:count] = source[:count]
            source = source[count:]
            frame = self.advance(count)
            if frame is not None:
                yield frame


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def _has_too_many_marks(text: bytes) -> bool:
    """Finds texts that are small to send and large to hold, such as millions of empty lists."""
    if _marks(text) <= MAX_MARKS:
        return False
    # The marks within a few long strings do not count. To leave out millions of short ones would
    # itself take the memory that this saves.
    strings = (text.count(b'"') - text.count(b'\\"')) // 2
    return strings > MAX_ITEMS // 4 or _marks(_STRING.sub(b"", text)) > MAX_MARKS


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _parse(body: memoryview, text_size: int) -> Frame:
    raw = bytes(body[:text_size])
    if _has_too_many_marks(raw):
        raise FrameError("more items than can cross")
    try:
        fields = _from_json(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"no JSON: {type(error).__name__}") from None
    if type(fields) is not dict:
        raise FrameError("not an object")
    kind, sizes = fields.pop("t", None), fields.pop("b", None)
    if type(kind) is not str or type(sizes) is not list:
        raise FrameError("no kind, or no list of blobs")
    if len(sizes) > MAX_BLOB_COUNT:
        raise FrameError("more blobs than can cross")
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise FrameError("the size of a blob is no size")
    if text_size + sum(sizes) != len(body):
        raise FrameError("the sizes of the blobs do not add up")
    blobs, start = [], text_size
    for size in sizes:
        blobs.append(body[start : start + size])
        start += size
    return Frame(kind, fields, blobs, tagged=b'"$"' in raw)


# --- Codec ----------------------------------------------------------------------------------------
#
# Plain JSON crosses as it is. Everything else is an object with a "$" that names its type. Neither
# side ever unpickles or evaluates; what is not listed here does not cross.


class Opaque:
    """Stands for a value that stayed in the sandbox.

    Attributes:
        type: The name of its type.
        repr: What ``repr()`` said of it, shortened.
    """

    __slots__ = ("repr", "type")

    def __init__(self, type: str, repr: str) -> None:  # noqa: A002 - the fields' own names
        self.type = type
        self.repr = repr

    def __repr__(self) -> str:
        return self.repr

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Opaque):
            return NotImplemented
        return (self.type, self.repr) == (other.type, other.repr)

    def __hash__(self) -> int:
        return hash((self.type, self.repr))


class Record:
    """A dataclass instance or an enum member from the other side, as a name and its fields.

    The class itself does not cross, so the fields are read as attributes and nothing else is there.
    An enum member has the fields ``name`` and ``value``.

    Attributes:
        record_type: The name of the class.
        record_fields: The fields by name.
    """

    __slots__ = ("record_fields", "record_type")

    def __init__(self, record_type: str, record_fields: dict[str, object]) -> None:
        self.record_type = record_type
        self.record_fields = record_fields

    def __getattr__(self, name: str) -> object:
        known = name not in Record.__slots__ and name in self.record_fields
        if known and not name.startswith("__"):
            return self.record_fields[name]
        raise AttributeError(f"{name!r} is no field of this record")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.record_fields.items())
        return f"{self.record_type}({fields})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.record_type, self.record_fields) == (other.record_type, other.record_fields)

    def __hash__(self) -> int:
        return hash((self.record_type, *self.record_fields.items()))


_SAFE_INT = 1 << 53  # beyond it, readers of JSON other than Python lose digits
_TEXTS = frozenset((str, bool, type(None)))
_DATES = ("datetime", "date", "time")
_DTYPE = re.compile(r"[<>|=][biufcMmUS][0-9]{1,9}(\[[0-9]{0,9}[A-Za-z]{1,2}\])?")
_PIXEL_BITS = {
    "1": 1,
    "L": 8,
    "LA": 16,
    "RGB": 24,
    "RGBA": 32,
    "CMYK": 32,
    "YCbCr": 24,
    "HSV": 24,
    "I": 32,
    "F": 32,
}


def encode(value: object, *, opaque: bool = False) -> tuple[object, list[Blob]]:
    """Makes JSON data of a value.

    Args:
        value: What shall cross.
        opaque: Whether a part of an unknown type crosses as its repr (see `Opaque`).

    Returns:
        The JSON data, and the blobs that it refers to.

    Raises:
        CodecError: A part of the value cannot cross; the error names its type and the path to it.
    """
    encoder = _Encoder(opaque)
    return encoder.value(value, 0), encoder.blobs


class _Encoder:
    def __init__(self, opaque: bool) -> None:
        self.blobs: list[Blob] = []
        self._opaque = opaque
        self._items = 0
        self._hashable = 0  # inside how many keys and set members we are

    def value(self, value: object, depth: int) -> object:
        """Encodes one value; containers that are plain JSON are passed on as they are."""
        if type(value) in _TEXTS:
            return value
        if type(value) is int:
            return value if -_SAFE_INT < value < _SAFE_INT else {"$": "int", "v": hex(value)}
        if type(value) is float:
            return value if math.isfinite(value) else {"$": "float", "v": repr(value)}
        if depth > MAX_DEPTH:
            raise CodecError(
                f"nested more than {MAX_DEPTH} levels deep, or containing itself: flatten it first"
            )
        # Near the top, one scan that finds plain JSON saves the walk and the copy.
        if depth < 3 and not self._hashable and type(value) in (list, dict):
            before = self._items
            if self._is_plain(value, depth):
                return value
            self._items = before
        try:
            return self._container(value, depth + 1)
        except CodecError:
            raise
        except Exception as error:
            raise CodecError(
                f"a {_type_name(value)} that raised {type(error).__name__} while it was read"
            ) from error

    def _is_plain(self, value: object, depth: int) -> bool:
        items: Collection[Any]
        if type(value) is list:
            items = value
        elif type(value) is dict:
            if not set(map(type, value)) <= {str} or "$" in value:
                return False
            items = value.values()
        elif type(value) is int:
            return -_SAFE_INT < value < _SAFE_INT
        elif type(value) is float:
            return math.isfinite(value)
        else:
            return type(value) in _TEXTS
        self._count(len(items))
        if depth > MAX_DEPTH:
            return False
        kinds = set(map(type, items))
        if kinds <= _TEXTS:
            return True
        if kinds == {int}:
            return bool(-_SAFE_INT < min(items) <= max(items) < _SAFE_INT)
        return all(self._is_plain(item, depth + 1) for item in items)

    def _count(self, items: int) -> None:
        self._items += items
        if self._items > MAX_ITEMS:
            raise CodecError(f"more than {MAX_ITEMS:,} items: send an array, or less of it")

    def _container(self, value: object, depth: int) -> object:
        if isinstance(value, tuple):
            return {"$": "tuple", "v": self._list(value, depth)}
        if isinstance(value, frozenset):
            return {"$": "frozenset", "v": self._members(value, depth)}
        if self._hashable:
            return self._scalar(value, depth)
        if isinstance(value, dict):
            return self._dict(value, depth)
        if isinstance(value, (list, collections.deque, range, *_VIEWS)):
            return self._list(value, depth)
        if isinstance(value, set):
            return {"$": "set", "v": self._members(value, depth)}
        if isinstance(value, bytearray):
            return {"$": "bytearray", "i": self._blob(value)}
        if isinstance(value, memoryview):
            return {"$": "bytes", "i": self._blob(value.tobytes())}
        if isinstance(value, Record):
            return self._record(value.record_type, value.record_fields, depth)
        names = getattr(type(value), "__dataclass_fields__", None)
        if names is not None:
            fields = {name: getattr(value, name) for name in names if hasattr(value, name)}
            return self._record(type(value).__name__, fields, depth)
        return self._scalar(value, depth)

    def _scalar(self, value: object, depth: int) -> object:
        if isinstance(value, enum.Enum):
            fields = {"name": value.name, "value": value.value}
            return self._record(type(value).__name__, fields, depth)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, bytes):
            return {"$": "bytes", "i": self._blob(bytes(value))}
        if isinstance(value, int):
            return self.value(int(value), depth)
        if isinstance(value, float):
            return self.value(float(value), depth)
        if isinstance(value, complex):
            return {"$": "complex", "v": [repr(value.real), repr(value.imag)]}
        if isinstance(value, Opaque):
            return {"$": "opaque", "type": value.type, "repr": value.repr}
        for module, write in _LIBRARIES.items():
            loaded = sys.modules.get(module)
            if loaded is not None:
                written = write(self, loaded, value, depth)
                if written is not None:
                    return written
        if self._opaque:
            return _stand_in(value)
        raise CodecError(
            f"a {_type_name(value)} cannot cross between host and sandbox: send plain data "
            "(numbers, text, bytes, lists, dicts, dates, dataclasses, arrays, images) or its str()"
        )

    def _list(self, items: Collection[object], depth: int) -> list[object]:
        self._count(len(items))
        out = []
        for place, item in enumerate(items):
            try:
                out.append(self.value(item, depth))
            except CodecError as error:
                error.under(f"[{place}]")
                raise
        return out

    def _members(self, items: Collection[object], depth: int) -> list[object]:
        self._hashable += 1
        try:
            return self._list(items, depth)
        finally:
            self._hashable -= 1

    def _dict(self, value: dict[object, object], depth: int) -> object:
        items = list(value.items())
        values = []
        self._count(len(items))
        for key, item in items:
            try:
                values.append(self.value(item, depth))
            except CodecError as error:
                error.under(f".{key}" if type(key) is str else f"[{_safe_repr(key)[:60]}]")
                raise
        if "$" not in value and all(type(key) is str for key, _ in items):
            return {key: item for (key, _), item in zip(items, values)}  # noqa: B905 - 3.9
        keys = self._members([key for key, _ in items], depth)
        return {"$": "dict", "k": keys, "v": values}

    def _record(self, name: str, fields: Mapping[str, object], depth: int) -> object:
        values: list[object] = []
        for field, item in fields.items():
            try:
                values.append(self.value(item, depth))
            except CodecError as error:
                error.under(f".{field}")
                raise
        return {"$": "record", "type": name, "k": list(fields), "v": values}

    def _blob(self, data: Blob) -> int:
        self.blobs.append(data)
        return len(self.blobs) - 1

    # Types of libraries: looked at only where the library is loaded, for else no value can be its.

    def _datetime(self, datetime: ModuleType, value: object, depth: int) -> object:
        if isinstance(value, datetime.datetime):
            if value != value:  # pandas' NaT is a datetime that equals nothing
                return {"$": "none"}
            text = datetime.datetime.isoformat(value)
            return {"$": "datetime", "v": text, "fold": value.fold}
        if isinstance(value, datetime.date):
            return {"$": "date", "v": datetime.date.isoformat(value)}
        if isinstance(value, datetime.time):
            return {"$": "time", "v": datetime.time.isoformat(value), "fold": value.fold}
        if isinstance(value, datetime.timedelta):
            return {"$": "timedelta", "v": [value.days, value.seconds, value.microseconds]}
        return None

    def _decimal(self, decimal: ModuleType, value: object, depth: int) -> object:
        return {"$": "decimal", "v": str(value)} if isinstance(value, decimal.Decimal) else None

    def _uuid(self, uuid: ModuleType, value: object, depth: int) -> object:
        return {"$": "uuid", "v": value.hex} if isinstance(value, uuid.UUID) else None

    def _path(self, pathlib: ModuleType, value: object, depth: int) -> object:
        return {"$": "path", "v": str(value)} if isinstance(value, pathlib.PurePath) else None

    def _numpy(self, numpy: ModuleType, value: object, depth: int) -> object:
        if isinstance(value, numpy.generic) and value.dtype.kind in "biufcSU":
            item = value.item()
            return self.value(float(item) if isinstance(item, numpy.generic) else item, depth)
        if not isinstance(value, (numpy.ndarray, numpy.generic)):
            return None
        scalar = isinstance(value, numpy.generic)
        array = numpy.ascontiguousarray(value)
        if not _DTYPE.fullmatch(array.dtype.str) or not array.dtype.itemsize:
            raise CodecError(
                f"an array of dtype {array.dtype} cannot cross: give it a numeric, text or date "
                "dtype, or send .tolist()"
            )
        data = memoryview(array.reshape(-1).view("u1")) if array.size else b""
        shape = list(value.shape)
        return {
            "$": "ndarray",
            "t": array.dtype.str,
            "s": shape,
            "i": self._blob(data),
            "scalar": scalar,
        }

    def _pandas(self, pandas: ModuleType, value: object, depth: int) -> object:
        if value is pandas.NA or value is pandas.NaT:
            return {"$": "none"}
        if not isinstance(value, (pandas.DataFrame, pandas.Series)):
            return None
        index = None
        if not (
            isinstance(value.index, pandas.RangeIndex)
            and value.index.equals(pandas.RangeIndex(len(value)))
        ):
            if isinstance(value.index, pandas.MultiIndex):
                raise CodecError("a table with a MultiIndex cannot cross: reset_index() first")
            index = [self.value(value.index.name, depth), self._column(value.index, depth)]
        if isinstance(value, pandas.Series):
            name = self.value(value.name, depth)
            return {"$": "series", "name": name, "n": index, "v": self._column(value, depth)}
        labels = self._members(value.columns.tolist(), depth)
        columns = [self._column(value.iloc[:, place], depth) for place in range(len(labels))]
        return {"$": "dataframe", "k": labels, "n": index, "v": columns, "rows": len(value)}

    def _column(self, column: Any, depth: int) -> object:
        if getattr(column.dtype, "kind", "O") in "biufcmM" and isinstance(column.dtype.str, str):
            return self.value(column.to_numpy(), depth)
        return self._list(column.tolist(), depth)

    def _image(self, image: ModuleType, value: Any, depth: int) -> object:
        if not isinstance(value, image.Image):
            return None
        if value.width * value.height > MAX_PIXELS:
            raise CodecError(f"an image of more than {MAX_PIXELS:,} pixels: resize it first")
        if value.mode not in _PIXEL_BITS:
            value = value.convert("RGBA" if "transparency" in value.info else "RGB")
        blob = self._blob(value.tobytes())
        return {"$": "image", "mode": value.mode, "s": list(value.size), "i": blob}


_NOTHING: dict[str, object] = {}
_VIEWS = (type(_NOTHING.keys()), type(_NOTHING.values()), type(_NOTHING.items()))
# pandas stands before datetime, whose classes its own ones extend.
_LIBRARIES: dict[str, Callable[[_Encoder, ModuleType, object, int], object]] = {
    "pandas": _Encoder._pandas,
    "datetime": _Encoder._datetime,
    "decimal": _Encoder._decimal,
    "uuid": _Encoder._uuid,
    "pathlib": _Encoder._path,
    "numpy": _Encoder._numpy,
    "PIL.Image": _Encoder._image,
}


def _type_name(value: object) -> str:
    kind = type(value)
    module = kind.__module__
    return (
        kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"
    )


def _safe_repr(value: object) -> str:
    try:
        return _shorten(repr(value), MAX_REPR)
    except Exception as error:
        return f"<{_type_name(value)}, whose repr() raised {type(error).__name__}>"


def _shorten(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    half = length // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters cut out here …\n{text[-half:]}"


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 3):
        level = [
            item
            for outer in level
            if type(outer) in (list, dict)
            for item in (outer.values() if type(outer) is dict else outer)  # type: ignore[attr-defined]  # a list
        ]
        if not level:
            return
    raise CodecError(f"nested more than {MAX_DEPTH} levels deep")


class _Decoder:
    """Reads what `_Encoder` wrote, or what somebody forged: any mistake is a `CodecError`."""

    def __init__(self, blobs: Sequence[memoryview]) -> None:
        self._blobs = blobs

    def value(self, value: object, depth: int) -> Any:
        if type(value) is list:
            if depth > MAX_DEPTH + 3:
                raise CodecError(f"nested more than {MAX_DEPTH} levels deep")
            return [self.value(item, depth + 1) for item in value]
        if type(value) is not dict:
            return value
        if depth > MAX_DEPTH + 3:
            raise CodecError(f"nested more than {MAX_DEPTH} levels deep")
        if "$" not in value:
            return {key: self.value(item, depth + 1) for key, item in value.items()}
        read = _READERS.get(value["$"]) if type(value["$"]) is str else None
        if read is None:
            raise CodecError("a value of a type that is not known")
        try:
            return read(self, value, depth + 1)
        except CodecError:
            raise
        except Exception as error:
            raise CodecError(f"a broken {value['$']}: {type(error).__name__}") from None

    def _items(self, value: Message, key: str, depth: int) -> list[Any]:
        items = value[key]
        if type(items) is not list:
            raise CodecError("no list where one belongs")
        return [self.value(item, depth) for item in items]

    def _hashable(self, items: list[Any]) -> list[Any]:
        """Refuses members made to collide, which would cost a set or dict quadratic time."""
        hashes = collections.Counter(map(hash, items))
        if hashes and max(hashes.values()) > MAX_COLLISIONS:
            raise CodecError("too many members with the same hash")
        return items

    def _blob(self, value: Message) -> memoryview:
        place = value["i"]
        if type(place) is not int or place < 0:
            raise CodecError("no such blob")
        return self._blobs[place]

    def _none(self, value: Message, depth: int) -> object:
        return None

    def _int(self, value: Message, depth: int) -> object:
        return int(_text(value["v"]), 16)

    def _float(self, value: Message, depth: int) -> object:
        return float(_text(value["v"]))

    def _complex(self, value: Message, depth: int) -> object:
        real, imag = self._items(value, "v", depth)
        return complex(float(_text(real)), float(_text(imag)))

    def _tuple(self, value: Message, depth: int) -> object:
        return tuple(self._items(value, "v", depth))

    def _set(self, value: Message, depth: int) -> object:
        return set(self._hashable(self._items(value, "v", depth)))

    def _frozenset(self, value: Message, depth: int) -> object:
        return frozenset(self._hashable(self._items(value, "v", depth)))

    def _dict(self, value: Message, depth: int) -> object:
        keys, values = self._items(value, "k", depth), self._items(value, "v", depth)
        if len(keys) != len(values):
            raise CodecError("not as many keys as values")
        return dict(zip(self._hashable(keys), values))  # noqa: B905 - 3.9

    def _bytes(self, value: Message, depth: int) -> object:
        return bytes(self._blob(value))

    def _bytearray(self, value: Message, depth: int) -> object:
        return bytearray(self._blob(value))

    def _record(self, value: Message, depth: int) -> object:
        keys = [_text(key) for key in self._items(value, "k", depth)]
        values = self._items(value, "v", depth)
        return Record(_text(value["type"]), dict(zip(keys, values)))  # noqa: B905 - 3.9

    def _opaque(self, value: Message, depth: int) -> object:
        return Opaque(_text(value["type"]), _text(value["repr"])[: 2 * MAX_REPR])

    def _datetime(self, value: Message, depth: int) -> object:
        import datetime

        moment = datetime.datetime.fromisoformat(_text(value["v"]))
        return moment.replace(fold=1) if value["fold"] == 1 else moment

    def _date(self, value: Message, depth: int) -> object:
        import datetime

        return datetime.date.fromisoformat(_text(value["v"]))

    def _time(self, value: Message, depth: int) -> object:
        import datetime

        moment = datetime.time.fromisoformat(_text(value["v"]))
        return moment.replace(fold=1) if value["fold"] == 1 else moment

    def _timedelta(self, value: Message, depth: int) -> object:
        import datetime

        days, seconds, microseconds = self._items(value, "v", depth)
        return datetime.timedelta(days, seconds, microseconds)

    def _decimal(self, value: Message, depth: int) -> object:
        import decimal

        return decimal.Decimal(_text(value["v"]))

    def _uuid(self, value: Message, depth: int) -> object:
        import uuid

        return uuid.UUID(hex=_text(value["v"]))

    def _path(self, value: Message, depth: int) -> object:
        import pathlib

        return pathlib.Path(_text(value["v"]))

    def _ndarray(self, value: Message, depth: int) -> object:
        data, shape, dtype = self._blob(value), value["s"], _text(value["t"])
        if (
            type(shape) is not list
            or len(shape) > 32
            or not all(type(size) is int and size >= 0 for size in shape)
        ):
            raise CodecError("no shape of an array")
        if not _DTYPE.fullmatch(dtype):
            raise CodecError("no dtype that may cross")
        try:
            import numpy
        except ImportError:
            return Opaque("numpy.ndarray", f"<array of shape {shape}: numpy is not installed here>")
        kind = numpy.dtype(dtype)
        if math.prod(shape) * kind.itemsize != len(data) or not kind.itemsize:
            raise CodecError("an array of another size than its blob")
        array = numpy.frombuffer(bytearray(data), kind).reshape(shape)
        return array[()] if value["scalar"] is True and not shape else array

    def _index(self, pandas: ModuleType, value: Message, depth: int) -> Any:
        if value["n"] is None:
            return None
        name, labels = self._items(value, "n", depth)
        return pandas.Index(labels, name=name)

    def _series(self, value: Message, depth: int) -> object:
        column = self.value(value["v"], depth)
        try:
            import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]  # optional
        except ImportError:
            return Opaque("pandas.Series", f"<{len(column)} values: pandas is not installed here>")
        name = self.value(value["name"], depth)
        return pandas.Series(column, index=self._index(pandas, value, depth), name=name)

    def _dataframe(self, value: Message, depth: int) -> object:
        labels, columns = self._items(value, "k", depth), self._items(value, "v", depth)
        rows = value["rows"]
        if type(rows) is not int or not 0 <= rows <= MAX_BLOBS or len(labels) != len(columns):
            raise CodecError("a table whose columns do not fit")
        if any(len(column) != rows for column in columns):
            raise CodecError("a table whose columns differ in length")
        try:
            import pandas
        except ImportError:
            shape = f"{rows} rows and {len(labels)} columns"
            return Opaque("pandas.DataFrame", f"<{shape}: pandas is not installed here>")
        index = self._index(pandas, value, depth)
        if index is None:
            index = pandas.RangeIndex(rows)
        table = pandas.DataFrame(dict(enumerate(columns)), index=index)
        table.columns = pandas.Index(labels)
        return table

    def _image(self, value: Message, depth: int) -> object:
        data, mode, size = self._blob(value), _text(value["mode"]), self._items(value, "s", depth)
        width, height = size
        if type(width) is not int or type(height) is not int or width < 0 or height < 0:
            raise CodecError("no size of an image")
        if mode not in _PIXEL_BITS or width * height > MAX_PIXELS:
            raise CodecError("an image that may not cross")
        if (width * _PIXEL_BITS[mode] + 7) // 8 * height != len(data):
            raise CodecError("an image of another size than its blob")
        try:
            from PIL import Image
        except ImportError:
            return Opaque("PIL.Image", f"<{mode} image of {size}: pillow is not installed here>")
        return Image.frombytes(mode, (width, height), bytes(data))


def _text(value: object) -> str:
    if type(value) is not str:
        raise CodecError("no text where one belongs")
    return value


_READERS: dict[str, Callable[[_Decoder, Message, int], object]] = {
    "none": _Decoder._none,
    "int": _Decoder._int,
    "float": _Decoder._float,
    "complex": _Decoder._complex,
    "tuple": _Decoder._tuple,
    "set": _Decoder._set,
    "frozenset": _Decoder._frozenset,
    "dict": _Decoder._dict,
    "bytes": _Decoder._bytes,
    "bytearray": _Decoder._bytearray,
    "record": _Decoder._record,
    "opaque": _Decoder._opaque,
    "datetime": _Decoder._datetime,
    "date": _Decoder._date,
    "time": _Decoder._time,
    "timedelta": _Decoder._timedelta,
    "decimal": _Decoder._decimal,
    "uuid": _Decoder._uuid,
    "path": _Decoder._path,
    "ndarray": _Decoder._ndarray,
    "series": _Decoder._series,
    "dataframe": _Decoder._dataframe,
    "image": _Decoder._image,
}


# --- Running the model's code ---------------------------------------------------------------------


class ImportNotAllowed(ImportError):  # noqa: N818 - the model reads this name
    """The model's code imports what it was not given."""


class ToolError(RuntimeError):
    """A tool of the host failed, or could not be called."""


class FinalAnswer(SystemExit):
    """Ends the step: the final answer was given. It passes all that lets SystemExit pass."""


_NO_NETWORK = "the network is off in the sandbox; use a tool that fetches what you need."
_NO_PROGRAMS = "other programs cannot be started in the sandbox; do it in Python, or use a tool."
_NO_FILES = "only files in the work folder (the current directory) can be opened."
_NETWORK = {"aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "socket", "urllib"}
_PROGRAMS = {"multiprocessing", "pexpect", "pty", "subprocess"}
_FILES = {"glob", "io", "os", "pathlib", "shutil", "sys", "tempfile"}
_STEP = re.compile(r"<step \d+>")


class ToolSpec:
    """What the kernel knows of a tool of the host."""

    __slots__ = ("doc", "final", "name", "signature")

    def __init__(self, name: str, signature: str, doc: str, final: bool) -> None:
        self.name = name
        self.signature = signature
        self.doc = doc
        self.final = final


def binder(name: str, signature: str) -> Callable[..., None]:
    """Makes a function that takes a tool's arguments and does nothing with them.

    Calling it raises the `TypeError` that Python has for arguments that do not fit.

    Args:
        name: The tool's name.
        signature: Such as ``(city: str, days: int = 3) -> str``. Annotations are kept as text. A
            default that is no literal is the host's business, and shown as ``...``.

    Raises:
        ValueError: The name or the signature is none.
    """
    problem = f"not a signature of a tool: {name}{signature}"
    try:
        tree = ast.parse(f"def {name}{signature}: pass" if name.isidentifier() else "")
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(problem) from error
    function = tree.body[0] if len(tree.body) == 1 else None
    if (
        not isinstance(function, ast.FunctionDef)
        or len(function.body) != 1
        or not isinstance(function.body[0], ast.Pass)
    ):
        raise ValueError(problem)
    given = function.args
    given.defaults = [_literal(default) for default in given.defaults]
    given.kw_defaults = [default and _literal(default) for default in given.kw_defaults]
    scope: dict[str, Any] = {"__builtins__": {}}
    try:
        # This file's own future import makes annotations text: nothing of them is evaluated.
        code = compile(tree, f"<tool {name}>", "exec")
    except (SyntaxError, ValueError) as error:
        raise ValueError(problem) from error
    exec(code, scope)  # noqa: S102 - one function, whose defaults are literals
    bind: Callable[..., None] = scope[name]
    return bind


def _literal(default: ast.expr) -> ast.expr:
    try:
        ast.literal_eval(default)
    except ValueError:
        return ast.copy_location(ast.Constant(...), default)
    return default


class Workspace:
    """The model's variables, tools and imports, in which one step after the other runs.

    Args:
        imports: What may be imported: ``"pandas"`` (its submodules too), ``"pkg.*"``, or ``"*"``.
        call: Calls a tool of the host, with arguments and keyword arguments.
        walls: Whether errors may come from walls around the code, which are then explained.
        **own: Builtins that the code sees in the place of Python's.
    """

    def __init__(
        self,
        imports: Iterable[str],
        call: Callable[[ToolSpec, tuple[object, ...], dict[str, object]], object],
        *,
        walls: bool = True,
        **own: object,
    ) -> None:
        self.module = ModuleType("__main__")
        self.namespace: dict[str, Any] = vars(self.module)
        # The model's code has builtins of its own: the import policy and the tools live there. So
        # libraries import what they like, and a variable may hide a tool without losing it.
        self._own = {**vars(builtins), "__import__": self._import, **own}
        self._builtins = self.namespace["__builtins__"] = dict(self._own)
        self._imports = sorted({*BASE_BUILTIN_MODULES, *imports})
        self._call = call
        self._walls = walls
        self._tools: list[str] = []
        self._sources: dict[str, tuple[int, None, list[str], str]] = {}

    def set_tools(self, tools: Iterable[ToolSpec]) -> None:
        """Puts these tools in the place of those before."""
        stubs = {tool.name: self._stub(tool) for tool in tools}
        self._tools = list(stubs)
        self._builtins.clear()
        self._builtins.update({**self._own, **stubs})

    def _stub(self, tool: ToolSpec) -> Callable[..., object]:
        bind = binder(tool.name, tool.signature)

        def stub(*args: object, **kwargs: object) -> object:
            bind(*args, **kwargs)
            return self._call(tool, args, kwargs)

        stub.__name__ = stub.__qualname__ = tool.name
        stub.__module__ = "__main__"
        stub.__doc__ = tool.doc
        stub.__wrapped__ = bind  # type: ignore[attr-defined]  # where `inspect.signature` looks
        return stub

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the signature of __import__
        locals: Mapping[str, object] | None = None,  # noqa: A002 - the signature of __import__
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        """Refuses early what would only fail later, or confuse. The walls do not depend on it."""
        # C code that imports on behalf of the model's (as `strptime` does) comes by with a list.
        if level == 0 and not isinstance(fromlist, list) and not self._authorized(name):
            parts = [f"{name}.{part}" for part in fromlist or ()]
            if not parts or not all(map(self._authorized, parts)):
                raise ImportNotAllowed(
                    f"Import of {name} is not allowed. "
                    f"Authorized imports are: {self._imports}.{_instead_of(name)}"
                )
        return builtins.__import__(name, globals, locals, fromlist, level)

    def _authorized(self, name: str) -> bool:
        return name == "__future__" or any(
            entry in ("*", name, name + ".*")
            or name.startswith(entry[:-1] if entry.endswith(".*") else entry + ".")
            for entry in self._imports
        )

    def run(self, number: int, code: str) -> object:
        """Runs one step.

        Returns:
            The value of the last expression; None where the code does not end in one.

        Raises:
            BaseException: Whatever the code raises.
        """
        filename = f"<step {number}>"
        lines = [f"{line}\n" for line in code.split("\n")]
        self._sources[filename] = (len(code), None, lines, filename)
        linecache.cache[filename] = self._sources[filename]
        tree = _compile(code, filename, "exec", ast.PyCF_ONLY_AST)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = _compile(ast.Expression(tree.body.pop().value), filename, "eval")
        body = _compile(tree, filename, "exec")
        if any(part and part.co_flags & _CO_COROUTINE for part in (body, last)):
            import asyncio

            return asyncio.run(self._run_async(body, last))
        exec(body, self.namespace)  # noqa: S102 - this is what a kernel is for
        return None if last is None else eval(last, self.namespace)  # noqa: S307 - as above

    async def _run_async(self, body: CodeType, last: CodeType | None) -> object:
        value = None
        for part in (body, last):
            if part is not None:
                value = eval(part, self.namespace)  # noqa: S307 - as above
                if part.co_flags & _CO_COROUTINE:
                    value = await value
        return value

    def explain(self, error: BaseException) -> dict[str, str]:
        """Says what happened in terms of the model's own lines.

        Returns:
            ``type`` (the class), ``message``, and ``traceback``, which ends in the message.
        """
        linecache.cache.update(self._sources)
        name = type(error).__name__
        try:
            report = traceback.TracebackException(type(error), error, error.__traceback__)
            _keep_model_lines(report)
            more = _suggestion(error) + self._hint(error)
            text = _HEADER_OF_NOTHING.sub("", "".join(report.format())).rstrip() + more
            for kind in (CodecError, ImportNotAllowed, ToolError):
                text = text.replace(f"{__name__}.{kind.__name__}", kind.__name__)
            message = str(error) + more
        except BaseException as failure:  # an exception's own methods may raise whatever they like
            message = f"its message could not be read ({type(failure).__name__})"
            text = f"{name}: {message}"
        return {
            "type": name,
            "message": _shorten(_without_paths(message), MAX_SHOWN),
            "traceback": _shorten(_without_paths(text), MAX_SHOWN),
        }

    def _hint(self, error: BaseException) -> str:
        hint = _wall(error) if self._walls else ""
        if not hint and isinstance(error, TypeError) and "is not callable" in str(error):
            hidden = [name for name in self._tools if name in self.namespace]
            if hidden:
                names = ", ".join(hidden)
                hint = f"variables of yours hide the tools {names}; `del {names}` brings them back."
        return f"\nHint: {hint}" if hint else ""


_CO_COROUTINE = 0x80
_HEADER_OF_NOTHING = re.compile(r"^([ |]*)Traceback \(most recent call last\):\n(?!\1  )", re.M)


def _compile(code: Any, filename: str, mode: str, flags: int = 0) -> Any:
    return compile(code, filename, mode, flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _instead_of(name: str) -> str:
    root = name.partition(".")[0]
    if root in _NETWORK:
        return f" And {_NO_NETWORK}"
    if root in _PROGRAMS:
        return f" And {_NO_PROGRAMS}"
    if root in _FILES:
        return " Open files of the work folder with open(); use a tool for anything else."
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _wall(error: BaseException) -> str:
    """Says which wall an error comes from, in the words of somebody who may not climb it."""
    for link in _chain(error):
        if isinstance(link, MemoryError):
            return "the memory of the sandbox is used up; del large variables, or work in pieces."
        if not isinstance(link, OSError):
            continue
        modules = {
            str(frame.f_globals.get("__name__")).partition(".")[0] for frame in _frames(link)
        }
        if type(link).__name__ == "gaierror":
            return _NO_NETWORK
        if link.errno in (errno.EPERM, errno.EACCES):
            if modules & _PROGRAMS:
                return _NO_PROGRAMS
            if modules & _NETWORK:
                return _NO_NETWORK
            if link.filename is not None:
                return _NO_FILES
            return "the sandbox does not allow this operation."
        outside = type(link.filename) is str and link.filename.startswith("/")
        if link.errno in (errno.ENOENT, errno.EROFS) and outside:
            return _NO_FILES
        if link.errno == errno.EFBIG:
            return "the file grew past what the sandbox allows for one file."
    return ""


def _keep_model_lines(report: traceback.TracebackException) -> None:
    """Leaves only frames of the model's own code: those of libraries and of this file go."""
    pending, seen = [report], set()
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        part.stack[:] = filter(_is_model_line, part.stack)
        if part.__context__ is not None and not _has_model_lines(part.__context__):
            part.__context__ = None  # what a library went through before it raised
        pending += filter(None, (part.__cause__, part.__context__))
        pending += getattr(part, "exceptions", None) or ()


def _has_model_lines(report: traceback.TracebackException) -> bool:
    return any(map(_is_model_line, report.stack))


def _is_model_line(line: traceback.FrameSummary) -> bool:
    return _STEP.fullmatch(line.filename) is not None


def _suggestion(error: BaseException) -> str:
    """Finds the name that was meant; from Python 3.12 on, tracebacks say so themselves."""
    name = getattr(error, "name", None)
    if sys.version_info >= (3, 12) or type(name) is not str:
        return ""
    names: Iterable[object] = ()
    if isinstance(error, NameError):
        frames = [frame for frame in _frames(error) if _STEP.fullmatch(frame.f_code.co_filename)]
        for frame in frames[-1:]:
            names = [*frame.f_builtins, *frame.f_globals, *frame.f_locals]
    elif isinstance(error, AttributeError):
        try:
            names = dir(getattr(error, "obj", None))
        except Exception:
            return ""  # an object that cannot list its attributes has none to suggest
    import difflib

    close = difflib.get_close_matches(name, [n for n in names if type(n) is str], 1, 0.7)
    return f". Did you mean: {close[0]!r}?" if close and close[0] != name else ""


def _without_paths(text: str) -> str:
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix}:
        if len(prefix) > 4:  # `/usr` is no secret
            text = text.replace(prefix, "<python>")
    return text


# --- The kernel: frames in, steps run, frames out -------------------------------------------------


class Interrupts:
    """Turns SIGINT into KeyboardInterrupt, at most once a step, and never amid the kernel's work.

    Only the main thread gets signals, so only it changes what is held here.
    """

    def __init__(self) -> None:
        self._main = threading.get_ident()
        self._held = 1
        self._pending = False
        self.fired = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._held:
            self._pending = True
        else:
            self._fire()

    def _fire(self) -> None:
        self._pending = False
        if not self.fired:
            self.fired = True
            raise KeyboardInterrupt

    def start_step(self) -> None:
        """Forgets what came before; the model's code may have changed the handler."""
        self._pending = self.fired = False
        signal.signal(signal.SIGINT, self._on_signal)

    def release(self) -> None:
        """From here on a signal raises: the model's code runs."""
        self._held = 0

    def hold(self) -> None:
        """From here on a signal waits."""
        self._held = 1

    def __enter__(self) -> None:
        if threading.get_ident() == self._main:
            self._held += 1

    def __exit__(self, *_: object) -> None:
        if threading.get_ident() == self._main:
            self._held -= 1
            if self._pending and not self._held:
                self._fire()

    def wait(self, block: Callable[[], object], open_to_signals: bool) -> None:
        """Blocks; a signal ends the wait of the main thread where `open_to_signals` says so."""
        if not open_to_signals or threading.get_ident() != self._main:
            block()
            return
        held = self._held
        try:
            self._held = 0
            if self._pending:
                self._fire()
            block()
        finally:
            self._held = held


class Channel:
    """Frames over two file descriptors, which may be the same."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._poll = select.poll()
        self._poll.register(read_fd, select.POLLIN)
        self._reader = FrameReader()
        self._writing = threading.RLock()
        self._busy = False
        self._queue: collections.deque[list[Blob]] = collections.deque()

    def wait(self) -> None:
        """Blocks until there is something to read."""
        self._poll.poll()

    def read(self) -> Frame:
        """Reads one frame. Where the host is gone, there is nobody left to live for."""
        while True:
            count = os.readv(self._read_fd, [self._reader.space()])
            if not count:
                os._exit(0)
            frame = self._reader.advance(count)
            if frame is not None:
                return frame

    def send(self, kind: str, fields: Message, blobs: Sequence[Blob] = ()) -> None:
        """Writes one frame.

        Raises:
            CodecError: The message is too large.
        """
        buffers = pack(kind, fields, blobs)
        with self._writing:
            self._queue.append(buffers)
            if self._busy:
                return  # a finalizer that ran within the loop below: the loop sends it, in order
            self._busy = True
            try:
                while self._queue:
                    for buffer in self._queue.popleft():
                        view = memoryview(buffer)
                        while view:
                            view = view[os.write(self._write_fd, view) :]
            except OSError:
                os._exit(0)
            finally:
                self._busy = False


class _Slot:
    """One thread that waits for a frame."""

    __slots__ = ("frame", "leads", "woken")

    def __init__(self) -> None:
        self.frame: Frame | None = None
        self.leads = False
        self.woken = threading.Lock()
        self.woken.acquire()


class Mailbox:
    """Hands the frames that come in to the threads that wait for them.

    There is no thread for reading: of those that wait, one leads, which is to say it reads for all,
    and passes the lead on when it has what it waited for.
    """

    ORDERS = 0  # the key of all frames that are not the reply to a call

    def __init__(self, channel: Channel, interrupts: Interrupts) -> None:
        self._channel = channel
        self._interrupts = interrupts
        self._lock = threading.Lock()
        self._slots: dict[int, _Slot] = {}
        self._orders: collections.deque[Frame] = collections.deque()
        self._led = False

    def expect(self, key: int) -> None:
        """Announces a `wait`, so that a reply which comes before it is not lost."""
        with self._lock:
            self._slots[key] = _Slot()

    def forget(self, key: int) -> None:
        """Takes an `expect` back."""
        with self._lock:
            self._leave(self._slots.pop(key))

    def wait(self, key: int) -> Frame:
        """Blocks until the frame for `key` is here.

        Raises:
            KeyboardInterrupt: A signal came while the main thread waited for a reply.
        """
        with self._lock:
            slot = self._slots[key]
            if key == self.ORDERS and self._orders:
                slot.frame = self._orders.popleft()
            elif not self._led:
                self._led = slot.leads = True
        replies = key != self.ORDERS
        try:
            while slot.frame is None:
                if slot.leads:
                    self._interrupts.wait(self._channel.wait, replies)
                    self._deliver(self._channel.read())
                else:
                    self._interrupts.wait(slot.woken.acquire, replies)
            return slot.frame
        finally:
            with self._lock:
                self._leave(self._slots.pop(key))

    def _leave(self, slot: _Slot) -> None:
        if slot.leads:
            self._led = False
            for heir in self._slots.values():
                if heir.frame is None:
                    self._led = heir.leads = True
                    heir.woken.release()
                    break

    def _deliver(self, frame: Frame) -> None:
        key = frame.fields.get("id") if frame.kind == "ret" else self.ORDERS
        with self._lock:
            slot = self._slots.get(key) if type(key) is int else None
            if slot is not None and slot.frame is None:
                slot.frame = frame
                if not slot.leads:
                    slot.woken.release()
            elif key == self.ORDERS:
                self._orders.append(frame)


class Output(io.TextIOBase):
    """Where print goes: to the host, line by line, up to a length.

    Lines are sent as they are finished, so that a step which must be killed has told what it could.
    Of what exceeds the length, the last part is kept and sent when the step ends.
    """

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, send: Callable[[str], None], length: int) -> None:
        super().__init__()
        self._send = send
        self._length = length
        self._lock = threading.RLock()
        self.start_step()

    def start_step(self) -> None:
        """Starts counting anew."""
        with self._lock:
            self._line = ""
            self._tail = ""
            self._left = self._length - self._length // 2
            self._cut = 0

    def writable(self) -> bool:
        """Says that it is."""
        return True

    def write(self, text: str) -> int:
        """Takes text; sends it once its line is finished."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with self._lock:
            head = text[: self._left]
            self._left -= len(head)
            self._line += head
            if len(head) < len(text):
                keep = self._length // 2
                tail = self._tail + text[len(head) :]
                self._cut += max(0, len(tail) - keep)
                self._tail = tail[max(0, len(tail) - keep) :]
            if "\n" in head or len(self._line) > 4096:
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Sends what is there."""
        with self._lock:
            line, self._line = self._line, ""
            if line:
                self._send(line)

    def end_step(self) -> None:
        """Sends the rest, with a note of what was cut."""
        with self._lock:
            self.flush()
            note = f"\n… {self._cut:,} characters cut out here; print less at a time …\n"
            self._line = (note if self._cut else "") + self._tail
            self._tail = ""
            self.flush()


class Kernel:
    """Serves one host."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._interrupts = Interrupts()
        self._mailbox = Mailbox(channel, self._interrupts)
        hello = self._next_order()
        imports, output, calls = hello["imports"], hello["output"], hello["calls"]
        if not isinstance(imports, list) or type(output) is not int or type(calls) is not int:
            raise FrameError("no hello")
        self._workspace = Workspace(imports, self._call)
        self._output = Output(self._print, output)
        self._most_calls = calls
        self._lock = threading.Lock()  # of the three below
        self._step: int | None = None
        self._calls = 0
        self._calls_left = 0

    def _next_order(self) -> Message:
        self._mailbox.expect(Mailbox.ORDERS)
        frame = self._mailbox.wait(Mailbox.ORDERS)
        fields = frame.fields
        fields["t"] = frame.kind
        if frame.kind == "set":
            fields["v"] = frame.value("v")
        return fields

    def serve(self) -> NoReturn:
        """Carries out what the host orders, until the host closes the channel."""
        sys.modules["__main__"] = self._workspace.module
        threading.excepthook = self._on_thread_error
        while True:
            order = self._next_order()
            if order["t"] == "exec":
                self._execute(order["id"], order["code"])  # type: ignore[arg-type]  # our host wrote it
            elif order["t"] == "set":
                self._workspace.namespace.update(order["v"])  # type: ignore[call-overload]  # as above
            elif order["t"] == "tools":
                self._workspace.set_tools(ToolSpec(**tool) for tool in order["tools"])  # type: ignore[attr-defined]  # as above
            else:
                raise FrameError(f"an order that is not known: {order['t']}")

    def _execute(self, number: int, code: str) -> None:
        sys.stdout = sys.stderr = self._output
        self._interrupts.start_step()
        self._output.start_step()
        with self._lock:
            self._step, self._calls_left = number, self._most_calls
        reply: Message = {"v": None, "text": "", "error": None}
        value = None
        blobs: list[Blob] = []
        try:
            try:
                self._interrupts.release()
                value = self._workspace.run(number, code)
                reply["text"] = show(value)
                reply["v"], blobs = _encode_result(value)
            finally:
                self._interrupts.hold()
        except FinalAnswer:
            self._interrupts.hold()
        except BaseException as error:
            self._interrupts.hold()  # the signal may have come just before the line above
            reply.update(v=None, error=self._workspace.explain(error))
            blobs = []
        self._output.end_step()
        with self._lock:
            self._step = None
        reply.update(
            id=number,
            threads=threading.active_count() - 1,
            interrupted=self._interrupts.fired,
        )
        try:
            self._channel.send("done", reply, blobs)
        except Exception:  # too large a frame, or a thread of the code changed the value meanwhile
            shown = str(reply["text"])[:MAX_REPR]
            opaque = {"$": "opaque", "type": _type_name(value), "repr": shown}
            self._channel.send("done", {**reply, "v": opaque})

    def _print(self, text: str) -> None:
        with self._interrupts:
            step = self._step
            if step is not None:
                self._channel.send("out", {"id": step, "text": text})

    def _call(self, tool: ToolSpec, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        encoder = _Encoder(opaque=False)
        try:
            sent: Message = {"args": encoder.value(list(args), 0)}
            sent["kwargs"] = encoder.value(kwargs, 0)
        except CodecError as error:
            raise error.under(f"{tool.name}, argument ") from None
        with self._interrupts:
            self._output.flush()
            with self._lock:
                if self._step is None:
                    raise ToolError(f"{tool.name} was called after the step had ended")
                if not self._calls_left:
                    raise ToolError(
                        f"{tool.name} was not called: the {self._most_calls:,} tool calls that one "
                        "step may make are used up"
                    )
                self._calls_left -= 1
                self._calls += 1
                number = self._calls
                sent.update(id=number, step=self._step, name=tool.name)
                sent["alone"] = threading.active_count() == 1
                self._mailbox.expect(number)
                try:
                    self._channel.send("call", sent, encoder.blobs)
                except BaseException:
                    self._mailbox.forget(number)
                    raise
            reply = self._mailbox.wait(number)
        if "e" in reply.fields:
            raise ToolError(str(reply.fields["e"]))
        if tool.final:
            raise FinalAnswer
        return reply.value("v")

    def _on_thread_error(self, args: Any) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            told = self._workspace.explain(args.exc_value)["traceback"]
            name = args.thread.name if args.thread is not None else "a thread"
            self._output.write(f"Exception in {name}:\n{told}\n")


def show(value: object) -> str:
    """Returns a value's ``str()``, shortened."""
    if isinstance(value, (bytes, bytearray)) and len(value) > MAX_SHOWN:
        return f"{bytes(value[: MAX_SHOWN // 8])!r}… ({len(value):,} bytes in all)"
    try:
        return _shorten(str(value), MAX_SHOWN)
    except Exception as error:
        return f"<{_type_name(value)}, whose str() raised {type(error).__name__}>"


def _encode_result(value: object) -> tuple[object, list[Blob]]:
    try:
        encoded, blobs = encode(value, opaque=True)
        if sum(map(len, blobs)) <= MAX_RESULT:
            return encoded, blobs
    except CodecError:
        pass
    return _stand_in(value), []


def _stand_in(value: object) -> object:
    """What is sent for a value that cannot cross: the host sees that it is not the value itself."""
    return {"$": "opaque", "type": _type_name(value), "repr": _safe_repr(value)}


def serve(read_fd: int, write_fd: int, lock: Callable[[], Mapping[str, object]]) -> NoReturn:
    """Builds the walls, then serves the host at the other end of two file descriptors.

    Args:
        read_fd: Where frames come from.
        write_fd: Where frames go.
        lock: Locks this process and returns what is in force. It runs before any byte is read.
    """
    channel = Channel(read_fd, write_fd)
    try:
        layers = lock()
        versions = {"python": "{}.{}.{}".format(*sys.version_info[:3]), "kernel": "1"}
        kernel = Kernel(channel)
    except Exception as error:
        channel.send("failed", {"reason": f"{type(error).__name__}: {error}"})
        os._exit(1)
    channel.send("ready", {"layers": dict(layers), "versions": versions})
    kernel.serve()
