"""What an interpreter holds, in the process that made it and in forks of that."""

from __future__ import annotations

import os

import pytest

from sanderling.sandbox import ToolRequest
from sanderling.sandbox._limits import Limits
from sanderling.sandbox._resources import Resources
from support.sandbox import Tools, answer, interpreter, specs


class _Backend:
    """Says so when it is closed, whoever does it."""

    name = ways_out = "some"
    grace = 1.0
    files_remain = False
    is_warm = True
    limits = Limits()

    def __init__(self, told: int) -> None:
        self._told = told

    def close(self) -> None:
        os.write(self._told, b"closed")


def test_a_fork_that_ends_does_not_end_what_its_parent_holds() -> None:
    read, write = os.pipe()
    resources = Resources(_Backend(write))  # type: ignore[arg-type]  # it starts nothing
    pid = os.fork()
    if pid == 0:
        try:
            resources.close()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.set_blocking(read, False)
    try:
        said = os.read(read, 10)
    except BlockingIOError:
        said = b""
    resources.close()
    assert said == b""
    assert os.read(read, 10) == b"closed"
    os.close(read)
    os.close(write)


def test_a_tool_may_fork_the_host() -> None:
    def wait() -> str:
        pid = os.fork()
        if pid == 0:
            execution.close()  # as the end of a process does
            os._exit(0)
        os.waitpid(pid, 0)
        return "answered"

    tools: Tools = {"wait": wait}
    with interpreter() as python:
        python.set_tools(specs(tools))
        execution = python.execute("wait()")
        request = next(execution)
        assert isinstance(request, ToolRequest)
        answer(python, request, tools)
        with pytest.raises(StopIteration) as ended:
            next(execution)
        assert ended.value.value.output == "answered"
