"""Hostile code cannot use the copying of its process: every user, with and without namespaces."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from sandbox import copying_host
from support.hosts import Host, hosts

SCENARIOS = [
    name
    for name, function in inspect.getmembers(copying_host, inspect.isfunction)
    if function.__module__ == copying_host.__name__ and not inspect.signature(function).parameters
]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("host", hosts(), ids=str)
def test_copies(host: Host, scenario: str) -> None:
    ended = host.run(Path(copying_host.__file__), scenario)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
