"""Values of the host that are more than data: code goes in as copies, all else is referred to."""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pydantic
import pytest

from sanderling.sandbox import HostObject, Record, SandboxValue

if TYPE_CHECKING:
    from support.places import Driven, Place

FACTOR = 3
LOCK = threading.Lock()


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Pair(NamedTuple):
    left: Any
    right: Any = None

    def total(self) -> int:
        return int(self.left) + 1


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5
    colour: Colour = Colour.RED
    more: list[object] = dataclasses.field(default_factory=list)

    def moved(self, by: int) -> Point:
        return dataclasses.replace(self, x=self.x + by)


class Order(pydantic.BaseModel):
    number: int
    points: list[Point] = []

    def total(self) -> int:
        return sum(point.x for point in self.points)


class Shape:
    __secret = 2

    def __init__(self, sides: int) -> None:
        self.sides = sides

    def double(self) -> int:
        return self.sides * self.__secret

    @classmethod
    def square(cls) -> Shape:
        return cls(4)


class Cube(Shape):
    def double(self) -> int:
        return super().double() + 100


class Database:
    """Keeps words."""

    def __init__(self) -> None:
        self.words = ["a", "b"]
        self.key = "hidden"
        self.threads: set[int] = set()

    @property
    def size(self) -> int:
        return len(self.words)

    def query(self, start: int, stop: int = 10, *, upper: bool = False) -> list[str]:
        """Returns some words."""
        self.threads.add(threading.get_ident())
        found = self.words[start:stop]
        return [word.upper() for word in found] if upper else found

    def add(self, word: str) -> None:
        self.words.append(word)

    def cursor(self) -> Database:
        return self

    def host_id(self) -> str:
        return "a name that the stand-in uses, too"

    def fail(self) -> None:
        raise LookupError("no such row")

    async def later(self, number: int) -> int:
        return number + 1

    def _drop(self) -> None:
        raise AssertionError


def tripled(number: int) -> int:
    """Multiplies."""
    return number * FACTOR


def nested(number: int) -> int:
    def inner() -> int:
        return tripled(number) + 1

    return inner()


def adder(by: int) -> Callable[[int], int]:
    def add(number: int) -> int:
        return number + by

    return add


def locked() -> str:
    return repr(LOCK)


def imports_os() -> str:
    import os

    return os.sep


# Copies


@pytest.mark.parametrize(
    ("name", "function", "code", "value"),
    [
        ("f", tripled, "f(2)", 6),
        ("f", nested, "f(2)", 7),
        ("f", adder(5), "f(2)", 7),
        ("f", lambda number: number + FACTOR, "f(2)", 5),
        ("f", functools.partial(tripled, 4), "f()", 12),
        ("f", len, "f('abc')", 3),
        ("f", Shape.square, "f().sides", 4),
        ("fs", [tripled, {"g": adder(1)}], "fs[0](1), fs[1]['g'](1)", (3, 2)),
        ("C", Shape, "C(3).double()", 6),
        ("C", Cube, "C(3).double()", 106),
        ("C", Colour, "C.BLUE.value, C['RED'].name", ("b", "RED")),
        ("C", dict, "C(a=1)", {"a": 1}),
    ],
)
def test_functions_and_classes_go_in(
    python: Driven, name: str, function: object, code: str, value: object
) -> None:
    python.interpreter.set_variables({name: function})
    assert python.value(code) == value


def test_a_function_has_its_signature_and_docstring(python: Driven) -> None:
    python.interpreter.set_variables({"f": tripled})
    code = "import inspect\nf.__name__, inspect.getdoc(f), list(inspect.signature(f).parameters)"
    assert python.value(code) == ("tripled", "Multiplies.", ["number"])


def test_what_a_function_may_not_take_along_stays(walled: Place, python: Driven) -> None:
    python.interpreter.set_variables({"f": locked})
    assert python.value("f()") == "<lock object of the host: only tools can use it>"


def test_no_path_of_the_host_goes_in(walled: Place, python: Driven) -> None:
    python.interpreter.set_variables({"f": tripled, "C": Shape})
    names = python.value("f.__code__.co_filename, C.double.__code__.co_filename")
    assert not [name for name in names if "/" in name]


def test_code_that_was_sent_imports_what_it_needs_and_the_models_does_not(
    start: Callable[..., Driven],
) -> None:
    python = start(additional_authorized_imports=[])
    python.interpreter.set_variables({"f": imports_os})
    assert python.value("f()") == "/"
    assert "Import of os is not allowed" in python.error("import os")


def test_instances_go_in_and_come_back(python: Driven) -> None:
    point = Point(1, 2.5, Colour.BLUE, [b"x", {1}])
    seen: list[object] = []
    python.use(take=seen.append, make=lambda: [point, point])
    python.interpreter.set_variables({"p": point, "ps": {"all": [point]}, "Point": Point})
    assert python.value("p.moved(4).x, ps['all'][0].colour.name, type(p).__name__") == (
        5,
        "BLUE",
        "Point",
    )
    assert python.value("type(p) is Point is type(make()[0]), isinstance(p, Point)") == (True, True)
    assert python.value("p.moved(4), [Point(7)]") == (
        Point(5, 2.5, Colour.BLUE, [b"x", {1}]),
        [Point(7)],
    )
    python.value("take(p.moved(1)); take(p.colour); take(Point); take(type(p.colour))")
    assert seen == [point.moved(1), Colour.BLUE, Point, Colour]


def test_fields_come_back_as_the_class_where_it_could_not_go_in(python: Driven) -> None:
    point = Point(1, 2.5, Colour.BLUE)
    python.interpreter.set_variables({"p": point})
    assert python.value("p.x, p.y, p.colour.name, [p]") == (1, 2.5, "BLUE", [point])


def test_models_go_in_and_come_back(python: Driven) -> None:
    order = Order(number=5, points=[Point(1), Point(2)])
    python.interpreter.set_variables({"order": order})
    assert python.value("order.number, [p.x for p in order.points]") == (5, [1, 2])
    assert python.value("order, [order]") == (order, [order])
    if python.run("import pydantic").error is None:
        assert python.value("order.total()") == 3


@pytest.mark.parametrize("code", ["p.x = 'text'\np", "p.new = 1\ndel p.more\np"])
def test_fields_that_do_not_fit_are_a_record(walled: Place, python: Driven, code: str) -> None:
    python.interpreter.set_variables({"p": Point(1)})
    got = python.value(code)
    assert isinstance(got, Record)
    assert got.record_type == "Point"


# Objects that stay


def test_listed_methods_call_the_host(python: Driven) -> None:
    database = Database()
    methods = ["query", "add", "fail", "host_id"]
    python.interpreter.set_variables({"db": HostObject(database, methods, ["size"])})
    assert python.value("db.query(0), db.query(0, 1, upper=True), db.size") == (
        ["a", "b"],
        ["A"],
        2,
    )
    assert python.value("db.add('c')\ndb.size, db.query(start=2)") == (3, ["c"])
    assert database.words == ["a", "b", "c"]
    assert python.value("db.host_id()").startswith("a name")
    told = python.error("x = 1\ndb.fail()")
    assert "line 2, in <module>\n    db.fail()\n" in told
    assert "LookupError: no such row" in told
    assert "missing 1 required positional argument: 'start'" in python.error("db.query()")
    code = "import inspect\ninspect.getdoc(db.query), list(inspect.signature(db.query).parameters)"
    assert python.value(code) == ("Returns some words.", ["start", "stop", "upper"])


@pytest.mark.parametrize("name", ["key", "words", "cursor", "_drop", "__dict__['obj']", "obj"])
def test_nothing_else_is_there(python: Driven, name: str) -> None:
    python.interpreter.set_variables({"db": HostObject(Database(), ["query"])})
    told = python.error(f"x = 1\ndb.{name}")
    assert "AttributeError" in told or "KeyError" in told
    assert "'key'" not in python.value("str(vars(db)) + str(dir(db))")
    assert "hidden" not in python.value("str(vars(db))")


def test_it_shows_what_it_is(python: Driven) -> None:
    python.interpreter.set_variables({"db": HostObject(Database(), ["query"], ["size"])})
    assert python.value("repr(db)") == "<Database object of the host: it has query, size>"
    assert python.value("type(db).__name__, 'query' in dir(db), db is db") == (
        "Database",
        True,
        True,
    )
    assert "only" not in python.error("db.drop()")
    assert "it has query, size" in python.error("db.drop()")


def test_tools_return_objects_and_get_them_back(python: Driven) -> None:
    database, other = Database(), Database()
    seen: list[object] = []
    python.use(
        connect=lambda: HostObject(database, ["query", "cursor"]),
        plain=lambda: other,
        ask=lambda db, *more, **named: seen.extend([db, *more, named]),
    )
    assert python.value("db = connect()\ndb.query(0)") == ["a", "b"]
    python.value("ask(db, [plain()], d={'x': (db,)})\nask(db.cursor())")
    assert seen[:3] == [database, [other], {"d": {"x": (database,)}}]
    assert seen[3] is database
    assert python.value("db") is database


def test_an_object_that_is_not_wrapped_can_be_given_to_tools(walled: Place, python: Driven) -> None:
    database = Database()
    seen: list[object] = []
    python.use(ask=lambda db: seen.append(db))
    python.interpreter.set_variables({"db": database, "data": {"inner": [database, 1]}})
    assert python.value("ask(db), ask(data['inner'][0]), db is data['inner'][0]") == (
        None,
        None,
        True,
    )
    assert seen == [database, database]
    assert python.value("repr(db)") == "<Database object of the host: only tools can use it>"
    told = python.error("db.query(0)")
    assert "'query' is not there" in told
    assert "only tools can use it" in told
    assert "TypeError" in python.error("db()")


@pytest.mark.parametrize(
    "use",
    ["len(db)", "db[0]", "1 in db", "list(db)", "db + 1", "db['a'] = 1", "db < 1", "next(db)"],
)
def test_every_use_of_a_reference_says_what_it_is(walled: Place, python: Driven, use: str) -> None:
    python.interpreter.set_variables({"db": Database(), "large": ["x" * 1000] * 50_000})
    assert "<Database object of the host: only tools can use it>" in python.error(use)
    told = python.error(use.replace("db", "large"))
    assert "<list object of the host (too large: " in told
    assert "at most 33,554,432 can cross): only tools can use it>" in told
    assert "'a' cannot be set: <Database object" in python.error("db.a = 1")
    assert python.value("bool(db), db == 1") == (True, False)


def test_a_generator_of_a_tool_can_be_iterated_over(walled: Place, python: Driven) -> None:
    taken: list[int] = []

    def numbers(most: int) -> Iterator[int]:
        for number in range(most):
            taken.append(number)
            yield number

    def fail() -> Iterator[int]:
        yield 1
        raise LookupError("no more rows")

    pairs = {"a": "b"}
    python.use(numbers=numbers, fail=fail, ask=next, pairs=lambda: filter(None, pairs.items()))
    assert python.value("sum(numbers(1000)), list(pairs()), list(numbers(0))") == (
        499_500,
        [("a", "b")],
        [],
    )
    taken.clear()
    assert python.value("many = numbers(10**9)\nnext(many), next(many), next(many)") == (0, 1, 2)
    assert len(taken) < 10
    assert python.value("ask(many)") == len(taken) - 1
    assert "numbers" not in python.value("repr(many)")
    assert "it can be iterated over, once" in python.value("repr(many)")
    assert "LookupError: no more rows" in python.error("list(fail())")


def test_a_generator_that_is_a_variable_is_for_tools(walled: Place, python: Driven) -> None:
    python.use(take=lambda some: list(some))
    python.interpreter.set_variables({"some": (number for number in range(3))})
    assert "this cannot be iterated over" in python.error("list(some)")
    assert python.value("take(some)") == [0, 1, 2]


def test_kinds_of_the_standard_library_go_in_and_come_back(walled: Place, python: Driven) -> None:
    python.use(same=lambda value: value)
    given = {
        "counts": Counter("aab"),
        "groups": defaultdict(list),
        "order": OrderedDict(a=1),
        "queue": deque([1, 2], 3),
        "numbers": range(3),
        "pair": Pair(1, Colour.RED),
        "access": Access.READ | Access.WRITE,
        "words": re.compile("[a-z]+", re.IGNORECASE),
        "space": SimpleNamespace(a=1),
        "data": BytesIO(b"abc"),
        "problem": KeyError("a"),
    }
    python.interpreter.set_variables(given)
    assert python.value("counts.most_common(1), same(counts)") == ([("a", 2)], Counter("aab"))
    assert python.value("groups['new'].append(1)\nsame(groups)") == {"new": [1]}
    assert python.value("order.move_to_end('a'), queue.appendleft(0), queue.maxlen")[2] == 3
    assert python.value("same(numbers)") == range(3)
    assert python.value("pair.left, type(pair).__name__") == (1, "Pair")
    back = python.value("same([pair, access, queue])")
    assert back == [Pair(1, Colour.RED), Access.READ | Access.WRITE, deque([0, 1, 2])]
    if walled.name != "wasm":  # whose Python is another one, so that classes do not cross
        assert python.value("pair.total()") == 2
        assert (type(back[0]), type(back[1])) == (Pair, Access)
    assert python.value("words.findall('Ab c')") == ["Ab", "c"]
    assert python.value("words") == Record("Pattern", {"pattern": "[a-z]+", "flags": 34})
    assert python.value("space.b = 2\nsame(space)") == SimpleNamespace(a=1, b=2)
    assert python.value("data.read(1)\nsame(data)").read() == b"bc"
    code = "try:\n    raise problem\nexcept KeyError as error:\n    found = same(error)\nfound"
    assert repr(python.value(code)) == "KeyError('a')"
    code = "from collections import namedtuple\nnamedtuple('Point', 'x y')(1, [2])"
    assert (python.value(code).x, python.value(code).y) == (1, [2])


def test_what_is_called_is_no_field(walled: Place, python: Driven) -> None:
    python.use(same=lambda value: value)
    python.interpreter.set_variables({"f": tripled, "pair": Pair(1)})
    code = "from types import SimpleNamespace\nsame(SimpleNamespace(f=f, g=1))"
    assert isinstance(python.value(code).f, SandboxValue)
    assert isinstance(python.value("same(pair._replace(left=f))").left, SandboxValue)
    assert isinstance(python.value("same(ValueError(f))").args[0], SandboxValue)


def test_what_is_too_large_is_referred_to(walled: Place, python: Driven) -> None:
    large = ["x" * 1000] * 50_000
    seen: list[object] = []
    python.use(take=lambda value: seen.append(value))
    python.interpreter.set_variables({"large": large, "small": 1})
    assert "too large" in python.value("repr(large)")
    python.value("take(large)")
    assert seen[0] is large
    assert python.value("small") == 1


def test_references_outlive_the_interpreter(walled: Place, start: Callable[..., Driven]) -> None:
    python = start(timeout_seconds=20)
    python.interpreter.set_variables({"db": HostObject(Database(), ["query"]), "f": tripled})
    assert python.value("db.query(0)") == ["a", "b"]
    python.run("import os; os._exit(1)")
    assert python.value("db.query(0), f(2)") == (["a", "b"], 6)


def test_methods_are_called_at_the_same_time(python: Driven) -> None:
    barrier = threading.Barrier(4, timeout=20)

    class Meeting:
        def meet(self, number: int) -> int:
            barrier.wait()
            return number * number

    python.interpreter.set_variables({"m": HostObject(Meeting(), ["meet"])})
    assert python.value("parallel(m.meet, range(4))") == [0, 1, 4, 9]


def test_a_reference_cannot_be_copied_out(python: Driven) -> None:
    python.interpreter.set_variables({"db": HostObject(Database(), ["query"])})
    assert python.value("import copy\ncopy.copy(db) is db is copy.deepcopy([db])[0]") is True
    assert "cannot be pickled" in python.error("import pickle\npickle.dumps(db)")


# Objects of the sandbox


def test_a_value_that_stays_has_a_name(walled: Place, python: Driven) -> None:
    python.use(final_answer=lambda answer: answer)
    result: Any = python.run("class Thing:\n    def __repr__(self): return '<a thing>'\nThing()")
    name = result.output.name
    assert result.output == SandboxValue("Thing", "<a thing>", name)
    assert f"<Thing object, kept in the sandbox as {name!r}>" in result.text
    assert python.value(f"type({name}).__name__") == "Thing"
    python.interpreter.set_variables({"back": result.output})
    assert python.value(f"back is {name}") is True
    final: Any = python.run("final_answer({'thing': Thing()})")
    assert final.is_final_answer
    assert isinstance(final.output["thing"], SandboxValue)
    assert python.value(f"repr({final.output['thing'].name})") == "<a thing>"


def test_a_name_never_hides_a_variable(walled: Place, start: Callable[..., Driven]) -> None:
    python = start()
    names = "\n".join(f"result_{n} = {n}" for n in range(1, 5))
    python.value(names)
    assert python.value("iter([])").name not in {f"result_{n}" for n in range(1, 5)}
    assert python.value("result_2") == 2


def test_old_values_are_let_go(walled: Place, python: Driven) -> None:
    first = python.value("iter([])").name
    for _ in range(6):
        python.run("iter([])")
    assert "NameError" in python.error(first)


def test_a_tool_is_not_given_what_cannot_leave(walled: Place, python: Driven) -> None:
    python.use(take=lambda value: None)
    told = python.error("class T: pass\ntake([T()])")
    assert "a T cannot cross" in told
    assert "take, argument [0][0]" in told


@pytest.mark.parametrize(
    "code",
    [
        "class Add: name, final, on = 'add', False, db._about['id']\ndb._begin(Add, ('x',), {}, 0)",
        "db._about['id'] = 'ff' * 16\ntake(db)",
    ],
)
def test_what_was_not_given_cannot_be_named(start: Callable[..., Driven], code: str) -> None:
    python = start()
    database = Database()
    python.use(take=lambda value: None)
    python.interpreter.set_variables({"db": HostObject(database, ["query"])})
    assert "KeyError" in python.error(code)
    assert database.words == ["a", "b"]
