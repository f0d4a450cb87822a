"""The assembled filter, run in Python for both machines: its verdicts are those of the rules."""

import errno
import random

import pytest

from sanderling.sandbox.lockdown._rules import (
    ABSENT,
    ALLOW,
    DENY,
    KILL,
    NOTIFY,
    PRETEND,
    TRACE,
    Case,
    Rule,
    Where,
    fail,
    rules,
    supervision,
)
from sanderling.sandbox.lockdown._seccomp import assemble
from sanderling.sandbox.lockdown._syscalls import HIGHEST_KNOWN, MACHINES, numbers
from support.bpf import run_filter
from support.unnamed_calls import UNNAMED

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
PID = 4711

both = pytest.mark.parametrize("machine", MACHINES)


def verdict(machine: str, name: str, *arguments: int, of: tuple[Rule, ...] = rules(PID)) -> int:
    return run_filter(assemble(of, machine), ARCH[machine], numbers(machine)[name], arguments)


def expected(rule: Rule | None, number: int, arguments: list[int]) -> int:
    if rule is None:
        return DENY if number <= HIGHEST_KNOWN else ABSENT
    for case in rule.cases:
        if all((arguments[w.argument] & w.mask) in w.values for w in case.conditions):
            return case.then
    return rule.otherwise


@both
def test_each_number_gets_the_verdict_of_its_rule(machine: str) -> None:
    of = rules(PID)
    program = assemble(of, machine)
    table = numbers(machine)
    by_number = {table[name]: rule for rule in of for name in rule.names() if name in table}
    interesting = [0, 1, 2, 3, 9, 16, PID, 0x5401, 0x10000, 0x10000000, 1 << 40, 0xFFFFFFFF]
    conditions = [where for rule in of for case in rule.cases for where in case.conditions]
    interesting += [value for where in conditions for value in where.values]
    dice = random.Random(0)

    for number in [*range(HIGHEST_KNOWN + 60), 5000, 0x3FFFFFFF]:
        for _ in range(40 if number in by_number and by_number[number].cases else 1):
            arguments = [dice.choice(interesting) for _ in range(6)]
            assert run_filter(program, ARCH[machine], number, arguments) == expected(
                by_number.get(number), number, [word & 0xFFFFFFFF for word in arguments]
            ), (number, arguments)


@both
def test_calls_younger_than_the_rules_do_not_exist(machine: str) -> None:
    program = assemble(rules(PID), machine)

    assert {run_filter(program, ARCH[machine], n) for n in range(470, 600)} == {ABSENT}


@both
def test_calls_that_no_rule_names_are_refused(machine: str) -> None:
    program = assemble(rules(PID), machine)
    column = MACHINES.index(machine)
    found = {
        name: run_filter(program, ARCH[machine], number)
        for name, row in UNNAMED.items()
        if (number := row[column]) is not None
    }

    assert {name: v for name, v in found.items() if v != DENY} == {}


@both
def test_a_call_of_another_machine_ends_the_process(machine: str) -> None:
    program = assemble(rules(PID), machine)
    other = next(arch for name, arch in ARCH.items() if name != machine)

    assert run_filter(program, other, 1) == KILL
    assert run_filter(program, 0x40000003, 1) == KILL  # i386


def test_a_call_of_the_x32_table_ends_the_process() -> None:
    assert run_filter(assemble(rules(PID), "x86_64"), ARCH["x86_64"], 0x40000001) == KILL


@both
@pytest.mark.parametrize(
    ("name", "arguments", "then"),
    [
        ("read", (), ALLOW),
        ("clone", (0x003D0F00,), ALLOW),  # pthread_create of glibc
        ("clone", (0x01200011,), DENY),  # fork of glibc: SIGCHLD and the child's tid
        ("clone", (0x10010000,), DENY),  # a thread with CLONE_NEWUSER
        ("clone3", (), ABSENT),
        ("socketpair", (1, 1), ALLOW),
        ("socketpair", (1, 0o2004001), ALLOW),  # SOCK_CLOEXEC | SOCK_NONBLOCK
        ("socketpair", (1, 2), DENY),
        ("socketpair", (1, 5), DENY),
        ("socketpair", (2, 1), DENY),
        ("fcntl", (0, 3), ALLOW),
        ("fcntl", (0, 4, 0o4000), ALLOW),  # O_NONBLOCK
        ("fcntl", (0, 4, 0o24000), DENY),  # O_ASYNC
        ("fcntl", (0, 8), DENY),  # F_SETOWN
        ("fcntl", (0, 10), DENY),  # F_SETSIG
        ("fcntl", (0, 15), DENY),  # F_SETOWN_EX
        ("fcntl", (0, (1 << 32) | 8), DENY),  # the kernel looks at 32 bits
        ("kill", (PID, 9), ALLOW),
        ("kill", (0, 9), DENY),
        ("kill", (0xFFFFFFFF, 9), DENY),
        ("kill", (1, 9), DENY),
        ("tgkill", (PID, 5, 6), ALLOW),
        ("prlimit64", (0,), ALLOW),
        ("prlimit64", (1,), DENY),
        ("sched_setaffinity", (PID,), ALLOW),
        ("sched_setaffinity", (1,), DENY),
        ("ioctl", (1, 0x5401), ALLOW),
        ("ioctl", (1, 0x5412), fail(errno.ENOTTY)),
        ("fchmodat", (), PRETEND),
        ("utimensat", (), PRETEND),
        ("fsetxattr", (), fail(errno.EOPNOTSUPP)),
        ("openat", (0, 0, 0x200), ALLOW),
        ("fallocate", (3, 0, 0, 1 << 30), fail(errno.EOPNOTSUPP)),
        ("ftruncate", (3, 1 << 30), ALLOW),
        ("flock", (3, 2), PRETEND),
        ("fcntl", (3, 5), ALLOW),  # F_GETLK
        ("fcntl", (3, 6), PRETEND),  # F_SETLK
        ("fcntl", (3, 7), PRETEND),  # F_SETLKW
        *(("fcntl", (3, command), fail(errno.EINVAL)) for command in (36, 37, 38)),  # F_OFD_*
        ("sendto", (3, 0, 9, 0x4040), ALLOW),  # MSG_NOSIGNAL | MSG_DONTWAIT
        ("sendto", (3, 0, 9, 0x4041), DENY),  # MSG_OOB
        ("recvfrom", (3, 0, 9, 0x142), ALLOW),  # MSG_WAITALL | MSG_DONTWAIT | MSG_PEEK
        ("recvfrom", (3, 0, 9, 1), DENY),
        ("recvfrom", (3, 0, 9, 0x2000), DENY),  # MSG_ERRQUEUE
        ("recvmsg", (3, 0, 0x40000002), ALLOW),  # MSG_CMSG_CLOEXEC | MSG_PEEK
        ("recvmsg", (3, 0, 1), DENY),
        ("mmap", (0, 4096, 3, 0x22), ALLOW),
        ("mmap", (0, 4096, 3, 0x40022), fail(errno.EINVAL)),  # MAP_HUGETLB
        ("mmap", (0, 4096, 3, (1 << 32) | 0x40022), fail(errno.EINVAL)),
        ("madvise", (0, 4096, 4), ALLOW),  # MADV_DONTNEED
        *(("madvise", (0, 4096, way), fail(errno.EINVAL)) for way in (9, 12, 20, 21, 25, 100, 101)),
        ("preadv2", (3, 0, 1, 0, 0, 0), ALLOW),
        ("preadv2", (3, 0, 1, 0, 0, 8), fail(errno.EOPNOTSUPP)),  # RWF_NOWAIT
        ("pwritev2", (3, 0, 1, 0, 0, 8), fail(errno.EOPNOTSUPP)),
        ("fadvise64", (3, 0, 0, 4), PRETEND),  # POSIX_FADV_DONTNEED
        ("getsockopt", (3, 1, 4), ALLOW),  # SO_ERROR
        ("getsockopt", (3, 1, 17), DENY),  # SO_PEERCRED
        ("getsockopt", (3, 1, 77), DENY),  # SO_PEERPIDFD
        ("getsockopt", (3, 6, 4), DENY),
    ],
)
def test_verdicts(machine: str, name: str, arguments: tuple[int, ...], then: int) -> None:
    assert verdict(machine, name, *arguments) == then


@both
def test_a_process_that_can_be_copied_forks_for_a_tracer_only(machine: str) -> None:
    copyable = rules(None)

    assert verdict(machine, "clone", 0x01200011, of=copyable) == TRACE
    assert verdict(machine, "clone", 0x01208011, of=copyable) == TRACE
    assert verdict(machine, "clone", 0x003D0F00, of=copyable) == ALLOW
    for flags in (0x11, 0x8011, 0x4111, 0x10000011, 0x01202011, 0x01A00011, 0x01200000):
        assert verdict(machine, "clone", flags, of=copyable) == DENY
    assert verdict(machine, "clone", 0x01200011) == DENY
    assert verdict(machine, "prlimit64", PID, of=copyable) == DENY


@both
def test_the_supervisor_decides_on_signals_alone(machine: str) -> None:
    program = assemble(supervision(), machine, ALLOW)

    assert run_filter(program, ARCH[machine], numbers(machine)["kill"], (1, 9)) == NOTIFY
    assert run_filter(program, ARCH[machine], numbers(machine)["tgkill"], (PID, 5, 6)) == NOTIFY
    for call in ("clone", "ptrace", "read", "seccomp"):
        assert run_filter(program, ARCH[machine], numbers(machine)[call], ()) == ALLOW


@both
def test_no_descriptor_can_be_sent(machine: str) -> None:
    assert verdict(machine, "sendmsg", 3) == DENY
    assert verdict(machine, "sendto", 3) == ALLOW


@both
def test_a_copy_may_ask_to_die_with_its_parent_and_never_take_it_back(machine: str) -> None:
    assert verdict(machine, "prctl", 1, 9) == ALLOW
    assert verdict(machine, "prctl", 1, 0) == DENY
    assert verdict(machine, "prctl", 1, 15) == DENY


@both
def test_no_truncation_by_path_where_landlock_does_not_govern_it(machine: str) -> None:
    of = rules(PID, truncate_by_path=False)

    assert verdict(machine, "openat", 0, 0, 0, of=of) == ALLOW
    assert verdict(machine, "openat", 0, 0, 0x200, of=of) == DENY
    assert verdict(machine, "openat", 0, 0, 0x201, of=of) == ALLOW
    assert verdict(machine, "openat", 0, 0, 0x203, of=of) == DENY
    assert verdict(machine, "openat2", of=of) == ABSENT
    assert verdict(machine, "truncate", of=of) == DENY
    assert verdict(machine, "ftruncate", of=of) == ALLOW


def test_two_rules_for_one_call_are_an_error() -> None:
    with pytest.raises(ValueError, match="two rules name the system call read"):
        assemble((Rule("read", "", ALLOW), Rule("read", "", DENY)), "x86_64")


def test_all_conditions_of_a_case_must_hold() -> None:
    case = Case((Where(0, (1, 2)), Where(1, (3,), mask=0xF)), ALLOW)
    of = (Rule("read", "", DENY, (case,)),)

    assert verdict("x86_64", "read", 2, 0x13, of=of) == ALLOW
    assert verdict("x86_64", "read", 3, 0x13, of=of) == DENY
    assert verdict("x86_64", "read", 1, 0x14, of=of) == DENY


@both
def test_the_filter_fits_the_kernel(machine: str) -> None:
    assert len(assemble(rules(PID, truncate_by_path=False), machine)) // 8 < 4096
