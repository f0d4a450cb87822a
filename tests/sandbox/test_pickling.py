"""What goes into the pickles of functions and classes, and what does not."""

from __future__ import annotations

import dataclasses
import enum
import functools
import logging
import types
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.sandbox import HostObject, kernel
from sanderling.sandbox._host_values import HostValues, Incoming, cloudpickle_source
from sanderling.sandbox._pickling import _definition


class Client:
    def __init__(self, key: str) -> None:
        self.key = key


CLIENT = Client("s3cret key")
LOGGER = logging.getLogger("some.logger")
LIMIT = 7


@dataclasses.dataclass
class Job:
    client: object
    number: int = 1


class Size(enum.Enum):
    BIG = "b"
    SMALL = 1


class Base:
    __hidden = 3

    def get(self) -> int:
        return self.__hidden

    def twice(self) -> int:
        return self.get() * 2


class Derived(Base):
    shared = CLIENT

    def get(self) -> int:
        return super().get() + 10


def uses_client() -> str:
    return CLIENT.key


def logs() -> str:
    return LOGGER.name


def refers() -> int:
    return LIMIT + Derived().twice()


def marked(function: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(function)
    def wrapper(*args: int) -> int:
        return function(*args) + 1

    return wrapper


@marked
def decorated(number: int, *, by: int = 2) -> int:
    return number * by


def closure(left: int) -> Callable[[int], int]:
    return lambda right: left * 10 + right


async def awaited() -> int:
    return LIMIT


def never(*_: object) -> kernel.Call:
    raise AssertionError("nobody calls the host here")


def inside(value: object) -> Any:
    """Sends a value the way it goes into a sandbox, and reads it as a sandbox does."""
    fields, blobs = HostValues().encode(value)
    data = b"".join(kernel.pack("set", fields, blobs))
    (frame,) = kernel.FrameReader().feed(data)
    return kernel.Values(never, lambda name: (), cloudpickle_source()).read(frame)


leaves = (
    st.none()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.sampled_from([CLIENT, LOGGER, Client("x"), Job, Size, refers, Size.BIG, Size.SMALL])
)
things = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner)
        | st.builds(Job, inner.filter(lambda value: not callable(value)), st.integers())
    ),
    max_leaves=10,
)


@settings(deadline=None, max_examples=100)
@given(things)
def test_whatever_goes_in_comes_back(value: object) -> None:
    host = HostValues()
    fields, blobs = host.encode(value)
    (frame,) = kernel.FrameReader().feed(b"".join(kernel.pack("set", fields, blobs)))
    sandbox = kernel.Values(never, lambda name: (), cloudpickle_source())
    encoded, blobs = kernel.encode(sandbox.read(frame), sandbox)
    (frame,) = kernel.FrameReader().feed(b"".join(kernel.pack("done", {"v": encoded}, blobs)))
    assert frame.value("v", Incoming(host)) == value


def sent(value: object) -> bytes:
    fields, blobs = HostValues().encode(value)
    return b"".join(kernel.pack("set", fields, blobs))


def test_what_a_function_refers_to_goes_with_it() -> None:
    assert inside(refers)() == LIMIT + 26
    assert inside(decorated)(5) == 11
    assert inside(closure(4))(2) == 42
    assert inside(logs)() == "some.logger"


@pytest.mark.parametrize("value", [uses_client, Derived, Job, Job(CLIENT), [CLIENT], CLIENT])
def test_no_object_goes_along_by_itself(value: object) -> None:
    assert b"s3cret" not in sent(value)


def test_in_its_place_is_a_reference() -> None:
    with pytest.raises(AttributeError, match="Client object of the host: only tools"):
        inside(uses_client)()
    assert isinstance(inside(Job(CLIENT)).client, kernel.HostReference)
    assert isinstance(inside(Derived).shared, kernel.HostReference)


@pytest.mark.parametrize("value", [refers, decorated, closure(1), Derived, Job])
def test_no_file_of_the_host_is_named(value: object) -> None:
    assert __file__.encode() not in sent(value)


def test_what_cannot_be_loaded_says_why() -> None:
    def broken() -> object:
        return generator

    generator = (n for n in "")
    shown = repr(inside(broken))
    assert "function object of the host" in shown
    assert "only tools can use it" in repr(inside([iter(())])[0])
    with pytest.raises(TypeError, match="cannot be called"):
        inside(CLIENT)()


def test_one_object_has_one_reference() -> None:
    values = inside([CLIENT, {"again": CLIENT}, Client("x")])
    assert values[0] is values[1]["again"]
    assert values[0] is not values[2]


def test_a_class_that_was_sent_is_the_class_of_what_is_sent() -> None:
    kind, job, made = inside([Job, Job(CLIENT), lambda: Job(CLIENT)])
    assert type(job) is kind is type(made())


@pytest.mark.parametrize(
    "function",
    [
        refers,
        closure(4),
        awaited,
        Base.get,
        Base.twice,
        Derived.get,
        decorated.__wrapped__,  # type: ignore[attr-defined]  # what functools.wraps sets
        decorated,
    ],
    ids=lambda function: function.__qualname__,
)
def test_source_stands_in_for_another_pythons_bytecode(function: types.FunctionType) -> None:
    code = function.__code__
    source = _definition(code)
    assert source is not None
    assert "s3cret" not in source
    read = kernel.load_code(b"another", b"", code.co_qualname, source, code.co_freevars)
    assert (read.co_name, read.co_freevars, read.co_names) == (
        code.co_name,
        code.co_freevars,
        code.co_names,
    )
    assert read.co_varnames == code.co_varnames


def test_without_source_another_python_is_told_so() -> None:
    generated = eval("lambda: 1")
    assert _definition(generated.__code__) is None
    with pytest.raises(ImportError, match="another version of Python"):
        kernel.load_code(b"another", b"", "f", None, ())


def test_two_lambdas_of_a_line_are_not_mixed_up() -> None:
    first, _second = lambda: 1, lambda: 2
    assert _definition(first.__code__) is None


@pytest.mark.parametrize(
    ("methods", "attributes", "error"),
    [
        (["_key"], [], ValueError),
        (["__init__"], [], ValueError),
        (["no name"], [], ValueError),
        (["missing"], [], AttributeError),
        (["key"], [], TypeError),
        ([], ["__dict__"], ValueError),
    ],
)
def test_what_is_listed_is_checked(
    methods: list[str], attributes: list[str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        HostObject(CLIENT, methods, attributes)


def test_a_wrapped_object_does_not_show_what_it_holds() -> None:
    assert "s3cret" not in repr(HostObject(CLIENT, attributes=["key"]))
