"""The attacked host with an agent: it runs the steps of an attack as the code of a model.

The code finds the tools ``note``, ``slow`` and ``leave``, the agent ``viewer``, the functions
``price`` and ``wipe``, and two objects of the host whose `repr` shows a secret: ``db`` with the
methods ``ask`` and ``erase``, and ``bare`` without any. Calls of ``erase`` are refused, and the run
may make `CALLS` calls.
"""

from __future__ import annotations

import io
import os
import threading
from typing import TYPE_CHECKING, Any

from rich.console import Console

from sandbox.attacks.host import CLAIMS, PRELUDE, StopWatch, look
from sanderling import (
    ActionStep,
    AgentLogger,
    ApprovalRequest,
    CodeAgent,
    HostObject,
    LogLevel,
    RunLimits,
    ScriptedModel,
    tool,
)
from sanderling.errors import AgentError

if TYPE_CHECKING:
    from sandbox.attacks.estate import Estate

CALLS = 200
_SLOW = 3.0  # seconds
_timers: list[threading.Timer] = []
_over = threading.Event()
_CONTROLS = {*map(chr, range(32)), "\x7f", "\x9b"} - {"\n", "\t"}


class Client:
    """An object of the host.

    Args:
        key: A secret.
        done: Gets the names of what was called.
    """

    def __init__(self, key: str, done: list[str]) -> None:
        self._key = key
        self._done = done
        self.asked = 0

    def __repr__(self) -> str:
        return f"Client(key={self._key!r})"

    def __call__(self, *args: object, **kwargs: object) -> None:
        self._done.append("an object")

    def ask(self, text: str) -> str:
        """Asks.

        Args:
            text: What.
        """
        self.asked += 1
        return text

    def erase(self) -> None:
        """Erases."""
        self._done.append("a method that was refused")


@tool
def note(text: str) -> None:
    """Takes a note.

    Args:
        text: What.
    """


@tool
def slow(data: Any) -> None:
    """Works until some seconds after it was first called.

    Args:
        data: On what.
    """
    if not _timers:
        _timers.append(threading.Timer(_SLOW, _over.set))
        _timers[0].start()
    _over.wait()


@tool
def leave() -> None:
    """Ends the program, as a parser of arguments does."""
    raise SystemExit(2)


def price(item: Any) -> int:
    """Looks a price up."""
    return {"a": 1}[item]


def approve(request: ApprovalRequest) -> bool:
    """Refuses one method."""
    return not request.name.endswith(".erase")


def check(answer: Any, memory: object = None, agent: object = None) -> bool:
    """Refuses large numbers, and names them."""
    if isinstance(answer, int) and answer > 1_000:
        raise ValueError(answer)
    return True


def attack(order: dict[str, Any], estate: Estate) -> tuple[dict[str, Any], str]:
    """Runs an attack; returns what came of it, and all that was said."""
    done: list[str] = []
    client = Client(estate.key, done)
    host = os.getpid()

    def wipe(*args: object, **kwargs: object) -> str:
        if os.getpid() == host:
            done.append("a function")
        return "wiped"

    output = io.StringIO()
    console = Console(file=output, width=100, highlight=False)
    viewer = CodeAgent(
        [],
        ScriptedModel(lambda messages: "<code>\nfinal_answer('seen')\n</code>"),
        name="viewer",
        description="Looks at images.",
        verbosity_level=LogLevel.OFF,
    )
    codes = [PRELUDE.read_text(), *order["steps"], "final_answer('over')"]
    agent = CodeAgent(
        [note, slow, leave],
        ScriptedModel([f"<code>\n{code}\n</code>" for code in codes]),
        additional_authorized_imports=["*"],
        approve=approve,
        executor_kwargs={
            "timeout_seconds": order["seconds"],
            "additional_functions": {"price": price},
            **order["options"],
        },
        managed_agents=[viewer],
        final_answer_checks=[check],
        limits=RunLimits(tool_calls=CALLS),
        logger=AgentLogger(LogLevel.DEBUG, console),
        max_steps=len(codes),
    )
    given = {
        **estate.targets(),
        "wipe": wipe,
        "db": HostObject(client, ["ask", "erase"]),
        "bare": HostObject(Client(estate.key, done)),
    }
    answer: dict[str, Any] = {"claim": "", "error": "", "told": "", "trouble": []}
    threads = threading.active_count()
    watch = StopWatch()
    result: Any = None
    with viewer, agent:
        try:
            result = agent.run("Go.", additional_args=given, return_full_result=True)
        except AgentError as error:
            answer["error"], answer["told"] = type(error).__name__, str(error)[-2_000:]
        answer["trouble"] += watch.complaints(order["seconds"] * len(order["steps"]))
        agent.replay()
        said = [
            output.getvalue(),
            agent.memory.to_json(),
            *map(repr, agent.memory.get_full_steps()),
        ]
        said += [repr(agent.memory.get_succinct_steps()), *_sent(agent)]
        steps = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    if result is not None:
        said.append(look(result.dict()))
    for step in steps[1 : len(order["steps"]) + 1]:
        answer.update(_summary(step))
        said.append(str(step.error))
    answer["trouble"] += [f"the host called {what}" for what in done]
    if client.asked > CALLS:
        answer["trouble"].append(f"{client.asked} calls of a method came through")
    if threading.active_count() > threads + 1:
        answer["trouble"].append("threads of the host were left behind")
    if found := _CONTROLS & {*output.getvalue(), *look(result)}:
        answer["trouble"].append(f"the host shows {found!r} as it is")
    return answer, "\n".join(said)


def _sent(agent: CodeAgent) -> list[str]:
    if not isinstance(agent.model, ScriptedModel):
        raise TypeError("the model is scripted")
    return [str(request.messages) for request in agent.model.requests]


def _summary(step: ActionStep) -> dict[str, str]:
    lines = (step.observations or "").splitlines()
    claim = next((line.strip() for line in reversed(lines) if line.strip() in CLAIMS), "")
    error = step.error
    cause = None if error is None else error.__cause__ or error
    return {
        "claim": claim,
        "error": "" if cause is None else type(cause).__name__,
        "told": "" if error is None else str(error)[-2_000:],
    }
