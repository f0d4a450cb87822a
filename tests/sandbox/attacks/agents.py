"""Attempts on the agent that runs the code: its tools, its objects, its memory, its console."""

from sandbox.attacks.case import Case, End, Layer

_WIRE: tuple[Layer, ...] = ("wire",)


def _case(
    name: str,
    of: tuple[str, ...],
    code: str | tuple[str, ...],
    end: End = "contained",
    seconds: float = 5.0,
    growth: int = 300 << 20,
    needs: tuple[str, ...] = (),
) -> Case:
    return Case(
        name,
        of,
        code,
        end,
        _WIRE,
        apart=False,
        seconds=seconds,
        growth=growth,
        agent=True,
        needs=needs,
    )


_RECORD = """
from dataclasses import dataclass
@dataclass
class Made:
    dict: object
    model_dump: object
    to_dict: object
    save: object
    items: object
    _repr_html_: object
made = Made(*[{value}] * 6)
print("reached")
"""

CASES = (
    *(
        _case(
            f"fields that the host might call hold {name}",
            ("127",),
            (
                _RECORD.format(value=value) + "made",
                "print('reached')\nfinal_answer([made, {'a': made}])",
            ),
        )
        for name, value in {
            "a function of the host": "wipe",
            "a callable object of the host": "bare",
        }.items()
    ),
    _case(
        "a record with a function to save it, as an image",
        ("127",),
        (
            _RECORD.format(value="wipe"),
            """
for image in (made, [made], [[made]], {"image": made}):
    try: viewer("Look.", images=image)
    except Exception as error: print(type(error).__name__)
    try: viewer("Look.", image)
    except Exception as error: print(type(error).__name__)
print("reached")
""",
        ),
    ),
    _case(
        "the repr of a host's object, by arguments that do not fit",
        ("128",),
        """
for call in (
    lambda: note(db), lambda: note([bare]), lambda: note(text={"a": db}), lambda: price(db),
    lambda: db.ask(bare, 1), lambda: db.ask(nothing=bare), lambda: {}[bare], lambda: 1 + db,
    lambda: print(db, [bare], f"{db!r}"),
):
    try: print(call())
    except Exception as error: print(error)
print("reached")
""",
    ),
    _case(
        "the text of a host's object, by the answer",
        ("128",),
        ("[db, {'a': (bare,)}]", "print('reached')\nfinal_answer([db, {'a': (bare,)}])"),
    ),
    _case(
        "methods of a host's object past approval",
        ("131",),
        """
for call in (db.erase, lambda: parallel(lambda _: db.erase(), range(3))):
    try: call(); print("through")
    except Exception as error: print(error)
forge("call", id=900, step=step(), name="erase", args=[], kwargs={}, alone=True)
print("refused")
""",
        "refused",
    ),
    _case(
        "methods of a host's object past the limit of calls",
        ("131",),
        """
done = 0
try:
    for done in range(1_000): db.ask("x")
except BaseException as error: print(error)
print("limited" if done <= 200 else "through")
""",
        "limited",
    ),
    _case(
        "an error of a tool that has no text",
        ("130",),
        """
def ask(item):
    try: price(item)
    except Exception as error: return len(str(error))
print(ask(10 ** 5_000), parallel(ask, [10 ** 5_000, "b"]))
print("reached")
""",
        seconds=2.0,
    ),
    _case(
        "a tool that ends the program, in parallel",
        ("130",),
        """
def ask(_):
    try: leave()
    except BaseException as error: return type(error).__name__
print(parallel(ask, range(3)))
print("reached")
""",
        seconds=2.0,
    ),
    _case(
        "an answer that a check cannot name",
        ("130",),
        ("print('reached')", "final_answer(10 ** 5_000)", "print('reached')"),
    ),
    _case(
        "arguments that wait for a slow tool",
        ("124",),
        """
data = {"$": "bytes", "i": 0}
fields = {"step": step(), "name": "slow", "args": [data], "kwargs": {}, "alone": False}
frame = bytearray(b"".join(kernel().pack("call", {**fields, "id": 7_000}, [bytes(8 << 20)])))
place = frame.index(b"7000")
for number in range(7_000, 7_100):
    frame[place : place + 4] = b"%d" % number
    shout(frame)
print("reached")
""",
        seconds=10.0,
        growth=300 << 20,
    ),
    _case(
        "an answer that is dear to show",
        ("112",),
        """
import numpy
kinds = [(f"f{n}", "i1") for n in range(4_000)]
print("reached")
final_answer(numpy.zeros(2_000, dtype=kinds))
""",
        seconds=2.0,
        needs=("numpy",),
    ),
    _case(
        "names and texts that a terminal obeys",
        ("129",),
        (
            """
evil = "\\x1b]0;owned\\x07\\x1b[2J\\r\\n\\u202e[bold]x[/bold]\\U000e0100\\u200b"
Evil = type(evil, (), {"__repr__": lambda self: evil, evil: 1})
print("reached", evil)
print("reached")
Evil()
""",
            """
from dataclasses import make_dataclass
Made = make_dataclass("M", ["a"])
Made.__name__ = Made.__qualname__ = evil
print("reached")
[Made(Evil()), Evil(), {evil: evil}]
""",
            "print('reached')\nfinal_answer([Made(Evil()), Evil(), evil])",
        ),
    ),
    _case(
        "an object that shows itself as a text",
        ("129",),
        """
class Text:
    def __repr__(self): return "'report.txt'"
Text.__name__ = Text.__qualname__ = "str"
forged = {"$": "kept", "type": "str", "repr": "'report.txt'", "name": "__class__"}
done(forged)
print("reached")
""",
    ),
    _case(
        "odd values as results, arguments and answers",
        ("113",),
        (
            """
import collections, datetime, decimal, pathlib, uuid
odd = [
    float("nan"), -0.0, 1 << 70_000, "\\x00", "\\ud800", "\\u202e{{ 7 * 7 }}{% raw %}", b"\\xff",
    {"$": "int", "": 3}, {1: 1, "1": 2, None: 3, (1,): 4}, {frozenset({1}): {2}}, 1 + 2j, ...,
    datetime.datetime.max, datetime.timedelta.max, datetime.time(fold=1), uuid.UUID(int=0),
    decimal.Decimal("NaN"), decimal.Decimal("1E+999999"), pathlib.Path("/proc/self/environ"),
    collections.OrderedDict(a=1), range(9), type, print, int, NotImplemented, object(),
]
for value in odd:
    for call in (note, price, db.ask):
        try: call(value)
        except Exception as error: print(type(error).__name__)
print("reached")
""",
            *(f"print('reached')\nodd[{place}]" for place in range(0, 28, 3)),
            "print('reached')\nfinal_answer(odd)",
        ),
        seconds=5.0,
    ),
)
