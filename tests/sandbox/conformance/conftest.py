"""The places that the cases of this folder run in, each under both drivers.

A new place is one more function in `PLACES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.docker_engine import IMAGE, Engine
from support.places import Driven, Form, Place
from support.processes import sandboxes
from support.wasm import denos, require_wasm

if TYPE_CHECKING:
    from sanderling.sandbox import Interpreter
    from support.blaxel_server import BlaxelServer
    from support.e2b_server import E2BServer
    from support.modal_server import ModalServer


def local(request: pytest.FixtureRequest) -> Place:
    return Place("local", wire=3, restores=True, leftovers=_locked_processes)


def inprocess(request: pytest.FixtureRequest) -> Place:
    return Place("inprocess", walls=False)


def docker(request: pytest.FixtureRequest) -> Place:
    engine: Engine = request.getfixturevalue("docker_engine")
    return Place(
        "docker",
        options={"host": engine.host, "image": IMAGE},
        wire=3,
        libraries=engine.libraries,
        leftovers=engine.containers,
    )


def wasm(request: pytest.FixtureRequest) -> Place:
    require_wasm()
    return Place("wasm", wire=3, libraries=False, leftovers=denos)


def e2b(request: pytest.FixtureRequest) -> Place:
    server: E2BServer = request.getfixturevalue("e2b_provider")
    return Place("e2b", options=server.options, wire=3, leftovers=server.alive)


def modal(request: pytest.FixtureRequest) -> Place:
    server: ModalServer = request.getfixturevalue("modal_provider")
    return Place("modal", wire=3, leftovers=server.alive)


def blaxel(request: pytest.FixtureRequest) -> Place:
    server: BlaxelServer = request.getfixturevalue("blaxel_provider")
    return Place("blaxel", wire=3, leftovers=server.alive)


PLACES: dict[str, Callable[[pytest.FixtureRequest], Place]] = {
    "local": local,
    "inprocess": inprocess,
    "docker": docker,
    "wasm": wasm,
    "e2b": e2b,
    "modal": modal,
    "blaxel": blaxel,
}
WITHOUT_WALLS = {"inprocess"}

_NO_THREADS = "Pyodide has no threads"
_OWN_FILES = "its files are its own: Pyodide keeps them in memory"
_OTHER_PYTHON = "what @dataclass generates has no source for another version of Python to compile"
# What does not hold in a place: the name of a test, and a part of the case's.
EXCEPTIONS: dict[str, dict[tuple[str, str], str]] = {
    "wasm": {
        ("test_what_threads_print_is_captured", ""): _NO_THREADS,
        ("test_calls_of_threads_are_open_at_the_same_time", ""): _NO_THREADS,
        ("test_many_calls_of_many_threads_get_their_own_replies", ""): _NO_THREADS,
        ("test_one_of_several_may_fail", ""): _NO_THREADS,
        ("test_functions_that_call_tools_run_together", ""): _NO_THREADS,
        ("test_the_final_answer_is_the_first_one", "thread"): _NO_THREADS,
        ("test_instances_go_in_and_come_back", ""): _OTHER_PYTHON,
        ("test_fields_that_do_not_fit_are_a_record", ""): _OTHER_PYTHON,
        ("test_the_walls_stand", "open('/new', 'w')"): _OWN_FILES,
        ("test_the_walls_stand", "open('../outside', 'w')"): _OWN_FILES,
        ("test_code_that_ends_its_interpreter", "string_at"): "0 is an address in WebAssembly",
        ("test_memory_is_limited", ""): "as 32 bits go, 100 GiB is no size at all: OverflowError",
        ("test_errors_are_told_and_survived", "await 5"): "Python 3.14 has other words for it",
    },
}


# Places that take seconds to start: only the cases of these modules are run in both forms there,
# since the drivers are the same for every place.
IN_BOTH_FORMS = {name: {"test_tools"} for name in ("docker", "wasm", "e2b", "modal", "blaxel")}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = []
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        place = str(params.get("place"))
        module = item.path.stem
        if params.get("form") == "async" and module not in IN_BOTH_FORMS.get(place, {module}):
            left_out.append(item)
        for (test, case), reason in EXCEPTIONS.get(place, {}).items():
            if item.name.partition("[")[0] == test and case in item.name:
                item.add_marker(pytest.mark.xfail(reason=reason))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _locked_processes() -> list[str]:
    return sorted(map(str, sandboxes()))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        walled = "walled" in metafunc.fixturenames
        names = [name for name in PLACES if not (walled and name in WITHOUT_WALLS)]
        metafunc.parametrize("place", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def place(request: pytest.FixtureRequest) -> Place:
    return PLACES[request.param](request)


@pytest.fixture(scope="session")
def walled(place: Place) -> Place:
    """For cases that only hold behind walls: those without are left out."""
    return place


@pytest.fixture(params=["sync", "async"])
def form(request: pytest.FixtureRequest) -> Form:
    form: Form = request.param
    return form


@pytest.fixture(scope="module")
def _shared(place: Place) -> Iterator[Interpreter]:
    with closing(place.create(timeout_seconds=20)) as made:
        yield made


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """These steps follow one another faster than those of an agent; each shall have its copy."""
    monkeypatch.setattr("sanderling.sandbox._checkpoint.SHARE", 1e9)


@pytest.fixture
def python(
    _shared: Interpreter,
    form: Form,
    place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Driven:
    """An interpreter that the cases of a module share, variables and all."""
    if not place.walls:
        monkeypatch.chdir(tmp_path)  # code writes files here
    driven = Driven(_shared, form)
    driven.use()
    return driven


@pytest.fixture
def start(place: Place, form: Form) -> Iterator[Callable[..., Driven]]:
    """Makes interpreters that are closed after the case."""
    with ExitStack() as stack:

        def make(**options: Any) -> Driven:
            return Driven(stack.enter_context(closing(place.create(**options))), form)

        yield make
