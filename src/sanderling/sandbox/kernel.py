"""The program inside the sandbox: it runs the model's Python and speaks frames with the host.

One file, standard library only, CPython 3.9 or newer, so that it runs unchanged wherever a Python
and two file descriptors are. The host imports the same file for its frames and its codec.

A frame is ``u32 text length, u32 blob length, text, blobs`` (little endian). The text is one JSON
object: ``t`` is the kind of message, ``b`` the lengths of the blobs, the rest depends on the kind.

=======  ==============  ==========================================================
kind     direction       fields
=======  ==============  ==========================================================
hello    host to kernel  imports, output (characters a step may print), calls (per step), limits
                         (numbers by name, for the words about what comes up against them), and
                         loader: the source of cloudpickle, where the host has it
tools    host to kernel  tools: list of name, signature, doc, final
set      host to kernel  v: variables by name, code
exec     host to kernel  id, code; forget, if an interrupt may have come too late for the last step
fork     host to kernel  folder: the work folder of the copy of this process that shall be made, or
                         null for the one of now; only where the host has made provision for it
ret      host to kernel  id of the call, and v (value) with its code, or e (error text) and kind
                         (the builtin class that the error is of; empty where it is of none)
ready    kernel to host  layers, versions
failed   kernel to host  reason; sent in the place of ready
out      kernel to host  id of the step, text
call     kernel to host  id, step, name, args, kwargs, alone; on: the id of the host's object,
                         where it is one of its methods that is called; text: what str() says of
                         the answer, where it is the final one
done     kernel to host  id of the step, v, text, error, threads, interrupted, and imported:
                         which of `PRELOADABLE` are loaded now and were not before, if any
=======  ==============  ==========================================================

``code`` is a list of functions and classes that the value beside it refers to: key, blob, and what
stands for them where they cannot be loaded. See `Values`.

Code in the sandbox shares memory and file descriptors with this kernel. So nothing here is a wall:
the walls are the operating system's, and the host checks whatever arrives.
"""

from __future__ import annotations

import ast
import builtins
import collections
import contextlib
import enum
import errno
import functools
import io
import itertools
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
import time
import traceback
import unicodedata
from keyword import iskeyword
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from mmap import mmap
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

# Modules that take long to import, and can be loaded before a fork: they start no threads of their
# own that outlive it, and it is known which of them keep a seed of random numbers.
PRELOADABLE = (
    "PIL.Image",
    "matplotlib.pyplot",
    "numpy",
    "numpy.random",
    "pandas",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "sympy",
)

MAX_JSON = 32 << 20  # bytes of a frame's text
MAX_BLOBS = 256 << 20  # bytes of a frame's blobs
MAX_RESULT = 32 << 20  # bytes of the blobs of a step's value, which is sent unasked
MAX_DEPTH = 100
MAX_ITEMS = 2_000_000
MAX_MARKS = 2 * MAX_ITEMS  # commas and opening brackets of a frame's text
MAX_BLOB_COUNT = 100_000
MAX_PARTS = 100_000  # columns and fields; tables, indexes, images and the like count for ten
_PARTS_OF_TABLE = 10
MAX_PIXELS = 64 << 20
MAX_PATH = 4_096  # characters
MAX_ZONE = 64  # characters of the name of a time zone
MAX_SHOWN = 100_000  # characters of a value's str() and of a traceback
MAX_REPR = 2_000
MAX_COLLISIONS = 64  # members of a set, or keys, with the same hash
MAX_COMPARED = 1_000  # values and parts of values that may have to be compared with each other
MAX_UNSORTED = 10_000  # categories of a column that are numbers or dates in no order
MAX_TEXTS = 10_000_000  # in columns
MAX_TUPLE_FIELDS = 500  # of a named tuple
MAX_NAME = 200  # characters of a name of a named tuple or namespace
MAX_BITS = 16_000  # of a number of a fraction or range, which is divided by another
MOST_AT_ONCE = 256  # items that a generator of the host gives at once
MAX_KEPT = 20  # values of one step that stay under a name
MAX_KEPT_STEPS = 5

MOST_CALLS = 64  # of one sandbox that are under way at once; the host reads no further ones
_MOST_THREADS = 16  # of one `parallel`
_MOST_BINDERS = 256  # kept, because every run of an agent has the same tools
_HAS_THREADS = sys.platform != "emscripten"


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

    def value(self, key: str, extension: Extension | None = None) -> Any:
        """Decodes the field `key`.

        Raises:
            CodecError: The field is not what `encode` writes.
        """
        value = self.fields.get(key)
        if not self.tagged:
            _check_depth(value)
            return value
        return Decoder(self.blobs, extension).value(value, 0)


def _refuse_constant(name: str) -> NoReturn:
    raise FrameError(f"{name} is not JSON")


_MOST_DIGITS = 4_300  # of an int in decimal; Python's own limit


def _parse_int(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise FrameError("an integer of too many digits")
    return int(digits)


_to_json = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode
_from_json = json.JSONDecoder(parse_constant=_refuse_constant).decode
_from_json_of_few_digits = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_int=_parse_int
).decode
_HEADER = struct.Struct("<II")
_FIRST_SPACE = 16 << 20  # bytes; the rest of a larger frame has room once these have come


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
        self._size = size
        self._space = memoryview(bytearray(min(size, _FIRST_SPACE)))
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
        if self._filled < self._size:
            whole = memoryview(bytearray(self._size))
            whole[: self._filled] = self._space
            self._space = whole
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


def _has_too_many_marks(text: bytes) -> bool:
    """Finds texts that are small to send and large to hold, such as millions of empty lists."""
    if _marks(text) <= MAX_MARKS:
        return False
    # The marks within a few long strings do not count. To leave out millions of short ones would
    # itself take the memory that this saves.
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"")
    if unescaped.count(b'"') > MAX_ITEMS // 2:
        return True
    outside = unescaped.split(b'"')[::2]
    return sum(map(_marks, outside)) > MAX_MARKS


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _parse(body: memoryview, text_size: int) -> Frame:
    raw = bytes(body[:text_size])
    if _has_too_many_marks(raw):
        raise FrameError("more items than can cross")
    # To read decimal digits takes quadratic time, and a program may have lifted Python's limit.
    is_limited = 0 < getattr(sys, "get_int_max_str_digits", int)() <= _MOST_DIGITS
    read = _from_json if is_limited else _from_json_of_few_digits
    try:
        fields = read(raw.decode("utf-8", "surrogatepass"))
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


_UNUSUAL = re.compile("[^ -~]+")
_BLANK = re.compile(  # what is drawn as nothing, although Python counts it as printable
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)


def one_line(text: str) -> str:
    """Returns a text with what acts, or shows nothing, written as escapes; line ends as well."""

    def seen(run: re.Match[str]) -> str:
        return "".join(
            char
            if char.isprintable() and not _BLANK.match(char)
            else char.encode("unicode_escape").decode("ascii")
            for char in run[0]
        )

    return _UNUSUAL.sub(seen, text)


class SandboxValue:
    """Stands for a value that stayed in the sandbox.

    Attributes:
        type: The name of its type.
        repr: What ``repr()`` said of it, shortened.
        name: The variable that holds it in the sandbox; None where it was not kept. Given back to
            the sandbox it came from, it is that value again.
    """

    __slots__ = ("name", "repr", "type")

    def __init__(self, type: str, repr: str, name: str | None = None) -> None:  # noqa: A002 - the fields' own names
        self.type = type
        self.repr = repr
        self.name = name

    def __repr__(self) -> str:
        kept = "" if self.name is None else f", kept in the sandbox as {self.name!r}"
        return one_line(f"<{self.type} object{kept}: {self.repr}>")

    def _fields(self) -> tuple[str, str, str | None]:
        return (self.type, self.repr, self.name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SandboxValue):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())


class Record:
    """An instance of a class that is not known here, as the name of the class and its fields.

    That is a dataclass, a pydantic model or an enum; a member of an enum has the fields ``name``
    and ``value``. The fields are read as attributes, and nothing else is there.

    Attributes:
        record_type: The name of the class.
        record_fields: The fields by name.
    """

    __slots__ = ("_class_key", "record_fields", "record_type")

    def __init__(
        self, record_type: str, record_fields: dict[str, object], class_key: int | None = None
    ) -> None:
        self.record_type = record_type
        self.record_fields = record_fields
        self._class_key = class_key  # by which the other side knows the class

    def __getattr__(self, name: str) -> object:
        known = name not in Record.__slots__ and name in self.record_fields
        if known and not name.startswith("__"):
            return self.record_fields[name]
        raise AttributeError(f"{name!r} is no field of this record")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.record_fields.items())
        return one_line(f"{self.record_type}({fields})")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.record_type, self.record_fields) == (other.record_type, other.record_fields)

    def __hash__(self) -> int:
        return hash((self.record_type, *self.record_fields.items()))


_CHEAP_TO_COMPARE = {
    *("bytes", "complex", "date", "datetime", "float", "frozenset", "int", "none", "objects"),
    *("ip", "namedtuple", "path", "range", "record", "time", "timedelta", "tuple", "uuid"),
}
_SAFE_INT = 1 << 53  # beyond it, readers of JSON other than Python lose digits
_TEXTS = frozenset((str, bool, type(None)))
_DATES = ("datetime", "date", "time")
_DTYPE = re.compile(r"[<>|=][biufcMmUS][0-9]{1,9}(\[[0-9]{0,9}[A-Za-z]{1,2}\])?")
_MASKED = re.compile(r"U?Int(8|16|32|64)|Float(32|64)|boolean")
_MAX_DIMENSIONS = 32
_FACTORIES: dict[str, Callable[[], object]] = {
    kind.__name__: kind
    for kind in (
        *(bool, bytearray, bytes, complex, dict, float, frozenset, int, list, set, str, tuple),
    )
}
_EXCEPTIONS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, Exception)
}
_IP_KINDS = tuple(f"IPv{n}{kind}" for n in (4, 6) for kind in ("Address", "Interface", "Network"))
_MAX_IP = 100  # characters
_COUNTS = {int, float}
_SLICED = (int, float, str, type(None))
_PIXEL_BITS = {
    **dict.fromkeys(["1"], 1),
    **dict.fromkeys(["L"], 8),
    **dict.fromkeys(["LA", "La", "I;16"], 16),
    **dict.fromkeys(["RGB", "YCbCr", "HSV", "LAB"], 24),
    **dict.fromkeys(["RGBA", "RGBa", "RGBX", "CMYK", "I", "F"], 32),
}


class Extension:
    """What one side knows of values beside the types of the codec; this one knows nothing.

    Attributes:
        readers: How to read what the other side's extension writes, by the name in ``"$"``. They
            come before the codec's own.
    """

    readers: Mapping[str, Callable[[Decoder, Message, int], object]] = {}

    def write(self, encoder: Encoder, value: object) -> object:
        """Returns the JSON data of a value of another type, or None where it cannot cross."""
        return None

    def class_key(self, encoder: Encoder, kind: type) -> int | None:
        """Returns the number by which the other side knows a class, if it does."""
        return None


class _Coder:
    """Counts the values of libraries, which cost a reader far more than their bytes.

    Both sides count alike, so what an `Encoder` accepts a `Decoder` accepts as well.
    """

    def __init__(self) -> None:
        self._parts = 0
        self._text_count = 0

    def _count_texts(self, texts: int) -> None:
        self._text_count += texts
        if self._text_count > MAX_TEXTS:
            raise CodecError(f"more than {MAX_TEXTS:,} texts in columns: send less of it")

    def _count_parts(self, parts: int = _PARTS_OF_TABLE) -> None:
        self._parts += parts
        if self._parts > MAX_PARTS:
            raise CodecError(
                f"more than {MAX_PARTS // _PARTS_OF_TABLE:,} tables, indexes or images, or "
                f"{MAX_PARTS:,} columns or fields: send fewer, such as one large array or table"
            )

    def _count_categories(self, categories: Any, written: object) -> None:
        """Counts what it may cost pandas to see that no category is there twice.

        Numbers and dates can be chosen so that their hashes in pandas collide. That does not matter
        where they are in order; those of texts cannot be foretold.
        """
        if categories.dtype.kind == "O":
            are_texts = type(categories.dtype).__name__ == "StringDtype"
            if not are_texts and not set(map(type, categories)) <= {str}:
                self._count_comparisons(written)
        elif not bool((categories[1:] > categories[:-1]).all()):
            if len(categories) > MAX_UNSORTED:
                raise CodecError(f"more than {MAX_UNSORTED:,} categories in no order: send a list")
            self._count_parts(len(categories))

    def _count_comparisons(self, written: object) -> None:
        """Counts what it may cost to compare each value with each other, as those of one hash are.

        A Decimal takes a thousand times as long as others, where it is compared with a number of
        another kind, and a million times for one of many digits.
        """
        size, parts, are_cheap = 0, [written], True
        for part in parts:
            size += 1
            if type(part) is list:
                parts += part
            elif type(part) is int:
                size += (part.bit_length() // 32) ** 2
            elif type(part) is dict:
                parts += part.values()
                kind, text = part.get("$"), part.get("v")
                are_cheap = are_cheap and kind in _CHEAP_TO_COMPARE
                if kind in ("int", "decimal") and type(text) is str:
                    size += (len(text) // 10) ** 2
        if size > MAX_COMPARED:
            raise CodecError("values that are too large to be compared: send them in a list")
        self._count_parts(size**2 // (100 if are_cheap else 1))

    def _count_collisions(self, hashes: list[int], written: list[object]) -> None:
        """Counts what it may cost to compare members of a set, or keys, that have the same hash."""
        places = sorted(range(len(hashes)), key=hashes.__getitem__)
        for _, group in itertools.groupby(places, hashes.__getitem__):
            same = [written[place] for place in group]
            if len(same) > MAX_COLLISIONS:
                raise CodecError(
                    f"more than {MAX_COLLISIONS} members of a set, or keys, with the same hash: "
                    "send a list"
                )
            if len(same) > 1:
                self._count_comparisons(same)


def encode(
    value: object,
    extension: Extension | None = None,
    stay: Callable[[object], object] | None = None,
) -> tuple[object, list[Blob]]:
    """Makes JSON data of a value.

    Args:
        value: What shall cross.
        extension: Writes what the codec does not know.
        stay: Writes what stands for a part that cannot cross.

    Returns:
        The JSON data, and the blobs that it refers to.

    Raises:
        CodecError: A part of the value cannot cross; the error names its type and the path to it.
    """
    encoder = Encoder(extension, stay)
    return encoder.value(value, 0), encoder.blobs


class Encoder(_Coder):
    """Makes JSON data of values, and puts their blobs aside. See `encode`."""

    def __init__(
        self, extension: Extension | None = None, stay: Callable[[object], object] | None = None
    ) -> None:
        super().__init__()
        self.blobs: list[Blob] = []
        self._extension = extension or Extension()
        self._stay = stay
        self._items = 0
        self._tuples: dict[type, Any] = {tuple: None}  # fields of kinds of named tuples
        self._hashable = 0  # inside how many keys and set members we are
        self._stand_ins = 0  # written for objects that are compared in another way here

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
            return self._tuple(value, depth)
        if isinstance(value, frozenset):
            return {"$": "frozenset", "v": self._members(value, depth)}
        if self._hashable:
            return self._scalar(value, depth)
        if isinstance(value, dict):
            return self._dict(value, depth)
        if isinstance(value, (list, *_VIEWS)):
            return self._list(value, depth)
        if isinstance(value, collections.deque):
            return {"$": "deque", "v": self._list(value, depth), "most": value.maxlen}
        if isinstance(value, set):
            return {"$": "set", "v": self._members(value, depth)}
        if isinstance(value, bytearray):
            return {"$": "bytearray", "i": self.blob(value)}
        if isinstance(value, memoryview):
            return {"$": "bytes", "i": self.blob(value.tobytes())}
        if isinstance(value, io.BytesIO):
            return {"$": "bytesio", "i": self.blob(value.getvalue()), "at": value.tell()}
        if isinstance(value, io.StringIO):
            return {"$": "stringio", "v": value.getvalue(), "at": value.tell()}
        if isinstance(value, SimpleNamespace) and all(map(_is_name, vars(value))):
            return {"$": "namespace", **self._fields(vars(value), depth)}
        if isinstance(value, slice):
            parts = [value.start, value.stop, value.step]
            if all(type(part) in _SLICED for part in parts):
                return {"$": "slice", "v": self._list(parts, depth)}
        if isinstance(value, Record):
            fields, key = value.record_fields, value._class_key
            return self._record(value.record_type, fields, depth, key)
        names = getattr(type(value), "__dataclass_fields__", None)
        if names is not None:
            fields = {name: getattr(value, name) for name in names if hasattr(value, name)}
            return self._instance(value, fields, depth)
        return self._scalar(value, depth)

    def _scalar(self, value: object, depth: int) -> object:
        if isinstance(value, enum.Enum):
            return self._instance(value, {"name": value.name, "value": value.value}, depth)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, bytes):
            return {"$": "bytes", "i": self.blob(bytes(value))}
        if isinstance(value, int):
            return self.value(int(value), depth)
        if isinstance(value, float):
            return self.value(float(value), depth)
        if isinstance(value, complex):
            return {"$": "complex", "v": [repr(value.real), repr(value.imag)]}
        if isinstance(value, range):
            parts = [value.start, value.stop, value.step]
            _check_bits(parts)
            return {"$": "range", "v": self._list(parts, depth)}
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            return {"$": "pattern", "v": value.pattern, "flags": value.flags}
        if _EXCEPTIONS.get(type(value).__name__) is type(value):
            return self._exception(value, depth)
        if isinstance(value, SandboxValue):
            self._stand_ins += 1
            return {"$": "kept", "type": value.type, "repr": value.repr, "name": value.name}
        for module, write in _LIBRARIES.items():
            loaded = sys.modules.get(module)
            if loaded is not None:
                written = write(self, loaded, value, depth)
                if written is not None:
                    return written
        self._stand_ins += 1
        written = self._extension.write(self, value)
        if written is not None:
            return written
        if self._stay is not None:
            return self._stay(value)
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
        stand_ins = self._stand_ins
        try:
            written = self._list(items, depth)
        finally:
            self._hashable -= 1
        groups = [[*map(hash, items)]]
        if self._stand_ins > stand_ins:  # what reads them may see no difference between some
            groups.append([hash(_to_json(one)) for one in written])
        for hashes in groups:
            if len(set(hashes)) < len(hashes):
                self._count_collisions(hashes, written)
        return written

    def _tuple(self, value: tuple[object, ...], depth: int) -> object:
        kind: Any = type(value)
        items = self._list(value, depth)
        if kind not in self._tuples:
            names = getattr(kind, "_fields", None)
            self._tuples[kind] = names if _are_fields(kind.__name__, names) else None
            self._count_parts(0 if self._tuples[kind] is None else _PARTS_OF_CLASS)
        names = self._tuples[kind]
        if names is None or len(names) != len(items):
            return {"$": "tuple", "v": items}
        written = {"$": "namedtuple", "type": kind.__name__, "k": list(names), "v": items}
        key = self._extension.class_key(self, kind)
        return written if key is None else {**written, "class": key}

    def _exception(self, value: Any, depth: int) -> object:
        self._stand_ins += 1
        args = self._list(value.args, depth)
        return {"$": "exception", "type": type(value).__name__, "v": args}

    def _fields(self, fields: Mapping[str, object], depth: int) -> dict[str, object]:
        values: list[object] = []
        for field, item in fields.items():
            try:
                values.append(self.value(item, depth))
            except CodecError as error:
                error.under(f".{field}")
                raise
        return {"k": list(fields), "v": values}

    def _dict(self, value: dict[object, object], depth: int) -> object:
        items = list(value.items())
        values = []
        self._count(len(items))
        for key, item in items:
            try:
                values.append(self.value(item, depth))
            except CodecError as error:
                error.under(f".{key}" if type(key) is str else f"[{_key_text(key)}]")
                raise
        described = _described_dict(value)
        if described is None:
            if "$" not in value and all(type(key) is str for key, _ in items):
                return {key: item for (key, _), item in zip(items, values)}  # noqa: B905 - 3.9
            described = {"$": "dict"}
        keys = self._members([key for key, _ in items], depth)
        return {**described, "k": keys, "v": values}

    def _instance(self, value: object, fields: Mapping[str, object], depth: int) -> object:
        key = self._extension.class_key(self, type(value))
        return self._record(type(value).__name__, fields, depth, key)

    def _record(
        self, name: str, fields: Mapping[str, object], depth: int, key: int | None
    ) -> object:
        self._stand_ins += 1
        record = {"$": "record", "type": name, **self._fields(fields, depth)}
        return record if key is None else {**record, "class": key}

    def blob(self, data: Blob) -> int:
        """Puts a blob aside; returns its place."""
        self.blobs.append(data)
        return len(self.blobs) - 1

    # Types of libraries: looked at only where the library is loaded, for else no value can be its.

    def _pydantic(self, pydantic: ModuleType, value: Any, depth: int) -> object:
        if not isinstance(value, pydantic.BaseModel):
            return None
        return self._instance(value, {**vars(value), **(value.model_extra or {})}, depth)

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

    def _fraction(self, fractions: ModuleType, value: Any, depth: int) -> object:
        if not isinstance(value, fractions.Fraction):
            return None
        numbers = [value.numerator, value.denominator]
        _check_bits(numbers)
        return {"$": "fraction", "v": self._list(numbers, depth)}

    def _ip(self, ipaddress: ModuleType, value: object, depth: int) -> object:
        name = type(value).__name__
        if name not in _IP_KINDS or type(value) is not getattr(ipaddress, name):
            return None
        text = str(value)
        if len(text) > _MAX_IP:
            raise CodecError("an address whose scope is too long: send its str()")
        return {"$": "ip", "type": name, "v": text}

    def _path(self, pathlib: ModuleType, value: object, depth: int) -> object:
        if not isinstance(value, pathlib.PurePath):
            return None
        text = str(value)
        if len(text) > MAX_PATH:
            raise CodecError(f"a path of more than {MAX_PATH:,} characters: send its str()")
        return {"$": "path", "v": text}

    def _numpy(self, numpy: ModuleType, value: object, depth: int) -> object:
        if isinstance(value, numpy.generic) and value.dtype.kind in "biufcSU":
            item = value.item()
            if isinstance(item, numpy.generic):  # a long double, which Python has no type for
                item = complex(item) if item.dtype.kind == "c" else float(item)
            return self.value(item, depth)
        if not isinstance(value, (numpy.ndarray, numpy.generic)):
            return None
        if isinstance(value, numpy.ma.MaskedArray):
            raise CodecError("a masked array cannot cross: send .filled(), or data and mask apart")
        array = numpy.ascontiguousarray(value)
        shape = list(value.shape)
        if array.dtype.kind in "OT":
            self._count_parts()
            return {"$": "objects", "s": shape, "v": self._list(array.ravel().tolist(), depth)}
        if array.dtype.names is not None:
            array = array.astype(_packed(numpy, array.dtype))  # what lies between fields stays here
        data = memoryview(array.reshape(-1).view("u1")) if array.size else b""
        scalar = isinstance(value, numpy.generic)
        dtype = self._dtype(array.dtype)
        return {"$": "ndarray", "t": dtype, "s": shape, "i": self.blob(data), "scalar": scalar}

    def _dtype(self, dtype: Any) -> object:
        """Describes a dtype of numbers, texts and dates, or of fields of such."""
        if dtype.names is not None:
            self._count_parts(len(dtype.names))
            return [[n, self._dtype(dtype[n].base), list(dtype[n].shape)] for n in dtype.names]
        if not _DTYPE.fullmatch(dtype.str) or not dtype.itemsize:
            raise CodecError(
                f"an array of dtype {dtype} cannot cross: give it a numeric, text or date dtype, "
                "or send .tolist()"
            )
        return dtype.str

    def _pandas(self, pandas: ModuleType, value: object, depth: int) -> object:
        if value is pandas.NA or value is pandas.NaT:
            return {"$": "none"}
        if isinstance(value, pandas.Index):
            return self._index(pandas, value, depth)
        if not isinstance(value, (pandas.DataFrame, pandas.Series)):
            return None
        counted = pandas.RangeIndex(len(value))
        is_counted = isinstance(value.index, pandas.RangeIndex) and value.index.equals(counted)
        plain = is_counted and value.index.name is None
        index = None if plain else self._index(pandas, value.index, depth)
        self._count_parts()
        if isinstance(value, pandas.Series):
            name = self.value(value.name, depth)
            return {"$": "series", "name": name, "n": index, "v": self._column(value, depth)}
        labels = self._index(pandas, value.columns, depth)
        self._count_parts(len(value.columns))
        columns = [self._column(value.iloc[:, place], depth) for place in range(len(value.columns))]
        return {"$": "table", "k": labels, "n": index, "v": columns, "rows": len(value)}

    def _index(self, pandas: ModuleType, index: Any, depth: int) -> object:
        self._count_parts(_PARTS_OF_TABLE * index.nlevels)
        names = self._members(list(index.names), depth)
        if not isinstance(index, pandas.MultiIndex):
            return {"$": "index", "names": names, "v": [self._column(index, depth)]}
        index = index.remove_unused_levels()
        levels = [self._column(level, depth) for level in index.levels]
        codes = [self.value(sys.modules["numpy"].asarray(one), depth) for one in index.codes]
        return {"$": "index", "names": names, "v": levels, "codes": codes}

    def _column(self, column: Any, depth: int) -> object:
        dtype = column.dtype
        kind = type(dtype).__name__
        if not isinstance(dtype, sys.modules["numpy"].dtype):
            self._count_parts()
        if kind == "CategoricalDtype":
            codes = self.value(column.array.codes, depth)
            categories = self._column(dtype.categories, depth)
            self._count_categories(dtype.categories, categories)
            return {"$": "categories", "c": codes, "v": categories, "ordered": bool(dtype.ordered)}
        if kind == "DatetimeTZDtype":
            moments = column.array.tz_convert(None).to_numpy()
            return {"$": "zoned", "v": self.value(moments, depth), "zone": _zone(dtype.tz)}
        if kind == "StringDtype":
            return self._texts_block(str(dtype), column.tolist(), column.isna().tolist(), depth)
        if _MASKED.fullmatch(str(dtype)):
            data = column.array.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
            values, mask = self.value(data, depth), self.value(column.array.isna(), depth)
            return {"$": "masked", "t": str(dtype), "v": values, "mask": mask}
        if kind == "ArrowDtype":
            return self._list(column.tolist(), depth)
        if not isinstance(dtype, sys.modules["numpy"].dtype):
            raise CodecError(
                f"a column of dtype {dtype} cannot cross: send .astype(str), or a list"
            )
        if dtype.kind == "O":
            cells = column.tolist()
            kinds = set(map(type, cells))
            # Gaps are None or NaN, and no other number.
            if str in kinds and kinds <= _MAYBE_TEXTS:
                gaps = [type(cell) is not str for cell in cells] if len(kinds) > 1 else []
                if not any(cell == cell and cell is not None for cell in _taken(cells, gaps)):
                    self._count_parts()
                    return self._texts_block("object", cells, gaps, depth)
        return self.value(column.to_numpy(), depth)

    def _texts_block(self, dtype: str, texts: list[Any], gaps: list[bool], depth: int) -> Message:
        """Writes a column of texts as one block, the length of each, and where the gaps are.

        A gap is 1 where it is None, and 2 where it is NaN.
        """
        numpy = sys.modules["numpy"]
        self._count_texts(len(texts))
        marks = None
        if any(gaps):
            kinds = [gap and 1 + (text is not None) for text, gap in zip(texts, gaps)]  # noqa: B905 - 3.9
            marks = self.value(numpy.array(kinds, dtype="u1"), depth)
            texts = ["" if gap else text for text, gap in zip(texts, gaps)]  # noqa: B905 - 3.9
        lengths = numpy.fromiter(map(len, texts), dtype="u4", count=len(texts))
        longest = int(lengths.max()) if len(texts) else 0
        lengths = lengths.astype("u1" if longest < 1 << 8 else "u2" if longest < 1 << 16 else "u4")
        block = self.blob("".join(texts).encode("utf-8", "surrogatepass"))
        sizes = self.value(lengths, depth)
        return {"$": "texts", "t": dtype, "i": block, "sizes": sizes, "gaps": marks}

    def _image(self, image: ModuleType, value: Any, depth: int) -> object:
        if not isinstance(value, image.Image):
            return None
        if value.width * value.height > MAX_PIXELS:
            raise CodecError(f"an image of more than {MAX_PIXELS:,} pixels: resize it first")
        self._count_parts()
        if value.mode not in _PIXEL_BITS:
            value = value.convert("RGBA" if "transparency" in value.info else "RGB")
        blob = self.blob(value.tobytes())
        return {"$": "image", "mode": value.mode, "s": list(value.size), "i": blob}


def _packed(numpy: ModuleType, dtype: Any) -> Any:
    if dtype.names is None:
        return dtype
    return numpy.dtype([(n, _packed(numpy, dtype[n].base), dtype[n].shape) for n in dtype.names])


def _zone(zone: Any) -> object:
    """Describes a time zone by its name, or by its seconds east of UTC."""
    offset = zone.utcoffset(None)
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)  # zoneinfo, pytz
    if offset is None and name is None:
        raise CodecError(f"a {_type_name(zone)} as time zone cannot cross: convert to UTC first")
    return name if offset is None or name else offset.total_seconds()


_NOTHING: dict[str, object] = {}
_VIEWS = (type(_NOTHING.keys()), type(_NOTHING.values()), type(_NOTHING.items()))
# pandas stands before datetime, whose classes its own ones extend.
_LIBRARIES: dict[str, Callable[[Encoder, ModuleType, object, int], object]] = {
    "pydantic.main": Encoder._pydantic,
    "pandas": Encoder._pandas,
    "datetime": Encoder._datetime,
    "decimal": Encoder._decimal,
    "uuid": Encoder._uuid,
    "fractions": Encoder._fraction,
    "ipaddress": Encoder._ip,
    "pathlib": Encoder._path,
    "numpy": Encoder._numpy,
    "PIL.Image": Encoder._image,
}


def _taken(items: list[Any], chosen: list[bool]) -> Iterator[Any]:
    return itertools.compress(items, chosen)


def _is_name(name: object) -> bool:
    """Tells whether a field may have this name: none that Python or a library looks for itself."""
    return (
        type(name) is str
        and len(name) <= MAX_NAME
        and name.isidentifier()
        and not unicodedata.normalize("NFKC", name).startswith("__")
    )


def _are_fields(name: str, fields: Any) -> bool:
    """Tells whether a named tuple may have this name and these fields."""
    if type(fields) is not tuple or not 0 < len(fields) <= MAX_TUPLE_FIELDS:
        return False
    if not all(map(_is_name, (name, *fields))):
        return False
    shown = {unicodedata.normalize("NFKC", one) for one in fields}
    return (
        len(shown) == len(fields)
        and not any(one.startswith("_") for one in shown)
        and not any(map(iskeyword, (name, *fields, *shown)))
    )


def _check_bits(numbers: list[int]) -> None:
    if any(number.bit_length() > MAX_BITS for number in numbers):
        raise CodecError("numbers of too many digits: send them apart, or as text")


def _described_dict(value: dict[object, object]) -> dict[str, object] | None:
    """Returns what is written of a dict of the standard library beside its items."""
    if isinstance(value, collections.Counter):
        # To show one, counts are compared with each other.
        return {"$": "counter"} if set(map(type, value.values())) <= _COUNTS else None
    if isinstance(value, collections.OrderedDict):
        return {"$": "ordered"}
    if isinstance(value, collections.defaultdict):
        made: Any = value.default_factory
        name = getattr(made, "__name__", None)
        if made is None or (type(name) is str and _FACTORIES.get(name) is made):
            return {"$": "defaultdict", "of": name}
    return None


def _type_name(value: object) -> str:
    kind = type(value)
    module = kind.__module__
    return (
        kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"
    )


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")  # it differs from run to run, and says nothing


def without_addresses(text: str) -> str:
    """Leaves out where objects lie in memory."""
    return _ADDRESS.sub("", text)


def _safe_repr(value: object) -> str:
    try:
        if takes_long_to_write(value):
            return f"<{_type_name(value)} that is too large to be shown>"
        return _shorten(without_addresses(repr(value)), MAX_REPR)
    except Exception as error:
        return f"<{_type_name(value)}, whose repr() raised {type(error).__name__}>"


def _key_text(key: object) -> str:
    # The repr of an object may tell more than the other side may know.
    parts = key if type(key) is tuple else (key,)
    plain = all(type(part) in (*_TEXTS, int, float) for part in parts)
    return _safe_repr(key)[:60] if plain else f"a {_type_name(key)}"


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


class Decoder(_Coder):
    """Reads what `Encoder` wrote, or what somebody forged: any mistake is a `CodecError`.

    It takes time and memory in proportion to what it reads, whatever that is.
    """

    def __init__(self, blobs: Sequence[memoryview], extension: Extension | None = None) -> None:
        super().__init__()
        self._blobs = blobs
        self._used: set[int] = set()  # places of blobs
        self._tuples: dict[tuple[str, ...], Any] = {}  # kinds by name and fields
        self._own = {} if extension is None else extension.readers
        self._added = 0  # members and keys of large sets and dicts, and the seconds that took
        self._adding = 0.0

    def value(self, value: object, depth: int) -> Any:
        """Decodes one value."""
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
        kind = value["$"]
        read = None if type(kind) is not str else self._own.get(kind) or _READERS.get(kind)
        if read is None:
            raise CodecError("a value of a type that is not known")
        try:
            return read(self, value, depth + 1)
        except CodecError:
            raise
        except Exception as error:
            raise CodecError(f"a broken {value['$']}: {type(error).__name__}") from None

    def _items(self, value: Message, key: str, depth: int) -> list[Any]:
        return [self.value(item, depth) for item in _list(value[key])]

    def _members(self, value: Message, key: str, depth: int) -> list[Any]:
        """Decodes members of a set, or keys.

        Those made to collide would cost a set or dict quadratic time, and comparing large ones more
        than that.
        """
        members = self._items(value, key, depth)
        hashes = [*map(hash, members)]
        different: set[int] = set()
        self._add(different.update, hashes)
        if len(different) < len(hashes):
            self._count_collisions(hashes, _list(value[key]))
        return members

    def _add(self, add: Callable[[list[Any]], object], members: list[Any]) -> None:
        """Adds members to a set or dict a few at a time, and watches how long that takes.

        Integers can be chosen so that each has to be tried in as many places as there are others,
        though all their hashes differ. Only time shows it.
        """
        if len(members) <= MAX_COLLISIONS:
            add(members)
            return
        start = _cpu_seconds() - self._adding
        for place in range(0, len(members), _ADDED_AT_ONCE):
            part = members[place : place + _ADDED_AT_ONCE]
            add(part)
            self._added += len(part)
            self._adding = _cpu_seconds() - start
            if self._adding > _ADDING_SECONDS + _ADDING_SECONDS_EACH * self._added:
                raise CodecError("members of a set, or keys, that were made to collide")

    def blob(self, value: Message) -> memoryview:
        """Returns the blob that a value refers to, which no other value may."""
        place = value["i"]
        if type(place) is not int or place < 0 or place in self._used:
            raise CodecError("no such blob")
        self._used.add(place)
        return self._blobs[place]

    def _none(self, value: Message, depth: int) -> object:
        return None

    def _int(self, value: Message, depth: int) -> object:
        return int(_text(value["v"]), 16)

    def _float(self, value: Message, depth: int) -> object:
        return float(_text(value["v"]))

    def _complex(self, value: Message, depth: int) -> object:
        real, imag = _list(value["v"])
        return complex(float(_text(real)), float(_text(imag)))

    def _tuple(self, value: Message, depth: int) -> object:
        return tuple(self._items(value, "v", depth))

    def _set(self, value: Message, depth: int) -> set[Any]:
        made: set[Any] = set()
        self._add(made.update, self._members(value, "v", depth))
        return made

    def _frozenset(self, value: Message, depth: int) -> object:
        members = self._members(value, "v", depth)
        if len(members) > MAX_COLLISIONS:
            self._add(set().update, members)  # all at once takes as long
        return frozenset(members)

    def _dict(self, value: Message, depth: int) -> object:
        made: dict[Any, Any] = {}
        return self._filled(made, value, depth)

    def _filled(self, made: dict[Any, Any], value: Message, depth: int) -> object:
        keys, values = self._members(value, "k", depth), self._items(value, "v", depth)
        if len(keys) != len(values):
            raise CodecError("not as many keys as values")
        rest = iter(values)
        is_counter = type(made) is collections.Counter  # whose own `update` would add
        update = functools.partial(dict.update, made) if is_counter else made.update
        self._add(lambda part: update(zip(part, rest)), keys)  # noqa: B905 - the rest is for the next
        return made

    def _counter(self, value: Message, depth: int) -> object:
        made: dict[Any, Any] = collections.Counter()
        self._filled(made, value, depth)
        if not set(map(type, made.values())) <= _COUNTS:
            raise CodecError("counts that are no numbers")
        return made

    def _ordered(self, value: Message, depth: int) -> object:
        return self._filled(collections.OrderedDict(), value, depth)

    def _defaultdict(self, value: Message, depth: int) -> object:
        factory = None if value["of"] is None else _FACTORIES[_text(value["of"])]
        return self._filled(collections.defaultdict(factory), value, depth)

    def _deque(self, value: Message, depth: int) -> object:
        items, most = self._items(value, "v", depth), value["most"]
        return collections.deque(items, None if most is None else _size(most))

    def _range(self, value: Message, depth: int) -> object:
        parts = _ints(self._items(value, "v", depth))
        _check_bits(parts)
        return range(*parts)

    def _slice(self, value: Message, depth: int) -> object:
        parts = self._items(value, "v", depth)
        if not all(type(part) in _SLICED for part in parts):
            raise CodecError("no part of a slice")
        start, stop, step = parts
        return slice(start, stop, step)

    def _pattern(self, value: Message, depth: int) -> object:
        # Nothing is compiled: that, and matching, may take any time.
        flags = _ints([value["flags"]])[0]
        return Record("Pattern", {"pattern": _text(value["v"]), "flags": flags})

    def _fraction(self, value: Message, depth: int) -> object:
        import fractions

        top, bottom = _ints(self._items(value, "v", depth))
        _check_bits([top, bottom])
        return fractions.Fraction(top, bottom)

    def _ip(self, value: Message, depth: int) -> object:
        import ipaddress

        name, text = _text(value["type"]), _text(value["v"])
        if name not in _IP_KINDS or len(text) > _MAX_IP:
            raise CodecError("no address")
        return getattr(ipaddress, name)(text)

    def _bytesio(self, value: Message, depth: int) -> object:
        made = io.BytesIO(self.blob(value))
        made.seek(min(_size(value["at"]), made.getbuffer().nbytes))
        return made

    def _stringio(self, value: Message, depth: int) -> object:
        text = _text(value["v"])
        made = io.StringIO(text)
        made.seek(min(_size(value["at"]), len(text)))
        return made

    def fields(self, value: Message, depth: int) -> dict[str, Any]:
        """Decodes fields by their names."""
        keys = [_text(key) for key in _list(value["k"])]
        return dict(zip(keys, self._items(value, "v", depth)))  # noqa: B905 - 3.9

    def namespace(self, value: Message, depth: int) -> SimpleNamespace:
        """Decodes a namespace."""
        fields = self.fields(value, depth)
        if not all(map(_is_name, fields)):
            raise CodecError("no names of a namespace")
        return SimpleNamespace(**fields)

    def named_tuple(self, value: Message, depth: int) -> Any:
        """Decodes a named tuple, of a class made of nothing but its name and its fields."""
        names, items = _list(value["k"]), self._items(value, "v", depth)
        if len(names) > MAX_TUPLE_FIELDS or len(names) != len(items):
            raise CodecError("no fields of a named tuple")
        key = (_text(value["type"]), *map(_text, names))
        kind = self._tuples.get(key)
        if kind is None:
            self._count_parts(_PARTS_OF_CLASS)
            kind = self._tuples[key] = _tuple_kind(*key)
        return tuple.__new__(kind, items)

    def exception(self, value: Message, depth: int) -> object:
        """Decodes an exception of Python's own."""
        name, args = _text(value["type"]), self._items(value, "v", depth)
        try:
            return _EXCEPTIONS[name](*args)
        except Exception:  # of another version of Python, or it takes other arguments than it keeps
            return Record(name, {"args": tuple(args)})

    def _bytes(self, value: Message, depth: int) -> object:
        return bytes(self.blob(value))

    def _bytearray(self, value: Message, depth: int) -> object:
        return bytearray(self.blob(value))

    def record(self, value: Message, depth: int) -> Record:
        """Decodes an instance as its fields."""
        return Record(_text(value["type"]), self.fields(value, depth))

    def kept(self, value: Message, depth: int) -> object:
        """Decodes what stands for a value that stayed in the sandbox."""
        name = None if value["name"] is None else _text(value["name"])[:MAX_REPR]
        return SandboxValue(_text(value["type"]), _text(value["repr"])[: 2 * MAX_REPR], name)

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

        days, seconds, microseconds = _list(value["v"])
        return datetime.timedelta(days, seconds, microseconds)

    def _decimal(self, value: Message, depth: int) -> object:
        import decimal

        return decimal.Decimal(_text(value["v"]))

    def _uuid(self, value: Message, depth: int) -> object:
        import uuid

        return uuid.UUID(hex=_text(value["v"]))

    def _path(self, value: Message, depth: int) -> object:
        import pathlib

        text = _text(value["v"])
        if len(text) > MAX_PATH:
            raise CodecError("a path of too many characters")
        return pathlib.Path(text)

    def _shape(self, value: Message) -> list[int]:
        shape = value["s"]
        if type(shape) is not list or len(shape) > _MAX_DIMENSIONS or not all(map(_is_size, shape)):
            raise CodecError("no shape of an array")
        return shape

    def _dtype(self, described: object, depth: int) -> Any:
        if type(described) is not list:
            if not _DTYPE.fullmatch(_text(described)):
                raise CodecError("no dtype that may cross")
            return described
        self._count_parts(len(described))
        if depth > MAX_DEPTH:
            raise CodecError(f"nested more than {MAX_DEPTH} levels deep")
        if not all(type(field) is list and len(field) == 3 for field in described):
            raise CodecError("no fields of an array")
        if not all(type(shape) is list and all(map(_is_size, shape)) for *_, shape in described):
            raise CodecError("no shape of a field")
        return [
            (_text(name), self._dtype(dtype, depth + 1), tuple(shape))
            for name, dtype, shape in described
        ]

    def _ndarray(self, value: Message, depth: int) -> Any:
        data, shape, dtype = self.blob(value), self._shape(value), self._dtype(value["t"], depth)
        try:
            import numpy
        except ImportError:
            text = f"<array of shape {shape}: numpy is not installed here>"
            return SandboxValue("numpy.ndarray", text)
        kind = numpy.dtype(dtype)
        if math.prod(shape) * kind.itemsize != len(data) or not kind.itemsize:
            raise CodecError("an array of another size than its blob")
        array = numpy.frombuffer(bytearray(data), kind).reshape(shape)
        return array[()] if value["scalar"] is True and not shape else array

    def _objects(self, value: Message, depth: int) -> Any:
        self._count_parts()
        items, shape = self._items(value, "v", depth), self._shape(value)
        if math.prod(shape) != len(items):
            raise CodecError("an array of another size than its items")
        try:
            import numpy
        except ImportError:
            return items
        array = numpy.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            array[place] = item
        return array.reshape(shape)

    # Columns and indexes of tables. They are made of nothing but what is described for them: what
    # an extension reads may be any object of this process.

    def _column(self, described: object, depth: int) -> Any:
        if type(described) is list:
            self._count_parts()
            return self.value(described, depth)
        kind = described["$"] if type(described) is dict else None
        read = _COLUMNS.get(kind) if type(kind) is str else None
        if read is None:
            raise CodecError("no column of a table")
        if kind not in ("ndarray", "objects"):
            self._count_parts()
        return read(self, described, depth)  # type: ignore[arg-type]  # a dict

    def _numbers(self, described: object, depth: int, kinds: str = "biufcmM") -> Any:
        """Decodes a column of an array's numbers or dates."""
        if type(described) is not dict or described.get("$") != "ndarray":
            raise CodecError("no array where one belongs")
        array = self._ndarray(described, depth)
        if array.dtype.kind not in kinds or array.ndim != 1:
            raise CodecError("no array of a column")
        return array

    def _categories(self, value: Message, depth: int) -> object:
        pandas = _pandas()
        codes = self._numbers(value["c"], depth, "i")
        labels = pandas.Index(self._column(value["v"], depth), tupleize_cols=False)
        self._count_categories(labels, value["v"])
        return pandas.Categorical.from_codes(codes, labels, ordered=value["ordered"] is True)

    def _zoned(self, value: Message, depth: int) -> object:
        moments, zone = self._numbers(value["v"], depth, "M"), _read_zone(value["zone"])
        return _pandas().DatetimeIndex(moments).tz_localize("UTC").tz_convert(zone).array

    def _texts(self, value: Message, depth: int) -> object:
        if value["t"] not in ("str", "string", "object"):
            raise CodecError("no column of texts")
        if "v" in value:  # as it was written in memories before there were blocks
            texts = self._items(value, "v", depth)
            if not set(map(type, texts)) <= _MAYBE_TEXTS:
                raise CodecError("no column of texts")
        else:
            texts = self._text_block(value, depth)
        if value["t"] == "object":
            return _pandas().Series(texts, dtype=object)
        return _pandas().array(texts, dtype=value["t"])

    def _text_block(self, value: Message, depth: int) -> list[Any]:
        sizes = self._numbers(value["sizes"], depth, "u")
        self._count_texts(len(sizes))
        block = bytes(self.blob(value)).decode("utf-8", "surrogatepass")
        ends = sizes.cumsum(dtype="u8").tolist()
        if (ends[-1] if ends else 0) != len(block):
            raise CodecError("a block of another size than its texts")
        texts: list[Any] = [block[start:end] for start, end in zip([0, *ends], ends)]  # noqa: B905 - 3.9
        if value["gaps"] is not None:
            gaps = self._numbers(value["gaps"], depth, "u")
            if len(gaps) != len(texts) or not (gaps <= 2).all():
                raise CodecError("gaps of another column")
            for place in gaps.nonzero()[0].tolist():
                texts[place] = None if gaps[place] == 1 else math.nan
        return texts

    def _masked(self, value: Message, depth: int) -> object:
        data, mask = (
            self._numbers(value["v"], depth, "biuf"),
            self._numbers(value["mask"], depth, "b"),
        )
        dtype = _text(value["t"])
        if not _MASKED.fullmatch(dtype) or len(data) != len(mask):
            raise CodecError("no column with gaps")
        pandas = _pandas()
        if pandas.array([], dtype=dtype).dtype.numpy_dtype != data.dtype:
            raise CodecError("a column with gaps of another dtype")
        column = pandas.array(data, dtype=dtype)
        column[mask] = pandas.NA
        return column

    def _object_column(self, value: Message, depth: int) -> object:
        array = self._objects(value, depth)
        return _pandas().Series(array, dtype=object)  # else pandas makes of it what it guesses

    def _index(self, value: Message, depth: int) -> Any:
        pandas = _pandas()
        if pandas is None:
            return SandboxValue("pandas.Index", "<index: pandas is not installed here>")
        written = _list(value["v"])
        self._count_parts(_PARTS_OF_TABLE * len(written))
        names = self._members(value, "names", depth)
        levels = [
            pandas.Index(self._column(column, depth), tupleize_cols=False) for column in written
        ]
        if "codes" not in value:
            ((name,), (index,)) = names, levels
            return index.rename(name)
        codes = [self._numbers(one, depth, "i") for one in _list(value["codes"])]
        rows = {len(one) for one in codes}
        if not len(codes) == len(levels) == len(names) or len(rows) != 1:
            raise CodecError("no index of several levels")
        for one, level in zip(codes, levels):  # noqa: B905 - 3.9
            if len(one) and not -1 <= one.min() <= one.max() < len(level):
                raise CodecError("a level of an index that has no such label")
        # That no label is there twice is not verified, which takes hashes that can be made to
        # collide.
        return pandas.MultiIndex(levels, codes, names=names, verify_integrity=False)

    def _labels(self, described: object, depth: int) -> Any:
        """Decodes the index of a table or series."""
        if type(described) is not dict or described.get("$") != "index":
            raise CodecError("no index")
        return self._index(described, depth)

    def _series(self, value: Message, depth: int) -> object:
        self._count_parts()
        pandas = _pandas()
        if pandas is None:
            return SandboxValue("pandas.Series", "<series: pandas is not installed here>")
        name, column = self.value(value["name"], depth), self._column(value["v"], depth)
        series = pandas.Series(column, name=name)
        return series if value["n"] is None else series.set_axis(self._labels(value["n"], depth))

    def _table(self, value: Message, depth: int) -> object:
        written, rows = _list(value["v"]), value["rows"]
        self._count_parts(_PARTS_OF_TABLE + len(written))
        if type(rows) is not int or not 0 <= rows <= MAX_BLOBS:
            raise CodecError("no rows of a table")
        pandas = _pandas()
        if pandas is None:
            shape = f"{rows} rows and {len(written)} columns"
            text = f"<{shape}: pandas is not installed here>"
            return SandboxValue("pandas.DataFrame", text)
        columns = [self._column(column, depth) for column in written]
        if any(len(column) != rows for column in columns):
            raise CodecError("a table whose columns do not fit")
        table = pandas.DataFrame(dict(enumerate(columns)), index=pandas.RangeIndex(rows))
        if value["n"] is not None:
            table.index = self._labels(value["n"], depth)
        table.columns = self._labels(value["k"], depth)
        return table

    def _image(self, value: Message, depth: int) -> object:
        self._count_parts()
        data, mode, size = self.blob(value), _text(value["mode"]), _list(value["s"])
        width, height = size
        if type(width) is not int or type(height) is not int or width < 0 or height < 0:
            raise CodecError("no size of an image")
        if mode not in _PIXEL_BITS or width * height > MAX_PIXELS:
            raise CodecError("an image that may not cross")
        if (width * _PIXEL_BITS[mode] + 7) // 8 * height != len(data):
            raise CodecError("an image of another size than its blob")
        if height > max(len(data), 1_000):
            raise CodecError("an image of many rows without a pixel")
        try:
            from PIL import Image
        except ImportError:
            text = f"<{mode} image of {size}: pillow is not installed here>"
            return SandboxValue("PIL.Image", text)
        return Image.frombytes(mode, (width, height), bytes(data))


_MAYBE_TEXTS = {str, float, type(None)}  # gaps are None or NaN
_PARTS_OF_CLASS = 100
_ADDED_AT_ONCE = 128
_ADDING_SECONDS = 0.5
_ADDING_SECONDS_EACH = 2e-6  # some 30 times what it takes
_cpu_seconds: Callable[[], float] = getattr(time, "thread_time", time.process_time)


def _text(value: object) -> str:
    if type(value) is not str:
        raise CodecError("no text where one belongs")
    return value


def _list(value: object) -> list[Any]:
    if type(value) is not list:
        raise CodecError("no list where one belongs")
    return value


def _ints(values: list[Any]) -> list[int]:
    if not all(type(value) is int for value in values):
        raise CodecError("no number where one belongs")
    return values


def _size(value: Any) -> int:
    if not _is_size(value):
        raise CodecError("no size where one belongs")
    size: int = value
    return size


@functools.lru_cache(maxsize=256)
def _tuple_kind(name: str, *fields: str) -> Any:
    if not _are_fields(name, fields):
        raise CodecError("no names of a named tuple")
    return collections.namedtuple(name, fields, module="sanderling.sandbox")  # noqa: PYI024 - made at run time


def _is_size(value: object) -> bool:
    return type(value) is int and value >= 0


def _read_zone(described: object) -> object:
    import datetime
    import zoneinfo

    if type(described) is str:
        if len(described) > MAX_ZONE:
            raise CodecError("no time zone")
        return zoneinfo.ZoneInfo(described)
    seconds = described if type(described) in (int, float) else None
    return datetime.timezone(datetime.timedelta(seconds=seconds))  # type: ignore[arg-type]  # None raises


def _pandas() -> Any:
    try:
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]  # optional
    except ImportError:
        return None
    return pandas


_COLUMNS: dict[str, Callable[[Decoder, Message, int], object]] = {
    "ndarray": Decoder._numbers,
    "objects": Decoder._object_column,
    "categories": Decoder._categories,
    "zoned": Decoder._zoned,
    "texts": Decoder._texts,
    "masked": Decoder._masked,
}
_READERS: dict[str, Callable[[Decoder, Message, int], object]] = {
    "none": Decoder._none,
    "int": Decoder._int,
    "float": Decoder._float,
    "complex": Decoder._complex,
    "tuple": Decoder._tuple,
    "set": Decoder._set,
    "frozenset": Decoder._frozenset,
    "dict": Decoder._dict,
    "counter": Decoder._counter,
    "ordered": Decoder._ordered,
    "defaultdict": Decoder._defaultdict,
    "deque": Decoder._deque,
    "namedtuple": Decoder.named_tuple,
    "namespace": Decoder.namespace,
    "exception": Decoder.exception,
    "range": Decoder._range,
    "slice": Decoder._slice,
    "pattern": Decoder._pattern,
    "bytesio": Decoder._bytesio,
    "stringio": Decoder._stringio,
    "fraction": Decoder._fraction,
    "ip": Decoder._ip,
    "bytes": Decoder._bytes,
    "bytearray": Decoder._bytearray,
    "record": Decoder.record,
    "kept": Decoder.kept,
    "datetime": Decoder._datetime,
    "date": Decoder._date,
    "time": Decoder._time,
    "timedelta": Decoder._timedelta,
    "decimal": Decoder._decimal,
    "uuid": Decoder._uuid,
    "path": Decoder._path,
    "ndarray": Decoder._ndarray,
    "objects": Decoder._objects,
    "index": Decoder._index,
    "series": Decoder._series,
    "table": Decoder._table,
    "image": Decoder._image,
}


# --- Running the model's code ---------------------------------------------------------------------


class ImportNotAllowed(ImportError):  # noqa: N818 - the model reads this name
    """The model's code imports what it was not given."""


class ToolError(RuntimeError):
    """A tool of the host failed, or could not be called."""

    def __init__(self, text: object = "") -> None:
        super().__init__(text)
        self._text = str(text)

    def __str__(self) -> str:
        return self._text  # some builtin classes show it otherwise


# What a tool may raise and code can catch as that: each is made of one text, and means nothing to
# Python itself.
BUILTIN_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in vars(builtins).values()
    if isinstance(kind, type)
    and issubclass(kind, Exception)
    and kind.__name__ not in ("Exception", "ExceptionGroup", "StopIteration", "StopAsyncIteration")
    and not (issubclass(kind, UnicodeError) and kind is not UnicodeError)
}


def tool_error(text: str, kind: str = "") -> ToolError:
    """Makes the error of a call that failed.

    Args:
        text: What the host says of it.
        kind: The builtin class that code can catch it by, beside `ToolError`; none where empty.
    """
    if kind not in BUILTIN_ERRORS:
        return ToolError(text)
    error = _class_of_error(kind)(text)
    if kind == "KeyError" and len(text) <= MAX_REPR:
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            error.args = (ast.literal_eval(text),)  # its text is the repr of the key
    return error


@functools.lru_cache(len(BUILTIN_ERRORS))
def _class_of_error(kind: str) -> type[ToolError]:
    return type(kind, (ToolError, BUILTIN_ERRORS[kind]), {"__module__": "builtins"})


def _not_there() -> str:
    """Says which files there are, where one is missing."""
    try:
        with os.scandir() as entries:
            names = [one.name for one in itertools.islice(entries, 200) if one.name[0] != "."]
        shown = [ascii(name)[:100] for name in sorted(names)]
    except Exception:  # the code may have put something of its own in the place of these
        return _NO_FILES
    if len(shown) > _MOST_NAMED:
        shown[_MOST_NAMED:] = [f"and {len(shown) - _MOST_NAMED} more"]
    return (
        f"the work folder (the current directory) has {', '.join(shown) or 'no files'}. Only the "
        "user can put others there, with run(..., files=[...])."
    )


class FinalAnswer(SystemExit):
    """Ends the step: the final answer was given. It passes all that lets SystemExit pass."""


_NO_NETWORK = "the network is off in the sandbox; use a tool that fetches what you need."
_NO_PROGRAMS = "other programs cannot be started in the sandbox; do it in Python, or use a tool."
_NO_PROCESS = "no process can be started in the sandbox; do it in this one, or in threads of it."
_NO_SIGNALS = "other processes are out of reach in the sandbox."
_NO_FILES = "only files in the work folder (the current directory) can be opened."
_NO_INPUT = "nobody types into the sandbox; work with what you were given, or ask in your answer."
_NO_NOTEBOOK = "this is plain Python: it has no commands of a shell or a notebook."
_NO_POWER = "the sandbox does not allow this operation; do it in plain Python, or use a tool."
_NETWORK = {"aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "socket", "urllib"}
_PROGRAMS = {"multiprocessing", "pexpect", "pty", "subprocess"}
_FILES = {"glob", "io", "os", "pathlib", "shutil", "sys", "tempfile"}
_AT_ONCE = {"asyncio", "concurrent", "threading"}
_STEP = re.compile(r"<step \d+>")


class ToolSpec:
    """What the kernel knows of a tool of the host.

    Attributes:
        name: What it is called.
        signature: See `binder`.
        doc: Its docstring.
        final: Whether its value is the final answer.
        on: The id of the host's object that it is a method of, if it is one.
    """

    __slots__ = ("doc", "final", "name", "on", "signature")

    def __init__(
        self, name: str, signature: str, doc: str, final: bool = False, on: str | None = None
    ) -> None:
        self.name = name
        self.signature = signature
        self.doc = doc
        self.final = final
        self.on = on


class Call:
    """A call of the host that is under way. Exactly one of its methods is called, once."""

    def wait(self) -> object:
        """Blocks until the reply is here; returns its value.

        Raises:
            ToolError: The call failed.
            FinalAnswer: The reply was to the final answer.
        """
        raise NotImplementedError

    def drop(self) -> None:
        """Says that nobody waits for the reply."""


if TYPE_CHECKING:
    # Begins to call a tool of the host, with arguments and keyword arguments; the last argument
    # says whether others are called at the same time.
    Begin: TypeAlias = Callable[[ToolSpec, tuple[object, ...], dict[str, object], bool], Call]


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
    scope: dict[str, Any] = {"__builtins__": {}}
    exec(_binder_code(name, signature), scope)  # noqa: S102 - one function, with literal defaults
    bind: Callable[..., None] = scope[name]
    return bind


@functools.lru_cache(_MOST_BINDERS)
def _binder_code(name: str, signature: str) -> CodeType:
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
    try:
        # This file's own future import makes annotations text: nothing of them is evaluated.
        return compile(tree, f"<tool {name}>", "exec")
    except (SyntaxError, ValueError) as error:
        raise ValueError(problem) from error


def make_stub(tool: ToolSpec, begin: Begin) -> Callable[..., object]:
    """Makes the function that stands for a tool of the host.

    It has the tool's name, signature and docstring; as ``stub.aio`` it can be awaited.
    """
    bind = binder(tool.name, tool.signature)

    def checked_begin(args: tuple[object, ...], kwargs: dict[str, object], together: bool) -> Call:
        bind(*args, **kwargs)
        if tool.final and any(value is stub for value in (*args, *kwargs.values())):
            raise ToolError(
                f"the answer is the tool {tool.name} itself. If your code assigned the answer to "
                f"{tool.name} in an earlier step, it is in {tool.name}_ now."
            )
        return begin(tool, args, kwargs, together)

    def stub(*args: object, **kwargs: object) -> object:
        return checked_begin(args, kwargs, False).wait()

    def start(*args: object, **kwargs: object) -> Call:
        return checked_begin(args, kwargs, True)

    async def aio(*args: object, **kwargs: object) -> object:
        import asyncio

        call = start(*args, **kwargs)
        if _HAS_THREADS:
            return await asyncio.to_thread(call.wait)
        await asyncio.sleep(0)  # so that those awaited together have all begun
        return call.wait()

    for function in (stub, aio):
        function.__name__ = function.__qualname__ = tool.name
        function.__module__ = "__main__"
        function.__doc__ = tool.doc
        function.__wrapped__ = bind  # type: ignore[attr-defined]  # where `inspect.signature` looks
    stub.aio, stub._start = aio, start  # type: ignore[attr-defined]  # as above: a function has a dict
    return stub


def parallel(
    function: Callable[..., object], *iterables: Iterable[object], max_workers: int = 16
) -> list[object]:
    """Calls a function with each item, many at the same time; returns the results in order.

    ``parallel(f, items)`` gives what ``list(map(f, items))`` gives, sooner, where `f` is a tool or
    calls tools. If calls fail, the others still end; then the first error in order is raised.

    Args:
        function: A tool, or any function.
        *iterables: The items; with several, `function` gets one item of each.
        max_workers: How many calls may be under way at once, at most 64; for a function that is no
            tool, at most 16.
    """
    if max_workers < 1:
        raise ValueError("max_workers must be at least 1")
    calls = list(zip(*iterables))  # noqa: B905 - as `map` does it
    start = getattr(function, "_start", None)
    if start is not None:
        return _outcomes(_started(start, calls, max_workers))
    if not _HAS_THREADS or len(calls) < 2:
        return _outcomes((lambda args=args: function(*args)) for args in calls)  # type: ignore[misc]  # a default
    import contextvars
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(min(max_workers, len(calls), _MOST_THREADS))
    ended = False
    try:
        runs = [pool.submit(contextvars.copy_context().run, function, *args) for args in calls]
        results = _outcomes(run.result for run in runs)
        ended = True
        return results
    except Exception:
        ended = True
        raise
    finally:
        pool.shutdown(wait=ended, cancel_futures=True)  # an interrupt waits for nobody


def _started(
    start: Callable[..., Call], calls: Iterable[tuple[object, ...]], most: int
) -> Iterator[Callable[[], object]]:
    """Keeps calls of a tool under way, without a thread for each."""
    open_calls: collections.deque[Call] = collections.deque()
    try:
        for args in calls:
            if len(open_calls) == most:
                yield open_calls.popleft().wait
            open_calls.append(start(*args))
        while open_calls:
            yield open_calls.popleft().wait
    finally:
        for call in open_calls:
            call.drop()


def _outcomes(waits: Iterator[Callable[[], object]]) -> list[object]:
    results, errors = [], []
    for wait in waits:
        try:
            results.append(wait())
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return results


class HostReference:
    """Stands for an object of the host: what it lists calls the host, the rest stays there.

    Args:
        about: ``id``; ``type``, a name; ``methods``, each with name, signature and docstring;
            ``attributes``, names; and ``why``, a reason why it is no value.
        begin: Begins a call.
    """

    def __init__(self, about: Mapping[str, Any], begin: Begin) -> None:
        key = about["id"]
        vars(self).update(
            {
                name: make_stub(ToolSpec(name, signature, doc, on=key), begin)
                for name, signature, doc in about.get("methods", ())
            },
            _about=about,
            _begin=begin,
        )

    def __getattr__(self, name: str) -> object:
        about = vars(self).get("_about", {})  # `copy` asks before there is any
        if name in about.get("attributes", ()):
            spec = ToolSpec(name, "()", "", on=about["id"])
            call: Call = vars(self)["_begin"](spec, (), {}, False)
            return call.wait()
        raise AttributeError(f"{name!r} is not there: {self!r}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name!r} cannot be set: {self!r}")

    def __dir__(self) -> list[str]:
        return sorted((*self._names(), *object.__dir__(self)))

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Tells why not."""
        raise TypeError(f"this cannot be called: {self!r}")

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> HostReference:
        if not vars(self)["_about"].get("iterates"):
            raise TypeError(f"this cannot be iterated over: {self!r}")
        return self

    def __next__(self) -> object:
        own = vars(iter(self))
        if "_items" not in own:
            own["_items"] = _items(own["_about"]["id"], own["_begin"])
        return next(own["_items"])

    def _refuse(self, *_: object) -> NoReturn:
        """Tells why this is not the value that it stands for."""
        raise TypeError(f"this is no value: {self!r}")

    __len__ = __getitem__ = __setitem__ = __delitem__ = __contains__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __enter__ = __exit__ = _refuse

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"this cannot be pickled or copied: {self!r}")

    def __copy__(self) -> HostReference:
        return self

    def __deepcopy__(self, memo: object) -> HostReference:
        return self

    def _names(self) -> list[str]:
        about = vars(self)["_about"]
        return [*(name for name, *_ in about.get("methods", ())), *about.get("attributes", ())]

    def __repr__(self) -> str:
        about = vars(self)["_about"]
        names = self._names()
        usable = f"it has {', '.join(names)}" if names else "only tools can use it"
        if about.get("iterates"):
            usable = "it can be iterated over, once"
        why = f" ({about['why']})" if about.get("why") else ""
        return f"<{about['type']} object of the host{why}: {usable}>"


def _items(key: object, begin: Begin) -> Iterator[object]:
    """Yields the items of a generator of the host: few at first, so that the first come at once."""
    spec, count = ToolSpec("next", "(count)", "", on=key), 1  # type: ignore[arg-type]  # a text
    while True:
        items: Any = begin(spec, (count,), {}, False).wait()
        yield from items
        if len(items) < count:
            return
        count = min(2 * count, MOST_AT_ONCE)


def host_id(reference: HostReference) -> str:
    """Returns the name that the host knows an object by."""
    key: str = vars(reference)["_about"]["id"]
    return key


class Values(Extension):
    """Values of the host that are more than data, as seen from the sandbox.

    They are functions and classes, which the host has pickled; instances of classes that came so;
    and objects that stay there, which a `HostReference` stands for. Only the host pickles.

    Args:
        begin: Begins a call of the host.
        kept: Finds a value of the sandbox by the name that it was kept under.
        loader: The source of cloudpickle, with whose functions the host's pickles are read.
    """

    def __init__(
        self, begin: Begin, kept: Callable[[str], tuple[object, ...]], loader: bytes = b""
    ) -> None:
        self.readers = {
            "host": self._host,
            "code": self._code,
            "record": self._record,
            "namedtuple": self._named_tuple,
            "pattern": self._pattern,
            "kept": self._kept,
        }
        self._begin = begin
        self._find_kept = kept
        self._source = loader
        self._loader: ModuleType | None = None
        self._lock = threading.RLock()  # of the two below
        self._references: dict[str, HostReference] = {}
        self._defined: dict[int, tuple[object, bool]] = {}  # and whether it is what was sent
        self._keys: dict[int, int] = {}  # of what was sent, by id()

    def read(self, frame: Frame) -> Any:
        """Decodes the value of a frame from the host."""
        code: Any = frame.fields.get("code", ())
        for key, place, about in code:
            self._define(key, frame.blobs[place], about)
        return frame.value("v", self)

    def write(self, encoder: Encoder, value: object) -> object:
        """Names an object, a function or a class that the host knows."""
        if isinstance(value, HostReference):
            return {"$": "host", "id": host_id(value)}
        key = self._keys.get(id(value))
        return None if key is None else {"$": "code", "n": key}

    def class_key(self, encoder: Encoder, kind: type) -> int | None:
        """Returns the number of a class that the host has sent."""
        return self._keys.get(id(kind))

    def _define(self, key: int, pickled: memoryview, about: Mapping[str, Any]) -> None:
        with self._lock:
            before, sent = self._defined.get(key, (None, False))
            if sent and isinstance(before, type):
                return
            try:
                value = self._unpickle(pickled)
            except Exception as error:  # whatever the host's code needs and does not find here
                why = f"it could not come here: {type(error).__name__}: {error}"
                self._defined[key] = (self.reference({**about, "why": why}), False)
                return
            self._keys.pop(id(before), None)
            self._defined[key] = (value, True)
            self._keys[id(value)] = key

    def _unpickle(self, pickled: memoryview) -> object:
        import pickle

        values = self

        class Unpickler(pickle.Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                if module == "cloudpickle.cloudpickle":
                    return getattr(values._cloudpickle(), name)
                return super().find_class(module, name)

            def persistent_load(self, pid: Any) -> object:
                kind, told = pid
                if kind == "data":
                    return told
                return values.reference(told) if kind == "host" else load_code(**told)

        return Unpickler(io.BytesIO(pickled)).load()

    def _cloudpickle(self) -> ModuleType:
        # The very version that wrote the pickle, whatever is installed here.
        if self._loader is None:
            module = ModuleType("cloudpickle.cloudpickle")
            exec(compile(self._source, "<cloudpickle>", "exec"), vars(module))  # noqa: S102 - a library
            self._loader = module
        return self._loader

    def reference(self, about: Mapping[str, Any]) -> HostReference:
        """Returns what stands for an object of the host: the same for the same object."""
        with self._lock:
            known = self._references.get(about["id"])
            if known is None:
                kind = type(str(about["type"]), (HostReference,), {"__module__": "host"})
                known = self._references[about["id"]] = kind(about, self._begin)
            return known

    def _host(self, decoder: Decoder, value: Message, depth: int) -> object:
        return self.reference(value)

    def _code(self, decoder: Decoder, value: Message, depth: int) -> object:
        return self._defined[value["n"]][0]  # type: ignore[index]  # our host wrote it

    def _record(self, decoder: Decoder, value: Message, depth: int) -> object:
        record = decoder.record(value, depth)
        key: Any = value.get("class")
        kind, sent = self._defined.get(key, (None, False))
        if sent and isinstance(kind, type):
            return _instance(kind, record)
        return Record(record.record_type, record.record_fields, key)

    def _named_tuple(self, decoder: Decoder, value: Message, depth: int) -> object:
        made = decoder.named_tuple(value, depth)
        kind, sent = self._defined.get(value.get("class"), (None, False))  # type: ignore[call-overload]  # our host wrote it
        return tuple.__new__(kind, made) if sent and isinstance(kind, type) else made

    def _pattern(self, decoder: Decoder, value: Message, depth: int) -> object:
        pattern: Any = value
        return re.compile(pattern["v"], pattern["flags"])

    def _kept(self, decoder: Decoder, value: Message, depth: int) -> object:
        found = self._find_kept(str(value["name"]))
        return found[0] if found else decoder.kept(value, depth)


def load_code(
    magic: bytes, compiled: bytes, name: str, source: str | None, free: tuple[str, ...]
) -> CodeType:
    """Reads the code of a function: as it is, or from its source in another version of Python.

    Args:
        magic: The version of the host's bytecode.
        compiled: What `marshal` makes of it.
        name: Its qualified name.
        source: The definition of the function, where the host found it.
        free: Names of variables of an enclosing function that it uses.

    Raises:
        ImportError: Neither can be used.
    """
    import importlib.util
    import marshal

    if magic == importlib.util.MAGIC_NUMBER:
        code: CodeType = marshal.loads(compiled)  # noqa: S302 - the host's own
        return code
    if source is not None:
        pending = [compile(source, f"<{name}>", "exec", dont_inherit=True)]
        while pending:
            code = pending.pop()
            if code.co_name == name.rpartition(".")[2] and code.co_freevars == free:
                return code
            pending += [const for const in code.co_consts if isinstance(const, type(code))]
    raise ImportError(
        f"{name} was compiled by another version of Python, and has no source to go by"
    )


def _instance(kind: Any, record: Record) -> object:
    """Makes an instance of the fields that it has on the host, as unpickling would."""
    fields = record.record_fields
    try:
        if issubclass(kind, enum.Enum):
            members: Mapping[Any, object] = kind.__members__
            return members[fields["name"]] if fields["name"] in members else kind(fields["value"])
        made = kind.__new__(kind)
        if hasattr(kind, "__pydantic_fields__") and hasattr(made, "__setstate__"):
            declared = {name for name in fields if name in kind.__pydantic_fields__}
            extra = {name: fields[name] for name in fields if name not in declared} or None
            made.__setstate__(
                {
                    "__dict__": {name: fields[name] for name in fields if name in declared},
                    "__pydantic_extra__": extra,
                    "__pydantic_fields_set__": declared,
                    "__pydantic_private__": None,
                }
            )
            return made
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made
    except Exception:  # its class does not let it be made this way: its fields are still of use
        return record


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
        begin: Begins to call a tool of the host.
        walls: Whether errors may come from walls around the code, which are then explained.
        limits: Those of the sandbox, by name.
        **own: Builtins that the code sees in the place of Python's.
    """

    def __init__(
        self,
        imports: Iterable[str],
        begin: Begin,
        *,
        walls: bool = True,
        limits: Mapping[str, int] | None = None,
        **own: object,
    ) -> None:
        self.module = ModuleType("__main__")
        self.namespace: dict[str, Any] = vars(self.module)
        # The model's code has builtins of its own: the import policy and the tools live there. So
        # libraries import what they like, and a variable may hide a tool without losing it.
        # Those of `site` for leaving would close standard input on the way.
        leave = {"exit": sys.exit, "quit": sys.exit}
        self._own = {
            **vars(builtins),
            **leave,
            "__import__": self._import,
            "parallel": parallel,
            "ToolError": ToolError,
            **own,
        }
        self._builtins = self.namespace["__builtins__"] = dict(self._own)
        self._imports = sorted({*BASE_BUILTIN_MODULES, *imports})
        self._begin = begin
        self._walls = _Walls(limits or {}) if walls else None
        self._paths = _paths_to_hide(work_folder=walls)
        self._tools: list[str] = []
        self._finals: set[str] = set()
        self._spared: dict[str, str] = {}  # tools that the step may call in spite of a variable
        self.assigned = False
        self._kept: dict[int, dict[str, object]] = {}  # by step
        self._sources: dict[str, tuple[int, None, list[str], str]] = {}

    def set_tools(self, tools: Iterable[ToolSpec]) -> None:
        """Puts these tools in the place of those before."""
        tools = list(tools)
        stubs = {tool.name: make_stub(tool, self._begin) for tool in tools}
        self._tools = list(stubs)
        self._finals = {tool.name for tool in tools if tool.final}
        self._builtins.clear()
        self._builtins.update(self._own)
        for names in self._kept.values():
            self._builtins.update(names)
        self._builtins.update(stubs)

    def _aside(self, name: str) -> str:
        """Returns where a variable goes that has the name of a tool."""
        aside = f"{name}_"
        while aside in self._tools:
            aside += "_"
        return aside

    def _bring_tools_back(self) -> None:
        for name in self._tools:
            if name in self.namespace:
                self.namespace[self._aside(name)] = self.namespace.pop(name)

    def note_on_tools(self) -> str:
        """Tells which variables of the step have the names of tools; nothing where none has."""
        hidden = {name: self._aside(name) for name in self._tools if name in self.namespace}
        hidden.update((name, to) for name, to in self._spared.items() if to in self.namespace)
        if not hidden:
            return ""
        names, kept = ", ".join(hidden)[:_MAX_NAMES], ", ".join(hidden.values())[:_MAX_NAMES]
        return (
            f"Note: your code assigned to the name of a tool ({names}). From the next step on it "
            f"is the tool again, and what you assigned is in {kept}.\n"
        )

    def keep(self, number: int, value: object) -> str | None:
        """Keeps a value of a step that cannot leave, for this step and some after it.

        Returns:
            The name that it has now; None where the step has kept enough. A variable of the model's
            code is never overwritten.
        """
        names = self._kept.setdefault(number, {})
        while len(self._kept) > MAX_KEPT_STEPS:
            self.forget(next(iter(self._kept)))
        if len(names) == MAX_KEPT:
            return None
        name = f"result_{number}_{len(names) + 1}" if names else f"result_{number}"
        while name in self.namespace or name in self._builtins:
            name += "_"
        names[name] = self._builtins[name] = value
        return name

    def kept(self, name: str) -> tuple[object, ...]:
        """Returns the value that was kept under a name, if it still is."""
        return tuple(names[name] for names in self._kept.values() if name in names)

    def kept_by(self, number: int) -> list[str]:
        """Returns the names of what a step has kept."""
        return list(self._kept.get(number, ()))

    def forget(self, number: int) -> None:
        """Forgets what a step has kept."""
        for name in self._kept.pop(number, ()):
            self._builtins.pop(name, None)

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
            The value of the last statement; None where it has none. Then `assigned` tells whether
            it is that of another statement than an expression: what was assigned or defined, or is
            the value of the last statement carried out in the block of an ``if``, a loop and so on.

        Raises:
            BaseException: Whatever the code raises.
        """
        self._bring_tools_back()
        self._spared = {}
        filename = f"<step {number}>"
        lines = [f"{line}\n" for line in code.split("\n")]
        self._sources[filename] = (len(code), None, lines, filename)
        linecache.cache[filename] = self._sources[filename]
        tree = _compile(code, filename, "exec", ast.PyCF_ONLY_AST)
        last = None
        self._spared = {
            name: self._aside(name)
            for name in self._finals
            if name in code and _spare_tool(tree, name, self._aside(name))
        }
        self.assigned = bool(tree.body) and not isinstance(tree.body[-1], ast.Expr)
        variable = None
        if self.assigned:
            variable = _take_value(tree.body)
        elif tree.body:
            last = _compile(ast.Expression(tree.body.pop().value), filename, "eval")
        body = _compile(tree, filename, "exec")
        try:
            value = self._run_compiled(body, last)
        finally:
            held = None if variable is None else self.namespace.get(variable)
            assigned = self.namespace.pop(_VALUE, held)
        return assigned if self.assigned else value

    def _run_compiled(self, body: CodeType, last: CodeType | None) -> object:
        if any(part and part.co_flags & _CO_COROUTINE for part in (body, last)):
            import asyncio

            return asyncio.run(self._run_async(body, last))
        exec(body, self.namespace)  # noqa: S102 - this is what a kernel is for
        return None if last is None else eval(last, self.namespace)  # noqa: S307 - as above

    async def _run_async(self, body: CodeType, last: CodeType | None) -> object:
        import asyncio

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_report_task)
        if _HAS_THREADS:
            from concurrent.futures import ThreadPoolExecutor

            # Its threads mostly wait for tools; Python's own default is a handful.
            loop.set_default_executor(ThreadPoolExecutor(_MAX_WAITING))
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
            "message": _shorten(self.without_paths(message), MAX_SHOWN),
            "traceback": _shorten(self.without_paths(text), MAX_SHOWN),
        }

    def without_paths(self, text: str) -> str:
        """Hides where on the host something lies: it is of no use inside, and tells of the host."""
        for path, shown in self._paths:
            text = text.replace(path, shown)
        return text

    def _hint(self, error: BaseException) -> str:
        hint = "" if self._walls is None else self._walls.hint(error)
        if not hint and isinstance(error, TypeError) and "is not callable" in str(error):
            hidden = [name for name in self._tools if name in self.namespace]
            if hidden:
                names = ", ".join(hidden)
                hint = (
                    f"variables of yours hide the tools {names} in this step; from the next one on "
                    "they are the tools again."
                )
        if isinstance(error, SystemExit) and self._finals:
            hint = f"nothing needs to be left here: {min(self._finals)}(answer) ends the task."
        if isinstance(error, SyntaxError) and (error.text or "").lstrip().startswith(("!", "%")):
            hint = _NO_NOTEBOOK
        return f"\nHint: {hint}" if hint else ""


_VALUE = "<value>"  # of the last statement; no name that code can write
_MAX_NAMES = 200  # characters
_CO_COROUTINE = 0x80
_MAX_WAITING = 12
_HEADER_OF_NOTHING = re.compile(r"^([ |]*)Traceback \(most recent call last\):\n(?!\1  )", re.M)


def _compile(code: Any, filename: str, mode: str, flags: int = 0) -> Any:
    return compile(code, filename, mode, flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _take_value(body: list[ast.stmt]) -> str | None:
    """Changes a block so that it assigns the value of its last statement to `_VALUE` as well.

    Returns:
        The variable that holds the value, for a loop that ends with an assignment to it: that loop
        is left as it is, and so as fast.
    """
    last: Any = body[-1] if body else None
    if isinstance(last, (ast.With, ast.AsyncWith)):
        return _take_value(last.body)
    if (variable := _assigned_by_loop(last)) is not None:
        _take_value(last.orelse)
        return variable
    if isinstance(last, (ast.Assign, ast.AnnAssign, ast.Expr)):
        if last.value is not None:
            last.value = _with_value(last.value)
    elif isinstance(last, ast.AugAssign):
        if _is_plain_target(last.target):
            read = ast.parse(ast.unparse(last.target), mode="eval").body
            body.append(ast.Expr(_with_value(_located(read, last.target))))
    elif isinstance(last, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        body.append(ast.Expr(_with_value(_located(ast.Name(last.name, ast.Load()), last))))
    elif last is not None:
        blocks = [getattr(last, "body", []), getattr(last, "orelse", [])]
        parts = (*getattr(last, "handlers", ()), *getattr(last, "cases", ()))
        for block in (*blocks, *(part.body for part in parts)):
            _take_value(block)
    if last is not None and body[-1] is not last:
        ast.copy_location(body[-1], last)
    return None


def _assigned_by_loop(loop: Any) -> str | None:
    """Returns the variable that the last statement of a loop assigns to, if it is one."""
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return None
    last = loop.body[-1]
    target: object = None
    if isinstance(last, ast.Assign):
        target = last.targets[0]
    elif isinstance(last, (ast.AugAssign, ast.AnnAssign)):
        target = last.target
    return target.id if isinstance(target, ast.Name) else _assigned_by_loop(last)


def _with_value(expression: ast.expr) -> ast.expr:
    name = ast.copy_location(ast.Name(_VALUE, ast.Store()), expression)
    return ast.copy_location(ast.NamedExpr(name, expression), expression)


def _located(tree: ast.expr, like: ast.AST) -> ast.expr:
    for node in ast.walk(tree):
        ast.copy_location(node, like)
    return tree


def _is_plain_target(target: ast.expr) -> bool:
    """Tells whether a target can be read without doing more than the assignment has done."""
    if isinstance(target, ast.Subscript):
        return isinstance(target.value, ast.Name) and isinstance(
            target.slice, (ast.Name, ast.Constant)
        )
    return isinstance(target, ast.Name) or (
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    )


def _spare_tool(tree: ast.Module, name: str, aside: str) -> bool:
    """Renames a variable that would hide a tool which the same code calls.

    Returns:
        Whether there was one. It stays where its name is bound in other ways than by assignment.
    """
    names, called = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if node.id == name:
                names.append(node)
        elif isinstance(node, ast.Call):
            called.add(id(node.func))
        elif not isinstance(node, (ast.keyword, ast.alias)) or getattr(node, "asname", None):
            bound = [getattr(node, field, None) for field in ("arg", "asname", "name", "names")]
            if name in bound or any(isinstance(some, list) and name in some for some in bound):
                return False
    variables = [node for node in names if id(node) not in called]
    if all(isinstance(node.ctx, ast.Load) for node in variables):
        return False
    for node in variables:
        node.id = aside
    return True


def _report_task(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    # These ended the step, which says so itself; the task that they came up in is no news.
    if not isinstance(context.get("exception"), (KeyboardInterrupt, SystemExit)):
        loop.default_exception_handler(context)


def _instead_of(name: str) -> str:
    root = name.partition(".")[0]
    if root in _NETWORK:
        return f" And {_NO_NETWORK}"
    if root in _PROGRAMS:
        return f" And {_NO_PROGRAMS}"
    if root in _FILES:
        return " Open files of the work folder with open(); use a tool for anything else."
    if root in _AT_ONCE:
        return (
            " Calls at the same time need no import: parallel(function, items) makes them and "
            "returns their results in order. Await works at top level as it is."
        )
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


class _Walls:
    """Says which wall an error comes from, in the words of somebody who may not climb it.

    Args:
        limits: Those of the sandbox, by name.
    """

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = limits

    def hint(self, error: BaseException) -> str:
        """Returns what to tell the model; nothing where no wall is known to be the reason."""
        for link in _chain(error):
            if isinstance(link, ToolError):
                continue  # it was raised on the host
            if hint := self._limit(link) or self._refusal(link):
                return hint
        return ""

    def _limit(self, error: BaseException) -> str:
        number = error.errno if isinstance(error, OSError) else None
        if isinstance(error, MemoryError) or number == errno.ENOMEM:
            what = f"the memory of the sandbox is used up{self._size('memory_bytes')}"
            return f"{what}. Variables stay: del large ones, or work in pieces."
        if "failed to map segment from shared object" in str(error):
            return (
                "a compiled library found no room in memory"
                f"{self._size('memory_bytes')}, or lies in the work folder, where nothing may be "
                "executed."
            )
        no_thread = isinstance(error, RuntimeError) and "can't start new thread" in str(error)
        if no_thread and sys.platform != "emscripten":
            return (
                f"no more threads can be started{self._count('max_threads')}; wait for those that "
                "run, or use a pool: concurrent.futures.ThreadPoolExecutor(8)."
            )
        if number == errno.EFBIG:
            what = (
                f"the file grew past what the sandbox allows for one file{self._size('file_bytes')}"
            )
            return f"{what}. What was written before stays: use several files, or write less."
        if number == errno.ENOSPC:
            limit, files = self._size("workdir_bytes"), self._limits.get("workdir_files")
            also = "" if files is None else f", or holds the {files:,} files that it may"
            return f"the work folder is full{limit}{also}; remove what is not needed any more."
        if number in (errno.EMFILE, errno.ENFILE):
            what = f"too many files are open at once{self._count('open_files')}"
            return f"{what}; close them, best by `with open(...) as file:`."
        return ""

    def _size(self, name: str) -> str:
        limit = self._limits.get(name)
        if limit is None:
            return ""
        unit, size = next(((u, s) for u, s in _UNITS if limit >= s), ("bytes", 1))
        return f" (limit: {limit / size:.4g} {unit})"

    def _count(self, name: str) -> str:
        limit = self._limits.get(name)
        return "" if limit is None else f" (limit: {limit:,})"

    def _refusal(self, error: BaseException) -> str:
        if str(error) == _NOBODY_ANSWERS.get(type(error).__name__):
            return _NO_INPUT
        modules = {
            str(frame.f_globals.get("__name__")).partition(".")[0] for frame in _frames(error)
        }
        if isinstance(error, (OSError, ImportError, NotImplementedError)):
            if "multiprocessing" in modules:
                return _NO_PROCESS
            if modules & _PROGRAMS:
                return _NO_PROGRAMS
        if isinstance(error, AttributeError):
            # Where there are no processes at all, there are no functions to make them.
            missing = getattr(error, "obj", None) is os and getattr(error, "name", "") in _SPAWNS
            return _NO_PROCESS if missing else ""
        if not isinstance(error, OSError):
            return ""
        if modules & _NETWORK or type(error).__name__ in ("gaierror", "herror"):
            return _NO_NETWORK
        path = error.filename if type(error.filename) is str else ""
        outside = path.startswith(("/", ".."))
        if error.errno in _REFUSED:
            return _refused_call(error) or (_NO_FILES if outside else _NO_POWER)
        if outside:
            return _NO_FILES if error.errno in (errno.ENOENT, errno.EROFS) else ""
        return _not_there() if path and error.errno == errno.ENOENT else ""


_NOBODY_ANSWERS = {"EOFError": "EOF when reading a line", "BdbQuit": ""}  # input, breakpoint
_MOST_NAMED = 20  # files that are shown where one is missing
_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_REFUSED = {
    getattr(errno, name)
    for name in (
        *("EPERM", "EACCES", "ENOSYS", "EOPNOTSUPP", "ENOEXEC"),
        *("EHOSTUNREACH", "ENETUNREACH", "ENETDOWN", "EADDRNOTAVAIL", "EAFNOSUPPORT"),
    )
}
_SPAWNS = {"fork", "forkpty", "posix_spawn", "posix_spawnp"}
_CALLS = (
    (re.compile(r"\b(fork|forkpty)\b"), _NO_PROCESS),
    (re.compile(r"\b(exec[lv]p?e?|posix_spawnp?|spawn[lv]p?e?|system)\b"), _NO_PROGRAMS),
    (re.compile(r"\b(kill|killpg|pidfd_open|pidfd_send_signal)\b"), _NO_SIGNALS),
    (re.compile(r"\b(bind|connect|send|sendto|socket)\b"), _NO_NETWORK),
)


def _refused_call(error: BaseException) -> str:
    """Guesses by the model's own line what was refused: functions written in C leave no frame."""
    lines = [
        linecache.getline(frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _STEP.fullmatch(frame.f_code.co_filename)
    ]
    last = lines[-1] if lines else ""
    return next((words for call, words in _CALLS if call.search(last)), "")


def _refuse_system(command: object) -> int:  # noqa: ARG001 - the signature of os.system
    """Raises, where the system's own would return a number that nobody understands."""
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def _refuse_processes() -> None:
    """Makes forks raise PermissionError, where the system would say that there is no such call."""

    def refuse(*_: object) -> NoReturn:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    os.fork = refuse
    for name, function in (("_posixsubprocess", "fork_exec"), ("subprocess", "_fork_exec")):
        if name in sys.modules:
            setattr(sys.modules[name], function, refuse)


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


def _paths_to_hide(work_folder: bool) -> list[tuple[str, str]]:
    """Returns paths and what is shown in their place; longer ones come first."""
    shown = dict.fromkeys(python_paths(), "<python>")
    own = globals().get("__file__")  # none where this file was sent as a text
    if own is not None:
        for _ in range(3):  # this folder, the package, what it lies in
            own = os.path.dirname(own)  # noqa: PTH120 - pathlib costs time
            shown.setdefault(own, "<sanderling>")
    if work_folder:
        shown[os.getcwd()] = "."  # noqa: PTH109 - as above
    kept = [(path, name) for path, name in shown.items() if path not in _NO_SECRETS]
    return sorted(kept, key=lambda pair: -len(pair[0]))


def python_paths() -> frozenset[str]:
    """Returns where Python and its packages lie, by all their names. It is the same in a fork."""
    return _with_real_paths(tuple(path for path in sys.path if path))


@functools.lru_cache(maxsize=1)
def _with_real_paths(searched: tuple[str, ...]) -> frozenset[str]:
    library = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120 - as above
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, library}
    python.update(searched)
    return frozenset((*python, *map(os.path.realpath, python)))


_NO_SECRETS = ("", "/", "/usr", "/usr/local", "/usr/lib", "/lib", "/tmp", "/work")  # noqa: S108 - texts


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

    def listen(self) -> None:
        """Takes the signals; the model's code may have changed the handler."""
        signal.signal(signal.SIGINT, self._on_signal)

    def forget(self) -> None:
        """Forgets a signal that came too late for the step it was meant for."""
        self._pending = False

    def start_step(self) -> None:
        """Takes note of a new step. A signal that came already may be ahead of its order."""
        self.fired = False
        self.listen()

    def release(self) -> None:
        """From here on a signal raises: the model's code runs."""
        self._held = 0
        if self._pending:
            self._fire()

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

    def renew_lock(self) -> None:
        """Makes it usable in a fork: a thread that is not there may have held the lock."""
        self._writing = threading.RLock()
        self._queue.clear()
        self._busy = False


class _Slot:
    """One thread that waits for a frame."""

    __slots__ = ("frame", "leads", "waits", "woken")

    def __init__(self) -> None:
        self.frame: Frame | None = None
        self.leads = False
        self.waits = False
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
        self._owed = 0  # replies that the host has not sent yet
        self._turns = itertools.count(-1, -1)  # keys of the threads that wait to make a call
        self._queue: collections.deque[int] = collections.deque()

    def reserve(self) -> None:
        """Waits until fewer than `MOST_CALLS` replies are owed, and adds one.

        The host does not read when more are owed. Code that writes then, and does not read the
        replies first, would wait for the host for ever.

        Raises:
            KeyboardInterrupt: A signal came while the main thread waited.
        """
        while True:
            with self._lock:
                if self._owed < MOST_CALLS:
                    self._owed += 1
                    return
                turn = next(self._turns)
                self._slots[turn] = _Slot()
                self._queue.append(turn)
            self.wait(turn)

    def release(self, key: int | None) -> None:
        """Takes a `reserve` back, and the `expect` if there was one: the call was not sent."""
        with self._lock:
            if key is not None:
                self._leave(self._slots.pop(key))
            self._owed -= 1
            self._pass_turn()

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
        with self._interrupts:  # half a frame that was read would be lost to whoever reads on
            return self._waited(key)

    def _waited(self, key: int) -> Frame:
        with self._lock:
            slot = self._slots[key]
            slot.waits = True
            if key == self.ORDERS and self._orders:
                slot.frame = self._orders.popleft()
            elif slot.frame is None and not self._led:
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
                if heir.waits and heir.frame is None:
                    self._led = heir.leads = True
                    heir.woken.release()
                    break

    def _deliver(self, frame: Frame) -> None:
        key = frame.fields.get("id") if frame.kind == "ret" else self.ORDERS
        with self._lock:
            if key != self.ORDERS:
                self._owed -= 1
                self._pass_turn()
            slot = self._slots.get(key) if type(key) is int else None
            if slot is not None and slot.frame is None:
                self._hand(slot, frame)
            elif key == self.ORDERS:
                self._orders.append(frame)

    def _pass_turn(self) -> None:
        while self._queue:
            slot = self._slots.get(self._queue.popleft())
            if slot is not None:  # else an interrupt has ended the wait
                self._hand(slot, _TURN)
                return

    def _hand(self, slot: _Slot, frame: Frame) -> None:
        slot.frame = frame
        if not slot.leads:
            slot.woken.release()


_TURN = Frame("turn", {}, [], tagged=False)


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

    def renew_lock(self) -> None:
        """Makes it usable in a fork: a thread that is not there may have held the lock."""
        self._lock = threading.RLock()

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
            most = f"a step may print {self._length:,}"
            note = f"\n… {self._cut:,} characters cut out here: {most}; print less at a time …\n"
            self._line = (note if self._cut else "") + self._tail
            self._tail = ""
            self.flush()


class _Errors(io.TextIOBase):
    """Where warnings, logs and printed tracebacks go: with the output, and without host paths."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, output: Output, clean: Callable[[str], str]) -> None:
        super().__init__()
        self._output = output
        self._clean = clean

    def writable(self) -> bool:
        """Says that it is."""
        return True

    def write(self, text: str) -> int:
        """Takes text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._output.write(self._clean(text))
        return len(text)

    def flush(self) -> None:
        """Sends what is there."""
        self._output.flush()


class Reserve:
    """Address space that is kept back, for the kernel to end a step that has used up all else."""

    _SIZE = 8 << 20
    _map: Callable[..., mmap] | None = None
    _kept: mmap | None = None

    def __init__(self) -> None:
        try:
            import mmap
        except ImportError:  # Pythons without an operating system may lack it
            return
        self._map = functools.partial(mmap.mmap, -1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.take()

    def take(self) -> None:
        """Keeps some back, unless memory is short: then the next step needs what there is."""
        if self._kept is None and self._map is not None:
            with contextlib.suppress(OSError, MemoryError):
                self._map(4 * self._SIZE).close()
                self._kept = self._map(self._SIZE)

    def give(self) -> None:
        """Lets the kernel have it."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()


def _limit_threads(most: int) -> None:
    """Refuses threads beyond a number early, with words; whoever evades it meets the host."""
    start = threading.Thread.start

    def start_if_few(self: threading.Thread) -> None:
        if threading.active_count() >= most:
            raise RuntimeError(f"can't start new thread: there are {most} already")
        start(self)

    threading.Thread.start = start_if_few  # type: ignore[method-assign]  # says more, and earlier


class _KernelCall(Call):
    """A call that the host was sent a frame for."""

    __slots__ = ("_mailbox", "_number", "_tool", "_values")

    def __init__(self, tool: ToolSpec, number: int, mailbox: Mailbox, values: Values) -> None:
        self._tool = tool
        self._number = number
        self._mailbox = mailbox
        self._values = values

    def wait(self) -> object:
        reply = self._mailbox.wait(self._number)
        if "e" in reply.fields:
            raise tool_error(str(reply.fields["e"]), str(reply.fields.get("kind", "")))
        if self._tool.final:
            raise FinalAnswer
        return self._values.read(reply)

    def drop(self) -> None:
        self._mailbox.forget(self._number)


class Kernel:
    """Serves one host.

    Args:
        channel: What leads to it.
        copy: Makes a copy of this process that works in a folder, and returns whether this is it.
    """

    def __init__(self, channel: Channel, copy: Callable[[str | None], bool] | None = None) -> None:
        self._channel = channel
        self._copy = copy
        self._interrupts = Interrupts()
        self._interrupts.listen()
        self._mailbox = Mailbox(channel, self._interrupts)
        hello = self._next_order()
        imports, output, calls = hello["imports"], hello["output"], hello["calls"]
        if not isinstance(imports, list) or type(output) is not int or type(calls) is not int:
            raise FrameError("no hello")
        limits: Any = hello.get("limits", {})
        self._workspace = Workspace(imports, self._begin, limits=limits)
        loader = hello.get("loader", b"")
        self._values = Values(self._begin, self._workspace.kept, loader)  # type: ignore[arg-type]  # our host wrote it
        self._output = Output(self._print, output)
        self._errors = _Errors(self._output, self._workspace.without_paths)
        os.system = _refuse_system
        if copy is not None:
            _refuse_processes()
        if "max_threads" in limits:
            _limit_threads(limits["max_threads"])
        self._most_calls = calls
        self._modules = sys.modules  # the code may put something else in its place
        self._imported = self._imports()
        self._lock = threading.Lock()  # of the three below
        self._step: int | None = None
        self._calls = 0
        self._calls_left = 0
        self._reserve = Reserve()

    def _imports(self) -> set[str]:
        return {name for name in PRELOADABLE if name in self._modules}

    def _next_order(self) -> Message:
        self._mailbox.expect(Mailbox.ORDERS)
        frame = self._mailbox.wait(Mailbox.ORDERS)
        fields = frame.fields
        fields["t"] = frame.kind
        if frame.kind == "set":
            fields["v"] = self._values.read(frame)
        elif frame.kind == "hello" and "loader" in fields:
            fields["loader"] = frame.value("loader")
        return fields

    def serve(self) -> NoReturn:
        """Carries out what the host orders, until the host closes the channel."""
        sys.modules["__main__"] = self._workspace.module
        threading.excepthook = self._on_thread_error
        while True:
            order = self._next_order()
            if order["t"] == "exec":
                if order.get("forget"):
                    self._interrupts.forget()
                self._execute(order["id"], order["code"])  # type: ignore[arg-type]  # our host wrote it
            elif order["t"] == "set":
                self._workspace.namespace.update(order["v"])  # type: ignore[call-overload]  # as above
            elif order["t"] == "tools":
                self._workspace.set_tools(ToolSpec(**tool) for tool in order["tools"])  # type: ignore[attr-defined]  # as above
            elif order["t"] == "fork" and self._copy is not None:
                if self._copy(order["folder"]):  # type: ignore[arg-type]  # as above
                    self._renew_locks()
            else:
                raise FrameError(f"an order that is not known: {order['t']}")

    def _renew_locks(self) -> None:
        """Makes all usable in a fork, where other threads are gone with the locks they held."""
        self._interrupts.forget()
        self._channel.renew_lock()
        self._output.renew_lock()
        self._mailbox = Mailbox(self._channel, self._interrupts)
        self._lock = threading.Lock()

    def _execute(self, number: int, code: str) -> None:
        sys.stdout, sys.stderr = self._output, self._errors
        self._interrupts.start_step()
        self._output.start_step()
        with self._lock:
            self._step, self._calls_left = number, self._most_calls
        reply: Message = {"v": None, "text": "", "error": None}
        value, is_final = None, False
        blobs: list[Blob] = []
        try:
            try:
                self._interrupts.release()
                value = self._workspace.run(number, code)
                reply["text"] = show(value)
                reply["v"], blobs = self._encode_result(number, value)
            finally:
                self._interrupts.hold()
        except FinalAnswer:
            self._interrupts.hold()
            is_final = True
        except BaseException as error:
            self._interrupts.hold()  # the signal may have come just before the line above
            self._reserve.give()
            reply.update(v=None, error=self._workspace.explain(error))
            blobs = []
        if reply["error"] is None:
            reply["text"] = f"{reply['text']}{self._notes(number)}"
        if not is_final:
            self._output.write(self._workspace.note_on_tools())
        try:
            self._tell_end(number, value, reply, blobs)
        except MemoryError:  # the code has caught its own, and holds on to all it has
            self._reserve.give()
            self._tell_end(number, value, reply, blobs)
        self._reserve.take()

    def _tell_end(self, number: int, value: object, reply: Message, blobs: list[Blob]) -> None:
        self._output.end_step()
        with self._lock:
            self._step = None
        reply.update(
            id=number,
            threads=threading.active_count() - 1,
            interrupted=self._interrupts.fired,
        )
        if new := self._imports() - self._imported:
            self._imported |= new
            reply["imported"] = sorted(new)
        try:
            self._channel.send("done", reply, blobs)
        except Exception:  # too large a frame, or a thread of the code changed the value meanwhile
            stays = stand_in(value, self._workspace.keep(number, value))
            self._channel.send("done", {**reply, "v": stays})

    def _encode_result(self, number: int, value: object) -> tuple[object, list[Blob]]:
        assigned = self._workspace.assigned

        def keep(part: object) -> object:  # what was assigned has a name
            return stand_in(part, None if assigned else self._workspace.keep(number, part))

        if assigned and _is_large(value):
            return keep(value), []
        try:
            encoded, blobs = encode(value, self._values, keep)
            if sum(map(len, blobs)) <= MAX_RESULT:
                return encoded, blobs
        except CodecError:
            pass
        self._workspace.forget(number)  # parts that were kept before it turned out that all stays
        return keep(value), []

    def _notes(self, number: int) -> str:
        """Names the values of a step that stay here."""
        notes = ""
        for name in self._workspace.kept_by(number)[:_MAX_NOTES]:
            kind = _type_name(self._workspace.kept(name)[0])
            notes += f"\n<{kind} object, kept in the sandbox as {name!r}>"
        return notes

    def _print(self, text: str) -> None:
        with self._interrupts:
            step = self._step
            if step is not None:
                self._channel.send("out", {"id": step, "text": text})

    def _begin(
        self, tool: ToolSpec, args: tuple[object, ...], kwargs: dict[str, object], together: bool
    ) -> Call:
        encoder = Encoder(self._values, self._keep if tool.final else None)
        try:
            sent: Message = {"args": encoder.value(list(args), 0)}
            sent["kwargs"] = encoder.value(kwargs, 0)
        except CodecError as error:
            raise error.under(f"{tool.name}, argument ") from None
        if tool.final:
            answer = next(iter((*args, *kwargs.values())), None)
            notes = "" if self._step is None else self._notes(self._step)
            sent["text"] = f"{show(answer)}{notes}"
        with self._interrupts:
            self._output.flush()
            self._mailbox.reserve()
            number = None
            try:
                with self._lock:
                    if self._step is None:
                        raise ToolError(f"{tool.name} was called after the step had ended")
                    if not self._calls_left:
                        raise ToolError(too_many_calls(tool.name, self._most_calls))
                    self._calls_left -= 1
                    self._calls += 1
                    number = self._calls
                    sent.update(id=number, step=self._step, name=tool.name)
                    if tool.on is not None:
                        sent["on"] = tool.on
                    sent["alone"] = not together and threading.active_count() == 1
                    self._mailbox.expect(number)
                    self._channel.send("call", sent, encoder.blobs)
            except BaseException:
                self._mailbox.release(number)
                raise
        return _KernelCall(tool, number, self._mailbox, self._values)

    def _keep(self, value: object) -> object:
        return stand_in(
            value, None if self._step is None else self._workspace.keep(self._step, value)
        )

    def _on_thread_error(self, args: Any) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            told = self._workspace.explain(args.exc_value)["traceback"]
            name = args.thread.name if args.thread is not None else "a thread"
            self._output.write(f"Exception in {name}:\n{told}\n")


def too_many_calls(name: str, most: int) -> str:
    """Says why a call was not made."""
    return (
        f"{name} was not called: the {most:,} tool calls that one step may make are used up. "
        "Make the others in the next step, or fewer."
    )


def _is_large(value: object) -> bool:
    """Tells whether it costs something to send a value that nobody may have asked for."""
    try:
        return not isinstance(value, (str, bytes)) and len(value) > _MOST_UNASKED  # type: ignore[arg-type]  # see below
    except Exception:  # it has no length, or its class fails to tell
        return False


_MOST_UNASKED = 10_000  # items, or rows of a table
_MAX_NOTES = 3


def show(value: object) -> str:
    """Returns a value's ``str()``, shortened."""
    if isinstance(value, (bytes, bytearray)) and len(value) > MAX_SHOWN:
        return f"{bytes(value[: MAX_SHOWN // 8])!r}… ({len(value):,} bytes in all)"
    try:
        if takes_long_to_write(value):
            return f"<{_type_name(value)} that is too large to be shown>"
        text = _shorten(str(value), MAX_SHOWN)
    except Exception as error:
        if type(value) is int:
            return f"<an int of {_count_digits(value):,} digits>"
        return f"<{_type_name(value)}, whose str() raised {type(error).__name__}>"
    return text if type(value) is str else without_addresses(text)


def _count_digits(number: int) -> int:
    digits = math.log10(abs(number))  # off by less than one part in 10 ** 14
    whole = round(digits)
    if abs(digits - whole) > 1e-6 * max(1.0, digits / 1e6):
        return int(digits) + 1
    return whole + int(abs(number) >= 10**whole)


MAX_WRITING = 2_000_000  # microseconds, roughly
_LISTS = (list, tuple, set, frozenset, collections.deque)
_EDGE = 60  # rows, or columns, that pandas shows at most at either end


def takes_long_to_write(value: object, most: int | None = None) -> bool:
    """Estimates whether `str()` of data takes more than so many microseconds."""
    most = MAX_WRITING if most is None else most
    cost, seen = 0, {}
    parts: list[object] = [value]
    while parts:
        part = parts.pop()
        own, inner = _writing_cost(part)
        cost += own
        if cost > most:
            return True
        if inner and id(part) not in seen:
            seen[id(part)] = part  # so that nothing else gets its id
            parts += inner
    return False


def _writing_cost(part: Any) -> tuple[int, Iterable[object]]:
    """Returns what a value costs by itself, and what is in it."""
    if isinstance(part, (str, bytes, bytearray)):
        return 1 + len(part) // 100, ()
    if isinstance(part, dict):
        return 1 + len(part), itertools.chain(part, part.values())
    if isinstance(part, _LISTS):
        return 1 + len(part), part
    if isinstance(part, Record):
        return 1, part.record_fields.values()
    if isinstance(part, SimpleNamespace):
        return 1, vars(part).values()
    if isinstance(part, BaseException):
        return 1, part.args
    names = getattr(type(part), "__dataclass_fields__", None)
    if names is not None:
        return 1, (getattr(part, name, None) for name in names)
    for module, look in _WRITTEN.items():
        # Only where it is loaded, for else no value can be its.
        if (loaded := sys.modules.get(module)) is not None and (found := look(loaded, part)):
            return found
    return 1, ()


def _model_cost(pydantic: Any, part: Any) -> tuple[int, Iterable[object]] | None:
    return (1, vars(part).values()) if isinstance(part, pydantic.BaseModel) else None


def _array_cost(numpy: Any, part: Any) -> tuple[int, Iterable[object]] | None:
    if not isinstance(part, (numpy.ndarray, numpy.void)):
        return None
    options, shown = numpy.get_printoptions(), part.size
    if shown > options["threshold"]:
        # A short dimension is shown as a whole, so an array of many such is.
        shown = math.prod(min(length, 2 * options["edgeitems"]) for length in part.shape)
    cost = 20 + 10 * shown * _field_count(part.dtype)
    has_objects = part.dtype.kind == "O" and part.size <= MAX_WRITING
    return cost, part.ravel().tolist() if has_objects else ()


def _field_count(dtype: Any) -> int:
    if dtype.names is None:
        return 1
    fields = (dtype[name] for name in dtype.names)
    return sum(_field_count(field.base) * math.prod(field.shape) for field in fields)


def _table_cost(pandas: Any, part: Any) -> tuple[int, Iterable[object]] | None:
    if isinstance(part, pandas.DataFrame):
        part = part.iloc[_edges(part.shape[0]), _edges(part.shape[1])]
        cells = part.to_numpy(dtype=object).ravel().tolist()
        return 10_000, [part.index, part.columns, *cells]
    if isinstance(part, (pandas.Series, pandas.Index)):
        return 1_000, part.take(_edges(len(part))).tolist()
    return None


def _edges(length: int) -> list[int]:
    return [*range(min(length, _EDGE)), *range(max(length - _EDGE, _EDGE), length)]


_WRITTEN: dict[str, Callable[[Any, Any], tuple[int, Iterable[object]] | None]] = {
    "pydantic": _model_cost,
    "numpy": _array_cost,
    "pandas": _table_cost,
}


def stand_in(value: object, name: str | None = None) -> object:
    """What is sent for a value that cannot cross: the host sees that it is not the value itself."""
    return {"$": "kept", "type": _type_name(value), "repr": _safe_repr(value), "name": name}


def serve(
    read_fd: int,
    write_fd: int,
    lock: Callable[[], Mapping[str, object]],
    copy: Callable[[str | None], bool] | None = None,
) -> NoReturn:
    """Builds the walls, then serves the host at the other end of two file descriptors.

    Args:
        read_fd: Where frames come from.
        write_fd: Where frames go.
        lock: Locks this process and returns what is in force. It runs before any byte is read.
        copy: Makes a copy of this process, where that can be done: see `Kernel`.
    """
    channel = Channel(read_fd, write_fd)
    try:
        layers = lock()
        versions = {"python": "{}.{}.{}".format(*sys.version_info[:3]), "kernel": "1"}
        kernel = Kernel(channel, copy)
    except Exception as error:
        kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
        channel.send("failed", {"reason": f"{kind}{error}"})
        os._exit(1)
    channel.send("ready", {"layers": dict(layers), "versions": versions})
    kernel.serve()
