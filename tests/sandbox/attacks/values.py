"""Attempts on the host by values that no encoder writes."""

from sandbox.attacks.case import Case, End, Layer

_WIRE: tuple[Layer, ...] = ("wire",)
# The hash of an int is its remainder by this prime.
_COLLIDING = "[{'$': 'int', 'v': hex(n * ((1 << 61) - 1))} for n in range(1, 50_000)]"


def _forged(
    name: str,
    of: tuple[str, ...],
    value: str,
    end: End = "violation",
    needs: tuple[str, ...] = (),
) -> Case:
    """The end of the step, with a value that no encoder writes."""
    code = f"value, blobs = {value}\ndone(value, blobs)\nprint('reached')\n'reached'"
    return Case(name, ("78", *of), code, end, _WIRE, apart=False, needs=needs)


CASES = (
    _forged("a type that is not known", ("51",), "{'$': 'pickle', 'v': 'gASV'}, []"),
    _forged("a blob that is not there", (), "{'$': 'bytes', 'i': 5}, []"),
    _forged("a blob before the first", (), "{'$': 'bytes', 'i': -1}, [b'x']"),
    _forged(
        "an array of objects",
        ("51", "52"),
        "{'$': 'ndarray', 't': '|O', 's': [1], 'i': 0, 'scalar': False}, [bytes(8)]",
    ),
    _forged(
        "an array larger than its bytes",
        (),
        "{'$': 'ndarray', 't': '<f8', 's': [1 << 40], 'i': 0, 'scalar': False}, [bytes(8)]",
        needs=("numpy",),
    ),
    _forged(
        "an array of negative size",
        (),
        "{'$': 'ndarray', 't': '<f8', 's': [-1, -1], 'i': 0, 'scalar': False}, [bytes(8)]",
    ),
    _forged(
        "an array of impossible text",
        ("113",),
        "{'$': 'ndarray', 't': '<U1', 's': [1], 'i': 0, 'scalar': False}, [b'\\xff' * 4]",
        "contained",
    ),
    _forged(
        "an image of 4 gigapixels",
        ("56",),
        "{'$': 'image', 'mode': 'L', 's': [65536, 65536], 'i': 0}, [b'x']",
    ),
    _forged(
        "an image of a mode that is none",
        ("56",),
        "{'$': 'image', 'mode': 'P;16', 's': [1, 1], 'i': 0}, [b'x']",
    ),
    _forged(
        "a set of members that collide",
        ("112",),
        f"{{'$': 'set', 'v': {_COLLIDING}}}, []",
    ),
    _forged(
        "keys that collide",
        ("112",),
        f"{{'$': 'dict', 'k': {_COLLIDING}, 'v': [0] * 49_999}}, []",
    ),
    _forged(
        "integers that differ in high bits only",
        ("112",),
        "{'$': 'set', 'v': [n << 44 for n in range(1, 100_000)]}, []",
        "contained",
    ),
    _forged(
        "a number of millions of digits",
        ("65", "112"),
        "{'$': 'decimal', 'v': '9' * 3_000_000}, []",
        "contained",
    ),
    _forged(
        "an integer of millions of digits",
        ("65", "112"),
        "{'$': 'int', 'v': '0x' + 'f' * 8_000_000}, []",
        "contained",
    ),
    _forged("a date that is none", ("113",), "{'$': 'datetime', 'v': '9999-99-99', 'fold': 0}, []"),
    _forged(
        "a path that is the host's",
        ("89",),
        "{'$': 'path', 'v': '/proc/self/environ'}, []",
        "contained",
    ),
    _forged(
        "a record that names its own slots",
        ("47",),
        "{'$': 'record', 'type': 'x', 'k': ['__class__', 'record_fields'], 'v': [1, 2]}, []",
        "contained",
    ),
    _forged(
        "as many small objects as may cross",
        ("72", "112"),
        "[{'$': 'none'}, *({'': 0} for _ in range(1_900_000))], []",
        "contained",
    ),
    *(
        Case(
            f"millions of {name}",
            ("72", "112"),
            f"""
import struct
text = b'{{"t":"out","id":0,"text":"","b":[],"v":[' + b",".join([{part!r}] * {count}) + b"]}}"
shout(struct.pack("<II", len(text), 0) + text)
""",
            "violation",
            _WIRE,
            apart=False,
        )
        for name, part, count in (
            ("empty lists", b"[]", 7_000_000),
            ("small objects", b'{"":0}', 4_000_000),
            ("values of a type", b'{"$":"none"}', 2_300_000),
        )
    ),
)
