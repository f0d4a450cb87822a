"""Lets code in a sandbox make system calls at random, and looks at what became of the host."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sanderling.sandbox import CodeResult, Interpreter, create_interpreter
from sanderling.sandbox.lockdown._rules import ALLOW, TRACE, rules
from sanderling.sandbox.lockdown._syscalls import NUMBERS

if TYPE_CHECKING:
    from sandbox.attacks.estate import Estate

_PROGRAM = Path(__file__).with_name("random_inside.py")
_AT_ONCE = 400  # calls in a step
_LOOK_AFTER = 2_000  # calls
_MOST_STEPS = 5  # for each step that would do if none were cut short
_LIMITS: dict[str, Any] = {
    "workdir_bytes": 64 << 20,
    "file_bytes": 16 << 20,
    "memory_bytes": 512 << 20,
}
_SECONDS = 2.0  # for a step


class Fuzz:
    """Makes calls and looks, again and again.

    Args:
        estate: What belongs to the host.
        seed: Where the random numbers start; each step counts on from it.
    """

    def __init__(self, estate: Estate, seed: int) -> None:
        self._estate = estate
        self._seed = seed
        self._made = 0
        self._results: Counter[str] = Counter()
        self._ends: Counter[str] = Counter()

    def make(self, count: int) -> dict[str, Any]:
        """Makes at least so many calls.

        Returns:
            ``made``, how often each error came (``results``), how steps ended (``ends``), and the
            ``damage``, with the seeds of the steps that may have done it.
        """
        damage: list[str] = []
        witness = create_interpreter("local", restore_after_kill=False)
        try:
            _run(witness, "kept = 'kept'")
            self._estate.admit()
            until = self._seed + _MOST_STEPS * (count // _AT_ONCE + 1)
            while self._made < count and self._seed < until and not damage:
                first = self._seed
                self._make_some(min(count, self._made + _LOOK_AFTER), until)
                harm = self._estate.damage("")
                if _run(witness, "kept").output != "kept":
                    harm.append("another sandbox does not serve any more")
                damage += [f"seeds {first} to {self._seed - 1}: {what}" for what in harm]
        finally:
            witness.close()
            self._estate.admit()
        return {
            "made": self._made,
            "results": dict(self._results),
            "ends": dict(self._ends),
            "damage": damage,
        }

    def _make_some(self, count: int, until: int) -> None:
        python = create_interpreter(
            "local", additional_authorized_imports=["*"], timeout_seconds=_SECONDS, **_LIMITS
        )
        try:
            made = -1
            # A process that makes no more calls has harmed itself: there will be another one.
            while made < self._made < count and self._seed < until:
                made = self._made
                self._step(python)
        finally:
            python.close()

    def _step(self, python: Interpreter) -> None:
        targets = self._estate.targets()
        about = {
            "seed": self._seed,
            "allowed": allowed_calls(),
            "paths": [targets[name] for name in ("secret_file", "outside", "stream_path")],
            "processes": [targets["host"], targets["victim"]],
        }
        self._seed += 1
        result = _run(python, f"{_PROGRAM.read_text()}\nmake_calls({_AT_ONCE}, **{about!r})")
        if result.error is None and isinstance(result.output, dict):
            self._made += result.output["made"]
            for code, times in result.output["results"].items():
                self._results[os.strerror(code) if code else "success"] += times
            self._ends["found a secret" if result.output["found"] else "finished"] += 1
            return
        lines = [line for line in result.logs.splitlines() if line.startswith("made ")]
        self._made += int(lines[-1].split()[1]) if lines else 0
        self._ends[type(result.error).__name__] += 1


def allowed_calls() -> list[int]:
    """Returns the numbers of the calls that the filter lets pass, at least with some arguments."""
    machine = ("x86_64", "aarch64").index(os.uname().machine)
    numbers = (
        NUMBERS[name][machine]
        for rule in rules(None)
        if {ALLOW, TRACE} & {rule.otherwise, *(case.then for case in rule.cases)}
        for name in rule.names()
    )
    return [number for number in numbers if number is not None]


def _run(python: Interpreter, code: str) -> CodeResult:
    execution = python.execute(code)
    while True:
        try:
            next(execution)
        except StopIteration as done:
            result: CodeResult = done.value
            return result
