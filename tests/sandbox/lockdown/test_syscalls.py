"""The numbers are those of the kernel's own headers, where these are installed."""

import re
from pathlib import Path

import pytest

from sanderling.sandbox.lockdown._rules import rules
from sanderling.sandbox.lockdown._syscalls import HIGHEST_KNOWN, MACHINES, NUMBERS, numbers
from support.unnamed_calls import UNNAMED

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
COMMON_FROM = 424  # later numbers are the same everywhere, and the headers may be older than they


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_the_headers(machine: str) -> None:
    if not HEADERS[machine].is_file():
        pytest.skip(f"{HEADERS[machine]} is not installed")
    found = re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text())
    header = {name: int(number) for name, number in found}
    header.setdefault("newfstatat", header.get("fstatat", -1))
    column = MACHINES.index(machine)

    for name, row in (NUMBERS | UNNAMED).items():
        if (row[column] or 0) < COMMON_FROM:
            assert row[column] == header.get(name), name
        else:
            assert row[0] == row[1] == header.get(name, row[0]), name


def test_each_rule_names_a_call_that_has_a_number() -> None:
    named = {name for rule in rules(1) for name in rule.names()}

    assert named - NUMBERS.keys() == set()
    assert max(max(numbers(machine).values()) for machine in MACHINES) <= HIGHEST_KNOWN


def test_an_unknown_machine_is_an_error() -> None:
    with pytest.raises(ValueError, match="riscv64"):
        numbers("riscv64")
