"""The code runs in CPython: whatever that answers is the answer."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from sanderling.sandbox import SandboxValue
from support.sandbox import interpreter, run, value

if TYPE_CHECKING:
    from sanderling.sandbox import Interpreter

# Each sets `result`.
SNIPPETS = {
    "default_wins_over_global": """
        x = 10
        def f(x=1): return x
        result = f()
    """,
    "function_without_return": """
        def f(): x = 5
        result = f()
    """,
    "mutable_default_is_shared": """
        def f(items=[]): items.append(1); return len(items)
        result = [f(), f(), f()]
    """,
    "rest_and_keywords": """
        def f(a, *rest, **more): return a, rest, more
        result = f(1, 2, 3, b=4)
    """,
    "positional_and_keyword_only": """
        def f(a, /, b, *, c=3): return a, b, c
        result = [f(1, b=2), f(1, 2, c=4), (lambda a, *b, c=5: (a, b, c))(1, 2)]
    """,
    "wrong_arguments": """
        def f(a): pass
        result = []
        for arguments in ((), (1, 2)):
            try: f(*arguments)
            except TypeError as error: result.append(str(error))
    """,
    "decorators": """
        def twice(f): return lambda *a: 2 * f(*a)
        class C:
            def __init__(self): self._x = 3
            @property
            def x(self): return self._x
            @x.setter
            def x(self, value): self._x = value
            @classmethod
            def make(cls): return cls()
            @staticmethod
            def plain(a): return a
        @twice
        def f(a): return a + 1
        c = C.make(); c.x += 1
        result = f(1), c.x, c.plain(7), C.plain(8)
    """,
    "super_and_metaclass": """
        class Meta(type):
            def __new__(mcs, name, bases, ns, tag=None):
                made = super().__new__(mcs, name, bases, ns); made.tag = tag; return made
        class A(metaclass=Meta, tag="a"):
            def __init__(self, x): self.x = x
            def hi(self): return f"A{self.x}"
        class B(A, tag="b"):
            def __init__(self): super().__init__(1)
            def hi(self): return "B" + super().hi()
        result = B().hi(), A.tag, B.tag, B.__mro__[1].__name__, type(B()).__name__
    """,
    "class_body": """
        class C:
            a = 1
            b = a + 1
            if b > 1: c = [x for x in range(b)]
            class Inner: z = 5
            for i in range(3): pass
        result = C.b, C.c, C.Inner.z, C.i
    """,
    "control_flow_in_try": """
        def f():
            for i in range(5):
                try:
                    if i == 1: continue
                    if i == 3: break
                    if i == 9: return "no"
                except: return "caught"
                finally: log.append(i)
            return i
        log = []
        result = f(), log
    """,
    "return_in_with": """
        class Quiet:
            def __enter__(self): return (1, 2)
            def __exit__(self, *error): return True
        def f():
            with Quiet() as (a, b):
                return a + b
            return "after"
        def g():
            with Quiet(): raise ValueError
            return "after"
        result = f(), g()
    """,
    "exceptions_are_caught_by_their_class": """
        result = []
        for bad in ("{}['a']", "[][1]", "nothing", "''.nothing", "int('x')", "1 / 0"):
            try: eval(bad)
            except (LookupError, NameError, AttributeError, ValueError, ArithmeticError) as e:
                result.append((type(e).__name__, str(e)))
    """,
    "bare_raise_and_cause": """
        def f():
            try: raise ValueError("a")
            except ValueError as error:
                try: raise KeyError("b") from error
                except KeyError: raise
        try: f()
        except KeyError as error: result = repr(error), repr(error.__cause__)
    """,
    "exception_name_is_deleted": """
        try: raise ValueError
        except ValueError as error: pass
        try: error
        except NameError as caught: result = str(caught)
    """,
    "exception_groups": """
        result = []
        try: raise ExceptionGroup("g", [ValueError("a"), TypeError("b"), ValueError("c")])
        except* ValueError as group: result.append([str(e) for e in group.exceptions])
        except* TypeError as group: result.append(len(group.exceptions))
    """,
    "loop_else": """
        result = []
        for i in range(3): pass
        else: result.append("for")
        while False: pass
        else: result.append("while")
        for i in range(3): break
        else: result.append("no")
    """,
    "unpacking": """
        a, *b = [1, 2, 3]
        [c, d] = "xy"
        (e, (f, *g)), h = (1, (2, 3, 4)), 5
        result = a, b, c, d, e, f, g, h, [*b, *"pq"], {**{"x": 1}, "y": 2}, (*b, 9)
    """,
    "walrus_and_comprehensions": """
        data = [y for x in range(5) if (y := x * x) > 3]
        result = data, y, {k: v for k, v in zip("ab", data)}, {x % 2 for x in range(9)}
        result += (list((i, j) for i in range(2) for j in range(i + 1)),)
    """,
    "nonlocal_and_global": """
        count = 0
        def outer():
            n = 0
            def inner():
                nonlocal n
                global count
                n += 1; count += 1
                return n
            inner(); inner()
            return n
        result = outer(), count
    """,
    "late_binding": "result = [f() for f in [lambda: i for i in range(3)]]",
    "generators": """
        def numbers():
            got = yield 1
            yield got
            yield from (3, 4)
            return 5
        def outer():
            last = yield from numbers()
            yield last
        g = outer()
        result = [next(g), g.send("sent"), *g]
    """,
    "match": """
        class P:
            __match_args__ = ("x", "y")
            def __init__(self, x, y): self.x, self.y = x, y
        def kind(v):
            match v:
                case 0 | 1: return "small"
                case [x, *rest] if rest: return ("list", x, rest)
                case {"k": k, **more}: return ("dict", k, more)
                case P(x, y=2): return ("P", x)
                case str(s): return s.upper()
                case _: return None
        result = [kind(v) for v in (1, [1, 2, 3], {"k": 1, "l": 2}, P(7, 2), P(7, 3), "a", [1])]
    """,
    "f_strings": """
        x, w = 3.14159, 8
        result = f"{x!r}|{x:.2f}|{x:>{w}.1f}|{'a'!s:^5}|{x=}|{'nested ' + f'{w}'}|{{}}"
    """,
    "augmented_assignment": """
        items, calls = [1, 2], []
        def index(): calls.append(1); return 0
        items[index()] += 10
        items += (3, 4)
        try: undefined += 1
        except NameError as error: told = str(error)
        result = items, calls, told
    """,
    "shadowing_builtins": """
        sum = 5
        def len(x): return "mine"
        result = sum, len([])
        del sum, len
        result += (sum([1, 2]), len([1]))
    """,
    "redefinition": """
        f = lambda: 1
        def f(): return 2
        result = f()
    """,
    "inner_function_is_local": """
        def f():
            def inner_only(): return 1
            return inner_only()
        result = f(), "inner_only" in globals()
    """,
    "callee_of_any_kind": "result = (len if True else sum)([1]), (None or len)([]), [len][0]('ab')",
    "recursion": """
        def down(n): return 0 if n == 0 else 1 + down(n - 1)
        result = down(800)
        try: down(10**6)
        except RecursionError as error: result = result, type(error).__name__
    """,
    "print_options": """
        class Sink(list):
            def write(self, text): self.append(text)
        sink = Sink()
        print(1, 2, sep="-", end="!", file=sink)
        result = "".join(sink), list(map(print, ()))
    """,
    "dunders": """
        class V:
            def __init__(self, v): self.v = v
            def __matmul__(self, o): return ("matmul", self.v, o.v)
            def __getitem__(self, i): return repr(i)
            def __iadd__(self, o): self.v += o; return self
            def __eq__(self, o): return self.v == o.v
            def __hash__(self): return 1
            def __call__(self, *a): return a
            def __contains__(self, o): return o == 3
            def __getattr__(self, name): return "got " + name
            def __class_getitem__(cls, i): return (cls.__name__, i)
        v = V(1); v += 2
        result = v @ v, v[1:2, ...], v.v, v == V(3), {v: 1}[V(3)], v(1), 3 in v, v.foo, V['i']
        result += (V.__doc__, [].__len__(), (5).__class__.__name__)
    """,
    "assertions": """
        result = []
        for test in ("assert 0", "assert 0, 'told'"):
            try: exec(test)
            except AssertionError as error: result.append(str(error))
    """,
    "imports": """
        import datetime as d, math
        from collections import OrderedDict, namedtuple
        from itertools import *
        result = d.date(2020, 1, 2).isoformat(), math.floor(2.5), list(chain([1], [2]))
        result += (namedtuple("P", "x y")(1, 2).y,)
    """,
    "star_targets_and_chains": """
        a = b, *c = 1, 2, 3
        for i, *rest in [(1, 2, 3), (4,)]: pass
        x = y = []
        x.append(1)
        result = a, b, c, i, rest, y
    """,
    "delete": """
        class O: pass
        o = O(); o.a = 1; items = [1, 2, 3]; d = {"a": 1}
        del o.a, items[1:], d["a"]
        (p, q) = 1, 2
        del (p, q)
        result = hasattr(o, "a"), items, d, "p" in globals()
    """,
    "slices": "x = list(range(10)); x[::2] = 'abcde'; result = x, x[-3:], x[slice(1, 3)]",
    "strings": r"""
        result = "%s %05.1f" % ("a", 2.5), "{0.real:>4}|{a!r}".format(5, a="x"), b"\xff"[0], r"\n"
    """,
    "numbers": "result = 2**100, -7 // 2, -7 % 3, divmod(7, -2), 0.1 + 0.2, 1e400, 5j * 5j",
    "builtins": """
        result = repr("a"), format(3, "05"), bytes([1]), bytearray(b"a"), frozenset([1]), hex(255)
        result += (hash(1), sorted("bca", reverse=True), callable(len), dir([])[:1])
        result += (vars(type("T", (), {"a": 1}))["a"], bin(5))
        result += (eval("1+1"), type("X", (int,), {})(5) + 1, [*map(pow, (2, 3), (3, 2))])
    """,
    "scopes_of_class_and_comprehension": """
        n = 3
        class C:
            n = 5
            values = [n for _ in range(2)]
            first = [i for i in range(n)]
        result = C.values, C.first
    """,
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_answers_as_cpython_does(python: Interpreter, name: str) -> None:
    code = textwrap.dedent(SNIPPETS[name])
    expected: dict[str, Any] = {"__name__": "__main__"}
    exec(code, expected)
    assert value(python, f"{code}\nresult") == expected["result"]


def test_annotated_classes(python: Interpreter) -> None:
    code = """
        from dataclasses import dataclass, field
        import enum, typing

        @dataclass(order=True)
        class Item:
            price: float
            names: list[str] = field(default_factory=list)
            kinds: typing.ClassVar[int] = 3

        class Color(enum.Enum):
            RED = enum.auto()
            BLUE = enum.auto()

        (repr(Item(1.5, ["a"])), Item(1) < Item(2), [c.name for c in Color], Color(2) is Color.BLUE)
    """
    kind = "inprocess" if not python.layers else "local"
    with interpreter(kind, additional_authorized_imports=["dataclasses", "enum", "typing"]) as made:
        assert value(made, textwrap.dedent(code)) == (
            "Item(price=1.5, names=['a'])",
            True,
            ["RED", "BLUE"],
            True,
        )


def test_classes_find_the_module_they_are_from() -> None:
    with interpreter(additional_authorized_imports=["dataclasses", "typing", "pickle"]) as python:
        code = """
            from __future__ import annotations
            import dataclasses, pickle, typing

            @dataclasses.dataclass
            class Item:
                price: float
                kinds: typing.ClassVar[int] = 3

            pickle.loads(pickle.dumps(Item(1.5))) == Item(1.5), repr(Item(2))
        """
        assert value(python, textwrap.dedent(code)) == (True, "Item(price=2)")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("1; 2", 2),
        ("x_last = 5", 5),
        ("'only a string'", "only a string"),
        ("if True:\n    7", 7),
        ("", None),
        ("# nothing", None),
        ("import math", None),
        ("print(1)", None),
        ("(1,\n 2)", (1, 2)),
        ("7;", 7),
        ("x = 1\n\n\nx\n\n", 1),
        ("ｘ = 4; x", 4),  # noqa: RUF001 - identifiers are normalised
    ],
)
def test_the_value_is_that_of_the_last_statement(
    python: Interpreter, code: str, expected: object
) -> None:
    assert value(python, code) == expected


def test_what_was_assigned_is_not_kept_beside_its_variable() -> None:
    code = """
        class Thing:
            def __del__(self): print("gone")
        thing = Thing()
    """
    with interpreter() as python:
        result = run(python, textwrap.dedent(code))
        assert result.text == "<__main__.Thing object>"
        assert isinstance(result.output, SandboxValue)
        assert result.output.name is None
        assert run(python, "thing = None").logs == "gone\n"


def test_what_was_assigned_and_is_large_is_shown_and_stays() -> None:
    with interpreter() as python:
        result = run(python, "many = list(range(10_001))")
        assert result.text.startswith("[0, 1, 2")
        assert isinstance(result.output, SandboxValue)
        assert value(python, "many") == list(range(10_001))


def test_variables_stay_from_step_to_step(python: Interpreter) -> None:
    value(python, "import math\nkept = [1]\ndef add(n): kept.append(n); return math.fsum(kept)")
    value(python, "kept.append(5)")
    assert value(python, "add(2)") == 8
    assert value(python, "__name__") == "__main__"


def test_a_step_that_fails_keeps_what_it_did(python: Interpreter) -> None:
    assert run(python, "before = 1\n1 / 0\nbefore = 2").error is not None
    assert value(python, "before") == 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("async def f(x): return x + 1\nawait f(1)", 2),
        ("async def f(x): return x + 1\nv = await f(1)\nw = await f(v)\nv, w", (2, 3)),
        (
            "async def n():\n    for i in range(3): yield i\n[i async for i in n()]",
            [0, 1, 2],
        ),
        (
            """
class A:
    async def __aenter__(self): return 4
    async def __aexit__(self, *e): return True
async with A() as got:
    raise ValueError
got
""",
            4,
        ),
    ],
)
def test_await_at_the_top(python: Interpreter, code: str, expected: object) -> None:
    assert value(python, code) == expected
