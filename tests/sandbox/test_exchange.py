"""Interrupts that come just when a step begins or has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling.sandbox import ToolRequest, kernel
from sanderling.sandbox._exchange import Exchange
from sanderling.sandbox._remote import RemoteInterpreter
from sanderling.sandbox.backends._forked import readable
from support.sandbox import interpreter, run, value

if TYPE_CHECKING:
    import pytest

    from sanderling.sandbox._wire import Wire


def test_an_interrupt_that_comes_as_soon_as_a_step_stops_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = Exchange.start_step

    def start_step(self: Exchange, wire: Wire, code: str) -> None:
        begin(self, wire, code)
        self.interrupt()

    with interpreter() as python:
        python.open()
        with monkeypatch.context() as patched:
            patched.setattr(Exchange, "start_step", start_step)
            for _ in range(5):
                told = str(run(python, "while True: pass").error)
                assert told.startswith("The step was interrupted.\n")
        assert value(python, "1") == 1


def test_an_interrupt_that_comes_too_late_does_not_reach_the_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = Exchange.start_step

    def start_step(self: Exchange, wire: Wire, code: str) -> None:
        begin(self, wire, code)
        assert self._resources.link is not None
        assert readable(self._resources.link.socket.fileno(), 10)  # the step has ended
        self.interrupt()

    with interpreter() as python:
        for _ in range(5):
            with monkeypatch.context() as patched:
                patched.setattr(Exchange, "start_step", start_step)
                assert value(python, "1") == 1
            assert value(python, "2") == 2


def test_code_that_cannot_be_sent_has_no_result_of_the_step_before() -> None:
    tools = {"final_answer": lambda answer: answer}
    with interpreter(tools=tools) as python:
        before = run(python, "print('before'); final_answer(5)", tools)
        assert (before.output, before.is_final_answer) == (5, True)
        result = run(python, f"{'#' * (kernel.MAX_JSON + 1)}", tools)
        assert (result.logs, result.is_final_answer) == ("", False)
        assert "the code cannot enter the sandbox: too large" in str(result.error)


def test_an_interrupt_that_comes_too_late_for_an_abandoned_step() -> None:
    with interpreter(tools={"call": lambda: None}) as python:
        for _ in range(5):
            execution = python.execute("try: call()\nexcept RuntimeError: pass")
            request = next(execution)
            assert isinstance(request, ToolRequest)
            python.fail(request, "no")
            assert isinstance(python, RemoteInterpreter)
            assert python._resources.link is not None
            assert readable(python._resources.link.socket.fileno(), 10)  # the step has ended
            execution.close()
            assert value(python, "2") == 2
