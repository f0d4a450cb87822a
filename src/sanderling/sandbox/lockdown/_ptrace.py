"""Traces another process: stops it at its own system calls, and makes it do calls of ours.

A traced process cannot run on by itself, and dies with its tracer (``PTRACE_O_EXITKILL``).

Source: ptrace(2), ``linux/ptrace.h``, ``linux/elf.h``, ``asm/ptrace.h`` (the registers).
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ._linux import machine, syscall
from ._syscalls import numbers

_CONT, _DETACH, _SYSCALL = 7, 17, 24
_GETEVENTMSG, _GETREGSET, _SETREGSET = 0x4201, 0x4204, 0x4205
_SEIZE, _LISTEN = 0x4206, 0x4208
# PTRACE_O_TRACESYSGOOD, _TRACEFORK, _TRACESECCOMP, _EXITKILL
_OPTIONS = 0x1 | 0x2 | 0x80 | 0x100000
_EVENT_FORK, _EVENT_SECCOMP, _EVENT_STOP = 1, 7, 128
_AT_CALL = signal.SIGTRAP | 0x80
_JOB_CONTROL = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
_NT_PRSTATUS = 1  # the set of general registers
_ALL = 0x40000000  # __WALL


@dataclass(frozen=True)
class _Layout:
    """Where the registers of a machine stand, and the size of its instruction for a call."""

    count: int
    number: int
    entered: int
    result: int
    counter: int
    arguments: tuple[int, ...]
    instruction: int


_LAYOUTS = {
    # struct user_regs_struct: rax, orig_rax, rax, rip; rdi rsi rdx r10 r8 r9
    "x86_64": _Layout(27, 10, 15, 10, 16, (14, 13, 12, 7, 9, 8), 2),
    # struct user_pt_regs: x8, x8, x0, pc; x0 to x5
    "aarch64": _Layout(34, 8, 8, 0, 32, (0, 1, 2, 3, 4, 5), 4),
}

Kind = Literal["fork wanted", "forked", "call", "born or woken", "paused", "signal"]


@dataclass(frozen=True)
class Stop:
    """Why a traced process has stopped.

    Attributes:
        kind: ``"fork wanted"``: at a system call that the filter leaves to the tracer.
            ``"forked"``: in the middle of a fork that worked; `new_child` names the child.
            ``"call"``: at the beginning or the end of a system call.
            ``"born or woken"``: a new child that has run nothing, or a process that goes on.
            ``"paused"``: by SIGSTOP or its like.
            ``"signal"``: before a signal is delivered.
        signal: The signal, of the last two.
    """

    kind: Kind
    signal: int = 0


class Registers:
    """The registers of a stopped process."""

    def __init__(self, values: "ctypes.Array[ctypes.c_ulong]") -> None:
        self._layout = _LAYOUTS[machine()]
        self._values = values

    def copy(self) -> "Registers":
        """Returns registers that change by themselves."""
        return Registers(type(self._values)(*self._values))

    @property
    def call(self) -> int:
        """The number of the system call that the process is in."""
        return self._values[self._layout.entered]

    @property
    def result(self) -> int:
        """What the call returned: an error is its negative number."""
        return ctypes.c_long(self._values[self._layout.result]).value

    def is_argument(self, place: int) -> bool:
        """Returns whether an argument is still there, with the result of the call elsewhere."""
        return self._layout.arguments[place] != self._layout.result

    def argument(self, place: int) -> int:
        """Returns an argument of the call."""
        return self._values[self._layout.arguments[place]]

    def set_argument(self, place: int, value: int) -> None:
        """Changes an argument of the call."""
        self._values[self._layout.arguments[place]] = value

    def repeat_as(self, number: int, *arguments: int) -> None:
        """Goes back to the instruction of the last call, and makes it call something else."""
        self._values[self._layout.counter] -= self._layout.instruction
        self._values[self._layout.number] = number
        for place, value in enumerate(arguments):
            self.set_argument(place, value)

    @contextlib.contextmanager
    def as_vector(self) -> "Iterator[int]":
        """Gives the address of a ``struct iovec`` that holds them."""
        size = ctypes.sizeof(self._values)
        vector = (ctypes.c_size_t * 2)(ctypes.addressof(self._values), size)
        yield ctypes.addressof(vector)


def seize(pid: int) -> None:
    """Begins to trace the main thread of a process, which goes on until it has reason to stop.

    Its children are traced from their birth, and stop before they run anything.

    Raises:
        OSError: The machine does not let this process trace it.
    """
    syscall("ptrace", _SEIZE, pid, 0, _OPTIONS)


def stops() -> "Iterator[tuple[int, Stop]]":
    """Yields which traced children have stopped and why, once for each stop."""
    with contextlib.suppress(ChildProcessError):  # there is no child
        while found := os.waitid(os.P_ALL, 0, os.WSTOPPED | os.WNOHANG | _ALL):
            if found.si_code == os.CLD_TRAPPED:  # others are paused, and not traced
                yield found.si_pid, _stop(found.si_status)


def _stop(status: int) -> Stop:
    event, number = status >> 8, status & 0xFF
    if event == _EVENT_SECCOMP:
        return Stop("fork wanted")
    if event == _EVENT_FORK:
        return Stop("forked")
    if event == _EVENT_STOP:
        return Stop("paused", number) if number in _JOB_CONTROL else Stop("born or woken")
    return Stop("call") if number == _AT_CALL else Stop("signal", number)


def go_on(pid: int, signal_number: int = 0) -> None:
    """Lets a stopped process go on, with a signal delivered if one is named.

    Raises:
        OSError: It has ended.
    """
    syscall("ptrace", _CONT, pid, 0, signal_number)


def go_to_next_call(pid: int) -> None:
    """Lets a stopped process go on to the beginning or the end of a system call.

    Raises:
        OSError: It has ended.
    """
    syscall("ptrace", _SYSCALL, pid, 0, 0)


def stay_paused(pid: int) -> None:
    """Leaves a process paused, as it would be without a tracer.

    Raises:
        OSError: It has ended.
    """
    syscall("ptrace", _LISTEN, pid, 0, 0)


def let_go(pid: int) -> None:
    """Ends the tracing of a stopped process.

    Raises:
        OSError: It has ended.
    """
    syscall("ptrace", _DETACH, pid, 0, 0)


def new_child(pid: int) -> int:
    """Returns the number of the child of a process that has stopped as ``"forked"``.

    Raises:
        OSError: It has ended.
    """
    number = ctypes.c_ulong()
    syscall("ptrace", _GETEVENTMSG, pid, 0, ctypes.addressof(number))
    return number.value


def registers(pid: int) -> Registers:
    """Reads the registers of a stopped process.

    Raises:
        OSError: It has ended.
    """
    read = Registers((ctypes.c_ulong * _LAYOUTS[machine()].count)())
    with read.as_vector() as vector:
        syscall("ptrace", _GETREGSET, pid, _NT_PRSTATUS, vector)
    return read


def set_registers(pid: int, wanted: Registers) -> None:
    """Changes the registers of a stopped process.

    Raises:
        OSError: It has ended.
    """
    with wanted.as_vector() as vector:
        syscall("ptrace", _SETREGSET, pid, _NT_PRSTATUS, vector)


def number_of(call: str) -> int:
    """Returns the number of a system call on this machine."""
    return numbers(machine())[call]
