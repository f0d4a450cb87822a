"""Texts for values that nobody vouches for."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import math
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

MAX_QUOTED: Final = 2_000
MAX_COST: Final = 2_000_000  # microseconds, roughly
_LISTS = (list, tuple, set, frozenset, collections.deque)
_EDGE = 60  # rows, or columns, that pandas shows at most at either end

_UNUSUAL = re.compile(r"[^\t\n -~]+")
# What fonts draw as nothing although it is a letter, a mark or a symbol: Unicode's
# Default_Ignorable_Code_Point beside the categories below, and two blank symbols.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)
_JOINER = "\u200d"
_VARIANTS = "\ufe0e\ufe0f"


def text_of(value: object, write: Callable[[object], str] = str) -> str:
    """Returns `str(value)`, or for a value that cannot be written the reason why.

    Integers of more than 4,300 digits are such values, and whatever a hostile ``__str__`` raises;
    and data that it would take seconds to write, such as an array of many short dimensions.

    Args:
        value: Anything.
        write: `str` or `repr`.
    """
    try:
        if _cost(value) > MAX_COST:
            return f"<{type(value).__name__} that is too large to be shown>"
        return write(value)
    except Exception as error:  # whatever the value's own code raises
        reason = type(error).__name__
        with contextlib.suppress(Exception):
            reason = f"{reason}: {error}"
        return f"<{type(value).__name__} that cannot be shown: {reason}>"


def visible(text: str) -> str:
    r"""Returns `text` with every character that acts, or shows nothing, written as an escape.

    These are controls, formats, private and unassigned characters, surrogates and fillers: an
    escape character becomes the four characters ``\x1b``. Line ends, tabs and spaces stay, and so
    does what joins emoji, directly after an emoji.
    """
    return text if text.isascii() and text.isprintable() else _UNUSUAL.sub(_visible_run, text)


def _visible_run(match: re.Match[str]) -> str:
    run = match[0]
    if run.isprintable() and not _BLANK.search(run):
        return run
    return "".join(
        char if _is_visible(char) or _joins_emoji(run, place) else _escape(char)
        for place, char in enumerate(run)
    )


def _is_visible(char: str) -> bool:
    return (char.isprintable() or _category(char) == "Zs") and not _BLANK.match(char)


def _joins_emoji(run: str, place: int) -> bool:
    if run[place] == _JOINER and _is_emoji(run[place + 1 : place + 2]):
        before = place - 1 - (run[place - 1 : place] in tuple(_VARIANTS))
        return before >= 0 and _is_emoji(run[before])
    return run[place] in _VARIANTS and place > 0 and _is_emoji(run[place - 1])


def _is_emoji(char: str) -> bool:
    is_symbol = char != "" and _category(char) == "So" and not _BLANK.match(char)
    return is_symbol or "\U0001f3fb" <= char <= "\U0001f3ff"  # these are skin tones


def _category(char: str) -> str:
    import unicodedata  # most texts need none of it

    return unicodedata.category(char)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def quoted(reply: str) -> str:
    """Returns a sentence that quotes a model's reply, cut to what it takes to recognize it."""
    if not reply.strip():
        return "It was empty."
    more = len(reply) - MAX_QUOTED
    rest = f"… ({more} more characters)" if more > 0 else ""
    return f"It was:\n{reply[:MAX_QUOTED]}{rest}"


def _cost(value: object) -> int:
    """Estimates how long writing data takes, in microseconds. All beyond `MAX_COST` is alike."""
    cost, parts, seen = 0, [value], {}
    while parts and cost <= MAX_COST:
        part = parts.pop()
        own, inner = _own_cost(part)
        cost += own
        if inner and cost <= MAX_COST and id(part) not in seen:
            seen[id(part)] = part  # so that nothing else gets its id
            parts += inner
    return cost


def _own_cost(part: Any) -> tuple[int, Iterable[object]]:
    """Returns what a value costs by itself, and what is in it."""
    if isinstance(part, str | bytes | bytearray):
        return 1 + len(part) // 100, ()
    if isinstance(part, dict):
        return 1 + len(part), itertools.chain(part, part.values())
    if isinstance(part, _LISTS):
        return 1 + len(part), part
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return 1, (getattr(part, field.name, None) for field in dataclasses.fields(part))
    for module, look in _LIBRARIES.items():
        # Only where it is loaded, for else no value can be its.
        if (loaded := sys.modules.get(module)) is not None and (found := look(loaded, part)):
            return found
    return 1, ()


def _record(kernel: Any, part: Any) -> tuple[int, Iterable[object]] | None:
    return (1, part.record_fields.values()) if isinstance(part, kernel.Record) else None


def _model(pydantic: Any, part: Any) -> tuple[int, Iterable[object]] | None:
    return (1, vars(part).values()) if isinstance(part, pydantic.BaseModel) else None


def _array(numpy: Any, part: Any) -> tuple[int, Iterable[object]] | None:
    if not isinstance(part, numpy.ndarray | numpy.void):
        return None
    options, shown = numpy.get_printoptions(), part.size
    if shown > options["threshold"]:
        # A short dimension is shown as a whole, so an array of many such is.
        shown = math.prod(min(length, 2 * options["edgeitems"]) for length in part.shape)
    cost = 20 + 10 * shown * _fields(part.dtype)
    has_objects = part.dtype.kind == "O" and part.size <= MAX_COST
    return cost, part.ravel().tolist() if has_objects else ()


def _fields(dtype: Any) -> int:
    if dtype.names is None:
        return 1
    fields = (dtype[name] for name in dtype.names)
    return sum(_fields(field.base) * math.prod(field.shape) for field in fields)


def _table(pandas: Any, part: Any) -> tuple[int, Iterable[object]] | None:
    if isinstance(part, pandas.DataFrame):
        part = part.iloc[_edges(part.shape[0]), _edges(part.shape[1])]
        cells = part.to_numpy(dtype=object).ravel().tolist()
        return 10_000, [part.index, part.columns, *cells]
    if isinstance(part, pandas.Series | pandas.Index):
        return 1_000, part.take(_edges(len(part))).tolist()
    return None


def _edges(length: int) -> list[int]:
    return [*range(min(length, _EDGE)), *range(max(length - _EDGE, _EDGE), length)]


_LIBRARIES: dict[str, Callable[[Any, Any], tuple[int, Iterable[object]] | None]] = {
    "sanderling.sandbox.kernel": _record,
    "pydantic": _model,
    "numpy": _array,
    "pandas": _table,
}
