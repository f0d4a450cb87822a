"""Values that come with a task, whatever they are: data, code, and objects that stay here."""

from __future__ import annotations

import asyncio
import collections
import functools
import io
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import pandas  # type: ignore[import-untyped]  # it has no types
import pytest
from PIL import Image
from rich.console import Console

from sanderling import (
    AgentLogger,
    CodeAgent,
    HostObject,
    LogLevel,
    SandboxValue,
    ScriptedModel,
    TaskStep,
    tool,
)
from support.drivers import Driver, both_drivers


class Client:
    """Asks a service, with a key that nobody else shall have."""

    def __init__(self) -> None:
        self.key = "s3cret"
        self.asked: list[str] = []

    def ask(self, text: str) -> str:
        """Asks.

        Args:
            text: What.
        """
        self.asked.append(text)
        return text.upper()

    async def later(self, text: str) -> str:
        self.asked.append(text)
        return text.lower()

    def fail(self) -> None:
        raise OSError("the line is dead")


def agent(*actions: str, **options: Any) -> CodeAgent:
    replies = [f"<code>\n{action}\n</code>" for action in actions]
    options = {"tools": [], "verbosity_level": 0, **options}
    return CodeAgent(model=ScriptedModel(replies), **options)


@both_drivers
@pytest.mark.parametrize("executor", ["local", "inprocess"])
def test_any_object_may_come_with_a_task_and_go_to_a_tool(driver: Driver, executor: str) -> None:
    client = Client()
    seen: list[object] = []

    @tool
    def search(client: Any, text: str) -> str:
        """Searches.

        Args:
            client: Who is asked.
            text: What.
        """
        seen.append(client)
        return str(client.ask(text))

    made = agent(
        "final_answer(search(client, 'a') + search(client=client, text='b'))",
        tools=[search],
        executor_type=executor,
    )
    with made:
        assert driver.run(made, "Go.", additional_args={"client": client}) == "AB"
    assert seen == [client, client]


@both_drivers
@pytest.mark.parametrize("executor", ["local", "inprocess"])
def test_code_calls_the_methods_that_are_listed(driver: Driver, executor: str) -> None:
    client = Client()
    made = agent(
        "client.key",
        "client.fail()",
        "final_answer([client.ask('a'), client.later('B'), parallel(client.ask, 'xy'), client])",
        executor_type=executor,
    )
    given = HostObject(client, methods=["ask", "later", "fail"])
    with made:
        answer = driver.run(made, "Go.", additional_args={"client": given})
        assert answer == ["A", "b", ["X", "Y"], client]
        first, second = (str(step.error) for step in made.memory.steps[1:3])  # type: ignore[attr-defined]  # steps that act
    assert "'key' is not there: <Client object of the host: it has ask, later, fail>" in first
    assert second.endswith("client.fail()\nOSError: the line is dead")
    assert "s3cret" not in first + second


def test_a_connection_is_used_in_the_thread_that_it_belongs_to() -> None:
    connection = sqlite3.connect(":memory:")

    class Store:
        def query(self, text: str) -> list[Any]:
            return connection.execute(text).fetchall()

    made = agent("final_answer(db.query('SELECT 1 + 1'))")
    with made:
        given = {"db": HostObject(Store(), ["query"])}
        assert made.run("Go.", additional_args=given) == [(2,)]
    connection.close()


def test_a_value_that_is_too_large_is_told_to_the_model_and_the_user() -> None:
    shown = io.StringIO()
    logger = AgentLogger(level=LogLevel.INFO, console=Console(file=shown, width=200))
    with agent("final_answer(1)", logger=logger) as made:
        made.run("Go.", additional_args={"big": range(3), "large": [*range(2_100_000)]})
        (step,) = (one for one in made.memory.steps if isinstance(one, TaskStep))
    why = "more than 2,000,000 items: send an array, or less of it"
    assert f"large (list): <list object of the host ({why}): only tools can use it>" in step.task
    assert "big (range): range(0, 3)" in step.task
    told = "large cannot enter the sandbox, so code cannot use it, but give it to tools"
    assert f"{told}: {why}" in shown.getvalue()


def test_the_task_tells_what_code_sees() -> None:
    def shifted(number: int, key: str = "s3cret", *more: int) -> int:
        return number

    table = pandas.DataFrame({"a": [1, 2], "b": [3, 4]})
    stream, image = "<_io.BytesIO object>", "<PIL.Image.Image image mode=L size=2x3>"
    methods = "to let code call its methods, the user gives HostObject(raw, methods=[...])"
    given: dict[str, Any] = {
        "f": shifted,
        "g": lambda x, y=2: x,
        "p": functools.partial(shifted, 1),
        "counts": collections.Counter("aab"),
        "table": table,
        "data": {"stream": io.BytesIO(b"x"), "image": Image.new("L", (2, 3)), "h": shifted},
        "raw": Client(),
    }
    with agent("final_answer(1)") as made:
        made.run("Go.", additional_args=given)
        (step,) = (one for one in made.memory.steps if isinstance(one, TaskStep))
    assert step.task.split("\n")[3:] == [
        "f (function): <function shifted(number: int, key: str = ..., *more: int) -> int>",
        "g (function): <function <lambda>(x, y=2)>",
        "p (partial): <function partial(key: str = ..., *more: int) -> int>",
        "counts (Counter): Counter({'a': 2, 'b': 1})",
        "table (DataFrame):",
        *str(table).split("\n"),
        f"data (dict): {{'stream': {stream}, 'image': {image}, 'h': <function shifted>}}",
        f"raw (Client): <Client object of the host: only tools can use it; {methods}>",
    ]


@both_drivers
def test_functions_come_with_a_task(driver: Driver) -> None:
    offset = 5

    def shifted(number: int) -> int:
        return number + offset

    with agent("final_answer(shifted(1))") as made:
        assert driver.run(made, "Go.", additional_args={"shifted": shifted}) == 6


@both_drivers
def test_an_answer_that_cannot_leave_is_shown(driver: Driver) -> None:
    with agent("class Thing: pass\nfinal_answer(Thing())") as made:
        answer = driver.run(made, "Go.")
        assert isinstance(answer, SandboxValue)
        assert (answer.type, answer.name) == ("Thing", "result_1")


@both_drivers
def test_what_stays_is_told_to_the_model(driver: Driver) -> None:
    with agent("(n for n in 'ab')", "final_answer(list(result_1))") as made:
        assert driver.run(made, "Go.") == ["a", "b"]
        told = made.model.requests[1].messages[-1].text  # type: ignore[attr-defined]  # a ScriptedModel
    assert "<generator object, kept in the sandbox as 'result_1'>" in told


@both_drivers
def test_images_go_to_tools_and_come_from_them(driver: Driver) -> None:
    images = pytest.importorskip("PIL.Image")
    seen: list[Any] = []

    @tool
    def turned(image: Any) -> Any:
        """Turns an image.

        Args:
            image: It.
        """
        seen.append(image)
        return image.rotate(90, expand=True)

    with agent("final_answer(turned(turned(photo)).size)", tools=[turned]) as made:
        given = {"photo": images.new("RGB", (5, 3), (1, 2, 3))}
        assert driver.run(made, "Go.", additional_args=given) == (5, 3)
    assert [image.size for image in seen] == [(5, 3), (3, 5)]
    assert seen[0].getpixel((0, 0)) == (1, 2, 3)


@both_drivers
def test_another_agent_gets_the_very_object(driver: Driver) -> None:
    client = Client()

    inner = agent("final_answer(client.ask('inner'))")

    @tool
    def helper(task: str, additional_args: dict[str, Any] | None = None) -> Any:
        """Solves a task.

        Args:
            task: What.
            additional_args: Values for it.
        """
        given = {name: HostObject(obj, ["ask"]) for name, obj in (additional_args or {}).items()}
        return inner.run(task, additional_args=given)

    outer = agent(
        "final_answer(helper('Ask.', additional_args={'client': client}))", tools=[helper]
    )
    with inner, outer:
        assert driver.run(outer, "Go.", additional_args={"client": client}) == "INNER"
    assert client.asked == ["inner"]


def test_calls_that_come_together_run_together() -> None:
    barrier = threading.Barrier(6, timeout=20)

    def meet(number: int) -> int:
        """Waits for the others.

        Args:
            number: Any.
        """
        barrier.wait()
        return number

    meeting: Callable[..., Any] = tool(meet)
    with agent("final_answer(parallel(meet, range(6)))", tools=[meeting]) as made:
        assert made.run("Go.") == [0, 1, 2, 3, 4, 5]


def test_calls_that_a_step_leaves_open_are_cancelled_with_it() -> None:
    told: list[str] = []

    @tool
    async def forever() -> str:
        """Never returns."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("cancelled")
            raise
        return "never"

    code = "import threading\nthreading.Thread(target=forever).start()\nfinal_answer('done')"
    with agent(code, tools=[forever], additional_authorized_imports=["threading"]) as made:
        assert asyncio.run(made.arun("Go.")) == "done"
    assert told == ["cancelled"]
