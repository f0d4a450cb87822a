"""An agent with each executor type: tools, pictures and variables work in all of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from sanderling import CodeAgent, LogLevel, ScriptedModel, tool
from sanderling.errors import MissingExtraError, SandboxUnavailable
from support.docker_engine import IMAGE
from support.drivers import Driver, both_drivers
from support.wasm import require_wasm

if TYPE_CHECKING:
    from support.docker_engine import Engine
    from support.e2b_server import E2BServer

TYPES = ["local", "inprocess", "docker", "wasm", "e2b", "modal", "blaxel"]
PICTURES = {"local", "inprocess", "docker", "e2b", "modal", "blaxel"}  # where Pillow may be


@tool
def darken(picture: Image.Image, by: int) -> Image.Image:
    """Makes a picture darker.

    Args:
        picture: The picture.
        by: How much.
    """
    return picture.point(lambda value: max(0, value - by))


@tool
def total(numbers: list[int]) -> int:
    """Adds numbers up.

    Args:
        numbers: The numbers.
    """
    return sum(numbers)


@pytest.fixture(params=TYPES)
def place(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any], bool]:
    """The executor type, its settings here, and whether it has Pillow."""
    kind: str = request.param
    if kind == "docker":
        engine: Engine = request.getfixturevalue("docker_engine")
        return kind, {"host": engine.host, "image_name": IMAGE}, engine.libraries
    if kind == "wasm":
        require_wasm()
    elif kind == "e2b":
        server: E2BServer = request.getfixturevalue("e2b_provider")
        return kind, server.options, True
    elif kind in ("modal", "blaxel"):
        request.getfixturevalue(f"{kind}_provider")
    return kind, {}, kind in PICTURES


def code(*lines: str) -> str:
    return "\n".join(["<code>", *lines, "</code>"])


@both_drivers
def test_tools_and_variables(place: tuple[str, dict[str, Any], bool], driver: Driver) -> None:
    kind, settings, _ = place
    replies = [code("more = [n + 1 for n in numbers]"), code("final_answer(total(more))")]
    with CodeAgent(
        [total],
        ScriptedModel(replies),
        executor_type=kind,
        executor_kwargs=settings,
        verbosity_level=LogLevel.OFF,
    ) as agent:
        assert driver.run(agent, "Go", additional_args={"numbers": [1, 2]}) == 5


@both_drivers
def test_pictures(place: tuple[str, dict[str, Any], bool], driver: Driver) -> None:
    kind, settings, pillow = place
    if not pillow:
        pytest.skip("there is no Pillow in it")
    replies = [code("final_answer(darken(picture.rotate(90, expand=True), 10))")]
    with CodeAgent(
        [darken],
        ScriptedModel(replies),
        additional_authorized_imports=["PIL"],
        executor_type=kind,
        executor_kwargs=settings,
        verbosity_level=LogLevel.OFF,
    ) as agent:
        picture = Image.new("L", (2, 3), 50)
        answer = driver.run(agent, "Go", additional_args={"picture": picture})
    assert answer.size == (3, 2)
    assert answer.getpixel((0, 0)) == 40


@both_drivers
def test_managed_agents(place: tuple[str, dict[str, Any], bool], driver: Driver) -> None:
    kind, settings, _ = place
    child = CodeAgent(
        [total],
        ScriptedModel([code("final_answer(total(numbers) * 10)")]),
        name="adder",
        description="Adds numbers up.",
        executor_type=kind,
        executor_kwargs=settings,
        verbosity_level=LogLevel.OFF,
    )
    replies = [
        code("said = adder(task='Add them.', additional_args={'numbers': numbers})"),
        code("final_answer('30' in said)"),
    ]
    with CodeAgent(
        [],
        ScriptedModel(replies),
        managed_agents=[child],
        executor_type=kind,
        executor_kwargs=settings,
        verbosity_level=LogLevel.OFF,
    ) as agent:
        assert driver.run(agent, "Go", additional_args={"numbers": [1, 2]}) is True


@both_drivers
@pytest.mark.parametrize(
    ("kind", "settings", "told"),
    [
        ("docker", {}, "no docker command"),
        ("wasm", {"deno": "/none/deno"}, "no program '/none/deno'"),
        ("e2b", {}, "E2B_API_KEY is not set"),
    ],
)
def test_a_place_that_is_not_there_is_told_before_the_model_is_asked(
    kind: str, settings: dict[str, Any], told: str, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/none")
    monkeypatch.delenv("E2B_API_KEY", raising=False)
    model = ScriptedModel([code("final_answer(1)")])
    agent = CodeAgent(
        [], model, executor_type=kind, executor_kwargs=settings, verbosity_level=LogLevel.OFF
    )
    with pytest.raises(SandboxUnavailable, match=told):
        driver.run(agent, "Go")
    assert model.requests == []


@both_drivers
@pytest.mark.parametrize("kind", ["e2b", "modal", "blaxel"])
def test_a_missing_package_of_a_place_is_told_before_the_model_is_asked(
    kind: str, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, kind, None)
    model = ScriptedModel([code("final_answer(1)")])
    agent = CodeAgent([], model, executor_type=kind, verbosity_level=LogLevel.OFF)
    with pytest.raises(MissingExtraError, match=rf"pip install 'sanderling\[{kind}\]'"):
        driver.run(agent, "Go")
    assert model.requests == []
