"""Hostile code cannot use the copying of its process: every user, with and without namespaces."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import pytest

from sandbox import copying_host, neighbours_host
from support.hosts import Host, hosts


def scenarios(program: ModuleType) -> list[str]:
    """The functions of a program that take nothing."""
    return [
        name
        for name, function in inspect.getmembers(program, inspect.isfunction)
        if function.__module__ == program.__name__ and not inspect.signature(function).parameters
    ]


SCENARIOS = [
    pytest.param(program, name, id=name)
    for program in (copying_host, neighbours_host)
    for name in scenarios(program)
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("program", "scenario"), SCENARIOS)
@pytest.mark.parametrize("host", hosts(), ids=str)
def test_copies(host: Host, program: ModuleType, scenario: str) -> None:
    ended = host.run(Path(str(program.__file__)), scenario)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
