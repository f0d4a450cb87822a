"""A pytest plugin: a model is asked once, and its replies are replayed from then on.

In ``conftest.py``::

    pytest_plugins = ["sanderling.testing.plugin"]

and in a test::

    def test_my_agent(recorded_model):
        model = recorded_model(lambda: OpenAIModel("gpt-5-mini"))
        assert CodeAgent([], model).run("What is 6 times 7?") == 42

``pytest --record-models`` asks the model, and writes what it says to ``recordings/`` beside the
test; commit that file. Without the option the function is never called: no key and no network is
needed, and a request that differs from the recorded one fails the test with the difference.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from sanderling.models import Model, RecordingModel, ReplayModel

#: Makes a model of a recording; its argument makes the real one.
RecordedModel: TypeAlias = Callable[[Callable[[], Model]], Model]

_OPTION = "--record-models"
_PASSED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that records."""
    parser.getgroup("sanderling").addoption(
        _OPTION, action="store_true", help="ask the real models, and write down what they say"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes whether the test passed: replies that are left over say nothing where it failed."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture
def recorded_model(request: pytest.FixtureRequest) -> Iterator[RecordedModel]:
    """Makes models that replay what was recorded for this test, or record it."""
    replayed: list[ReplayModel] = []
    made = 0

    def make(real: Callable[[], Model]) -> Model:
        nonlocal made
        made += 1
        path = _path(request.node, made)
        if request.config.getoption(_OPTION):
            path.parent.mkdir(exist_ok=True)
            return RecordingModel(real(), path, overwrite=True)
        if not path.exists():
            pytest.fail(
                f"There is no recording {path}. Make it with: pytest {_OPTION} "
                f"{request.node.nodeid!r}",
                pytrace=False,
            )
        replayed.append(ReplayModel(path))
        return replayed[-1]

    yield make
    for model in replayed:
        if model.remaining and request.node.stash.get(_PASSED, False):
            pytest.fail(
                f"{model.remaining} replies recorded in {model.path} were not asked for: the run "
                f"ended earlier. Record it again if that is meant: pytest {_OPTION} "
                f"{request.node.nodeid!r}",
                pytrace=False,
            )


def _path(item: pytest.Item, number: int) -> Path:
    """Returns where the recording is of the model with this number in a test."""
    name = item.nodeid.partition("::")[2] or item.name
    plain = re.sub(r"[^\w.-]+", "_", name.replace("::", ".")).strip("_")
    if re.search(r"[^\w.:\[\]-]", name):  # another test may look the same without these
        plain += f"-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    more = f".{number}" if number > 1 else ""
    return item.path.parent / "recordings" / f"{item.path.stem}.{plain}{more}.jsonl"
