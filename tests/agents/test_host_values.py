"""Nothing that comes out of a sandbox makes the host act, or shows what stays on the host."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pydantic
import pytest

from console.screen import Screen
from sanderling import (
    ActionStep,
    AgentLimitError,
    AgentMemory,
    ApprovalRequest,
    CodeAgent,
    HostObject,
    Record,
    RunLimits,
    ScriptedModel,
    ToolCallingAgent,
    tool,
)
from sanderling.loop import CallTool
from support.drivers import Driver, both_drivers
from support.play import says

SECRET = "sk-SECRET"


class Client:
    """Asks a service, with a key."""

    def __init__(self) -> None:
        self.key = SECRET
        self.asked: list[str] = []

    def __repr__(self) -> str:
        return f"Client(key={self.key!r})"

    @property
    def size(self) -> int:
        self.asked.append("size")
        return 7

    def ask(self, text: str, *more: str, times: int = 1) -> str:
        """Asks.

        Args:
            text: What.
        """
        self.asked.append(text)
        return " ".join([text, *more]) * times

    async def later(self, text: str) -> str:
        self.asked.append(text)
        return text


@dataclasses.dataclass
class Keyed:
    key: str = SECRET


@dataclasses.dataclass
class Job:
    dict: object = None
    model_dump: object = None
    save: object = None


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    run: Any = None


def agent(*actions: str, **options: Any) -> CodeAgent:
    replies = [f"<code>\n{action}\n</code>" for action in actions]
    return CodeAgent(model=ScriptedModel(replies), **{"tools": [], "verbosity_level": 0, **options})


def sent(made: CodeAgent | ToolCallingAgent) -> str:
    """Returns all that the model was sent."""
    assert isinstance(made.model, ScriptedModel)
    messages = [message for request in made.model.requests for message in request.messages]
    return "\n".join(json.dumps(message.dict()) for message in messages)


def written(memory: AgentMemory) -> str:
    """Returns all that a memory writes."""
    return f"{memory.to_json()}{memory.get_full_steps()}{memory.get_succinct_steps()}"


# H8: what comes out is data, whatever names it has

RECORD = "from dataclasses import dataclass\n@dataclass\nclass Made:\n    {0}: object\nMade({1})"


@both_drivers
@pytest.mark.parametrize("field", ["dict", "model_dump", "to_dict", "save", "_repr_html_", "items"])
@pytest.mark.parametrize("value", ["function", "Class", "ready", "[function]"])
def test_no_field_that_comes_out_is_called(driver: Driver, field: str, value: str) -> None:
    called: list[object] = []

    def function(*args: object, **kwargs: object) -> None:
        called.append(args)

    class Class:
        def __init__(self, *args: object) -> None:
            called.append(args)

    class Ready:
        __call__ = function

    code = RECORD.format(field, value)
    given = {"function": function, "Class": Class, "ready": HostObject(Ready())}
    imports = ["dataclasses"]
    screen = Screen()
    with agent(
        code, f"final_answer({code.splitlines()[-1]})", additional_authorized_imports=imports,
        logger=screen.logger,
    ) as made:  # fmt: skip
        result = driver.run(made, "Go.", additional_args=given, return_full_result=True)
        json.dumps(result.dict())
        written(made.memory)
        made.replay()
        assert isinstance(result.output, Record)
        attribute = getattr(result.output, field)
        assert isinstance(attribute, list) or not callable(attribute)
    assert called == []


@both_drivers
def test_an_instance_that_comes_out_is_not_called_either(driver: Driver) -> None:
    called: list[object] = []

    def function(*args: object) -> dict[str, object]:
        called.append(args)
        return {}

    code = "[Job(f, f, f), Model(run=f), Model.model_construct(model_dump=f)]"
    given = {"f": function, "Job": Job, "Model": Model}
    with agent(code, f"final_answer({code})") as made:
        answer = driver.run(made, "Go.", additional_args=given)
        written(made.memory)
    assert [type(one) for one in answer] == [Record] * len(answer)
    assert not callable(answer[0].dict)
    assert called == []


@both_drivers
def test_a_record_is_no_image(driver: Driver) -> None:
    called: list[object] = []

    def function(*args: object, **kwargs: object) -> None:
        called.append(args)

    inner = agent("final_answer('seen')", name="viewer", description="Looks.")
    code = RECORD.format("save", "function").replace("\nMade(", "\nviewer('Look.', images=[Made(")
    outer = agent(
        f"{code}])", "final_answer('done')", managed_agents=[inner],
        additional_authorized_imports=["dataclasses"],
    )  # fmt: skip
    with inner, outer:
        assert driver.run(outer, "Go.", additional_args={"function": function}) == "done"
        assert "is no image" in str(acted(outer.memory, 0).error)
        written(outer.memory)
    assert called == []


def acted(memory: AgentMemory, number: int) -> ActionStep:
    steps = [step for step in memory.steps if isinstance(step, ActionStep)]
    return steps[number]


@both_drivers
def test_functions_and_objects_come_back_as_they_are_in_plain_containers(driver: Driver) -> None:
    client = Client()
    seen: list[Any] = []

    def function(number: int) -> int:
        return number

    @tool
    def take(value: Any) -> None:
        """Takes.

        Args:
            value: Anything.
        """
        seen.append(value)

    code = "take([f, {'a': (db, Client)}])\nfinal_answer([f, {'a': (db, Client)}])"
    given = {"f": function, "db": client, "Client": Job}
    with agent(code, tools=[take]) as made:
        answer = driver.run(made, "Go.", additional_args=given)
    assert answer == seen[0] == [function, {"a": (client, Job)}]


@both_drivers
def test_tables_and_arrays_hold_no_functions(driver: Driver) -> None:
    pandas = pytest.importorskip("pandas")
    called: list[object] = []

    def function(*args: object) -> None:
        called.append(args)

    code = (
        "import pandas, numpy\ntable = pandas.DataFrame({'a': [1]})\ntable.columns = [f]\n"
        "final_answer([table, pandas.Series([f], index=[f]), numpy.array([f], dtype=object)])"
    )
    with agent(code, additional_authorized_imports=["pandas", "numpy"]) as made:
        table, series, array = driver.run(made, "Go.", additional_args={"f": function})
        written(made.memory)
    assert isinstance(table, pandas.DataFrame)
    for value in (*table.columns, *series, *series.index, *array):
        assert not callable(value)
    assert called == []


# H9: what stays on the host is not shown


@pytest.fixture(params=[Client, Keyed, lambda: {"key": SECRET}], ids=["object", "data", "dict"])
def wrapped(request: pytest.FixtureRequest) -> HostObject:
    return HostObject(request.param())


@tool
def note(text: str, numbers: list[int] | None = None) -> str:
    """Notes.

    Args:
        text: What.
        numbers: More.
    """
    return text


@both_drivers
@pytest.mark.parametrize(
    "call", ["note(db)", "note('a', [db])", "note('a', {db: db})", "note(a=db)", "{}[db]", "1 + db"]
)
def test_an_argument_that_does_not_fit_is_named_by_its_class(
    driver: Driver, wrapped: HostObject, call: str
) -> None:
    with agent(call, "final_answer('done')", tools=[note]) as made:
        driver.run(made, "Go.", additional_args={"db": wrapped})
        assert SECRET not in sent(made) + written(made.memory)
        assert f"{type(wrapped.obj).__name__} object of the host" in sent(made)


@both_drivers
@pytest.mark.parametrize("answer", ["db", "[db, {'a': (db,)}]"])
def test_an_answer_does_not_show_what_stays(
    driver: Driver, wrapped: HostObject, answer: str
) -> None:
    screen = Screen()
    with agent(f"final_answer({answer})", logger=screen.logger) as made:
        given = {"db": wrapped}
        result = driver.run(made, "Go.", additional_args=given, return_full_result=True)
        assert result.output == wrapped.obj or result.output == [wrapped.obj, {"a": (wrapped.obj,)}]
        made.replay()
        shown = json.dumps(result.dict()) + screen.text + sent(made)
        assert SECRET not in shown + written(made.memory)
        assert f"{type(wrapped.obj).__name__} object of the host" in shown


@both_drivers
def test_what_comes_with_a_task_is_told_by_its_class(driver: Driver) -> None:
    client = Client()
    given = {"raw": client, "many": [client], "method": client.ask, "wrapped": HostObject(Keyed())}
    with agent("final_answer(1)") as made:
        driver.run(made, "Go.", additional_args=given)
        assert SECRET not in sent(made) + written(made.memory)
        assert (
            "raw (Client): <Client object of the host: only tools can use it; to let code call its "
            "methods, the user gives HostObject(raw, methods=[...])>"
        ) in sent(made)


@both_drivers
def test_a_json_calling_agent_does_not_show_what_stays(driver: Driver) -> None:
    client = Client()

    @tool
    def connect() -> Any:
        """Connects."""
        return [client]

    calls = [
        says(None, ("connect", {})),
        says(None, ("note", {"text": "db"})),
        says(None, ("final_answer", {"answer": "db"})),
    ]
    made = ToolCallingAgent([connect, note], ScriptedModel(calls), verbosity_level=0)
    answer = driver.run(made, "Go.", additional_args={"db": client})
    assert answer is client
    assert SECRET not in sent(made) + written(made.memory)


@both_drivers
def test_an_error_that_a_tool_raises_does_not_show_the_object_it_is_made_of(
    driver: Driver,
) -> None:
    client = Client()

    @tool
    def look() -> Any:
        """Looks something up."""
        found: dict[object, object] = {}
        return found[client]

    with agent("look()", "final_answer(1)", tools=[look]) as made:
        driver.run(made, "Go.")
        assert SECRET not in sent(made) + written(made.memory)
        assert "KeyError: <Client object of the host>" in sent(made)


# H14: members of an object are called as tools are


def wrapped_client() -> tuple[Client, dict[str, HostObject]]:
    client = Client()
    return client, {"db": HostObject(client, ["ask", "later"], ["size"])}


@both_drivers
@pytest.mark.parametrize("executor", ["local", "inprocess"])
def test_calls_of_members_are_approved(driver: Driver, executor: str) -> None:
    requests: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        if request.kind == "tool":
            requests.append(request)
        return request.kind == "code"

    client, given = wrapped_client()
    calls = ["db.ask('a', 'b', times=2)", "db.later('c')", "db.size", "parallel(db.ask, 'xy')"]
    with agent(*calls, "final_answer(1)", approve=approve, executor_type=executor) as made:
        driver.run(made, "Go.", additional_args=given)
        for number, name in enumerate(["Client.ask", "Client.later", "Client.size", "Client.ask"]):
            error = str(acted(made.memory, number).error)
            assert f"{name!r} was not called: it was refused" in error
    assert client.asked == []
    seen = [(request.name, request.arguments) for request in requests]
    assert seen[:3] == [
        ("Client.ask", {"text": "a", "more": ("b",), "times": 2}),
        ("Client.later", {"text": "c"}),
        ("Client.size", {}),
    ]
    assert sorted(request.arguments["text"] for request in requests[3:]) == ["x", "y"]


@both_drivers
def test_calls_of_members_are_limited(driver: Driver) -> None:
    client, given = wrapped_client()
    with (
        agent("for n in 'abcde': db.ask(n)", limits=RunLimits(tool_calls=2)) as made,
        pytest.raises(AgentLimitError, match="2 tool calls"),
    ):
        driver.run(made, "Go.", additional_args=given)
    assert client.asked == ["a", "b"]


@both_drivers
def test_functions_of_an_executor_do_not_let_members_pass(driver: Driver) -> None:
    client, given = wrapped_client()
    functions = {"additional_functions": {"double": lambda number: 2 * number}}
    with agent(
        "db.ask(str(double(2)))", "final_answer(double(4))",
        approve=lambda request: request.kind == "code", executor_kwargs=functions,
    ) as made:  # fmt: skip
        assert driver.run(made, "Go.", additional_args=given) == 8
        assert "was refused" in str(acted(made.memory, 0).error)
    assert client.asked == []


@both_drivers
def test_policies_see_and_change_calls_of_members(driver: Driver) -> None:
    seen: list[str] = []

    def policy(effect: Any, scope: Any) -> Any:
        if isinstance(effect, CallTool) and effect.name == "Client.ask":
            seen.append(json.dumps(effect.dict()))
            arguments = {**effect.arguments, "text": "changed"}
            return (yield dataclasses.replace(effect, arguments=arguments))
        if isinstance(effect, CallTool) and effect.name == "Client.size":
            return (yield dataclasses.replace(effect, name="note", arguments={"text": "a tool"}))
        return (yield effect)

    client, given = wrapped_client()
    code = "final_answer([db.ask('a', 'b', times=2), db.later('c'), db.size])"
    with agent(code, policies=[policy], tools=[note]) as made:
        answer = driver.run(made, "Go.", additional_args=given)
    assert answer == ["changed bchanged b", "c", "a tool"]
    assert client.asked == ["changed", "c"]
    assert len(seen) == 1


@both_drivers
@pytest.mark.parametrize(
    "arguments", [{"text": "a", "nonsense": 1}, {"more": ("a",)}, "text", None]
)
def test_arguments_that_do_not_fit_a_member_are_refused(driver: Driver, arguments: Any) -> None:
    def policy(effect: Any, scope: Any) -> Any:
        if isinstance(effect, CallTool) and effect.name == "Client.ask":
            effect = dataclasses.replace(effect, arguments=arguments)
        return (yield effect)

    client, given = wrapped_client()
    with agent("db.ask('a')", "final_answer(1)", policies=[policy]) as made:
        driver.run(made, "Go.", additional_args=given)
        assert "The call of 'Client.ask' does not fit it" in str(acted(made.memory, 0).error)
    assert client.asked == []
