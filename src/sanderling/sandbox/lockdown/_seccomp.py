"""Seccomp: assembles the rules into a BPF program and loads it.

Source: ``linux/seccomp.h``, ``linux/filter.h`` (classic BPF), ``linux/audit.h`` (machine codes).
"""

import ctypes
import functools
import struct
from collections.abc import Iterable

from ._errors import LockdownError
from ._linux import machine, syscall
from ._rules import ABSENT, ALLOW, DENY, KILL, Case, Rule, Verdict
from ._syscalls import HIGHEST_KNOWN, numbers

# Of classic BPF: load a word of the call's data, AND, jump if equal, jump if at least, return.
_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06

# struct seccomp_data { int nr; u32 arch; u64 instruction_pointer; u64 args[6]; }, little-endian.
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000  # a second set of calls that x86_64 kernels may have

_SET_MODE_FILTER = 1
REMEDY = "The kernel needs CONFIG_SECCOMP_FILTER, and a container must let the seccomp call through"


class _Program:
    """Instructions in the order they run; a jump counts the instructions it passes over."""

    def __init__(self) -> None:
        self.code: list[tuple[int, int, int, int]] = []

    def add(self, operation: int, operand: int, if_true: int = 0, if_false: int = 0) -> None:
        self.code.append((operation, if_true, if_false, operand))

    def unless(self, operation: int, operand: int, body: "_Program") -> None:
        """Passes over `body` if the test is false; `body` returns on all its paths or falls out."""
        self.add(operation, operand, 0, len(body.code))
        self.code += body.code

    def pack(self) -> bytes:
        return b"".join(struct.pack("<HBBI", *instruction) for instruction in self.code)


@functools.lru_cache(maxsize=8)
def assemble(rules: tuple[Rule, ...], machine: str, otherwise: Verdict = DENY) -> bytes:
    """Returns the BPF program that gives the verdicts of `rules`.

    A call of another machine's table (i386 on x86_64, say) ends the process.

    Args:
        rules: As `_rules.rules` gives them.
        machine: The machine whose calls they are.
        otherwise: The verdict on all other calls.

    Raises:
        ValueError: A call has two rules, or `machine` is unknown.
    """
    table = numbers(machine)
    program = _Program()
    program.add(_LOAD, _ARCH_AT)
    program.add(_IF_EQUAL, _AUDIT_ARCH[machine], 1, 0)
    program.add(_RETURN, KILL)
    program.add(_LOAD, _NUMBER_AT)
    if machine == "x86_64":
        program.add(_IF_AT_LEAST, _X32_BIT, 0, 1)
        program.add(_RETURN, KILL)

    plain: dict[int, Verdict] = {}
    checked: dict[int, Rule] = {}
    for rule in rules:
        for name in rule.names():
            number = table.get(name)
            if number is None:
                continue
            if number in plain or number in checked:
                raise ValueError(f"two rules name the system call {name}")
            if rule.cases:
                checked[number] = rule
            else:
                plain[number] = rule.otherwise
    for first, last, verdict in _ranges(plain):
        _add_range(program, first, last, verdict)
    for number, rule in checked.items():
        program.unless(_IF_EQUAL, number, _decide(rule))
    if otherwise != ALLOW:
        _add_range(program, HIGHEST_KNOWN + 1, None, ABSENT)
    program.add(_RETURN, otherwise)
    return program.pack()


def load(rules: Iterable[Rule], *, flags: int = 0, otherwise: Verdict = DENY) -> int:
    """Puts the filter over this thread and its children, for good.

    Args:
        rules: As `_rules.rules` gives them.
        flags: ``SECCOMP_FILTER_FLAG_*``.
        otherwise: The verdict on all other calls.

    Returns:
        What the kernel returned: 0, or the listener's descriptor if `flags` asks for one.

    Raises:
        LockdownError: The kernel refused.
    """
    program = assemble(tuple(rules), machine(), otherwise)
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog { unsigned short len; struct sock_filter *filter; }
    header = struct.pack("<H6xQ", len(program) // 8, ctypes.addressof(code))
    try:
        return syscall("seccomp", _SET_MODE_FILTER, flags, header)
    except OSError as error:
        raise LockdownError("seccomp", str(error), REMEDY) from error


def _ranges(verdicts: dict[int, Verdict]) -> list[tuple[int, int, Verdict]]:
    ranges: list[tuple[int, int, Verdict]] = []
    for number in sorted(verdicts):
        if ranges and ranges[-1][1:] == (number - 1, verdicts[number]):
            ranges[-1] = (ranges[-1][0], number, verdicts[number])
        else:
            ranges.append((number, number, verdicts[number]))
    # Most calls are allowed ones. (The kernel keeps a bitmap of the calls that are allowed
    # whatever their arguments, and runs no filter for them.)
    return sorted(ranges, key=lambda found: (found[2] != ALLOW, found[0]))


def _add_range(program: _Program, first: int, last: int | None, verdict: Verdict) -> None:
    if first == last:
        program.add(_IF_EQUAL, first, 0, 1)
    else:
        program.add(_IF_AT_LEAST, first, 0, 1 if last is None else 2)
        if last is not None:
            program.add(_IF_AT_LEAST, last + 1, 1, 0)
    program.add(_RETURN, verdict)


def _decide(rule: Rule) -> _Program:
    body = _Program()
    for case in rule.cases:
        body.code += _test(case).code
    body.add(_RETURN, rule.otherwise)
    return body


def _test(case: Case) -> _Program:
    """Returns `case.then` if all conditions hold, else falls out of its end."""
    program = _Program()
    program.add(_RETURN, case.then)
    for where in reversed(case.conditions):
        tail, program = program, _Program()
        program.add(_LOAD, _ARGUMENTS_AT + 8 * where.argument)
        if where.mask != 0xFFFFFFFF:
            program.add(_AND, where.mask)
        left = len(where.values)
        for value in where.values:
            left -= 1
            # A hit passes over the tests that are left, a miss of the last one over the tail.
            program.add(_IF_EQUAL, value, left, 0 if left else len(tail.code))
        program.code += tail.code
    return program
