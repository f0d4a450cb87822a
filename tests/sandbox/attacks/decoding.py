"""Attempts on what the host reads: frames that cost more than their bytes, odd values."""

from sandbox.attacks.case import Case, End, Layer

_WIRE: tuple[Layer, ...] = ("wire",)
_QUICK = 2.0  # seconds for a step; what its frames cost the host counts as its time
_SMALL = 400 << 20  # bytes that the host may take
_TABLES = ("numpy", "pandas")
_ARRAY = """lambda place, kind, *shape: {
    "$": "ndarray", "t": kind, "s": list(shape), "i": place, "scalar": False}"""


def _case(
    name: str,
    of: str,
    code: str,
    end: End = "violation",
    needs: tuple[str, ...] = (),
    seconds: float = _QUICK,
    growth: int = _SMALL,
) -> Case:
    return Case(
        name, (of,), code, end, _WIRE, apart=False, seconds=seconds, growth=growth, needs=needs
    )


def _frame(name: str, of: str, text: str, end: End = "violation") -> Case:
    """A frame of this text."""
    code = f"import struct\ntext = {text}\nshout(struct.pack('<II', len(text), 0) + text)"
    return _case(name, of, f"{code}\nprint('reached')\n'reached'", end)


def _forged(
    name: str,
    of: str,
    value: str,
    end: End = "violation",
    needs: tuple[str, ...] = (),
    before: str = "",
) -> Case:
    """The end of the step, with a value that no encoder writes."""
    code = f"{before}\nvalue, blobs = {value}\ndone(value, blobs)\nprint('reached')\n'reached'"
    return _case(name, of, code, end, needs, seconds=4.0)


_NUMBER = "n = int('1' + '0' * 800_000 + '5', 16)\n"
_BOTH = "[{'$': 'decimal', 'v': str(hash(n))}, {'$': 'int', 'v': hex(n)}]"
# What pandas looks for in one place all.
_SAME_HASH = f"""
import numpy
array = {_ARRAY}
high = numpy.arange(1, 150_001) * 2
shift = high >> 1
low = (shift ^ (shift << 11) ^ (shift << 22)) & 0xFFFFFFFF
same = numpy.random.default_rng(0).permutation((high << 32) | low)
codes = numpy.arange(len(same))
"""
_LABELS = "{'$': 'index', 'names': [None], 'v': [[1]]}"
_TABLE = f"{{'$': 'table', 'k': {_LABELS}, 'n': None, 'v': [[1]], 'rows': 1}}"

COSTS = (
    _frame(
        "marks and quotes that take quadratic time to count",
        "123",
        "b',' * 4_000_001 + b'\\\\\"' * 30_000",
    ),
    _frame(
        "one text without an end, of two million escapes",
        "123",
        'b\'{"t":"out","b":[],"v":"\' + b\'\\\\\\\\\\\\"\' * 2_000_000',
    ),
    *(
        _forged(
            f"a number and a long integer of one hash in {what}",
            "112",
            f"{value}, []",
            needs=_TABLES if what == "an index" else (),
            before=_NUMBER,
        )
        for what, value in {
            "a set": f"{{'$': 'set', 'v': {_BOTH}}}",
            "a dict": f"{{'$': 'dict', 'k': {_BOTH}, 'v': [1, 2]}}",
            "an index": f"{{'$': 'index', 'names': {_BOTH}, 'v': [[1], [1]], 'codes': []}}",
        }.items()
    ),
    _forged(
        "categories that collide",
        "112",
        """(
    {"$": "series", "name": None, "n": None, "v": {
        "$": "categories", "c": array(0, "|i1", 1), "v": array(1, "<i8", len(same)),
        "ordered": False}},
    [b"\\0", same.tobytes()],
)""",
        needs=_TABLES,
        before=_SAME_HASH,
    ),
    _forged(
        "levels of an index that collide",
        "112",
        """(
    {"$": "index", "names": ["a", "b"], "v": [array(0, "<i8", len(same)), ["x"]],
     "codes": [array(1, "<i8", len(same)), array(2, "|i1", len(same))]},
    [same.tobytes(), codes.tobytes(), bytes(len(same))],
)""",
        "contained",
        needs=_TABLES,
        before=_SAME_HASH,
    ),
    _forged(
        "levels of an index of integers of one hash",
        "112",
        """(
    {"$": "index", "names": ["a", "b"], "v": [{"$": "objects", "s": [20_000], "v": [
        {"$": "int", "v": hex(n * ((1 << 61) - 1))} for n in range(20_000)]}, ["x"]],
     "codes": [array(0, "<i8", 20_000), array(1, "|i1", 20_000)]},
    [codes[:20_000].tobytes(), bytes(20_000)],
)""",
        "contained",
        needs=_TABLES,
        before=_SAME_HASH,
    ),
    _forged("tens of thousands of tables", "123", f"[{_TABLE}] * 60_000, []", needs=_TABLES),
    _forged("tens of thousands of indexes", "123", f"[{_LABELS}] * 60_000, []", needs=_TABLES),
    _forged(
        "an image of 60 million rows without a pixel",
        "123",
        "{'$': 'image', 'mode': 'L', 's': [0, 60_000_000], 'i': 0}, [b'']",
        needs=("PIL",),
    ),
    _forged(
        "an array of 8,000 fields",
        "123",
        "{**array(0, '', 1), 't': [[f'f{n}', '|i1', []] for n in range(8_000)]}, [bytes(8_000)]",
        "contained",
        needs=("numpy",),
        before=f"array = {_ARRAY}",
    ),
    _forged(
        "a path of 400,000 parts",
        "123",
        "{'$': 'path', 'v': '/'.join('a' * 400_000)}, []",
    ),
    _case(
        "replies that are never read",
        "124",
        """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
for number in range(2_000, 2_500):
    forge("call", id=number, step=step(), name="page", args=[], kwargs={}, alone=True)
time.sleep(60)
""",
        "limited",
        seconds=1.0,
        growth=200 << 20,
    ),
    _case(
        "the channel shut for reading",
        "125",
        """
import socket
talk = socket.socket(fileno=3)
talk.shutdown(socket.SHUT_RD)
talk.detach()
page()
""",
        "ended",
        seconds=2.0,
    ),
    _case(
        "half a header, then no more",
        "125",
        """
import socket
shout(b"\\1\\2\\3")
talk = socket.socket(fileno=3)
talk.shutdown(socket.SHUT_WR)
talk.detach()
""",
        "ended",
        seconds=2.0,
    ),
)

_EIGHT = "{'$': 'ndarray', 't': '<f8', 's': [1], 'i': 0, 'scalar': False}"
_IMAGE = "{'$': 'image', 'mode': 'L', 's': [True, True], 'i': 0}"
_NAMES = """[
    {'$': 'record', 'type': '\\x00', 'k': ['\\ud800', '__class__', ''], 'v': [1, 2, 3]},
    {'$': 'kept', 'type': '\\ud800', 'repr': '\\x00', 'name': '__class__'},
    {'$': 'path', 'v': 'a\\x00b'},
]"""
_SERIES = "{{'$': 'series', 'name': None, 'n': None, 'v': {column}}}"
_ZONED = "{{'$': 'zoned', 'v': array(0, '<M8[s]', 1), 'zone': {zone}}}"
_FIELDS = "{{**array(0, '', 1), 't': {fields}}}"
_COLUMNS = "{{'$': 'index', 'names': [None], 'v': [{labels}]}}"
_COLUMNED = "{{'$': 'table', 'k': {columns}, 'n': None, 'v': {values}, 'rows': 1}}"

_ODD: dict[str, str] = {
    "a size that is a bool": f"{{**{_EIGHT}, 's': [True]}}, [bytes(8)]",
    "a blob by a bool": f"{{**{_EIGHT}, 'i': False}}, [bytes(8)]",
    "an image whose size is of bools": f"{_IMAGE}, [b'x']",
    "an id of a host's object, guessed": "{'$': 'host', 'id': '0' * 32}, []",
    "an id that is a list": "{'$': 'host', 'id': [1]}, []",
    "a function by the number 0": "{'$': 'code', 'n': 0}, []",
    "a function by a list": "{'$': 'code', 'n': [1]}, []",
    "a class by True": "{'$': 'record', 'type': 'x', 'k': [], 'v': [], 'class': True}, []",
    "a type that is a list": "{'$': ['int'], 'v': '1'}, []",
}
_ODD_ZONES: dict[str, str] = {
    "a path": "'../../../etc/passwd'",
    "a number too large": "1e300",
    "the path of a secret": "secret_file",
}
_ARRAYS: dict[str, str] = {
    "dates in ninths of attoseconds": "array(0, '<M8[9as]', 1)",
    "bools that are none": "array(0, '|b1', 8)",
    "32 dimensions": "array(0, '|i1', *[1] * 31, 8)",
    "fields within fields": _FIELDS.format(fields="[['a', [['b', [['c', '<f8', []]], []]], []]]"),
    "a field with no name": _FIELDS.format(fields="[['', '<f8', []]]"),
}
_IMPOSSIBLE_ARRAYS: dict[str, str] = {
    "70 dimensions": "array(0, '|i1', *[1] * 69, 8)",
    "a field that is too large": _FIELDS.format(fields="[['a', '<f8', [(1 << 63) - 1]]]"),
}
_IMPOSSIBLE_TABLES: dict[str, str] = {
    "a dict for a name": """{
    '$': 'series', 'name': {'$': 'dict', 'k': [], 'v': []}, 'n': None, 'v': [1]}""",
    "codes past the end": """{
    '$': 'index', 'names': [None, None], 'v': [['a', 'b'], ['c']],
    'codes': [array(1, '|i1', 2), array(0, '|i1', 2)]}""",
    "columns of different lengths": _COLUMNED.format(
        columns=_COLUMNS.format(labels="[1, 2]"), values="[[1], [2, 3]]"
    ),
}

FORMS = (
    _frame(
        "the mark of a type, spelt as an escape",
        "126",
        """kernel().json.dumps({
    "t": "done", "b": [], "id": step(), "v": {"$": "pickle", "v": "x"}, "text": "reached",
    "error": None, "threads": 0, "interrupted": False,
}).replace("$", "\\\\u0024").encode()""",
        "contained",
    ),
    _forged("names that are no text", "126", f"{_NAMES}, []", "contained"),
    *(_forged(name, "126", value) for name, value in _ODD.items()),
    *(
        _forged(
            f"a time zone that is {name}",
            "126",
            f"{_SERIES.format(column=_ZONED.format(zone=zone))}, [bytes(8)]",
            needs=_TABLES,
            before=f"array = {_ARRAY}",
        )
        for name, zone in _ODD_ZONES.items()
    ),
    *(
        _forged(
            f"an array of {name}",
            "113",
            f"{value}, [bytes(8)]",
            "violation" if name in _IMPOSSIBLE_ARRAYS else "contained",
            needs=("numpy",),
            before=f"array = {_ARRAY}",
        )
        for name, value in (_ARRAYS | _IMPOSSIBLE_ARRAYS).items()
    ),
    _case(
        "images of rare modes as results",
        "113",
        """
from PIL import Image
print("reached")
[Image.new(mode, size) for mode in ("CMYK", "F", "La", "LAB", "1", "I;16", "YCbCr")
 for size in ((0, 100), (3, 2))]
""",
        "contained",
        needs=("PIL",),
        seconds=4.0,
    ),
    _forged(
        "a table with labels twice",
        "113",
        _COLUMNED.format(columns=_COLUMNS.format(labels="[None, None]"), values="[[1], [2]]")
        + ", []",
        "contained",
        needs=_TABLES,
    ),
    *(
        _forged(
            f"a table with {name}",
            "113",
            f"{value}, [bytes(2), bytes([0, 9])]",
            needs=_TABLES,
            before=f"array = {_ARRAY}",
        )
        for name, value in _IMPOSSIBLE_TABLES.items()
    ),
)

CASES = (*COSTS, *FORMS)
