"""Texts for values of the host: data is shown, everything else is named by its class."""

from __future__ import annotations

import collections
import dataclasses
import decimal
import enum
import io
from typing import Any

import numpy
import pandas  # type: ignore[import-untyped]  # it has no types
import pydantic
import pytest
from PIL import Image

from sanderling.sandbox import (
    HostObject,
    Record,
    SandboxValue,
    described,
    encode_on_host,
    kernel,
    safe_repr,
    safe_str,
    stays_on_host,
    without_objects,
)
from sanderling.tools.agent_types import AgentText
from support.failures import UnwritableError

SECRET = "sk-SECRET"
NAMED = "<Client object of the host>"


class Client:
    def __init__(self) -> None:
        self.key = SECRET

    def __repr__(self) -> str:
        return f"Client(key={self.key!r})"

    def __call__(self) -> str:
        raise AssertionError("nobody calls it")

    dict = model_dump = to_dict = __call__


class Money:
    def __repr__(self) -> str:
        return SECRET

    def __str__(self) -> str:
        return "5 €"


@dataclasses.dataclass
class Settings:
    key: str
    client: object = None
    hidden: str = dataclasses.field(default=SECRET, repr=False)


@dataclasses.dataclass(slots=True)
class Slim:
    key: str


class Model(pydantic.BaseModel):
    key: str
    client: Any = None


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 5, 1.5, "text", b"x", (1, "a"), [1, [2]], {"a": {1}}, range(3)),
        *(collections.OrderedDict(a=1), decimal.Decimal("1.5"), Colour.RED, Settings("public")),
        *(Model(key="public"), Record("R", {"a": 1}), SandboxValue("T", "t"), AgentText("text")),
        *(numpy.arange(3), pandas.DataFrame({"a": ["x", None]}), collections.deque([1])),
        HostObject(Client()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_data_is_shown_as_it_shows_itself(value: object) -> None:
    assert safe_repr(value) == repr(value)
    assert safe_str(value) == str(value)


def test_no_place_in_memory_is_shown() -> None:
    image = Image.new("L", (2, 3))
    shown = "<PIL.Image.Image image mode=L size=2x3>"
    assert (safe_repr(image), safe_repr([image])) == (shown, f"[{shown}]")
    assert safe_repr({"a": io.BytesIO(b"x")}) == "{'a': <_io.BytesIO object>}"
    assert safe_repr("<x at 0x7f0011223344>") == "'<x at 0x7f0011223344>'"


CLIENT = Client()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (CLIENT, NAMED),
        (Money(), "<Money object of the host>"),
        ([1, CLIENT], f"[1, {NAMED}]"),
        ((CLIENT,), f"({NAMED},)"),
        ({"a": {CLIENT: "b"}}, f"{{'a': {{{NAMED}: 'b'}}}}"),
        ({CLIENT}, f"{{{NAMED}}}"),
        (frozenset({CLIENT}), f"frozenset({{{NAMED}}})"),
        (Settings("public", CLIENT), f"Settings(key='public', client={NAMED})"),
        (Model(key="public", client=[CLIENT]), f"Model(key='public', client=[{NAMED}])"),
        (Record("R\x1b", {"f": CLIENT}), f"R\\x1b(f={NAMED})"),
        (len, "<function len>"),
        ([CLIENT.__call__, Client], f"[<function __call__>, {Client!r}]"),
        (numpy.array([CLIENT], dtype=object), "<ndarray object of the host>"),
        (pandas.DataFrame({"a": [CLIENT]}), "<DataFrame object of the host>"),
        (pandas.Series([CLIENT]), "<Series object of the host>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_data_is_named_by_its_class(value: object, shown: str) -> None:
    assert safe_repr(value) == shown
    if not isinstance(value, Money):
        assert safe_str(value) == shown


def test_a_text_that_a_class_defines_for_people_is_shown_to_them() -> None:
    money = Money()
    assert safe_str(money) == "5 €"
    assert safe_repr(money) == safe_str(HostObject(money).obj) == "<Money object of the host>"


@pytest.mark.parametrize(
    "make", [Settings, Slim, lambda key: Model(key=key), lambda key: {"k": key}]
)
def test_an_object_that_was_wrapped_is_no_data_even_if_its_class_is(make: Any) -> None:
    obj, other = make(SECRET), make(SECRET)
    wrapped = HostObject(obj)
    assert (stays_on_host(obj), stays_on_host(other)) == (True, False)
    assert SECRET not in safe_repr([obj, {"a": obj}]) + safe_str(obj) + safe_str({"a": [obj]})
    assert SECRET in safe_repr(other)
    data, blobs = encode_on_host([obj, {"a": obj, "b": 1}], kernel.Extension())
    assert SECRET not in f"{data}{blobs}"
    assert SECRET in f"{encode_on_host([other], kernel.Extension())}"
    assert wrapped.obj is obj


def test_plain_values_are_data_even_if_they_were_wrapped() -> None:
    wrapped = [HostObject(value) for value in (5, "text", (), None)]
    assert not any(stays_on_host(one.obj) for one in wrapped)


def test_errors_are_shown_without_the_objects_that_they_were_made_of() -> None:
    class OwnError(Exception):
        def __str__(self) -> str:
            return "what its author wrote"

    assert safe_str(ValueError("plain")) == "plain"
    assert safe_str(KeyError("a")) == "'a'"
    assert safe_str(KeyError(CLIENT)) == NAMED
    assert safe_str(ValueError("no", CLIENT)) == f"('no', {NAMED})"
    assert safe_str(OwnError(CLIENT)) == "what its author wrote"


def test_every_error_can_be_described() -> None:
    @dataclasses.dataclass
    class TornError(Exception):
        number: int

        def __getattribute__(self, name: str) -> Any:
            if name == "number":
                raise RuntimeError("torn")
            return super().__getattribute__(name)

        def __str__(self) -> str:
            return str(self.number)

    assert described(KeyError("a")) == "KeyError: 'a'"
    assert described(SystemExit(2)) == "SystemExit: 2"
    assert "ValueError" in described(KeyError(10**5_000))
    told = "TornError: <TornError that cannot be shown: RuntimeError>"
    assert described(TornError(1)) == told
    told = "UnwritableError: <UnwritableError that cannot be shown: UnwritableError>"
    assert described(UnwritableError()) == told


def test_a_value_of_any_size_and_depth_has_a_text() -> None:
    cyclic: list[object] = []
    cyclic.append(cyclic)
    assert "[[...]]" in safe_repr(cyclic)
    wide: object = CLIENT
    for _ in range(6):
        wide = [wide] * 1000
    assert len(safe_repr(wide)) < 1_000_000
    assert safe_repr([10**5000, CLIENT]).startswith("[<int that cannot be shown: ValueError")


def test_the_exact_form_of_what_stays_names_its_class() -> None:
    data, blobs = encode_on_host([1, CLIENT], kernel.Extension())
    assert blobs == []
    frame = kernel.Frame("value", {"v": data}, [], tagged=True)
    assert frame.value("v") == [1, SandboxValue("Client", "it stayed on the host")]
    assert without_objects([1, CLIENT]) == frame.value("v")
