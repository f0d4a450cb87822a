from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from support import families

# Here alone: a fixture that several files import is made once for each of them.
from support.docker_engine import docker_engine as docker_engine
from support.providers import blaxel_provider as blaxel_provider
from support.providers import e2b_provider as e2b_provider
from support.providers import modal_provider as modal_provider

# How long an example takes says how busy the machine is.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")
if not os.access(Path(__file__).parents[1], os.W_OK):  # where hypothesis keeps its examples
    settings.register_profile("read-only", deadline=None, database=None)
    settings.load_profile("read-only")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if families.family_of(item.nodeid) in families.SLOW:
            item.add_marker("slow")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped: list[pytest.TestReport] = terminalreporter.stats.get("skipped", [])
    reasons = [
        (report.nodeid, report.longrepr[2])
        for report in skipped
        if isinstance(report.longrepr, tuple | list)  # a path, a line and the reason
    ]
    if reasons:
        terminalreporter.section("skipped")
    for line in families.summary(reasons):
        terminalreporter.write_line(line)


@pytest.fixture
def run_python() -> Callable[[str], str]:
    """Runs code in a fresh interpreter and returns what it printed."""

    def run(code: str) -> str:
        command = [sys.executable, "-W", "error", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        return done.stdout

    return run
