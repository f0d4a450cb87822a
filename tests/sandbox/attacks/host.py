"""The host that is attacked: ``python host.py <library> <estate> <with or without>``.

The last word says whether it gets namespaces. It reads an order a line and writes an answer a line.
It owns an `Estate`, runs each attack through the real interpreter, and tells what has become of
what it owns. So an attack that gets through hits this process, never the one that runs the tests.
"""

from __future__ import annotations

import errno
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
from sandbox.attacks.random_calls import Fuzz
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
from sanderling.sandbox.lockdown._linux import PR_SET_NO_NEW_PRIVS, prctl
from sanderling.sandbox.lockdown._rules import ALLOW, Rule, fail
from sanderling.sandbox.lockdown._seccomp import load

CLAIMS = ("reached", "through", "refused", "limited")
PRELUDE = Path(__file__).with_name("inside.py")
_TOOLS = [
    ToolSpec("note", "(text)", "Takes a note."),
    ToolSpec("page", "()", "Returns a page of 1 MiB."),
    ToolSpec("final_answer", "(x)", "", True),
]
_PAGE = "x" * (1 << 20)
_SLACK = 8.0  # seconds of the processor that the host may need beyond a step's time
_LONGEST = 60.0  # seconds beyond a step's time, on a machine however busy
_LONGEST_LOG = 51_000
_MODULES = frozenset({"PIL.Image", "numpy", "numpy.random", "pandas"})
_PATIENCE = 120.0  # seconds for modules to be loaded


class Attacked:
    """Runs attacks, one after the other."""

    def __init__(self, library: Path, root: Path) -> None:
        (root / "tmp").mkdir(mode=0o700)
        tempfile.tempdir = str(root / "tmp")  # where the work folders of the sandboxes are
        # Whatever stays for the life of the process is there before anything is counted.
        with_walls = create_interpreter("local")
        list(with_walls.execute("0"))
        with_walls.close()
        preload(_MODULES, _PATIENCE)
        guards = children(os.getpid())
        fork_servers = [*guards, *(pid for guard in guards for pid in children(guard))]
        helper, _ = zygote()
        self.estate = Estate(root, library / "sanderling")
        self.estate.fork_servers.update(fork_servers)
        self.estate.helpers.add(helper.pid)

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carries out an order; returns what came of it."""
        self.estate.reset_peak()
        if "seed" in order:
            return Fuzz(self.estate, order["seed"]).make(order["calls"])
        if order["agent"]:
            from sandbox.attacks.agent_host import attack  # not all users have what agents need

            answer, said = attack(order, self.estate)
        else:
            answer, said = self._attack(order)
        answer["damage"] = self.estate.damage(said, order["growth"])
        if answer["damage"]:
            self.estate.restore()
        return answer

    def _attack(self, order: dict[str, Any]) -> tuple[dict[str, Any], str]:
        notes: list[str] = []
        python = _interpreter(order)
        answer: dict[str, Any] = {"claim": "", "error": "", "told": "", "trouble": []}
        said = []
        try:
            python.set_tools(_TOOLS)
            python.set_variables(self.estate.targets())
            for code in (PRELUDE.read_text(), *order["steps"]):
                watch = StopWatch()
                result = _run(python, code, notes)
                answer["trouble"] += watch.complaints(order["seconds"])
                if answer["error"] != "SandboxLimitExceeded":  # a limit may stop an earlier step
                    answer.update(_summary(result))
                said.append(_everything(result))
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
        return answer, "\n".join((*said, *notes))


class StopWatch:
    """Measures what steps cost the host; other programs on the machine do not count."""

    def __init__(self) -> None:
        self._began = time.monotonic(), time.process_time()

    def complaints(self, seconds: float) -> list[str]:
        """Returns those about steps that were to take so many seconds."""
        real, used = time.monotonic() - self._began[0], time.process_time() - self._began[1]
        if used <= seconds + _SLACK and real <= seconds + _LONGEST:
            return []
        return [f"the steps took {real:.1f} s, and {used:.1f} s of the host's processor time"]


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
                notes.append(look((event.args, event.kwargs)))
            if event.name == "page":
                python.reply(event, _PAGE)
            elif event.name in ("note", "final_answer"):
                python.reply(event, None)
            else:
                python.fail(event, f"there is no tool {event.name!r}")
    except StopIteration as done:
        result: CodeResult = done.value
        return result


def _summary(result: CodeResult) -> dict[str, str]:
    lines = itertools.chain([result.text], reversed(result.logs.splitlines()))
    claim = next((line for line in lines if line in CLAIMS), "")
    told = "" if result.error is None else str(result.error)
    kind = "" if result.error is None else type(result.error).__name__
    return {"claim": claim, "error": kind, "told": told[-2_000:]}


def _everything(result: CodeResult) -> str:
    return "\n".join((look(result.output), result.text, result.logs, str(result.error)))


def look(value: object) -> str:
    """Returns the repr of a value, or why it has none."""
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


def refuse_namespaces() -> None:
    """Makes the kernel refuse namespaces to this process and its children, as containers do."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    load([Rule("unshare", "as in a container", fail(errno.EPERM))], otherwise=ALLOW)


def main() -> None:
    """Serves orders until there are no more."""
    if sys.argv[3] == "without":
        refuse_namespaces()
    attacked = Attacked(Path(sys.argv[1]), Path(sys.argv[2]))
    print(json.dumps(os.getpid()), flush=True)
    for line in sys.stdin:
        print(json.dumps(attacked.obey(json.loads(line))), flush=True)
    attacked.estate.close()


if __name__ == "__main__":
    main()
