"""Forks a process as its tracer does, and makes a new process call the system.

These are generators, as the fork server never waits for one process alone: each yields the number
of the process that has to stop next, and is sent why it did. `ForkFailed` leaves the process as it
was. After any other `OSError` its state is unknown.
"""

import errno
from collections.abc import Generator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from sanderling.sandbox.lockdown import FORK, FORK_SIBLING, ptrace
else:
    from lockdown import FORK, FORK_SIBLING, ptrace

Steps: TypeAlias = "Generator[int, ptrace.Stop, int]"


class ForkFailed(OSError):  # noqa: N818 - an OSError, as its name has it
    """The system refused a fork."""


_RESTARTED = range(512, 517)  # ERESTARTSYS and its like: the call is made again after a signal


def forked(pid: int) -> Steps:
    """Waits for a process that is traced to fork, and lets it, once.

    Signals reach it meanwhile. Afterwards it stands still.

    Returns:
        The number of the new process, which has run nothing.

    Raises:
        ForkFailed: The system refused.
        OSError: The process did something else.
    """
    while True:
        stop = yield pid
        if stop.kind == "fork wanted":
            try:
                return (yield from _let_fork(pid))
            except ForkFailed as error:
                if error.errno not in _RESTARTED:
                    raise
            ptrace.go_on(pid)
        elif stop.kind == "paused":
            ptrace.stay_paused(pid)
        else:
            ptrace.go_on(pid, stop.signal)


def twin(template: int) -> Steps:
    """Forks a template, which stays what it is.

    Returns:
        The number of the new process, which has run nothing.

    Raises:
        ForkFailed: The system refused.
        OSError: The process did something else.
    """
    before = ptrace.registers(template)
    yield from _enter(template, before, ptrace.number_of("clone"), FORK)
    ptrace.go_to_next_call(template)
    stop = yield template
    if stop.kind != "fork wanted":
        raise _unexpected(stop)
    try:
        child = yield from _let_fork(template)
    except ForkFailed:
        ptrace.set_registers(template, before)
        raise
    ptrace.go_to_next_call(template)
    yield from _at_call(template)
    ptrace.set_registers(template, before)
    return child


def called(template: int, call: str, *arguments: int) -> Steps:
    """Makes a process that has run nothing call the system.

    Args:
        template: The process.
        call: The name of the system call.
        arguments: Numbers.

    Returns:
        What the call returned: an error is its negative number.

    Raises:
        OSError: The process did something else.
    """
    before = ptrace.registers(template)
    yield from _enter(template, before, ptrace.number_of(call), *arguments)
    ptrace.go_to_next_call(template)
    yield from _at_call(template)
    result = ptrace.registers(template).result
    ptrace.set_registers(template, before)
    return result


def _enter(
    pid: int, before: ptrace.Registers, number: int, *arguments: int
) -> "Generator[int, ptrace.Stop, None]":
    """Makes a process begin a call. Its memory may be anything, so what it began is checked."""
    wanted = before.copy()
    wanted.repeat_as(number, *arguments)
    ptrace.set_registers(pid, wanted)
    ptrace.go_to_next_call(pid)
    yield from _at_call(pid)
    begun = ptrace.registers(pid)
    if (begun.call, *map(begun.argument, range(len(arguments)))) != (number, *arguments):
        raise OSError(errno.EPROTO, "a process made another call than the one it should")


def _at_call(pid: int) -> "Generator[int, ptrace.Stop, None]":
    stop = yield pid
    while stop.kind == "signal":  # a template gets none
        ptrace.go_to_next_call(pid)
        stop = yield pid
    if stop.kind != "call":
        raise _unexpected(stop)


def _let_fork(pid: int) -> Steps:
    flags = _set_flags(pid, FORK_SIBLING)
    ptrace.go_to_next_call(pid)
    stop = yield pid
    if stop.kind == "call":
        number = -ptrace.registers(pid).result
        _set_flags(pid, flags)
        raise ForkFailed(number, "the fork failed")
    if stop.kind != "forked":
        raise _unexpected(stop)
    child = ptrace.new_child(pid)
    _set_flags(pid, flags)
    stop = yield child
    if stop.kind != "born or woken":
        raise _unexpected(stop)
    _set_flags(child, flags)
    return child


def _set_flags(pid: int, flags: int) -> int:
    """Changes the flags of a fork, unless its result is in their place; returns those before."""
    changed = ptrace.registers(pid)
    before = changed.argument(0)
    if changed.is_argument(0):
        changed.set_argument(0, flags)
        ptrace.set_registers(pid, changed)
    return before


def _unexpected(stop: ptrace.Stop) -> OSError:
    return OSError(errno.EPROTO, f"a process stopped for another reason: {stop.kind}")
