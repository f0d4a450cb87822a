"""The host that is attacked: ``python host.py <library> <estate>``, an order and an answer a line.

It owns an `Estate`, runs each attack through the real interpreter, and tells what has become of
what it owns. So an attack that gets through hits this process, never the one that runs the tests.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])

from sandbox.attacks.estate import Estate, children
from sandbox.attacks.weaker import WeakerBackend, zygote
from sanderling.errors import SandboxLimitExceeded, SandboxUnavailable
from sanderling.sandbox import (
    CodeResult,
    Interpreter,
    Printed,
    ToolSpec,
    create_interpreter,
)
from sanderling.sandbox._remote import RemoteInterpreter
from sanderling.sandbox.backends._local import preload
from sanderling.sandbox.kernel import PRELOADABLE

_CLAIMS = ("reached", "through", "refused", "limited")
_TOOLS = [ToolSpec("note", "(text)", "Takes a note."), ToolSpec("final_answer", "(x)", "", True)]
_PRELUDE = Path(__file__).with_name("inside.py")
_SLACK = 8.0  # seconds beyond a step's time that a busy machine may need to end it
_LONGEST_LOG = 51_000
_PATIENCE = 30.0  # seconds for modules to be loaded


class Attacked:
    """Runs attacks, one after the other."""

    def __init__(self, library: Path, root: Path) -> None:
        (root / "tmp").mkdir(mode=0o700)
        tempfile.tempdir = str(root / "tmp")  # where the work folders of the sandboxes are
        # Whatever stays for the life of the process is there before anything is counted.
        with_walls = create_interpreter("local")
        list(with_walls.execute("0"))
        with_walls.close()
        preload(frozenset(PRELOADABLE), _PATIENCE)
        guards = children(os.getpid())
        fork_servers = [*guards, *(pid for guard in guards for pid in children(guard))]
        helper, _ = zygote()
        self.estate = Estate(root, library / "sanderling")
        self.estate.fork_servers.update(fork_servers)
        self.estate.helpers.add(helper.pid)

    def attack(self, order: dict[str, Any]) -> dict[str, Any]:
        """Runs the steps of one attack; returns what came of it."""
        self.estate.reset_peak()
        notes: list[str] = []
        python = _interpreter(order)
        answer: dict[str, Any] = {"claim": "", "error": "", "told": "", "trouble": []}
        said = []
        try:
            python.set_tools(_TOOLS)
            python.set_variables(self.estate.targets())
            for code in (_PRELUDE.read_text(), *order["steps"]):
                began = time.monotonic()
                result = _run(python, code, notes)
                took = time.monotonic() - began
                answer.update(_summary(result))
                said.append(_everything(result))
                if took > order["seconds"] + _SLACK:
                    answer["trouble"].append(f"a step took {took:.1f} s")
                if len(result.logs) > _LONGEST_LOG:
                    answer["trouble"].append(f"{len(result.logs)} characters were printed")
            after = _run(python, "1 + 1", notes)
            # In a work folder that is too full each step says so.
            if after.output != 2 and not isinstance(after.error, SandboxLimitExceeded):
                answer["trouble"].append(f"it does not serve any more: {after.error}")
            if order["fresh"]:
                answer["trouble"] += _next_one(order)
        except SandboxUnavailable as error:
            answer["error"], answer["told"] = "SandboxUnavailable", str(error)
        finally:
            python.close()
        if len(notes) > order["notes"]:
            answer["trouble"].append(f"{len(notes)} calls of a tool came through")
        answer["damage"] = self.estate.damage("\n".join((*said, *notes)))
        if answer["damage"]:
            self.estate.restore()
        return answer


def _interpreter(order: dict[str, Any]) -> Interpreter:
    if order["walls"] != "all":
        return RemoteInterpreter(
            WeakerBackend(order["walls"], **order["options"]),
            imports=["*"],
            timeout_seconds=order["seconds"],
        )
    return create_interpreter(
        "local",
        additional_authorized_imports=["*"],
        timeout_seconds=order["seconds"],
        **order["options"],
    )


def _run(python: Interpreter, code: str, notes: list[str]) -> CodeResult:
    execution = python.execute(code)
    try:
        while True:
            event = next(execution)
            if isinstance(event, Printed):
                continue
            if event.name == "note":
                notes.append(_look((event.args, event.kwargs)))
            if event.name in ("note", "final_answer"):
                python.reply(event, None)
            else:
                python.fail(event, f"there is no tool {event.name!r}")
    except StopIteration as done:
        result: CodeResult = done.value
        return result


def _summary(result: CodeResult) -> dict[str, str]:
    lines = itertools.chain([result.text], reversed(result.logs.splitlines()))
    claim = next((line for line in lines if line in _CLAIMS), "")
    told = "" if result.error is None else str(result.error)
    kind = "" if result.error is None else type(result.error).__name__
    return {"claim": claim, "error": kind, "told": told[-2_000:]}


def _everything(result: CodeResult) -> str:
    return "\n".join((_look(result.output), result.text, result.logs, str(result.error)))


def _look(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # a number of more digits than Python shows, an impossible text
        return f"it cannot be shown: {type(error).__name__}"


def _next_one(order: dict[str, Any]) -> list[str]:
    python = _interpreter(order)
    try:
        result = _run(python, order["fresh"], [])
        return [] if result.output == "clean" else [f"the next one is not clean: {result}"]
    finally:
        python.close()


def main() -> None:
    """Serves orders until there are no more."""
    attacked = Attacked(Path(sys.argv[1]), Path(sys.argv[2]))
    print(json.dumps(os.getpid()), flush=True)
    for line in sys.stdin:
        print(json.dumps(attacked.attack(json.loads(line))), flush=True)
    attacked.estate.close()


if __name__ == "__main__":
    main()
